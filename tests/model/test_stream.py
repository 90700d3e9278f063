"""A stream gives what a run gives: nothing late, complete windows, whatever the micro-batches."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes as pn
from tests.model.drawing import (
    CLASSES,
    CLOCK,
    MARKS,
    OF_ROWS,
    SCHEMA,
    SESSIONS,
    SLIDING,
    WINDOWS,
    events,
    in_time,
    micro_batches,
    rows_of,
)
from tests.model.streaming import Stream, passed

KEYS = st.sampled_from(["k", ()])
FAR = 10**6


@st.composite
def arrivals(draw, **more):
    """Rows, and the micro-batches in which they come."""
    table = draw(events(**more))
    return table, micro_batches(draw, table)


def check(query, table, batches):
    plan = pn.plan(query)
    stream, wanted = Stream(plan, SCHEMA), plan.run(table)
    found = stream.run(in_time(list(query.over), batches))
    assert rows_of(found) == rows_of(passed(query.over, wanted, stream.watermark))
    return stream, wanted, found


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@settings(max_examples=5)
@given(came=arrivals(), by=KEYS, chosen=st.sampled_from(list(CLASSES)), where=st.sampled_from([None, "y < 2"]))
def test_a_window(window, came, by, chosen, where):
    check(pn.query(by=by, at="ts", select=CLASSES[chosen], over=window, where=where), *came)


@settings(max_examples=20)
@given(came=arrivals(least=4), by=KEYS, over=st.lists(st.sampled_from(WINDOWS), min_size=2, max_size=6, unique_by=str))
def test_windows_mixed_as_one_likes(came, by, over):
    check(pn.query(by=by, at="ts", select=CLASSES["group"], over=over), *came)


@settings(max_examples=20)
@given(
    came=arrivals(least=4),
    by=KEYS,
    over=st.lists(st.sampled_from([*CLOCK, *SLIDING, *SESSIONS]), max_size=4, min_size=1, unique_by=str),
)
def test_all_of_it_when_the_watermark_has_passed_the_last_window(came, by, over):
    table, batches = came
    select = {**CLASSES["idempotent"], "both": "top - low"}
    query = pn.query(by=by, at="ts", select=select, over=over, having="late IS NOT NULL")
    stream, wanted, found = check(query, table, batches)
    rest = stream.step(table.slice(0, 0), FAR)
    assert rows_of(pa.concat_tables([found, rest])) == rows_of(wanted)


@settings(max_examples=20)
@given(came=arrivals(least=4), by=KEYS, window=st.sampled_from([*OF_ROWS, *SESSIONS, *MARKS]))
def test_groups_inside_a_window(came, by, window):
    select = {"n": pn.count(), "low": pn.min("x")}
    check(pn.query(by=by, at="ts", select=select, over=window, groups="g", having="n > 1"), *came)


@settings(max_examples=20)
@given(
    came=arrivals(least=6),
    over=st.lists(st.sampled_from(OF_ROWS), min_size=1, max_size=3, unique_by=str),
    ties=st.sampled_from(["y", ["z", "g"]]),
)
def test_ties(came, over, ties):
    select = {"low": pn.min("x"), "late": pn.last("x"), "early": pn.first("z"), "which": "number"}
    check(pn.query(by="k", at="ts", select=select, over=over, ties=ties), *came)


@settings(max_examples=15)
@given(
    came=arrivals(least=6),
    evict=st.sampled_from([pn.evict(keys=1), pn.evict(rows=4), pn.evict(age="5 us")]),
    window=st.sampled_from([*(w for w in OF_ROWS if not w.before), *MARKS[:1]]),
)
def test_keys_that_are_forgotten(came, evict, window):
    check(pn.query(by="k", at="ts", select={"n": pn.count(), "low": pn.min("x")}, over=window, evict=evict), *came)


def test_a_store_with_coarse_keys_keeps_granules_as_wide_as_its_own_windows():
    hour, select = 3600 * 10**6, {"n": pn.count()}
    fine = pn.query("fine", by=["k", "g"], at="ts", select=select, over=pn.hopping("1 hour", every="5 min"))
    coarse = pn.query("coarse", by="k", at="ts", select=select, over=pn.tumbling("1 day"))
    schema = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64(), "g": pa.int64()})
    stream = Stream(pn.plan([fine, coarse], rate=1000, keys={("k", "g"): 4, "k": 2}), schema)
    for start in range(0, 20 * hour, hour):
        instants = range(start, start + hour, hour // 60)
        columns = [instants, [i % 2 for i in range(60)], [i // 2 % 2 for i in range(60)]]
        stream.step(pa.table(columns, schema=schema), start + hour)
    # A granule per key and run, not one per key and five minutes.
    assert sum(stream.granules("k")) < 10
