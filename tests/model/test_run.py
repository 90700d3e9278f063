"""``plan.run`` in this process against brute force, for every kind of window and class of aggregates."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes as pn
from panes.testing import brute_force
from tests.model.drawing import CLASSES, MARKS, OF_ROWS, SESSIONS, WINDOWS, events, rows_of

KEYS = st.sampled_from(["k", ()])


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@settings(max_examples=8)
@given(table=events(), by=KEYS, chosen=st.sampled_from(list(CLASSES)), where=st.sampled_from([None, "y < 2"]))
def test_a_window(window, table, by, chosen, where):
    query = pn.query(by=by, at="ts", select=CLASSES[chosen], over=window, where=where)
    assert rows_of(pn.plan(query).run(table)) == rows_of(brute_force(query, table))


@settings(max_examples=40)
@given(table=events(), by=KEYS, over=st.lists(st.sampled_from(WINDOWS), min_size=2, max_size=6, unique_by=str))
def test_windows_mixed_as_one_likes(table, by, over):
    query = pn.query(by=by, at="ts", select=CLASSES["group"], over=over)
    assert rows_of(pn.plan(query).run(table)) == rows_of(brute_force(query, table))


@settings(max_examples=40)
@given(table=events(least=4), by=KEYS, window=st.sampled_from([*OF_ROWS, *SESSIONS, *MARKS]))
def test_groups_inside_a_window(table, by, window):
    query = pn.query(by=by, at="ts", select={"n": pn.count(), "low": pn.min("x")}, over=window, groups="g")
    assert rows_of(pn.plan(query).run(table)) == rows_of(brute_force(query, table))


@settings(max_examples=40)
@given(table=events(least=6), by=KEYS, window=st.sampled_from(OF_ROWS), ties=st.sampled_from(["y", ["z", "g"]]))
def test_ties(table, by, window, ties):
    query = pn.query(by=by, at="ts", select={"low": pn.min("x"), "which": "number"}, over=window, ties=ties)
    assert rows_of(pn.plan(query).run(table)) == rows_of(brute_force(query, table))


@settings(max_examples=40)
@given(table=events(least=8), window=st.sampled_from(OF_ROWS))
def test_the_order_within_an_instant_is_a_matter_of_the_rows_alone(table, window):
    """Neither the order of columns, nor that of rows, nor another aggregate changes which row is the last."""
    one = pn.query(by="k", at="ts", select={"low": pn.min("x")}, over=window)
    more = pn.query(by="k", at="ts", select={"low": pn.min("x"), "high": pn.max("z")}, over=window)
    found = rows_of(pn.plan(one).run(table))
    assert rows_of(pn.plan(one).run(table.select(table.column_names[::-1]))) == found
    assert rows_of(pn.plan(one).run(table.slice(3).combine_chunks())) == rows_of(brute_force(one, table.slice(3)))
    assert rows_of(pn.plan(more).run(table).drop_columns(["high"])) == found


@settings(max_examples=30)
@given(table=events(), by=KEYS, n=st.integers(1, 4))
def test_rows_come_as_they_stand_without_a_time(table, by, n):
    over = [pn.tumbling(pn.rows(n)), pn.sliding(pn.rows(n)), pn.sliding(pn.rows(n), ago=pn.rows(1))]
    query = pn.query(by=by, select={"total": pn.sum("x"), "which": "number"}, over=over)
    assert rows_of(pn.plan(query).run(table)) == rows_of(brute_force(query, table))
