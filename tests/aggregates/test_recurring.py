"""Items that recur over the levels of a nested window."""

from __future__ import annotations

import pyarrow as pa
import pytest

import panes as pn
from panes.errors import DeclarationError, PlanError


def stream(**bits):
    """Events of each item at the ticks where its string has a 1; the last tick of all is 15."""
    ticks = {int(item[1:]): text.replace("|", "").replace(" ", "") for item, text in bits.items()}
    rows = [(t, item) for item, text in ticks.items() for t, bit in enumerate(text) if bit == "1"]
    return pa.table({"ts": pa.array([t for t, _ in rows], pa.timestamp("us")), "item": [item for _, item in rows]})


def test_the_bitmaps_of_figure_4():
    """Levels ⟨4, 1⟩, ⟨8, 2⟩, ⟨16, 4⟩: 4 has a bit in every one, and 7 has none between four and eight ticks ago."""
    table = stream(_4="0100 0000|0010|0001", _7="1000 0100|0000|0110")
    figure = pn.nested(ranges=["16us", "8us", "4us"], slides=["4us", "2us", "1us"], symmetric=True)
    select = {"again": pn.recurring("item"), "often": pn.recurring("item", ranked=True)}
    answers = pn.plan(pn.query("q", at="ts", select=select, over=figure)).run(table)
    last = {row["window_name"]: row for row in answers.to_pylist() if row["window"]["end"].microsecond == 16}
    assert last["16us/4us"]["again"] == [4]
    assert last["16us/4us"]["often"] == [{"item": 4, "n": 3}]
    assert last["4us/1us"]["again"] == [4, 7]


def test_only_levels_in_step_can_be_compared():
    with pytest.raises(DeclarationError, match=r"compares the levels of a nested window, and 5m has none"):
        pn.query("q", at="ts", select={"r": pn.recurring("x")}, over=pn.tumbling("5 min"))
    uneven = pn.nested(["10s", "30s"], ["2s", "3s"])
    with pytest.raises(DeclarationError, match="do not slide in step"):
        pn.query("q", at="ts", select={"r": pn.recurring("x")}, over=uneven)


def test_weights_and_levels_have_to_match():
    over = pn.nested(["10s", "30s"], ["1s", "10s"])
    with pytest.raises(DeclarationError, match=r"has 3 weights, and 30s/10s, 10s/1s has 2 levels"):
        pn.query("q", at="ts", select={"r": pn.aged(pn.count(), weights=[1, 1, 1])}, over=over)
    with pytest.raises(DeclarationError, match="Give one of them"):
        pn.aged(pn.count(), weights=[1], half_life="1s")
    with pytest.raises(DeclarationError, match="nothing says how"):
        pn.aged(pn.count())
    for weights in ([], [-1], ["a"], 3, [float("nan")]):
        with pytest.raises(DeclarationError, match="write a number from 0 on for each level"):
            pn.aged(pn.count(), weights=weights)
    with pytest.raises(PlanError, match="run in columns only"):
        pn.plan(pn.query("q", at="ts", select={"r": pn.recurring("x")}, over=over), strategy="rewrite").explain()
