"""Accumulators of single tuples beside the algebra that could replace them: why they are written by hand."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

import panes as pn
from benchmarks.runner import Bench
from panes.aggregates.accumulator import Start
from panes.aggregates.aggregate import Bound
from panes.aggregates.operations import Operations, State
from panes.kernels import Reducer
from panes.operators.summaries import TwoStacks

TOGETHER = 1024
WINDOW = 100


class Derived:
    """An accumulator that lifts tuples, combines and lowers through the components of an aggregate.

    Parameters
    ----------
    together
        How many tuples are lifted at once.
    """

    def __init__(self, bound: Bound, names: list[str], together: int) -> None:
        self._bound, self._names, self._together = bound, names, together
        self._items: list[Any] = []
        self._states: list[tuple[Operations, State, Any]] = []

    def insert(self, item: Any) -> None:
        """Hold it, or lift what is held."""
        self._items.append(item)
        if len(self._items) == self._together:
            self._lift()

    def merge(self, other: Derived) -> None:
        """Combine."""
        self._lift()
        other._lift()
        self._combine(other._states)

    def value(self) -> Any:
        """Lower."""
        self._lift()
        return self._bound.lower(*(restore(state, None) for _, state, restore in self._states))[0].as_py()

    def _lift(self) -> None:
        if not self._items:
            return
        columns = {name: pa.array([item[name] for item in self._items], pa.float64()) for name in self._names}
        lifted = []
        for component in self._bound.components:
            decoded = component.decode_lasting(component.lift(*(columns[name] for name in component.arguments)))
            state = decoded.state
            if len(self._items) > 1:
                lo, hi = np.array([0]), np.array([len(self._items)])
                state = Reducer(decoded.operations, state, kernel="naive").reduce(lo, hi)
            lifted.append((decoded.operations, state, decoded.restore))
        self._items = []
        self._combine(lifted)

    def _combine(self, later: list[tuple[Operations, State, Any]]) -> None:
        if not self._states or not later:
            self._states = self._states or later
            return
        self._states = [
            (operations, operations.combine(earlier, state), restore)
            for (operations, earlier, restore), (_, state, _) in zip(self._states, later, strict=True)
        ]


def accumulators(bench: Bench) -> None:
    """Time both for each aggregate, over one window and over one that slides."""
    count = bench.events(50_000)
    rng = np.random.default_rng(0)
    items = [{"x": x, "y": y} for x, y in rng.normal(size=(count, 2)).tolist()]
    one = bench.report.table(
        f"one window of many tuples; µs per tuple, of {count:,}",
        f"By hand; derived from the algebra, tuple by tuple; and {TOGETHER:,} tuples together.",
    )
    sliding = bench.report.table(
        f"the last {WINDOW} tuples, looked up with every tuple (TwoStacks); µs per tuple",
        "By hand, and derived from the algebra.",
    )
    cases = (pn.count("x"), pn.sum("x"), pn.mean("x"), pn.max("x"), pn.std("x"), pn.arg_max("x", "y"))
    for aggregate in bench.few(cases):
        names = list(aggregate.arguments)
        bound = aggregate.bind(aggregate.arguments, (pa.float64(),) * len(names))
        by_hand = aggregate.accumulator(*names)
        assert by_hand is not None
        derived = {together: partial(Derived, bound, names, together) for together in (1, TOGETHER)}
        few = items[: max(count // 25, 2 * WINDOW)]
        for start in derived.values():
            answers = _whole(by_hand, few), _whole(start, few)
            if not math.isclose(*answers, rel_tol=1e-9, abs_tol=1e-9):
                raise AssertionError(f"{aggregate} is {answers[0]} by hand, and {answers[1]} derived")
        row = {"aggregate": str(aggregate), "by hand": _micros(bench, _whole, by_hand, items)}
        row |= {
            "one by one": _micros(bench, _whole, derived[1], few),
            "together": _micros(bench, _whole, derived[TOGETHER], items),
        }
        one.rows.append(_with_factors(row))
        row = {"aggregate": str(aggregate), "by hand": _micros(bench, _slide, by_hand, items)}
        sliding.rows.append(_with_factors(row | {"derived": _micros(bench, _slide, derived[1], few)}))


def _whole(start: Start, items: list[Any]) -> Any:
    accumulator = start()
    for item in items:
        accumulator.insert(item)
    return accumulator.value()


def _slide(start: Start, items: list[Any]) -> None:
    window = TwoStacks([start])
    for number, item in enumerate(items):
        window.insert(item)
        if number >= WINDOW:
            window.evict()
        window.values()


def _micros(bench: Bench, work: Callable[[Start, list[Any]], Any], start: Start, items: list[Any]) -> float:
    def seconds() -> float:
        begin = time.process_time()
        work(start, items)
        return time.process_time() - begin

    return min(seconds() for _ in range(bench.repeats)) / len(items) * 1e6


def _with_factors(row: dict[str, Any]) -> dict[str, Any]:
    ways = [name for name in row if name not in ("aggregate", "by hand")]
    return row | {f"{name}, ×": row[name] / row["by hand"] for name in ways}
