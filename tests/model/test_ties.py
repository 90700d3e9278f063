"""One rule for the order within an instant, over every window: ``ties=``, or else all columns, and values for picks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes as pn
from panes.errors import DeclarationError
from panes.testing import brute_force
from tests.model.drawing import (
    CLOCK,
    LAST_ROWS,
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

PICKS = {"early": pn.first("y"), "late": pn.last("y"), "least": pn.arg_min("y", "x"), "most": pn.arg_max("y", "x")}
MIXED = [*CLOCK, *SLIDING, *OF_ROWS, *SESSIONS, *MARKS]


@st.composite
def tied(draw, **more):
    """Rows of few instants, each with an id."""
    table = draw(events(least=6, **more))
    coarse = pa.compute.multiply(pa.compute.divide(table["ts"].cast(pa.int64()), 4), 4).cast(SCHEMA.field("ts").type)
    ids = draw(st.permutations(range(len(table))))
    # The odometer still rises within an instant.
    return table.set_column(0, "ts", coarse).append_column("id", pa.array(ids, pa.int64()))


def chosen(draw_from, most=4):
    return st.lists(st.sampled_from(draw_from), min_size=1, max_size=most, unique_by=str)


@settings(max_examples=20)
@given(table=tied(), over=chosen(MIXED), by=st.sampled_from(["k", ()]), ties=st.sampled_from(["id", ("g", "id")]))
def test_ties_decide_everywhere(table, over, by, ties):
    query = pn.query(by=by, at="ts", select=PICKS, over=over, ties=ties)
    assert rows_of(pn.plan(query).run(table)) == rows_of(brute_force(query, table))


@settings(max_examples=20)
@given(table=tied(), data=st.data(), over=chosen(MIXED), by=st.sampled_from(["k", ()]))
def test_in_streams_too(table, data, over, by):
    query = pn.query(by=by, at="ts", select=PICKS, over=over, ties="id")
    stream = Stream(pn.plan(query), table.schema)
    found = stream.run(in_time(list(over), micro_batches(data.draw, table)))
    assert rows_of(found) == rows_of(passed(over, pn.plan(query).run(table), stream.watermark))


@settings(max_examples=8)
@given(table=tied(), over=chosen(WINDOWS, 6), ties=st.sampled_from([(), "id"]))
def test_nothing_else_changes_an_answer(table, over, ties):
    """Not the order of columns or rows, not another aggregate, not another window, not another query."""
    terms = {"by": "k", "at": "ts", "ties": ties}
    query = pn.query(select=PICKS, over=over, **terms)
    found = rows_of(pn.plan(query).run(table))
    turned = table.take(list(range(len(table)))[::-1])
    assert rows_of(pn.plan(query).run(turned)) == found
    assert rows_of(pn.plan(query).run(table.select(table.column_names[::-1]))) == found
    more = pn.query(select={**PICKS, "high": pn.max("g"), "n": pn.count("z")}, over=over, **terms)
    assert rows_of(pn.plan(more).run(table).drop_columns(["high", "n"])) == found
    alone = [pn.plan(pn.query(select=PICKS, over=window, **terms)).run(table) for window in over]
    assert rows_of(pa.concat_tables(alone)) == found
    other = pn.query("other", select={"high": pn.max("g")}, over=pn.sliding(pn.rows(2), name="two of another"), **terms)
    beside = pn.plan([query, other]).run(table)
    mine = beside.filter(pa.compute.equal(beside["query"], "query")).drop_columns(["high"])
    assert rows_of(mine) == found


def test_the_last_of_the_last_rows_is_the_last_row():
    table = pa.table({"ts": pa.array([5, 5, 5], pa.timestamp("us")), "id": [1, 2, 3], "x": [30, 20, 10]})
    over = [pn.sliding(pn.rows(1)), pn.tumbling("10 us"), pn.sliding("2 us")]
    for ties, wanted in ((("id",), [10, 10, 10, 10, 10, 20, 30]), ((), [10, 20, 30, 30, 30, 30, 30])):
        query = pn.query(at="ts", select={"late": pn.last("x")}, over=over, ties=ties)
        assert sorted(pn.plan(query).run(table)["late"].to_pylist()) == wanted
    looked = pn.plan(pn.query(at="ts", select={"late": pn.last("x")}, over=over[:2], ties="id"))
    asked = pa.table({"ts": pa.array([15], pa.timestamp("us"))})
    assert looked.lookup(table, asked).to_pylist()[0] | {"ts": 0} == {"ts": 0, "late_1row": 10, "late_10us": 10}


def test_an_aggregate_of_ones_own_goes_by_values_on_the_clock():
    own = pn.aggregate(
        "x",
        name="product",
        state={"p": np.float64},
        identity=(1.0,),
        lift=lambda x: (x.astype("float64"),),
        combine=lambda a, b: (a[0] * b[0],),
        lower=lambda p: p,
        output=np.float64,
    )
    pn.query(at="ts", select={"p": own}, over=LAST_ROWS, ties="id")
    with pytest.raises(DeclarationError, match="ties= does not reach product"):
        pn.query(at="ts", select={"p": own}, over=pn.tumbling("1 s"), ties="id")
