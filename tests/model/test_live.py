"""A plan kept live is looked up like a table of all events that have come: the fourth equality."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes as pn
from panes.errors import DeclarationError, PlanError
from tests.model.drawing import CLASSES, CLOCK, LAST_ROWS, MARKS, OF_ROWS, SESSIONS, SLIDING, TIME, events, rows_of

PACED = [pn.hopping(pn.rows(3), every="4 us"), pn.hopping(pn.rows(3), every="4 us", offset="1 us", partial=False)]
LOOKED_UP = [*CLOCK, *SLIDING, *LAST_ROWS, *PACED, pn.sliding(pn.rows(3), partial=False, name="three, full")]
KEYS = st.sampled_from(["k", (), ["k", "g"]])
ALL = {**CLASSES["group"], **CLASSES["idempotent"], **CLASSES["moments"], **CLASSES["values"], **CLASSES["picks"]}
DERIVED = {"n": pn.count(), "total": pn.sum("x"), "twice": "total * 2 + n", "since": "window.start"}


def batches(draw, table):
    """The events as they come, in batches of any size."""
    cuts = sorted(draw(st.lists(st.integers(0, len(table)), max_size=4)))
    return [table.slice(a, b - a) for a, b in zip([0, *cuts], [*cuts, len(table)], strict=True)]


@st.composite
def requests(draw, *, since: int = -5):
    """Keys that have events and keys that have none, at any time, null included."""
    row = st.tuples(
        st.sampled_from(["a", "b", "c", None]),
        st.sampled_from(["u", "v", None]),
        st.one_of(st.none(), st.integers(since, since + 60)),
    )
    rows = draw(st.lists(row, max_size=8))
    columns = list(zip(*rows, strict=True)) if rows else [[], [], []]
    return pa.table(
        {
            "k": pa.array(columns[0], pa.string()),
            "g": pa.array(columns[1], pa.string()),
            "ts": pa.array(columns[2], TIME),
        }
    )


def as_rows(table):
    """Rows in their order, floats rounded."""
    return [
        {name: round(value, 9) if isinstance(value, float) else value for name, value in row.items()}
        for row in table.to_pylist()
    ]


def check(queries, live, seen, asked, layout="wide"):
    found = live.lookup(asked, layout=layout)
    expected = pn.plan(queries).lookup(seen, asked, layout=layout)
    assert found.schema == expected.schema
    assert as_rows(found) == as_rows(expected)


@pytest.mark.parametrize("window", LOOKED_UP, ids=str)
@settings(max_examples=8)
@given(table=events(), by=KEYS, chosen=st.sampled_from([*CLASSES, None]), where=st.sampled_from([None, "y < 2"]),
       data=st.data())  # fmt: skip
def test_a_window_of_everything_that_has_come(window, table, by, chosen, where, data):
    select = DERIVED if chosen is None else CLASSES[chosen]
    query = pn.query(by=by, at="ts", select=select, over=window, where=where)
    live, seen = pn.plan(query).live(keep="1 day"), table.slice(0, 0)
    for batch in batches(data.draw, table):
        live.update(batch)
        seen = pa.concat_tables([seen, batch])
        check(query, live, seen, data.draw(requests()))


@settings(max_examples=40)
@given(
    table=events(),
    over=st.lists(st.sampled_from(LOOKED_UP), min_size=1, max_size=4, unique_by=lambda window: window.suffixes),
    data=st.data(),
)
def test_what_windows_need_is_kept_by_default(table, over, data):
    """Whatever is asked from the latest event on is answered, and what is answered before is right."""
    query = pn.query(by="k", at="ts", select=ALL, over=over)
    live, seen = pn.plan(query).live(), table.slice(0, 0)
    for batch in batches(data.draw, table):
        live.update(batch)
        seen = pa.concat_tables([seen, batch])
        latest = pc.max(seen["ts"].cast(pa.int64())).as_py() or 0
        check(query, live, seen, data.draw(requests(since=latest)))
        asked = data.draw(requests())
        try:
            live.lookup(asked)
        except PlanError:
            continue
        check(query, live, seen, asked)


@settings(max_examples=30)
@given(table=events(), layout=st.sampled_from(["wide", "long"]), data=st.data())
def test_several_queries(table, layout, data):
    drawn = st.lists(st.sampled_from(LOOKED_UP), min_size=1, max_size=2, unique_by=lambda window: window.suffixes)
    queries = [
        pn.query("one", by="k", at="ts", select={"n": pn.count(), "low": pn.min("x")}, over=data.draw(drawn)),
        pn.query("two", by=["k", "g"], at="ts", select={"top": pn.max("y")}, over=data.draw(drawn), where="x > 0"),
        pn.query("three", by="k", at="ts", select={"all": pn.count_distinct("y")}, over=data.draw(drawn), ties="z"),
        pn.query("four", by="k", at="ts", select={"mean": pn.mean("x")}, over=data.draw(drawn), where="y < 2"),
    ]
    live, seen = pn.plan(queries).live(), table.slice(0, 0)
    for batch in batches(data.draw, table):
        live.update(batch)
        seen = pa.concat_tables([seen, batch])
        latest = pc.max(seen["ts"].cast(pa.int64())).as_py() or 0
        check(queries, live, seen, data.draw(requests(since=latest)), layout)


@settings(max_examples=40)
@given(table=events(least=1), by=KEYS)
def test_requests_without_a_time_are_of_the_latest_event(table, by):
    query = pn.query(by=by, at="ts", select=CLASSES["group"], over=[pn.sliding("5 us"), pn.sliding(pn.rows(3))])
    live = pn.plan(query).live()
    live.update(table)
    asked = table.select(["k", "g"])
    now = pa.repeat(pc.max(table["ts"]), len(asked))
    found = live.lookup(asked)
    assert rows_of(found) == rows_of(live.lookup(asked.append_column("ts", now)).drop_columns(["ts"]))
    assert rows_of(found) == rows_of(live.lookup(asked.append_column("when", now), at="when").drop_columns(["when"]))


@pytest.mark.parametrize("window", [*OF_ROWS, *SESSIONS, *MARKS], ids=str)
def test_what_a_lookup_refuses_is_refused(window):
    plan = pn.plan(pn.query(by="k", at="ts", select={"n": pn.count()}, over=window))
    nothing = pa.table({"k": pa.array([], pa.string()), "ts": pa.array([], TIME)})
    said = []
    for verb in (lambda: plan.lookup(nothing, nothing), plan.live):
        try:
            verb()
            said.append(None)
        except DeclarationError as error:
            said.append(str(error))
    looked_up, kept = said
    also = "plan.run and plan.stream take it as it is."
    assert kept == (looked_up and f"plan.live() answers what plan.lookup does. {looked_up} {also}")


CONDITIONS = ["total > 2", "total >= 2", "n BETWEEN 1 AND 2", "low < 0 AND n > 1", "top > 1.5", "2 < total", "n = 2",
              "NOT total > 2", "total > 1 OR n > 1", "k = 'a' AND total < 3", "total < 1 AND k IS NULL"]  # fmt: skip
SOME = {"n": pn.count(), "some": pn.count("x"), "total": pn.sum("x"), "low": pn.min("x"), "top": pn.max("z")}


@settings(max_examples=40)
@given(
    table=events(),
    condition=st.sampled_from(CONDITIONS),
    over=st.sampled_from(["3 us", "8 us", pn.sliding("4 us", bounds="[)"), pn.sliding("3 us", ago="2 us")]),
    where=st.sampled_from([None, "y < 2"]),
    data=st.data(),
)
def test_what_is_found_is_what_passes_with_an_index_or_without(table, condition, over, where, data):
    query = pn.query(by="k", at="ts", select=SOME, over=pn.sliding("9 us"), where=where)
    plain, indexed = pn.plan(query).live(), pn.plan(query).live()
    columns = data.draw(st.permutations(list(SOME)))
    parts = batches(data.draw, table)
    for number, batch in enumerate(parts):
        if number < len(columns):
            indexed.add_index(columns[number])
        for each in (plain, indexed):
            each.update(batch)
        found = plain.find(condition, over=over)
        assert indexed.find(condition, over=over).equals(found)
        everyone = plain.find(over=over)
        assert everyone.filter(pc.fill_null(_passes(condition, everyone), False)).equals(found)
    asked = pa.table({"k": pa.array(["a", "b", None], pa.string())})
    alone = {row["k"]: row for row in plain.lookup(asked, over=over).to_pylist() if row["n"]}
    assert {row["k"]: row for row in plain.find(over=over).to_pylist()} == alone


def _passes(condition, table):
    from panes.expressions.evaluate import evaluate

    return evaluate(condition, table)
