"""Continuous reporting: the state at any horizon and any time equals what brute force finds in its window."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes as pn
from panes.errors import DeclarationError, PlanError, SchemaError
from panes.testing import assert_same_answers, brute_force, events

SELECT = {
    "n": pn.count(),
    "total": pn.sum("i"),
    "mean": pn.mean("x"),
    "low": pn.min("s"),
    "high": pn.max("x"),
    "spread": pn.std("i"),
    "first": pn.first("s"),
    "last": pn.last("i"),
    "most": pn.arg_max("s", "i"),
    "twice": "n * 2",
}
VALUES = {"i": pa.int32(), "x": pa.float64(), "s": pa.string()}
START = 1_700_000_000_000_000


def instant(micros: int) -> dt.datetime:
    return dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=micros)


def window_of(answers: pa.Table) -> tuple[int, int]:
    [window] = {tuple(row.values()) for row in answers["window"].cast(MICROS).to_pylist()}
    return window


class Granules:
    """A live plan of one query that keeps granules, those of its own window."""

    def __init__(self, query: Any, keep: Any = None) -> None:
        self.query, self.live = query, pn.plan(query).live(query.over[0] if keep is None else keep)
        self.update = self.live.update

    @property
    def left_out(self) -> int:
        return self.live.left_out

    def state(self, over: str, at: Any = None) -> pa.Table:
        answers = self.live.find(over=over, at=at)
        names = {"query": self.query.name, "window_name": over}
        for name, value in names.items():
            answers = answers.append_column(name, pa.repeat(value, len(answers)))
        return answers.select([*names, "window", *self.query.by, *self.query.columns])


MICROS = pa.struct([("start", pa.int64()), ("end", pa.int64())])


@settings(max_examples=20)
@given(st.integers(0, 2**40), st.sampled_from(["[)", "(]"]), st.booleans(), st.booleans())
def test_every_horizon(seed: int, bounds: Any, begun: bool, in_step: bool) -> None:
    rng = random.Random(seed)
    table = events(
        60, keys={"k": pa.string()}, values=VALUES, start=START, special=0.0, null_times=0.05, seed=seed % 997
    )
    slides = ["1s", "4s", "12s"] if in_step else ["1s", "3s", "7s"]
    ranges = ["5s", "16s", "36s"] if in_step else ["5s", "15s", "35s"]
    since = instant(START + 5_000_000) if begun else None
    by = rng.choice([(), "k"])
    over = pn.nested(ranges, slides, since=since, bounds=bounds)
    where = rng.choice([None, "i > 0"])
    query = pn.query("q", at="ts", by=by, select=SELECT, over=over, where=where)
    stairs = Granules(query)
    # Roughly in the order of time, with a few that are late.
    times = [START if t is None else t for t in table["ts"].cast(pa.int64()).to_pylist()]
    table = table.take(sorted(range(len(table)), key=lambda i: times[i] + rng.random() * rng.choice([0, 0, 2e7])))
    for first in range(0, len(table), 20):
        stairs.update(table.slice(first, 20))
        arrived = table.slice(0, first + 20)
        for horizon in (1, 2, 5, 6, 13, 30, 35):
            answers = stairs.state(f"{horizon}s")
            assert set(answers["window_name"].to_pylist()) <= {f"{horizon}s"}
            if not len(answers):
                continue
            start, end = window_of(answers)
            known = [t for t in arrived["ts"].cast(pa.int64()).to_pylist() if t is not None]
            if where is None:
                assert end == max(known) + (bounds == "[)")
            assert start <= end - horizon * 10**6 or (begun and start == START + 5_000_000)
            # The same window, alone.
            length, name = dt.timedelta(microseconds=end - start), f"{horizon}s"
            alone = pn.tumbling(length, offset=f"{start % (end - start)}us", bounds=bounds, name=name)
            expected = brute_force(pn.query("q", at="ts", by=by, select=SELECT, over=alone, where=where), arrived)
            mine = [row["start"] == start for row in expected["window"].cast(MICROS).to_pylist()]
            assert_same_answers(answers, expected.filter(pa.array(mine)), absolute=1e-9)


def test_time_passes_without_events_and_does_not_go_back() -> None:
    stairs = Granules(pn.query("q", at="ts", select={"n": pn.count()}, over=pn.nested(["4s", "12s"], ["1s", "4s"])))
    stairs.update(pa.table({"ts": [instant(n * 10**6) for n in range(8)]}))
    assert stairs.state("4s", at="1970-01-01 00:00:08")["n"].to_pylist() == [4]
    assert stairs.state("12s", at=instant(14 * 10**6))["n"].to_pylist() == [8 - 0]
    assert stairs.state("4s").num_rows == 0
    with pytest.raises(PlanError, match="has passed"):
        stairs.state("4s", at=instant(10 * 10**6))
    stairs.update(pa.table({"ts": [instant(9 * 10**6), instant(-(10**9)), None]}))
    assert stairs.left_out == 1
    assert stairs.state("12s")["n"].to_pylist() == [9]
    assert stairs.state("12s", at="1980-01-01").num_rows == 0


def test_what_cannot_be() -> None:
    over = pn.nested(["4s", "12s"], ["1s", "4s"])
    counting = pn.query("q", at="ts", select={"n": pn.count("x")}, over=over)
    with pytest.raises(DeclarationError, match="has no at="):
        Granules(pn.query("q", select={"n": pn.count()}, over=pn.sliding(pn.rows(1))), over)
    with pytest.raises(DeclarationError, match="not for granules"):
        pn.plan(counting).live(over, algorithm="dyadic")
    with pytest.raises(PlanError, match="granules have no index"):
        pn.plan(counting).live(over).add_index("n")
    with pytest.raises(PlanError, match="granules answer for all keys"):
        pn.plan(counting).live(over).lookup(pa.table({"r": [1]}), over="1 s")
    with pytest.raises(DeclarationError, match="spans of time up to now"):
        pn.plan(counting).live(over).find(over=pn.rows(3))
    with pytest.raises(DeclarationError, match="at any time they just have"):
        Granules(pn.query("q", at="ts", select={"n": pn.count(), "until": "expires"}, over=over))
    stairs = Granules(counting)
    with pytest.raises(PlanError, match="no event has come"):
        stairs.state("1s")
    with pytest.raises(SchemaError, match="at='ts' is not a column"):
        stairs.update(pa.table({"time": [instant(0)], "x": [1]}))
    stairs.update(pa.table({"ts": [instant(0)], "x": [1]}))
    with pytest.raises(PlanError, match="Cast it first"):
        stairs.update(pa.table({"ts": [instant(0)], "x": ["a"]}))
    for horizon in ("13s", "0s", "-1s"):
        with pytest.raises(PlanError, match="looks back 12s"):
            stairs.state(horizon)


def test_aggregates_that_need_values_or_the_bounds_of_windows():
    """A horizon that is a level's range, at an instant where it slides, is what the plan reports there."""
    start = dt.datetime(2026, 1, 1, 12)
    table = pa.table(
        {
            "ts": [start + dt.timedelta(seconds=20 * i) for i in range(90)],
            "k": ["a", "b", "a"] * 30,
            "x": [float(i * i % 11) for i in range(90)],
        }
    )
    select = {
        "n": pn.count_distinct("x"),
        "all": pn.distinct("x"),
        "median": pn.quantile("x", 0.5),
        "line": pn.trend("x"),
        "decayed": pn.aged(pn.sum("x"), half_life="5 min"),
        "faded": pn.aged(pn.mean("x"), half_life="15 min", power=2),
        "about": pn.approx_count_distinct("x"),
        "top": pn.top("x", 2),
    }
    query = pn.query("q", at="ts", by="k", select=select, over=pn.nested(["1 min", "10 min"], ["1 min", "5 min"]))
    stairs = Granules(query)
    for first in (0, 40, 70):
        stairs.update(table.slice(first, 40 if first == 0 else 30 if first == 40 else 20))
    end = dt.datetime(2026, 1, 1, 12, 30)
    found = stairs.state("10 min", at=end).drop_columns(["window_name"])
    answers = pn.plan(query).run(table)
    ended = [row["end"] == end for row in answers["window"].to_pylist()]
    wide = [name == "10m/5m" for name in answers["window_name"].to_pylist()]
    expected = answers.filter(pa.array([a and b for a, b in zip(ended, wide, strict=True)]))
    assert found.num_rows == 2
    assert_same_answers(found, expected.drop_columns(["window_name"]), absolute=1e-9)


@pytest.mark.parametrize(
    "aggregate", [pn.recurring("x"), pn.aged(pn.count(), weights=[1, 1]), pn.trend("x", every="1 min")], ids=str
)
def test_what_a_horizon_cannot_answer_is_refused(aggregate):
    over = pn.nested(["1 min", "10 min"], ["1 min", "5 min"])
    with pytest.raises(DeclarationError, match="which a horizon cannot"):
        Granules(pn.query("q", at="ts", select={"a": aggregate}, over=over))


def test_ties_say_which_row_of_an_instant_is_the_last():
    table = pa.table({"ts": pa.array([5, 5, 5], pa.timestamp("us")), "id": [1, 2, 3], "x": [7, 9, 8]})
    declared = pn.query(at="ts", ties="id", select={"last": pn.last("x")}, over=pn.sliding("1 s"))
    plan = pn.plan(declared)
    live, exact = plan.live(keep=pn.nested(["10 s", "1 s"], ["1 s", "1 ms"])), plan.live()
    for each in (live, exact):
        each.update(table)
    assert live.find(over="1 s")["last"].to_pylist() == exact.find(over="1 s")["last"].to_pylist() == [8]
