"""The Join operator: each tuple is matched against the window of the other stream when it arrives.

Paper: Gedik 2014, section 6.1.2. Windows slide and are triggered by every tuple. One of them may be empty: in such a
one-sided join its tuples are never stored. An outer join also submits tuples that leave their window unmatched.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from panes.errors import DeclarationError, SchemaError
from panes.operators.attributes import partition_reader
from panes.operators.clocks import Clock
from panes.operators.events import Event, WindowEvents
from panes.operators.operator import Operator, check_same, partition_attributes
from panes.operators.operator_model import (
    GENERATING,
    PUNCTUATION,
    SLIDING_POLICIES,
    InputPort,
    OperatorModel,
    Supported,
)
from panes.operators.policies import By, WindowLike, WindowPolicies, argument_text, policies_text
from panes.operators.window import WindowContainer
from panes.queries.eviction import Evict
from panes.queries.measures import Rows

_SIDES = ("left", "right")
_PORT = InputPort((Supported(SLIDING_POLICIES, ("count",), every=1, empty=True, full=False),))


class Join(Operator):
    """Match the tuples of two streams, within their windows.

    Port 0 is the left stream, port 1 the right. An arriving tuple is matched against the other window, oldest first; a
    window punctuation follows its matches, if there are any. Each unmatched tuple of an outer join is followed by its
    own punctuation.

    Parameters
    ----------
    left, right
        Sliding windows that are triggered by every tuple; ``pn.sliding(pn.rows(0))`` for an empty one.
    on
        Attributes that must be equal: one, several, or a mapping from left to right attributes. Nulls match nothing.
    match
        A further condition on two tuples.
    select
        Makes the output tuple of two tuples; by default it has the attributes of both. In an outer join one of the two
        may be None.
    outer
        Whose unmatched tuples are submitted when they leave their window: ``'left'``, ``'right'`` or ``'full'``.
    unmatched_ports
        Whether these get their own output ports, from port 1 on, instead of port 0.
    by, evict, clock
        See ``Operator``. Only tuples of one key match; ``evict`` may be a pair, for left and right.

    Examples
    --------
    >>> import panes as pn
    >>> join = Join(pn.sliding(pn.rows(2)), pn.sliding(pn.rows(0)), on="k")
    >>> for number in range(3):
    ...     join.process({"k": "a", "number": number})
    >>> join.run([{"k": "a", "asks": 1}], port=1)
    [{'k': 'a', 'number': 1, 'asks': 1}, {'k': 'a', 'number': 2, 'asks': 1}, PUNCTUATION]
    """

    model: ClassVar[OperatorModel] = OperatorModel("Join", (_PORT, _PORT), (GENERATING,))
    _keeps: ClassVar[frozenset[str]] = frozenset(("_sides",))

    def __init__(
        self,
        left: WindowLike,
        right: WindowLike,
        *,
        on: str | Iterable[str] | Mapping[str, str] = (),
        match: Callable[[Any, Any], bool] | None = None,
        select: Callable[[Any, Any], Any] | None = None,
        outer: str | None = None,
        unmatched_ports: bool = False,
        by: By = None,
        evict: Evict | Sequence[Evict | None] | None = None,
        clock: Clock | None = None,
    ) -> None:
        if outer not in (None, *_SIDES, "full"):
            raise DeclarationError(f"outer={outer!r}: write 'left', 'right' or 'full', or leave it out.")
        if unmatched_ports and outer is None:
            raise DeclarationError("unmatched_ports= is for outer joins. Write outer='left', 'right' or 'full' too.")
        kept = [side for side in _SIDES if outer in (side, "full")]
        super().__init__(left, right, by=by, evict=evict, clock=clock, outputs=1 + len(kept) * unmatched_ports)
        one, other = windows = [each for each in self.declared if each is not None]
        _check_partitions(one, other)
        if one.evict == other.evict == Rows(0):
            raise DeclarationError(
                "both windows of Join are empty, so nothing would match. Write a larger size for one."
            )
        self.pairs = pairs = _pairs(on)
        self.outer = outer
        if not pairs and match is None and one.partitioned is None:
            raise DeclarationError("Join has no condition. Write on='key', or match=lambda left, right: ...")
        self._match = match
        equal = [*pairs.items(), *zip(*(partition_attributes("Join", window) for window in windows), strict=True)]
        shared = {name for name, other in equal if name == other}
        self._select = select or (lambda one, other: _merged(one, other, shared))
        ports = {name: 1 + number if unmatched_ports else 0 for number, name in enumerate(kept)}
        self._sides = [
            Side(self, 0, one, tuple(pairs), ports.get("left")),
            Side(self, 1, other, tuple(pairs.values()), ports.get("right")),
        ]
        for side in self._sides:
            side.attach()
        self._guard = self.lock() if self.threaded else None
        options = f"match={argument_text(match)}, outer={outer}, unmatched_ports={unmatched_ports}"
        self._declaration = f"on={pairs}, {options}, {policies_text(*windows)}"

    def process(self, item: Any, port: int = 0) -> None:
        """Insert a tuple into its window, and match it against the other one."""
        if self._guard is None:
            self._sides[port].process(Held(item))
            return
        assert self.clock is not None
        with self._guard:
            # The other window may be timed even if this one is not.
            self.clock.settle()
            self._sides[port].process(Held(item))

    def probe(self, held: Held, side: Side, partition: Hashable) -> None:
        """Match a tuple against the window of the other side, and submit the matches."""
        match, select, found = self._match, self._select, False
        item = held.item
        for other in self._sides[1 - side.port].candidates(partition, side.key(item)):
            one, two = (item, other.item) if side.port == 0 else (other.item, item)
            if match is None or match(one, two):
                found = held.matched = other.matched = True
                self.submit(select(one, two))
        if found:
            self.submit(PUNCTUATION)

    def matches(self, pairs: Iterable[tuple[Any, Any]]) -> Iterator[Any]:
        """Return the output tuples of pairs with equal attributes that fulfil the condition."""
        match, select = self._match, self._select
        return (select(one, two) for one, two in pairs if match is None or match(one, two))

    def unmatched(self, held: Held, port: int, out: int) -> None:
        """Submit a tuple that leaves its window unmatched."""
        pair = (held.item, None) if port == 0 else (None, held.item)
        self.submit(self._select(*pair), out)
        self.submit(PUNCTUATION, out)

    def declaration(self) -> str:
        """Return the condition, the kind of join, and both windows as text."""
        return self._declaration

    def save(self) -> list[dict[str, Any]]:
        """Return the state of the windows, with a flag per tuple whether it was matched, and the declaration."""
        with self.lock():
            windows = [_each_tuple(saved, lambda held: (held.item, held.matched)) for saved in super().save()]
            return [*windows, {"declared": self._declaration}]

    def load(self, state: Sequence[dict[str, Any]]) -> None:
        """Continue from the saved state of a Join with the same declaration; raise for another one."""
        *windows, own = state
        check_same("Join", own.get("declared"), self._declaration)
        with self.lock():
            super().load([_each_tuple(saved, lambda pair: Held(*pair)) for saved in windows])
            for side in self._sides:
                side.index_again()


class Held:
    """A tuple in a window, and whether it was ever matched."""

    __slots__ = ("item", "matched")

    def __init__(self, item: Any, matched: bool = False) -> None:
        self.item, self.matched = item, matched

    def __getitem__(self, attribute: Any) -> Any:
        return self.item[attribute]


class Side(WindowEvents):
    """An input port: its window, and an index of its tuples."""

    def __init__(
        self, join: Join, port: int, declared: WindowPolicies, names: tuple[str, ...], out: int | None
    ) -> None:
        self.port = port
        self._out = out
        self._join = join
        self._declared = declared
        self._names = names
        self._partition_of = partition_reader(declared.partitioned)
        self._window: WindowContainer[Held] | None = None
        self._index: dict[Hashable, dict[Hashable, deque[Held]]] = {}

    def attach(self) -> None:
        """Make the window, unless it is empty, and register the handlers that the join needs."""
        if self._declared.evict == Rows(0):
            return
        events = [Event.TRIGGER]
        if self._names:
            events.append(Event.AFTER_INSERTION)
        if self._names or self._out is not None:
            events += [Event.BEFORE_EVICTION, Event.PARTITION_EVICTION]
        self._window = self._join.window(self._declared, *events, handler=self)

    def key(self, item: Any) -> Hashable | None:
        """Return the join key of a tuple; None matches nothing. NaN equals itself, as in Spark."""
        values = tuple([item[name] for name in self._names])
        if None in values:
            return None
        return tuple([_NAN if value != value else value for value in values])

    def candidates(self, partition: Hashable, key: Hashable | None) -> Iterable[Held]:
        """Return the tuples of the window that may match, oldest first."""
        if self._window is None or key is None:
            return ()
        if not self._names:
            return self._window.tuples(partition)
        return self._index.get(partition, {}).get(key, ())

    def process(self, held: Held) -> None:
        """Insert a tuple."""
        if self._window is not None:
            self._window.insert(held)
            return
        self._join.probe(held, self, self._partition_of(held))
        # It is not stored.
        self._leave(held)

    # Events

    def after_insertion(self, item: Held, partition: Hashable, window: WindowContainer[Any]) -> None:
        """Index a tuple."""
        key = self.key(item.item)
        if key is not None:
            self._index.setdefault(partition, {}).setdefault(key, deque()).append(item)

    def trigger(self, partition: Hashable, window: WindowContainer[Any]) -> None:
        """Match the tuple that has just come in."""
        self._join.probe(window.tuples(partition)[-1], self, partition)

    def before_eviction(self, item: Held, partition: Hashable, window: WindowContainer[Any]) -> None:
        """Remove a tuple from the index: it is the oldest of its key."""
        if self._names and (key := self.key(item.item)) is not None:
            same = self._index[partition][key]
            same.popleft()
            if not same:
                del self._index[partition][key]
        self._leave(item)

    def partition_eviction(
        self, evicted: Iterator[tuple[Hashable, Sequence[Any]]], window: WindowContainer[Any]
    ) -> None:
        """Remove partitions from the index."""
        for partition, tuples in evicted:
            self._index.pop(partition, None)
            for held in tuples:
                self._leave(held)

    def _leave(self, held: Held) -> None:
        if self._out is not None and not held.matched:
            self._join.unmatched(held, self.port, self._out)

    def index_again(self) -> None:
        """Index the tuples of a loaded window."""
        if self._window is not None and self._names:
            for partition, tuples in self._window:
                for held in tuples:
                    self.after_insertion(held, partition, self._window)


_NAN = object()


def _each_tuple(window: dict[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the saved state of a window with its tuples changed."""
    changed = [saved | {"tuples": [change(each) for each in saved["tuples"]]} for saved in window["subwindows"]]
    return {**window, "subwindows": changed}


def _pairs(on: str | Iterable[str] | Mapping[str, str]) -> dict[str, str]:
    if isinstance(on, str):
        return {on: on}
    return dict(on) if isinstance(on, Mapping) else {name: name for name in on}


def _merged(left: Any, right: Any, shared: set[Any]) -> dict[str, Any]:
    if left is None or right is None:
        return dict(right if left is None else left)
    both = {**left, **right}
    if len(both) != len(left) + len(right) - len(shared):
        clash = sorted((left.keys() & right.keys()) - shared)
        raise SchemaError(
            f"both streams have the attribute {clash[0]!r}. Write select=lambda left, right: {{...}} to name the "
            "output."
        )
    return both


def _check_partitions(left: WindowPolicies, right: WindowPolicies) -> None:
    one, other = partition_attributes("Join", left), partition_attributes("Join", right)
    if len(one) != len(other):
        raise DeclarationError(
            f"Join has windows that are partitioned by {len(one)} and {len(other)} attributes, so nothing would match. "
            "Partition both by attributes of the same types, or neither."
        )
