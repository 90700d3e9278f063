"""The windows of Gedik (2014), section 3, word for word and as slowly as that: the oracle of ``panes.operators``.

It shares no logic with the library: it knows the declarations, walks through time one tick after another, and looks at
everything at every tick. Where the paper leaves something open, the comments say what Panes decided.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from panes.operators.policies import SlidingPolicies, Time, TumblingPolicies, WindowPolicies, kind_of
from panes.queries.eviction import LEAST_FREQUENTLY_UPDATED, LEAST_RECENTLY_UPDATED, OLDEST, Evict
from panes.queries.measures import Delta, Rows

# Tables I and II; | separates what happens on the clock.
TABLE_I = {
    "count": "insert evict",
    "delta": "evict insert",
    "time": "insert | evict",
    "punctuation": "insert | evict",
}
TABLE_II = {
    ("count", "count"): "evict insert trigger",
    ("count", "delta"): "trigger evict insert",
    ("count", "time"): "evict insert | trigger",
    ("delta", "count"): "evict insert trigger",
    ("delta", "delta"): "trigger evict insert",
    ("delta", "time"): "evict insert | trigger",
    ("time", "count"): "insert trigger | evict",
    ("time", "delta"): "trigger insert | evict",
    ("time", "time"): "insert | evict | trigger",
}

Emit = Callable[..., None]


@dataclass
class _Subwindow:
    partition: Hashable
    opened: int
    items: list[tuple[Any, int]] = field(default_factory=list)  # each with its arrival time
    received: int = 0
    last_trigger: Any = None
    full: bool = False
    updates: list[tuple[int, int]] = field(default_factory=list)  # when, and the number of the insertion

    def tuples(self) -> tuple[Any, ...]:
        return tuple(item for item, _ in self.items)


class ReferenceWindow:
    """A window whose events go to a function: ``emit(name of the event, partition, tuple or contents)``.

    Examples
    --------
    >>> import panes as pn
    >>> from panes.operators.policies import policies_of
    >>> window = ReferenceWindow(policies_of(pn.tumbling(pn.rows(2))), print)
    >>> window.insert("a")
    before_insertion () a
    after_insertion () a
    """

    def __init__(self, declared: WindowPolicies, emit: Emit) -> None:
        self.declared = declared
        self.emit = emit
        self.now = 0
        self.subwindows: list[_Subwindow] = []
        self.insertions = 0

    # Time, one tick after another. What is due at a tick happens before the tuples that arrive at it.

    def tick(self) -> None:
        """Let one unit of time pass."""
        self.now += 1
        declared = self.declared
        if isinstance(declared, TumblingPolicies):
            if isinstance(declared.evict, Time):
                for sub in list(self.subwindows):
                    if self._period_ends(declared.evict, sub):
                        self._flush(sub)
            return
        if isinstance(declared.evict, Time):
            for sub in self.subwindows:
                # The age invariant: the age of every tuple is at most the period.
                while sub.items and self.now - sub.items[0][1] > declared.evict.period:
                    self._evict_oldest(sub)
            for sub in self.subwindows:
                if not sub.full and self.now - sub.opened >= declared.evict.period:
                    self._fill(sub)
        if isinstance(declared.trigger, Time):
            for sub in self.subwindows:
                if self._period_ends(declared.trigger, sub):
                    self._trigger(sub)

    def _period_ends(self, policy: Time, sub: _Subwindow) -> bool:
        begin = policy.phase if policy.origin == "epoch" else sub.opened
        return (self.now - begin) % policy.period == 0

    # Tuples

    def insert(self, item: Any, partition: Hashable = ()) -> None:
        """Let a tuple arrive."""
        self._evict_aged_partitions()
        sub = self._find(partition)
        if sub is None:
            self._evict_partition_to_make_space()
            sub = _Subwindow(partition, self.now)
            self.subwindows.append(sub)
        self.insertions += 1
        sub.updates.append((self.now, self.insertions))
        declared = self.declared
        # A subwindow is full "when the next tuple to be admitted would break the delta invariant".
        if isinstance(declared, SlidingPolicies) and isinstance(declared.evict, Delta) and not sub.full and sub.items:
            would_break = self._delta(declared.evict, item, sub.items[0][0]) > declared.evict.by
            if would_break:
                self._fill(sub)
        order = (
            TABLE_I[kind_of(declared.evict)]
            if isinstance(declared, TumblingPolicies)
            else TABLE_II[kind_of(declared.evict), kind_of(declared.trigger)]
        )
        for step in order.split(" |")[0].split():
            getattr(self, f"_{step}_{declared.kind}")(sub, item)
        self._evict_partitions_until_few_tuples()

    def punctuate(self) -> None:
        """Let a window punctuation arrive."""
        if kind_of(self.declared.evict) != "punctuation":
            return
        if self.declared.partitioned is None and not self.subwindows:
            self.subwindows.append(_Subwindow((), self.now))
        for sub in list(self.subwindows):
            self._flush(sub)

    def contents(self, partition: Hashable = ()) -> tuple[Any, ...]:
        """The tuples of a subwindow."""
        sub = self._find(partition)
        return () if sub is None else sub.tuples()

    # TumblingPolicies windows

    def _insert_tumbling(self, sub: _Subwindow, item: Any) -> None:
        self.emit("before_insertion", sub.partition, item)
        sub.items.append((item, self.now))
        self.emit("after_insertion", sub.partition, item)

    def _evict_tumbling(self, sub: _Subwindow, item: Any) -> None:
        policy = self.declared.evict
        if isinstance(policy, Rows):
            if len(sub.items) == policy.n:
                self._flush(sub)
        elif isinstance(policy, Delta) and sub.items and self._delta(policy, item, sub.items[0][0]) > policy.by:
            self._flush(sub)

    def _flush(self, sub: _Subwindow) -> None:
        self.emit("before_flush", sub.partition, sub.tuples())
        sub.items.clear()
        # "When a subwindow gets full, it can be discarded after it is processed"; not so by delta (section 3.3.2), and
        # not where the first tuple of all says when periods begin.
        policy = self.declared.evict
        goes = self.declared.partitioned is not None and not isinstance(policy, Delta)
        if isinstance(policy, Time) and policy.origin != "epoch":
            goes = policy.origin == "row"
        if goes:
            self.subwindows.remove(sub)
        self.emit("after_flush", sub.partition, ())

    # SlidingPolicies windows

    def _insert_sliding(self, sub: _Subwindow, item: Any) -> None:
        self._insert_tumbling(sub, item)
        policy = self.declared.evict
        if isinstance(policy, Rows) and not sub.full and len(sub.items) == policy.n:
            self._fill(sub)

    def _evict_sliding(self, sub: _Subwindow, item: Any) -> None:
        policy = self.declared.evict
        if isinstance(policy, Rows):
            if len(sub.items) == policy.n:
                self._evict_oldest(sub)
        elif isinstance(policy, Delta):
            while sub.items and self._delta(policy, item, sub.items[0][0]) > policy.by:
                self._evict_oldest(sub)

    def _trigger_sliding(self, sub: _Subwindow, item: Any) -> None:
        assert isinstance(self.declared, SlidingPolicies)
        policy = self.declared.trigger
        if isinstance(policy, Rows):
            sub.received += 1
            if sub.received == policy.n:
                sub.received = 0
                self._trigger(sub)
        elif isinstance(policy, Delta):
            # Nothing has triggered before the first tuple: it stands for that, as in figure 2.
            if sub.last_trigger is None:
                sub.last_trigger = item
            elif self._delta(policy, item, sub.last_trigger) > policy.by:
                sub.last_trigger = item
                self._trigger(sub)

    def _evict_oldest(self, sub: _Subwindow) -> None:
        self.emit("before_eviction", sub.partition, sub.items[0][0])
        item, _ = sub.items.pop(0)
        self.emit("after_eviction", sub.partition, item)

    def _trigger(self, sub: _Subwindow) -> None:
        assert isinstance(self.declared, SlidingPolicies)
        if not self.declared.partial and not sub.full:
            return
        self.emit("trigger", sub.partition, sub.tuples())

    def _fill(self, sub: _Subwindow) -> None:
        sub.full = True
        self.emit("initial_full", sub.partition, sub.tuples())

    # Partition eviction (section 3.5), "piggybacked on insertions" (section 4.2)

    def _evict_aged_partitions(self) -> None:
        age = self._limits.age
        if age is not None:
            aged = [sub for sub in self.subwindows if self.now - sub.updates[-1][0] > age]
            self._evict_partitions(sorted(aged, key=_last_update))

    def _evict_partition_to_make_space(self) -> None:
        keys = self._limits.keys
        if keys is not None and len(self.subwindows) + 1 > keys:
            self._evict_partitions(self._selected())

    def _evict_partitions_until_few_tuples(self) -> None:
        rows = self._limits.rows
        while rows is not None and sum(len(sub.items) for sub in self.subwindows) > rows:
            self._evict_partitions(self._selected())

    def _evict_partitions(self, subs: list[_Subwindow]) -> None:
        if subs:
            self.emit("partition_eviction", None, tuple((sub.partition, sub.tuples()) for sub in subs))
            self.subwindows = [sub for sub in self.subwindows if sub not in subs]

    def _selected(self) -> list[_Subwindow]:
        choose = self._limits.choose
        if callable(choose):
            marks = _Marks([(sub.partition, sub.tuples()) for sub in self.subwindows])
            choose(marks)
            return [sub for mark in marks.marked if (sub := self._find(mark)) is not None]
        order: dict[str, Callable[[_Subwindow], Any]] = {
            LEAST_RECENTLY_UPDATED: _last_update,
            LEAST_FREQUENTLY_UPDATED: lambda sub: (len(sub.updates), _last_update(sub)),
            OLDEST: lambda sub: sub.updates[0],
        }
        return [min(self.subwindows, key=order[choose])]

    @property
    def _limits(self) -> Evict:
        partitioned = self.declared.partitioned
        return Evict() if partitioned is None or partitioned.evict is None else partitioned.evict

    def _find(self, partition: Hashable) -> _Subwindow | None:
        return next((sub for sub in self.subwindows if sub.partition == partition), None)

    @staticmethod
    def _delta(policy: Delta, later: Any, earlier: Any) -> Any:
        return later[policy.column] - earlier[policy.column]


def _last_update(sub: _Subwindow) -> tuple[int, int]:
    return sub.updates[-1]


@dataclass
class _Marks:
    subwindows: Iterable[tuple[Hashable, tuple[Any, ...]]]
    marked: list[Hashable] = field(default_factory=list)

    def __iter__(self) -> Iterator[tuple[Hashable, tuple[Any, ...]]]:
        return iter(self.subwindows)

    def mark(self, partition: Hashable) -> None:
        if partition not in self.marked:
            self.marked.append(partition)
