"""A lookup gives what a run has at an event, and what a stream had served by a request."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes as pn
from panes.errors import DeclarationError
from panes.queries.measures import Rows
from panes.queries.windows import Cumulate, RowWindow
from panes.testing import assert_same_answers, brute_force_lookup
from tests.model.drawing import (
    CLASSES,
    CLOCK,
    LAST_ROWS,
    MARKS,
    OF_ROWS,
    SCHEMA,
    SESSIONS,
    SLIDING,
    TIME,
    events,
    rows_of,
    table_of,
)
from tests.model.streaming import Stream

TICKING = [
    pn.hopping(pn.rows(3), every="4 us"),
    pn.hopping(pn.rows(3), every="4 us", offset="1 us"),
    pn.hopping(pn.rows(3), every="4 us", bounds="(]"),
    pn.hopping(pn.rows(3), every="3 us", partial=False, name="three of three, full"),
]
UP_TO_EVENTS = [*LAST_ROWS, pn.sliding(pn.rows(3), partial=False, name="three, full")]
ON_THE_CLOCK = [*CLOCK, *TICKING]
LOOKED_UP = [*ON_THE_CLOCK, *SLIDING, *UP_TO_EVENTS]
KEYS = st.sampled_from(["k", ()])
FAR = table_of([(500, "z", "u", 10**6, 1, 1, 1.0, False)])
"""An event after all requests, so that a run answers every window that begins before it."""


@st.composite
def requests(draw):
    """Requests at any time, of known and of unknown keys."""
    asked = draw(st.lists(st.tuples(st.integers(0, 90), st.sampled_from(["a", "b", "nobody", None])), max_size=8))
    instants, keys = zip(*asked, strict=True) if asked else ([], [])
    return pa.table({"ts": pa.array(instants, TIME), "k": pa.array(keys, pa.string())})


def micros(moment) -> int:
    return pa.scalar(moment, TIME).cast(pa.int64()).as_py()


def found_by(answers: pa.Table, columns) -> dict:
    """Answers of a run by window, key and end."""
    return {
        (row["window_name"], row.get("k"), micros(row["window"]["end"])): shown(row, columns)
        for row in answers.to_pylist()
    }


def shown(row, columns):
    return [round(row[name], 9) if isinstance(row[name], float) else row[name] for name in columns]


def nothing(query):
    """The answer over no event."""
    known = dict(query.aggregates)
    return [0 if str(known[name]).startswith("count") else None for name in query.columns]


def newest(window, level: int, t: int) -> int:
    """Where the newest instance of a window ends that ends by some instant."""
    if isinstance(window, RowWindow):
        period, phase = window.every, window.offset
    elif isinstance(window, Cumulate):
        period, phase = window.step, window.offset
    else:
        own = window.windows[level]
        period, phase = own.geometry.slide, own.geometry.offset + own.geometry.range - own.end_shift
    return t - (t - phase) % period


def levels_of(over):
    """Each window by the names that results have for it."""
    return {name: (window, level) for window in over for level, name in enumerate(window.names)}


@pytest.mark.parametrize("chosen", CLASSES)
@settings(max_examples=12)
@given(table=events(), by=KEYS, where=st.sampled_from([None, "y < 2"]))
def test_of_sliding_windows_in_time_it_is_the_row_of_the_event(chosen, table, by, where):
    query = pn.query(by=by, at="ts", select=CLASSES[chosen], over=SLIDING, where=where)
    plan, ago = pn.plan(query), {window.name: window.ago for window in SLIDING}
    counted = table if where is None else table.filter(pa.compute.less(table["y"], 2))
    run = {}
    for (name, key, end), row in found_by(plan.run(table), query.columns).items():
        run[name, key, end + ago[name]] = row
    looked = plan.lookup(table, counted.select(["ts", "k"]), layout="long").to_pylist()
    assert len(looked) == len(SLIDING) * len(counted)
    for row in looked:
        key = row["k"] if by else None
        assert shown(row, query.columns) == run[row["window_name"], key, micros(row["ts"])]


@pytest.mark.parametrize("chosen", CLASSES)
@settings(max_examples=12)
@given(table=events(), by=KEYS, where=st.sampled_from([None, "y < 2"]), ties=st.sampled_from([(), "y", ("z", "g")]))
def test_of_the_last_rows_it_is_the_last_row_of_the_instant(chosen, table, by, where, ties):
    terms = {"by": by, "at": "ts", "over": UP_TO_EVENTS, "where": where, "ties": ties}
    query = pn.query(select=CLASSES[chosen], **terms)
    run = {}
    for row in pn.plan(pn.query(select={**CLASSES[chosen], "which": "number"}, **terms)).run(table).to_pylist():
        at = row["window_name"], row.get("k"), micros(row["window"]["end"])
        run[at] = max(run.get(at, (-1, [])), (row["which"], shown(row, query.columns)), key=lambda pair: pair[0])
    counted = table if where is None else table.filter(pa.compute.less(table["y"], 2))
    for row in pn.plan(query).lookup(table, counted.select(["ts", "k"]), layout="long").to_pylist():
        at = row["window_name"], row["k"] if by else None, micros(row["ts"])
        assert shown(row, query.columns) == run.get(at, (None, nothing(query)))[1]


@pytest.mark.parametrize("chosen", CLASSES)
@settings(max_examples=12)
@given(table=events(), asked=requests(), by=KEYS, delay=st.integers(0, 6))
def test_of_windows_on_the_clock_it_is_the_newest_complete_instance(chosen, table, asked, by, delay):
    query = pn.query(by=by, at="ts", select=CLASSES[chosen], over=ON_THE_CLOCK)
    plan = pn.plan(query)
    run = found_by(plan.run(pa.concat_tables([table, FAR])), query.columns)
    looked = plan.lookup(table, asked, layout="long", delay=f"{delay} us").to_pylist()
    windows = levels_of(ON_THE_CLOCK)
    assert len(looked) == len(windows) * len(asked)
    for row in looked:
        end = newest(*windows[row["window_name"]], micros(row["ts"]) - delay)
        at = row["window_name"], row["k"] if by else None, end
        assert shown(row, query.columns) == run.get(at, nothing(query)), at


@settings(max_examples=15)
@given(table=events(least=4), asked=st.integers(0, 60), by=KEYS, delay=st.integers(0, 6))
def test_with_a_delay_it_is_what_a_stream_had_served(table, asked, by, delay):
    """A stream that has seen an event of the time of the request: its watermark lies the delay before it.

    A window that holds its end is served when the watermark has passed that, and not when it has reached it.
    """
    query = pn.query(by=by, at="ts", select=CLASSES["group"], over=ON_THE_CLOCK)
    plan, windows = pn.plan(query), levels_of(ON_THE_CLOCK)
    keys = pa.table({"ts": pa.array([asked] * 3, TIME), "k": ["a", "b", None]})
    looked = plan.lookup(table, keys, layout="long", delay=f"{delay} us").to_pylist()
    come = table.filter(pa.compute.less_equal(table["ts"].cast(pa.int64()), asked))
    for holds_end in (False, True):
        served = found_by(Stream(plan, SCHEMA).step(come, max(asked - delay + holds_end, 0)), query.columns)
        for row in looked:
            window, level = windows[row["window_name"]]
            if (window.bounds == "(]") != holds_end:
                continue
            end, key = newest(window, level, asked - delay), row["k"] if by else None
            assert shown(row, query.columns) == served.get((row["window_name"], key, end), nothing(query))
            assert not any(name == row["window_name"] and other > end for name, _, other in served)


@pytest.mark.parametrize("chosen", CLASSES)
@settings(max_examples=8)
@given(
    table=events(), asked=requests(), by=KEYS, ties=st.sampled_from([(), "y"]), where=st.sampled_from([None, "y < 2"])
)
def test_all_of_it_is_brute_force(chosen, table, asked, by, ties, where):
    over = [*LOOKED_UP[1:], pn.tumbling("5 us", name="five")]
    query = pn.query(by=by, at="ts", select=CLASSES[chosen], over=over, ties=ties, where=where)
    wanted = brute_force_lookup(query, table, asked, delay="2 us")
    assert_same_answers(pn.plan(query).lookup(table, asked, delay="2 us"), wanted)


@settings(max_examples=20)
@given(table=events(least=6), asked=requests())
def test_other_aggregates_columns_and_rows_change_nothing(table, asked):
    select = {"low": pn.min("x"), "late": pn.last("y"), "early": pn.first("z")}
    one = pn.query(by="k", at="ts", select=select, over=LOOKED_UP)
    more = pn.query(by="k", at="ts", select={**select, "high": pn.max("g")}, over=LOOKED_UP)
    found = rows_of(pn.plan(one).lookup(table, asked, layout="long"))
    swapped = table.select(table.column_names[::-1]).take(list(range(len(table)))[::-1])
    assert rows_of(pn.plan(one).lookup(swapped, asked, layout="long")) == found
    assert rows_of(pn.plan(more).lookup(table, asked, layout="long").drop_columns(["high"])) == found


TICKS = [w for w in OF_ROWS if isinstance(w.size, Rows) and isinstance(w.every, int) and w.origin == "epoch"]
REFUSED = [w for w in [*OF_ROWS, *SESSIONS, *MARKS] if w not in [*TICKS, *LOOKED_UP]]


@pytest.mark.parametrize("window", REFUSED, ids=str)
def test_windows_whose_phase_nobody_knows_are_refused(window):
    query = pn.query(by="k", at="ts", select={"n": pn.count()}, over=window)
    with pytest.raises(DeclarationError, match=r"cannot be looked up over .*(Write|Leave origin= out)"):
        pn.plan(query).lookup(table_of([]), table_of([]))
