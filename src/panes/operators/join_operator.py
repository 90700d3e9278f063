"""The Join operator: each tuple is matched against the window of the other stream when it arrives.

Paper: Gedik 2014, section 6.1.2. Windows slide and are triggered by every tuple. One of them may be empty,
``count(0)``: a one-sided join, whose tuples are never stored. An outer join also lets out tuples that leave their
window without ever having been matched.
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
from panes.operators.window import Window
from panes.queries.eviction import Evict
from panes.queries.measures import Rows

_SIDES = ("left", "right")
_PORT = InputPort((Supported(SLIDING_POLICIES, ("count",), every=1, empty=True, full=False),))


class Join(Operator):
    """Match the tuples of two streams, within their windows.

    Tuples of port 0 are left, those of port 1 right. A tuple that comes in is matched against the other window, the
    oldest first; a window punctuation follows its matches, if there are any. An unmatched tuple of an outer join is
    followed by a punctuation of its own.

    Parameters
    ----------
    left, right
        Sliding windows that are triggered by every tuple; ``pn.sliding(pn.rows(0))`` for an empty one.
    on
        Attributes that have to be equal: one, several, or a mapping from those of the left to those of the right
        stream. Nulls match nothing.
    match
        A further condition on two tuples.
    select
        The output tuple of two tuples; without it, both sets of attributes. For an outer join one of the two may be
        None.
    outer
        Whose unmatched tuples go out when they leave their window: ``'left'``, ``'right'`` or ``'full'``.
    unmatched_ports
        Whether these have output ports of their own, from port 1 on, instead of port 0.
    by, evict, clock
        See ``Operator``. A tuple meets only those of its own key; ``evict`` may be a pair, for left and right.

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
            raise DeclarationError("unmatched_ports= are for outer joins. Write outer='left', 'right' or 'full' too.")
        kept = [side for side in _SIDES if outer in (side, "full")]
        super().__init__(left, right, by=by, evict=evict, clock=clock, outputs=1 + len(kept) * unmatched_ports)
        one, other = windows = [each for each in self.declared if each is not None]
        _check_partitions(one, other)
        if one.evict == other.evict == Rows(0):
            raise DeclarationError("Join has two empty windows, so that no tuple could meet another. Fill one of them.")
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
        """Insert a tuple into its window, and match it against the other."""
        if self._guard is None:
            self._sides[port].process(Held(item))
            return
        assert self.clock is not None
        with self._guard:
            # The other window may be timed where this one is not.
            self.clock.settle()
            self._sides[port].process(Held(item))

    def probe(self, held: Held, side: Side, partition: Hashable) -> None:
        """Match a tuple against the window of the other side, and let the matches out."""
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
        """The output tuples of left and right tuples whose attributes are equal, where they fulfil the condition."""
        match, select = self._match, self._select
        return (select(one, two) for one, two in pairs if match is None or match(one, two))

    def unmatched(self, held: Held, port: int, out: int) -> None:
        """Let out a tuple that leaves its window and was never matched."""
        pair = (held.item, None) if port == 0 else (None, held.item)
        self.submit(self._select(*pair), out)
        self.submit(PUNCTUATION, out)

    def declaration(self) -> str:
        """The condition, what is let out, and both windows."""
        return self._declaration

    def save(self) -> list[dict[str, Any]]:
        """The state of the windows, each tuple with whether it was ever matched. Then what the join was declared as."""
        with self.lock():
            windows = [_each_tuple(saved, lambda held: (held.item, held.matched)) for saved in super().save()]
            return [*windows, {"declared": self._declaration}]

    def load(self, state: Sequence[dict[str, Any]]) -> None:
        """Continue where a Join of the same declaration was saved; another one is refused."""
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
    """One input port: its window, and an index of the tuples in it."""

    def __init__(
        self, join: Join, port: int, declared: WindowPolicies, names: tuple[str, ...], out: int | None
    ) -> None:
        self.port = port
        self._out = out
        self._join = join
        self._declared = declared
        self._names = names
        self._partition_of = partition_reader(declared.partitioned)
        self._window: Window[Held] | None = None
        self._index: dict[Hashable, dict[Hashable, deque[Held]]] = {}

    def attach(self) -> None:
        """Make the window, unless it is empty, and register for what the join needs."""
        if self._declared.evict == Rows(0):
            return
        events = [Event.TRIGGER]
        if self._names:
            events.append(Event.AFTER_INSERTION)
        if self._names or self._out is not None:
            events += [Event.BEFORE_EVICTION, Event.PARTITION_EVICTION]
        self._window = self._join.window(self._declared, *events, handler=self)

    def key(self, item: Any) -> Hashable | None:
        """What has to be equal; None matches nothing. NaN equals itself, as in Spark."""
        values = tuple([item[name] for name in self._names])
        if None in values:
            return None
        return tuple([_NAN if value != value else value for value in values])

    def candidates(self, partition: Hashable, key: Hashable | None) -> Iterable[Held]:
        """The tuples of the window that may match, the oldest first."""
        if self._window is None or key is None:
            return ()
        if not self._names:
            return self._window.tuples(partition)
        return self._index.get(partition, {}).get(key, ())

    def process(self, held: Held) -> None:
        """Take in a tuple."""
        if self._window is not None:
            self._window.insert(held)
            return
        self._join.probe(held, self, self._partition_of(held))
        # It stays for no longer than its own processing.
        self._leave(held)

    # Events

    def after_insertion(self, item: Held, partition: Hashable, window: Window[Any]) -> None:
        """Index a tuple."""
        key = self.key(item.item)
        if key is not None:
            self._index.setdefault(partition, {}).setdefault(key, deque()).append(item)

    def trigger(self, partition: Hashable, window: Window[Any]) -> None:
        """Match the tuple that has just come in."""
        self._join.probe(window.tuples(partition)[-1], self, partition)

    def before_eviction(self, item: Held, partition: Hashable, window: Window[Any]) -> None:
        """Take a tuple out of the index; the oldest of its key is the one that goes."""
        if self._names and (key := self.key(item.item)) is not None:
            same = self._index[partition][key]
            same.popleft()
            if not same:
                del self._index[partition][key]
        self._leave(item)

    def partition_eviction(self, evicted: Iterator[tuple[Hashable, Sequence[Any]]], window: Window[Any]) -> None:
        """Take whole partitions out of the index."""
        for partition, tuples in evicted:
            self._index.pop(partition, None)
            for held in tuples:
                self._leave(held)

    def _leave(self, held: Held) -> None:
        if self._out is not None and not held.matched:
            self._join.unmatched(held, self.port, self._out)

    def index_again(self) -> None:
        """Index all tuples of a window that was loaded."""
        if self._window is not None and self._names:
            for partition, tuples in self._window:
                for held in tuples:
                    self.after_insertion(held, partition, self._window)


_NAN = object()


def _each_tuple(window: dict[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """The saved state of a window with its tuples changed."""
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
            f"Join has windows that are partitioned by {len(one)} and {len(other)} attributes, so that no tuple "
            "could meet another. Partition both by attributes of the same types, or neither."
        )
