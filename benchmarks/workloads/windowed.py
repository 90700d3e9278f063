"""Windows of rows over a table: index pairs and kernels beside the same windows one tuple after another.

Both go over the same table, which is in the order of time. Event by event, ``pn.apply`` is given the ``Aggregate`` of
``panes.operators``. That one also runs by itself on rows that are there already as dicts, so that nothing is counted
for making them. Figures are processor time, of all threads.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

import panes as pn
from benchmarks.report import Timings
from benchmarks.runner import Bench
from benchmarks.workloads.windowing import Case, through_library
from panes.operators import Aggregate, Join, Sort

KEYS = 100
SIZE = 100
CHECKED = 100_000
Row = dict[str, Any]
MEAN, PERCENTILE = pn.mean("value"), pn.quantile("value", 0.9)


def cases(tuples: int) -> tuple[tuple[Any, Any], ...]:
    """Windows of a hundred tuples and what is computed over them, where a partition has one in so many tuples."""
    wide, narrow = tuples * SIZE, tuples * 10
    return (
        (pn.tumbling(pn.rows(SIZE)), MEAN),
        (pn.tumbling(pn.delta("number", wide - 1)), MEAN),
        (pn.tumbling(f"{wide} us", origin="first"), MEAN),
        (pn.sliding(pn.rows(SIZE)), MEAN),
        (pn.hopping(pn.delta("number", wide), every=pn.delta("number", narrow)), MEAN),
        (pn.hopping(f"{wide} us", every=f"{narrow} us", origin="first"), MEAN),
        (pn.hopping(pn.rows(SIZE), every=pn.rows(10)), PERCENTILE),
    )


def windowed(bench: Bench) -> None:
    """Seven windows, with keys and without."""
    table = _table(bench.events(1_000_000))
    rows = [{**row, "ts": row["number"]} for row in table.drop_columns(["ts"]).to_pylist()]
    report = bench.report.table(
        f"Windows of about {SIZE} tuples over {len(rows):,} tuples; seconds",
        f"Medians of processor time, side by side. With keys: {KEYS} of them. A tuple every µs.",
        "Library: the Aggregate operator alone, on rows that are there already as dicts.",
    )
    for by in ((), ("key",)):
        for window, function in bench.few(cases(KEYS if by else 1)):
            asked = window, by, function
            _check(table.slice(0, CHECKED), rows[:CHECKED], *asked)
            report.rows.append(_compared(bench, table, rows, *asked))
    _operators(bench, table)


class SortOneByOne(Sort):
    """A subclass may do anything, so it is given one tuple after another."""


class JoinOneByOne(Join):
    """As above."""


def _operators(bench: Bench, table: pa.Table) -> None:
    """The other operators, in columns and one tuple after another."""
    report = bench.report.table(
        f"Operators over {len(table):,} tuples; seconds",
        f"Medians of processor time, side by side. Sort: by value, windows of {SIZE} tuples. Join: of two streams, on "
        f"one of {KEYS} keys within windows of {SIZE} tuples; a Python function makes every output tuple.",
    )
    sliding, tumbling = pn.sliding(pn.rows(SIZE)), pn.tumbling(pn.rows(SIZE))
    sides = table.append_column("side", pa.array(np.arange(len(table)) % 2))

    def sort(kind: type[Sort]) -> Callable[[], pa.Table]:
        return lambda: pn.apply(
            table, operator=lambda window, clock: kind(window, order="value", clock=clock), over=tumbling, at="ts"
        )

    def join(kind: type[Join]) -> Callable[[], pa.Table]:
        def made(window: Any, clock: Any) -> Join:
            return kind(window, sliding, on="key", select=_numbers, clock=clock)

        return lambda: pn.apply(sides, operator=made, over=sliding, at="ts", port="side")

    for name, one_by_one, columns in (
        ("sort", sort(SortOneByOne), sort(Sort)),
        ("join", join(JoinOneByOne), join(Join)),
    ):
        if columns().select(["number"]) != one_by_one().select(["number"]):
            raise AssertionError(f"{name}: not what the operator submits")
        contenders = {"event by event": one_by_one, "vectorised": columns}
        timings = Timings({each: [] for each in contenders})
        for _ in range(bench.repeats):
            for each, run in contenders.items():
                timings.seconds[each].append(_processor_time(run))
        bench.report.record(name, f"{len(table)} tuples", timings)
        medians = {each: timings.median(each) or 1e-9 for each in contenders}
        ratio = medians["event by event"] / medians["vectorised"]
        report.rows.append({"operator": name, **medians, "event by event / vectorised": ratio})


def _numbers(left: Row, right: Row) -> Row:
    return {"number": left["number"], "other": right["number"]}


def _table(count: int) -> pa.Table:
    rng = np.random.default_rng(1)
    return pa.table(
        {
            "ts": pa.array(np.arange(count), pa.timestamp("us")),
            "number": np.arange(count),
            "key": rng.integers(0, KEYS, count),
            "value": rng.normal(100, 10, count),
        }
    )


def _contenders(
    table: pa.Table, rows: list[Row], window: Any, by: tuple[str, ...], function: Any
) -> dict[str, Callable[[], Any]]:
    case = Case(window, bool(by), function, timed=isinstance(window.size, int))
    plan = pn.plan(pn.query(by=by, at="ts", select={"answer": function}, over=window))

    def operator(window: Any, clock: Any) -> Aggregate:
        return Aggregate(window, {"answer": function}, clock=clock)

    return {
        "event by event": lambda: pn.apply(table, operator=operator, over=window, by=by, at="ts"),
        "library": lambda: through_library(rows, case),
        "vectorised": lambda: plan.run(table),
    }


def _check(table: pa.Table, rows: list[Row], window: Any, by: tuple[str, ...], function: Any) -> None:
    contenders = _contenders(table, rows, window, by, function)
    found, expected = (contenders[name]().column("answer").to_numpy() for name in ("vectorised", "event by event"))
    if len(found) != len(expected) or not np.allclose(found, expected, rtol=1e-9):
        raise AssertionError(f"{window}: the answers are not those of the library")


def _compared(bench: Bench, table: pa.Table, rows: list[Row], window: Any, by: tuple[str, ...], function: Any) -> Row:
    contenders = _contenders(table, rows, window, by, function)
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(bench.repeats):
        for name, run in contenders.items():
            seconds[name].append(_processor_time(run))
    timings = Timings(seconds)
    bench.report.record(f"{window} by {by}: {function}", f"{len(rows)} tuples", timings)
    medians = {name: timings.median(name) or 1e-9 for name in contenders}
    return {
        "window": str(window),
        "keys": KEYS if by else None,
        "aggregate": str(function),
        "windows": len(contenders["vectorised"]()),
        **medians,
        "event by event / vectorised": medians["event by event"] / medians["vectorised"],
        "library / vectorised": medians["library"] / medians["vectorised"],
    }


def _processor_time(run: Callable[[], object]) -> float:
    gc.collect()
    begun = time.process_time()
    run()
    return time.process_time() - begun
