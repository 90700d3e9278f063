"""The Sort operator: sorts whole windows, or a stream that is out of order by at most a window.

Paper: Gedik 2014, section 6.1.3. *Batch* mode sorts one tumbling window at a time. *Progressive* mode has a sliding
window: whenever a tuple leaves it, the first of the held tuples is submitted.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, ClassVar

from panes.aggregates.accumulator import order_key
from panes.errors import DeclarationError
from panes.operators.clocks import Clock
from panes.operators.events import Event
from panes.operators.operator import Operator, check_same, partition_attributes
from panes.operators.operator_model import (
    EVERY_TUPLE,
    GENERATING,
    PUNCTUATION,
    TUMBLING_WINDOWS,
    InputMode,
    InputPort,
    OperatorModel,
)
from panes.operators.policies import By, TumblingPolicies, WindowLike, policies_text
from panes.operators.window import WindowContainer
from panes.queries.eviction import Evict


class Sort(Operator):
    """Submit tuples in the order of some attributes, nulls first and NaN last; equal ones in the order of arrival.

    A window punctuation follows the tuples of each window; in progressive mode, those that one tuple releases or, by
    time, those that one instant releases of a partition. An evicted partition releases its tuples in order: a sort
    loses none.

    Parameters
    ----------
    window
        A tumbling window, or a sliding one that is triggered by every tuple.
    order
        The attributes to sort by.
    descending
        Whether the largest goes first (and nulls last): for all attributes, or for each.
    by, evict, clock
        See ``Operator``.

    Examples
    --------
    >>> import panes as pn
    >>> late = [{"ts": ts} for ts in (1, 3, 2, 5, 4, 6)]
    >>> in_order = Sort(pn.sliding(pn.rows(2)), order="ts").run(late)
    >>> [item["ts"] for item in in_order if item is not PUNCTUATION]
    [1, 2, 3, 4]
    """

    model: ClassVar[OperatorModel] = OperatorModel(
        "Sort", (InputPort((TUMBLING_WINDOWS, EVERY_TUPLE), InputMode.WINDOW_BOUND),), (GENERATING,)
    )
    _keeps: ClassVar[frozenset[str]] = frozenset(("_heaps", "_arrivals", "_unmarked"))

    def __init__(
        self,
        window: WindowLike,
        *,
        order: str | Iterable[str],
        descending: bool | Sequence[bool] = False,
        by: By = None,
        evict: Evict | None = None,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(window, by=by, evict=evict, clock=clock)
        (declared,) = self.declared
        assert declared is not None
        partition_attributes("Sort", declared)
        names = (order,) if isinstance(order, str) else tuple(order)
        self.order = sort_order(names, descending)
        self._key = sort_key(self.order)
        down = descending if isinstance(descending, bool) else list(descending)
        self._declaration = f"order={list(names)}, descending={down}, {policies_text(declared)}"
        self._batch = isinstance(declared, TumblingPolicies)
        # The tuples of progressive mode: for each partition a heap of (key, arrival, tuple).
        self._heaps: dict[Hashable, list[tuple[Any, int, Any]]] = {}
        self._arrivals = 0
        self._unmarked = False
        events = (Event.BEFORE_FLUSH,) if self._batch else (Event.AFTER_INSERTION, Event.BEFORE_EVICTION, Event.TRIGGER)
        self._window: Any = self.window(window, *events, Event.PARTITION_EVICTION)
        self._window.apart = True
        if not self._batch:
            self._window.left_on_the_clock = self._mark
        self._enter: Callable[[Any], None] = self._window.entry()

    def process(self, item: Any, port: int = 0) -> None:
        """Insert a tuple."""
        self._enter(item)

    def process_all(self, items: Sequence[Any], port: int = 0, *, at: Sequence[int] | None = None) -> None:
        """Insert tuples."""
        if type(self).process is Sort.process:
            self._window.insert_all(items, at)
        else:
            super().process_all(items, port, at=at)

    def punctuate(self, port: int = 0) -> None:
        """End the window, if it has a punctuation policy."""
        if self._batch:
            self._window.punctuate()

    # Batch mode

    def before_flush(self, partition: Hashable, window: WindowContainer[Any]) -> None:
        """Submit the tuples of the window in order."""
        self._sorted(window.tuples(partition))

    def _sorted(self, tuples: Iterable[Any]) -> None:
        for item in sorted(tuples, key=self._key):
            self.submit(item)
        self.submit(PUNCTUATION)

    # Progressive mode

    def after_insertion(self, item: Any, partition: Hashable, window: WindowContainer[Any]) -> None:
        """Add a tuple to the heap of its partition."""
        self._arrivals += 1
        heapq.heappush(self._heaps.setdefault(partition, []), (self._key(item), self._arrivals, item))

    def before_eviction(self, item: Any, partition: Hashable, window: WindowContainer[Any]) -> None:
        """Submit the first of the held tuples, which need not be the one that leaves the window."""
        self.submit(heapq.heappop(self._heaps[partition])[2])
        self._unmarked = True

    def trigger(self, partition: Hashable, window: WindowContainer[Any]) -> None:
        """Submit a punctuation after what a tuple released."""
        self._mark(partition)

    def _mark(self, partition: Hashable) -> None:
        if self._unmarked:
            self._unmarked = False
            self.submit(PUNCTUATION)

    def partition_eviction(
        self, evicted: Iterator[tuple[Hashable, Sequence[Any]]], window: WindowContainer[Any]
    ) -> None:
        """Submit the tuples of the partitions in order."""
        for partition, tuples in evicted:
            self._sorted(tuples if self._batch else [item for _, _, item in sorted(self._heaps.pop(partition, []))])

    # State

    def declaration(self) -> str:
        """Return the order and the window as text."""
        return self._declaration

    def save(self) -> list[dict[str, Any]]:
        """Return the state of the window, the held tuples in order, and the declaration."""
        with self.lock():
            held = {partition: [entry[1:] for entry in sorted(heap)] for partition, heap in self._heaps.items()}
            own = {"held": held, "arrivals": self._arrivals, "unmarked": self._unmarked}
            return [*super().save(), own | {"declared": self._declaration}]

    def load(self, state: Sequence[dict[str, Any]]) -> None:
        """Continue from the saved state of a Sort with the same declaration; raise for another one."""
        *windows, own = state
        check_same("Sort", own.get("declared"), self._declaration)
        with self.lock():
            super().load(windows)
            self._heaps = {
                partition: [(self._key(item), arrival, item) for arrival, item in held]
                for partition, held in own["held"].items()
            }
            self._arrivals, self._unmarked = own["arrivals"], own["unmarked"]


def sort_order(by: Sequence[str], descending: bool | Sequence[bool]) -> tuple[tuple[str, bool], ...]:
    """Return the attributes to sort by, each with whether it is descending."""
    if not by:
        raise DeclarationError("Sort has nothing to sort by. Write for example order='ts'.")
    flags = [descending] * len(by) if isinstance(descending, bool) else list(descending)
    if len(flags) != len(by):
        raise DeclarationError(f"descending= has {len(flags)} entries for {len(by)} attributes. Write one for each.")
    return tuple(zip(by, flags, strict=True))


def sort_key(order: Sequence[tuple[str, bool]]) -> Callable[[Any], tuple[Any, ...]]:
    """Return the key function that sorts tuples.

    Examples
    --------
    >>> rows = [{"x": 1, "y": 2}, {"x": 1, "y": 3}, {"x": None, "y": 0}]
    >>> [row["y"] for row in sorted(rows, key=sort_key([("x", False), ("y", True)]))]
    [0, 3, 2]
    """

    def key(item: Any) -> tuple[Any, ...]:
        return tuple([_Descending(_place(item[name])) if down else _place(item[name]) for name, down in order])

    return key


def _place(value: Any) -> tuple[Any, ...]:
    return (False,) if value is None else (True, *order_key(value))


class _Descending:
    """A value in descending order."""

    __slots__ = ("place",)

    def __init__(self, place: Any) -> None:
        self.place = place

    def __lt__(self, other: _Descending) -> bool:
        return bool(other.place < self.place)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Descending) and self.place == other.place

    __hash__ = None  # type: ignore[assignment]
