"""Shards that get nothing in a micro-batch while the watermark stands still: they write nothing, and lose nothing."""

from __future__ import annotations

import pytest

import panes as pn
from panes.errors import StateError
from tests.state.test_tally import N, Running, came, late_and_lost


def test_shards_without_news_still_hold_what_they_held() -> None:
    """Also where only others get rows, and the watermark stands still."""
    running = Running(pn.query("q", by="k", at="ts", select=N, over=pn.tumbling("10us")))
    everyone = came(*((5, key, 1) for key in "abcdefgh"))
    held = [running.step(everyone, 0), running.step(came((5, "a", 1)), 0), running.step(came((None, "a", 1)), 0)]
    assert [metrics["keys"] for metrics in held] == [8, 8, 8]
    assert [metrics["granules"] for metrics in held] == [8, 9, 9]
    assert [metrics["open_windows"] for metrics in held] == [1, 1, 1]


def test_shards_without_news_count_open_windows_of_the_present_queries() -> None:
    by_key, other = (
        pn.query("q", by="k", at="ts", select=N, over=over)
        for over in (pn.hopping("50us", every="5us"), pn.tumbling("50us"))
    )
    running = Running(by_key)
    assert running.step(came((60, "a", 1)), 0)["open_windows"] == 10
    again = Running(other)
    again.stream.stores, again.stream.timers = running.stream.stores, running.stream.timers
    assert again.step(came((None, "a", 1)), 0)["open_windows"] == 1


def test_a_late_event_comes_out_though_its_shard_gets_nothing_else() -> None:
    """It travels to a shard of the first store, which may not count it, while the watermark stands still."""
    by_both = pn.query("a", by=("k", "x"), at="ts", select=N, over=pn.tumbling("10us"), where="x > 0")
    other = pn.query("b", by="k", at="ts", select={"m": pn.count()}, over=pn.tumbling("10us"), where="x < 0")
    running = Running(by_both, other, late="emit")
    running.step(came(*((64, key, 1) for key in "abcd")), 0)
    running.step(None, 64)
    for x in (-1, 1):
        for key in "abcdefgh":
            assert late_and_lost(running.step(came((5, key, x)), 64)) == (1, 1, 1)
            assert running.details == ["0"]
            running.details.clear()


def test_state_of_queries_that_have_gone_goes_at_once() -> None:
    """Otherwise a run that has them again would take it for complete."""
    by_key = pn.query("a", by="k", at="ts", select=N, over=pn.tumbling("50us"), where="x > 0")
    alone = pn.query("b", at="ts", select={"m": pn.count()}, over=pn.tumbling("50us"), where="x > 0")
    both, one = Running(by_key, alone), Running(by_key)
    both.step(came((5, "a", 1), (6, "b", 1)), 0)
    one.stream.stores, one.stream.timers = both.stream.stores, both.stream.timers
    one.step(came((7, "a", -1)), 0)
    with pytest.raises(StateError, match="the checkpoint keeps nothing by"):
        both.step(came((8, "a", 1)), 0)
