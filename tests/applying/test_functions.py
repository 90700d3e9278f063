"""``pn.apply`` with a function in this process: it sees the windows and the rows that ``plan.run`` aggregates over."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes as pn
from panes.errors import DeclarationError, OrderError, PlanError, SchemaError
from tests.model.drawing import CLOCK, MARKS, OF_ROWS, SESSIONS, SLIDING, TIME, WINDOWS, events, rows_of

KEYS = st.sampled_from(["k", ["k", "g"], ()])
SELECT = {"n": pn.count(), "total": pn.sum("x"), "low": pn.min("y")}
COLUMNS = pa.schema({"n": pa.int64(), "total": pa.int64(), "low": pa.int64()})


def summed(key, window, rows):
    """What the aggregates are."""
    x = [value for value in rows["x"].to_pylist() if value is not None]
    return {"n": len(rows), "total": sum(x) if x else None, "low": min(rows["y"].to_pylist(), default=None)}


def run(table, select=SELECT, **query):
    """The answers of a query as ``pn.apply`` shows them."""
    return pn.plan(pn.query(select=select, **query)).run(table).drop_columns(["query"])


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@settings(max_examples=20)
@given(table=events(), by=KEYS, where=st.sampled_from([None, "y < 2"]))
def test_windows_are_those_of_queries(window, table, by, where):
    asked = {"by": by, "at": "ts", "over": window, "where": where}
    assert rows_of(pn.apply(table, summed, schema=COLUMNS, **asked)) == rows_of(run(table, **asked))


@settings(max_examples=60)
@given(table=events(least=4), by=KEYS, over=st.lists(st.sampled_from(WINDOWS), min_size=2, max_size=6, unique_by=str))
def test_windows_mixed_as_one_likes(table, by, over):
    asked = {"by": by, "at": "ts", "over": over}
    found = pn.apply(table, summed, schema=COLUMNS, **asked)
    assert rows_of(found) == rows_of(run(table, **asked))
    assert found.schema == run(table, **asked).schema.remove_metadata()


@settings(max_examples=60)
@given(table=events(least=6), by=KEYS, window=st.sampled_from(WINDOWS), ties=st.sampled_from(["y", ["z", "g"], ()]))
def test_rows_of_one_instant(table, by, window, ties):
    """In the order of ``ties``, and otherwise in one that only depends on the rows."""
    asked = {"by": by, "at": "ts", "over": window, "ties": ties}

    def listed(key, window, rows):
        return {"rows": repr(rows.to_pylist())}

    found = rows_of(pn.apply(table, listed, **asked))
    mixed = table.take(np.random.default_rng(1).permutation(len(table)))
    assert rows_of(pn.apply(mixed, listed, **asked)) == found

    def sorted_(key, window, rows):
        names = [ties] if isinstance(ties, str) else ties or sorted({*rows.column_names} - {"ts", *by})
        values = [[(v is not None, v or 0) for v in rows[name].to_pylist()] for name in names]
        when = rows["ts"].cast(pa.int64()).to_pylist()
        known = [(t, *v) for t, *v in zip(when, *values, strict=True)]
        deltas = {"odometer"} & {each.column for each in getattr(window, "deltas", ())}
        assert deltas or known == sorted(known)

    if not getattr(window, "deltas", ()):
        assert len(pn.apply(table, sorted_, **asked)) == 0


@settings(max_examples=60)
@given(table=events(least=4), window=st.sampled_from([w for w in OF_ROWS if not w.may_be_empty]), data=st.data())
def test_evicted_keys(table, window, data):
    evict = pn.evict(**{data.draw(st.sampled_from(["keys", "rows"])): data.draw(st.integers(1, 4))})
    asked = {"by": "k", "at": "ts", "over": window, "evict": evict}
    assert rows_of(pn.apply(table, summed, schema=COLUMNS, **asked)) == rows_of(run(table, **asked))


@settings(max_examples=30)
@given(table=events(), by=KEYS, n=st.integers(1, 4))
def test_rows_come_as_they_stand_without_a_time(table, by, n):
    over = [pn.tumbling(pn.rows(n)), pn.sliding(pn.rows(n)), pn.sliding(pn.rows(n), ago=pn.rows(1))]
    asked = {"by": by, "over": over}
    assert rows_of(pn.apply(table, summed, schema=COLUMNS, **asked)) == rows_of(run(table, **asked))


@settings(max_examples=60)
@given(table=events(least=4), by=KEYS, window=st.sampled_from([*OF_ROWS, *MARKS]))
def test_what_a_function_is_told_of_windows(table, by, window):
    """Its bounds as results show them; of rows also its number, and when it was processed: not before its last row."""
    keys = (by,) if isinstance(by, str) else tuple(by)

    def told(key, window, rows):
        assert list(key) == list(keys)
        assert not len(rows) or rows.slice(0, 1).select(list(keys)).to_pylist() == [key]
        return {"told": repr((window.name, window.start, window.end)), "which": window.number, "at": window.processed}

    found = pn.apply(table, told, by=by, at="ts", over=window, schema=pa.schema(
        {"told": pa.string(), "which": pa.int64(), "at": TIME}))  # fmt: skip
    query = pn.query(by=by, at="ts", select={"n": pn.count(), "which": "number"}, over=window)
    numbers = pn.plan(query).run(table).select([*keys, "window", "which"])
    assert rows_of(found.select([*keys, "window", "which"])) == rows_of(numbers)
    for row in found.to_pylist():
        assert row["told"] == repr((row["window_name"], row["window"]["start"], row["window"]["end"]))
        assert row["at"] >= row["window"]["end"]


@pytest.mark.parametrize("window", [*CLOCK, *SLIDING, *SESSIONS], ids=str)
def test_others_are_not_numbered(window):
    table = pa.table({"ts": pa.array([1, 2, 30], TIME)})
    found = pn.apply(table, lambda key, window, rows: {"told": repr(window[3:])}, at="ts", over=window)
    assert set(found["told"].to_pylist()) == {"(None, None)"}


TABLE = pa.table({"ts": pa.array([1, 2, 12], TIME), "k": ["a", "a", "b"], "x": [2, 1, 5], "d": [None, 1.0, 2.0]})
TENS = {"by": "k", "at": "ts", "over": pn.tumbling("10 us")}


@pytest.mark.parametrize(
    ("returned", "found"),
    [
        (None, []),
        ({}, [{"k": "a"}, {"k": "b"}]),
        ({"m": 1}, [{"k": "a", "m": 1}, {"k": "b", "m": 1}]),
        ([{"m": 1}, {"o": "u"}], [{"k": k, "m": m, "o": o} for k in "ab" for m, o in ((1, None), (None, "u"))]),
        ([], []),
        (pa.table({"m": [1, 2]}), [{"k": k, "m": m} for k in "ab" for m in (1, 2)]),
        (pa.record_batch({"m": [1.5]}), [{"k": k, "m": 1.5} for k in "ab"]),
    ],
    ids=repr,
)
def test_what_a_function_may_return(returned, found):
    answers = pn.apply(TABLE, lambda key, window, rows: returned, **TENS)
    assert answers.column_names[:3] == ["window_name", "window", "k"]
    assert answers.drop_columns(["window_name", "window"]).to_pylist() == found


def test_one_call_returns_other_columns_than_the_next():
    def some(key, window, rows):
        return {"n": len(rows)} if key["k"] == "a" else pa.table({"n": [0.5], "more": ["yes"]})

    found = pn.apply(TABLE, some, **TENS)
    assert found.select(["n", "more"]).to_pylist() == [{"n": 2.0, "more": None}, {"n": 0.5, "more": "yes"}]
    schema = pa.schema({"more": pa.string(), "n": pa.float32()})
    assert pn.apply(TABLE, some, schema=schema, **TENS).schema.names == ["window_name", "window", "k", "more", "n"]


def test_rows_are_slices():
    """No row is copied for a window."""
    seen = []

    def look(key, window, rows):
        seen.append(rows["x"].chunk(0).buffers()[1].address)

    pn.apply(TABLE, look, at="ts", over=[pn.sliding("10 us"), pn.hopping("10 us", every="5 us")])
    assert len(seen) > 6
    assert len(set(seen)) == 1


def test_rows_have_all_columns_and_no_others():
    seen = []
    odd = TABLE.append_column("Key of all", pa.array([[1], None, [2]]))
    pn.apply(odd, lambda key, window, rows: seen.append(rows), over=pn.tumbling(pn.rows(3)))
    assert seen == [odd]


def fails(key, window, rows):
    raise ZeroDivisionError("mine")


@pytest.mark.parametrize(
    ("error", "says", "options"),
    [
        (DeclarationError, "takes a function or an operator=, one of them", {"function": None}),
        (DeclarationError, "takes a function or an operator=, one of them", {"operator": len}),
        (DeclarationError, "function=5 cannot be called", {"function": 5}),
        (DeclarationError, "port= is for operator=", {"port": "x"}),
        (DeclarationError, "'1 hour' is a duration, and a window also needs a pace", {"over": "1 hour"}),
        (DeclarationError, "is measured in time, and rows have none. Write at=", {"at": None}),
        (DeclarationError, "schema=5 is not a pyarrow Schema", {"schema": 5}),
        (DeclarationError, "a column 'K', which results already have", {"schema": pa.schema({"K": pa.int64()})}),
        (DeclarationError, "names a column twice", {"schema": pa.schema({"n": pa.int64(), "N": pa.int64()})}),
        (DeclarationError, r"apply\(\) has no windows=: it is called over=", {"windows": 5}),
        (DeclarationError, "aggregates are computed by a plan", {"select": {"n": pn.count()}}),
        (SchemaError, "by='kk' is not a column of the data .did you mean 'k'", {"by": "kk"}),
        (SchemaError, "delta.'odd'. is not a column", {"over": pn.tumbling(pn.delta("odd", 1))}),
        (SchemaError, "at='x' is of type int64, but event time must be a timestamp", {"at": "x"}),
        (SchemaError, "1 rows have no value for 'd'", {"over": pn.tumbling(pn.delta("d", 1))}),
        (SchemaError, "must be boolean", {"over": pn.tumbling(pn.punctuation("x"))}),
        (SchemaError, "ties='u' is not a column", {"ties": "u"}),
        (SchemaError, "the function returned 5. Return None for no row", {"function": lambda *_: 5}),
        (SchemaError, "the function returned 'no', and rows must be dicts", {"function": lambda *_: ["no"]}),
        (SchemaError, "returned a column 'window', which results already have", {"function": lambda *_: {"window": 1}}),
        (SchemaError, "returned a column 'm', which schema= does not have", {"function": lambda *_: {"m": 1},
                                                                      "schema": pa.schema({"n": pa.int64()})}),
        (SchemaError, "what the function returned does not make a table", {"function": lambda *_: {"n": "u"},
                                                                 "schema": pa.schema({"n": pa.int64()})}),
        (OrderError, "'x' fell from 2 to 1 in the order of time", {"over": pn.tumbling(pn.delta("x", 1))}),
        (PlanError, "cannot apply a function to a list", {"data": [1]}),
        (PlanError, "checkpoint= is for streams", {"checkpoint": "/tmp/place"}),
        (ZeroDivisionError, "mine", {"function": fails}),
    ],
)  # fmt: skip
def test_mistakes(error, says, options):
    given_ = {"data": TABLE, "function": summed, **TENS, **options}
    with pytest.raises(error, match=says):
        pn.apply(given_.pop("data"), given_.pop("function"), **given_)


def test_times_are_those_of_the_column():
    zoned = TABLE.set_column(0, "ts", pa.array([1, 2, 12], pa.timestamp("us", "Europe/Paris")))
    starts = []
    pn.apply(zoned, lambda key, window, rows: starts.append(window.start), **TENS)
    assert starts[0].utcoffset() == dt.timedelta(hours=1)
    assert starts[0].timestamp() == 0
