"""Sort and Join over tables in columns: what the same operators submit when they are given one tuple after another."""

from __future__ import annotations

from decimal import Decimal
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes as pn
from panes.applying.operators_in_columns import in_columns
from panes.applying.tuple_by_tuple import answered, rows_of, submitted
from panes.applying.user_operators import input_of, operator_of
from panes.errors import OrderError, SchemaError
from panes.operators import Join, Sort
from panes.operators.policies import policies_of
from panes.row_windows.arrival import arrive

ORIGINS = st.sampled_from(["epoch", "first", "row"])
SIZES = st.one_of(
    st.builds(pn.rows, st.integers(1, 5)),
    st.builds(pn.delta, st.just("d"), st.integers(0, 5)),
)
TUMBLING = st.one_of(
    st.builds(pn.tumbling, SIZES),
    st.builds(lambda n, origin: pn.tumbling(f"{n} us", origin=origin), st.integers(1, 6), ORIGINS),
    st.builds(lambda scope: pn.tumbling(pn.punctuation("mark", scope=scope)), st.sampled_from(["stream", "key"])),
)
EACH_ROW = st.one_of(
    st.builds(pn.sliding, SIZES),
    st.builds(lambda n: pn.hopping(f"{n} us", every=pn.rows(1), bounds="[]"), st.integers(1, 6)),
)
VALUES = {
    "x": st.one_of(st.none(), st.sampled_from([float("nan"), -0.0, 0.0, 1.5, -2.0, float("inf")])),
    "s": st.one_of(st.none(), st.sampled_from(["", "a", "é", "z"])),
    "m": st.one_of(st.none(), st.sampled_from([Decimal("1.5"), Decimal("-3.0")])),
}
TYPES = {"x": pa.float64(), "s": pa.string(), "m": pa.decimal128(9, 2)}


@st.composite
def tables(draw: Any) -> pa.Table:
    rows = draw(st.integers(1, 40))

    def column(values: Any) -> list[Any]:
        return draw(st.lists(values, min_size=rows, max_size=rows))

    steps = st.integers(0, 3)
    return pa.table(
        {
            "ts": pa.array(list(accumulate(column(steps))), pa.timestamp("us", "UTC")),
            "n": list(range(rows)),
            "k": pa.array(column(st.sampled_from(["a", "b", None])), pa.string()),
            "d": list(accumulate(column(steps))),
            "side": column(st.integers(0, 1)),
            **{name: pa.array(column(values), TYPES[name]) for name, values in VALUES.items()},
            "mark": column(st.booleans()),
        }
    )


def both_ways(table: pa.Table, operator: Any, **asked: Any) -> tuple[pa.Table, pa.Table]:
    declared = operator_of(input_of(at="ts", **asked), operator)
    rows, arrivals = arrive(declared.input, table)
    assert not len(rows) or in_columns(declared, rows, arrivals) is not None
    found = answered(declared, rows, arrivals)
    return found, rows_of(declared, submitted(declared, rows, arrivals))


@settings(max_examples=150)
@given(tables(), TUMBLING, st.sampled_from([(), ("k",)]), st.data())
def test_sorted_windows(table: pa.Table, window: Any, by: tuple[str, ...], data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from([*VALUES, "n", "mark"]), min_size=1, max_size=3, unique=True))
    flags = [data.draw(st.booleans()) for _ in names]
    found, expected = both_ways(
        table,
        lambda window, clock: Sort(window, order=names, descending=flags, clock=clock),
        window=window,
        by=by,
    )
    assert len(found) == len(expected)
    if len(expected):
        assert found.column("n").to_pylist() == expected.column("n").to_pylist()
        assert found.schema == table.schema


@settings(max_examples=250)
@given(
    tables(), EACH_ROW, st.one_of(EACH_ROW, st.just(pn.sliding(pn.rows(0)))), st.booleans(),
    st.sampled_from(["k", "x", ("s", "x"), {"s": "s"}, ()]), st.booleans(),
)  # fmt: skip
def test_joined_windows(table: pa.Table, left: Any, right: Any, by_key: bool, on: Any, further: bool) -> None:
    match = (lambda one, other: one["n"] % 2 or other["n"] % 3) if further or (not by_key and on == ()) else None

    def join(window: Any, clock: Any) -> Join:
        return Join(
            window, policies_of(right, ["k"] if by_key else None), on=on, match=match, clock=clock,
            select=lambda one, other: {"left": one["n"], "right": other["n"]},
        )  # fmt: skip

    found, expected = both_ways(table, join, window=left, by="k" if by_key else (), port="side")
    assert found.to_pylist() == expected.to_pylist()


def test_what_is_not_for_columns_runs_one_by_one() -> None:
    table = pa.table({"ts": pa.array([1, 2, 3], pa.timestamp("us")), "x": [3, 1, 2], "side": [0, 1, 0]})

    def columns(operator: Any, **asked: Any) -> Any:
        declared = operator_of(input_of(at="ts", **asked), operator)
        rows, arrivals = arrive(declared.input, table)
        return in_columns(declared, rows, arrivals)

    class Own(Sort):
        """A subclass may do anything."""

    def sort(window: Any, clock: Any) -> Sort:
        return Sort(window, order="x", clock=clock)

    def join(window: Any, clock: Any, outer: str | None = None) -> Join:
        return Join(window, pn.sliding(pn.rows(2)), match=lambda *_: True, outer=outer, clock=clock)

    sliding, tumbling = pn.sliding(pn.rows(2)), pn.tumbling(pn.rows(2))
    assert columns(sort, window=tumbling) is not None
    assert columns(sort, window=sliding) is None
    # What makes the operator may take another window than it is given.
    assert columns(lambda window, clock: Sort(pn.tumbling(pn.rows(3)), order="x", clock=clock), window=tumbling) is None
    assert columns(lambda window, clock: Own(window, order="x", clock=clock), window=tumbling) is None
    assert columns(join, window=sliding, port="side") is not None
    assert columns(lambda window, clock: join(window, clock, "left"), window=sliding, port="side") is None


def test_a_sorted_table_has_the_schema_that_was_asked_for() -> None:
    table = pa.table({"ts": pa.array([1, 2, 3], pa.timestamp("us")), "x": [3, 1, 2]})
    asked = {"at": "ts", "over": pn.tumbling(pn.rows(3))}

    def sort(window: Any, clock: Any) -> Sort:
        return Sort(window, order="x", clock=clock)

    schema = pa.schema({"x": pa.int32(), "ts": pa.timestamp("us"), "more": pa.string()})
    found = pn.apply(table, operator=sort, schema=schema, **asked)
    assert found.schema == schema
    assert found.column("x").to_pylist() == [1, 2, 3]
    with pytest.raises(SchemaError, match="submitted a column 'ts', which schema= does not have"):
        pn.apply(table, operator=sort, schema=pa.schema({"x": pa.int64()}), **asked)
    too_large = table.set_column(1, "x", pa.array([3, 1, 2**40]))
    with pytest.raises(SchemaError, match="does not make a table"):
        pn.apply(too_large, operator=sort, schema=schema, **asked)


def test_a_wrong_port_and_a_falling_attribute_are_refused() -> None:
    table = pa.table({"ts": pa.array([1, 2], pa.timestamp("us")), "d": [5, 4], "side": [1, 1]})

    def join(window: Any, clock: Any) -> Join:
        right = pn.sliding(pn.delta("d", 3))
        return Join(window, right, match=lambda *_: True, clock=clock, select=lambda one, other: {"n": 1})

    asked = {"at": "ts", "port": "side", "over": pn.sliding(pn.rows(2)), "operator": join}
    with pytest.raises(OrderError, match="'d' fell from 5 to 4"):
        pn.apply(table.append_column("x", pa.array([1, 1])).slice(0, 2), **asked)
    with pytest.raises(SchemaError, match="a row is for the port 2"):
        pn.apply(table.set_column(2, "side", pa.array([0, 2])), **asked)


def test_unmatched_tuples_of_a_table_have_ports_of_their_own() -> None:
    table = pa.table(
        {
            "ts": pa.array([1, 2, 3, 4, 5], pa.timestamp("us")),
            "k": ["a", "b", "b", "c", "c"],
            "side": [0, 0, 1, 1, 1],
        }
    )

    def join(window: Any, clock: Any) -> Join:
        right = pn.sliding(pn.rows(1))
        return Join(
            window, right, on="k", outer="full", unmatched_ports=True, clock=clock,
            select=lambda one, other: {"left": one and one["k"], "right": other and other["k"]},
        )  # fmt: skip

    window = pn.sliding(pn.rows(1))
    found = pn.apply(table, at="ts", port="side", over=window, operator=join).to_pylist()
    assert found == [
        {"left": "a", "right": None, "port": 1},
        {"left": "b", "right": "b", "port": 0},
        {"left": None, "right": "c", "port": 2},
    ]
