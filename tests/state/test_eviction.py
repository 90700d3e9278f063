"""Keys are evicted to bound the state, and never answered silently in part."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes as pn
from panes.errors import DeclarationError
from panes.state.key_eviction import Evictions
from panes.state.stream_options import StreamOptions
from tests.state.simulation import Event, events
from tests.state.test_views import DECLARED, Stream

AGES = st.none() | st.integers(1, 30).map("{}us".format)
RANGES = {window.name: window.geometry.range for window in DECLARED}


def limited(limits: pn.Limits) -> Stream:
    stream = Stream()
    stream.options = StreamOptions(limits=limits)
    return stream


@settings(max_examples=100)
@given(
    batches=st.lists(events(0, 200), min_size=2, max_size=10),
    delay=st.integers(0, 30),
    given=st.tuples(AGES, st.none() | st.integers(1, 2), st.none() | st.integers(1, 5)).filter(any),
    emit=st.booleans(),
)
def test_answers_that_claim_to_be_whole_are(
    batches: list[list[Event]], delay: int, given: tuple[str | None, int | None, int | None], emit: bool
) -> None:
    stream, free = limited(pn.Limits(*given, emit)), Stream()
    watermark = 0
    for batch in [*batches, []]:
        last = watermark if batch or batch is batches[-1] else 10**6
        found, whole = stream.step(batch, last), free.step(batch, last)
        truth = {(row["window"], row["start"], row["key"], "n" in row): row for row in whole}
        complete = [row for row in found if row["coverage"] == 1]
        for row in complete:
            assert row == truth[row["window"], row["start"], row["key"], "n" in row]
        assert emit or len(complete) == len(found)
        watermark = max([watermark, *(instant - delay for _, instant, _ in batch)])


def test_the_least_recently_updated_key_goes_and_its_open_windows_come_out() -> None:
    stream = limited(pn.Limits(keys=2))
    assert not stream.step([(0, 5, 1), (1, 6, 1)], 0)
    found = stream.step([(2, 15, 1), (1, 12, 1)], 2)
    evicted = [(row["window"].name, row["key"], row["n"], row["coverage"]) for row in found if "n" in row]
    assert evicted == [("10us", 0, 1, 0.2), ("40us/20us", 0, 1, 0.55), ("40us/20us", 0, 1, 0.05)]
    # It returns: its windows that had begun before are told from whole ones.
    found = stream.step([(0, 16, 1)], 2) + stream.step([], 20)
    again = {(row["window"].name, row["start"]): row["coverage"] for row in found if row["key"] == 0 and "n" in row}
    assert again["10us", 10] == 1
    assert again["40us/20us", -20] == 0.25


def test_state_is_bounded_when_keys_are_not() -> None:
    stream, free = limited(pn.Limits(age="20us", rows=300)), Stream()
    for number in range(60):
        batch = [(1000 * number + i, 10 * number, 1) for i in range(100)]
        stream.step(batch, 10 * number)
        free.step(batch, 10 * number)
    sizes = [sum(len(data) for data in s.blob_store.blobs.values()) for s in (stream, free)]
    assert sizes[0] < 0.8 * sizes[1]


def test_evictions_follow_their_keys() -> None:
    evictions = Evictions([(2, 100)])
    evictions.renumber(np.array([0, -1, 1, 2]))
    assert evictions.since(np.array([0, 1, 2])).tolist()[1:] == [100, 100]
    evictions.drop_before(100)
    assert not evictions.listed


@pytest.mark.parametrize("wrong", [{}, {"age": "0s"}, {"keys": 0}, {"rows": 1.5}])
def test_limits_that_cannot_be(wrong: dict[str, object]) -> None:
    with pytest.raises(DeclarationError):
        pn.Limits(**wrong)
