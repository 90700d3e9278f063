"""What an operator was declared with, as a short text: a state is continued by the same declaration, and no other.

Functions have no text that would be the same in another process, so of them only it is said that they are there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

from panes.errors import StateError
from panes.queries.eviction import LEAST_RECENTLY_UPDATED, Choose
from panes.queries.windows import Origin
from panes.timeline import format_duration

# What a window is declared to be: plain values, without logic or state.
#
# Paper: Gedik 2014, section 3. Users declare windows by size and pace, and ``lowering`` makes these of them.


Attribute: TypeAlias = "str | int"
"""What names a part of a tuple: a key of a mapping, or a place in a sequence."""


@dataclass(frozen=True, slots=True)
class Count:
    """So many tuples (section 3.3.1)."""

    n: int
    kind: ClassVar[str] = "count"

    def __str__(self) -> str:
        return f"count({self.n})"


@dataclass(frozen=True, slots=True)
class Delta:
    """So far apart in an attribute that never decreases (section 3.3.2).

    Parameters
    ----------
    temporal
        Whether the attribute is an instant (int µs, or a ``datetime``) and ``by`` therefore in µs.
    """

    attribute: Attribute
    by: Any
    temporal: bool = False
    kind: ClassVar[str] = "delta"

    def __str__(self) -> str:
        by = format_duration(self.by) if self.temporal else self.by
        return f"delta({self.attribute}, {by})"


@dataclass(frozen=True, slots=True)
class Time:
    """So many µs on the clock of the window (section 3.3.3).

    Parameters
    ----------
    origin
        Where periods begin: ``first``, with the first tuple, and one follows on the other; ``row``, each with the next
        tuple after the last has ended (the paper's partitioned tumbling windows); ``epoch``, on the grid of the clock,
        at ``phase + m * period``.
    """

    period: int
    origin: Origin = "first"
    phase: int = 0
    kind: ClassVar[str] = "time"

    def __str__(self) -> str:
        where = {"first": "", "row": " from a row", "epoch": " on the clock"}[self.origin]
        phase = f" + {format_duration(self.phase)}" if self.phase else ""
        return f"time({format_duration(self.period)}){where}{phase}"


@dataclass(frozen=True, slots=True)
class Punctuation:
    """Until a window punctuation arrives (section 3.3.4).

    Parameters
    ----------
    column
        Of rows of a table: which of them are punctuations. Operators that are given tuples are told by ``punctuate``.
    scope
        Whether one ends the windows of all keys, ``stream``, or those of its own key.
    """

    column: str = ""
    scope: str = "stream"
    kind: ClassVar[str] = "punctuation"

    def __str__(self) -> str:
        return f"punctuation({', '.join(filter(None, (self.column, 'key' if self.scope == 'key' else '')))})"


@dataclass(frozen=True, slots=True)
class Gap:
    """Until no tuple has come for so many µs: a session. Not a policy of the paper, and only for whole columns."""

    gap: int
    kind: ClassVar[str] = "gap"

    def __str__(self) -> str:
        return f"gap({format_duration(self.gap)})"


Policy: TypeAlias = "Count | Delta | Time | Punctuation"


@dataclass(frozen=True, slots=True)
class PartitionCount:
    """At most so many subwindows."""

    limit: int
    kind: ClassVar[str] = "partition count"


@dataclass(frozen=True, slots=True)
class TupleCount:
    """At most so many tuples in all subwindows together."""

    limit: int
    kind: ClassVar[str] = "tuple count"


@dataclass(frozen=True, slots=True)
class PartitionAge:
    """No subwindow that was not updated for more than so many µs."""

    age: int
    kind: ClassVar[str] = "partition age"


PartitionEviction: TypeAlias = "PartitionCount | TupleCount | PartitionAge"


@dataclass(frozen=True, slots=True)
class Partitions:
    """A subwindow for each value of the partition-by attributes, and what bounds their number (section 3.5).

    Parameters
    ----------
    by
        The attributes; empty where the operator itself says to which partition a tuple belongs.
    evict
        Which subwindows are removed; None keeps them all.
    select
        Which subwindow goes first, of those that could: one of ``CHOICES``, or a function that is given the
        candidates and marks some.
    """

    by: tuple[Attribute, ...]
    evict: PartitionEviction | None = None
    select: Choose = LEAST_RECENTLY_UPDATED


@dataclass(frozen=True, slots=True)
class Tumbling:
    """A window that is processed and emptied when it is full (section 3.1.1)."""

    evict: Policy | Gap
    partitioned: Partitions | None = None
    kind: ClassVar[str] = "tumbling"

    def __str__(self) -> str:
        return f"tumbling, {_partitioned(self.partitioned)}{self.evict}"


@dataclass(frozen=True, slots=True)
class Sliding:
    """A window of the most recent tuples, processed whenever its trigger policy says so (section 3.1.2).

    Parameters
    ----------
    partial
        Whether it is processed before it has been full for the first time.
    ago
        How many of the very last tuples it leaves out; not of the paper, and only for whole columns.
    before
        Whether it leaves out the tuples of the instant at which it is processed; the same goes for it, and its trigger
        is a count.
    """

    evict: Count | Delta | Time
    trigger: Count | Delta | Time
    partitioned: Partitions | None = None
    partial: bool = True
    ago: int = 0
    before: bool = False
    kind: ClassVar[str] = "sliding"

    def __str__(self) -> str:
        more = f"{'' if self.partial else ', full'}{', before its instant' if self.before else ''}"
        more += f", but the last {self.ago}" if self.ago else ""
        return f"sliding, {_partitioned(self.partitioned)}{self.evict}, {self.trigger}{more}"


WindowDeclaration: TypeAlias = "Tumbling | Sliding"


def _partitioned(partitioned: Partitions | None) -> str:
    return "" if partitioned is None else "partitioned, "


def window_text(window: WindowDeclaration) -> str:
    """A window, with its partitions and how they are evicted.

    Examples
    --------
    >>> import panes as pn
    >>> from panes.operators.lowering import lowered
    >>> window_text(lowered(pn.tumbling(pn.rows(3)), ["state"], pn.evict(keys=9)))
    'tumbling, partitioned, count(3) by state, PartitionCount(limit=9), least recently updated'
    """
    partitioned = window.partitioned
    if partitioned is None:
        return str(window)
    parts = [f"{window} by {', '.join(map(str, partitioned.by))}".removesuffix(" by ")]
    if partitioned.evict is not None:
        parts += [str(partitioned.evict), value_text(partitioned.select)]
    return ", ".join(parts)


def written(window: WindowDeclaration) -> str:
    """A window as users write it, without its keys.

    Examples
    --------
    >>> import panes as pn
    >>> from panes.operators.lowering import lowered
    >>> print(written(lowered(pn.hopping(pn.rows(100), every=pn.rows(10), partial=False))))
    pn.hopping(pn.rows(100), every=pn.rows(10), partial=False)
    >>> print(written(lowered(pn.tumbling("1 min"))), written(lowered(pn.sliding("10 s"))))
    pn.tumbling('1m') pn.sliding('10s')
    """
    if isinstance(window, Tumbling):
        return f"pn.tumbling({_measure(window.evict)}{_grid(window.evict)})"
    evict, trigger = window.evict, window.trigger
    full = "" if window.partial else ", partial=False"
    size, bounds = _measure(evict), ""
    if isinstance(evict, Time) and isinstance(trigger, Count):
        # Without its start a window is a µs shorter; round sizes are of such windows.
        open_start = evict.period % 1000 == 999
        size = _measure(replace(evict, period=evict.period + open_start))
        bounds = "" if open_start else ", bounds='[]'"
    if trigger == Count(1) and not bounds and not (full and isinstance(evict, Time)):
        return f"pn.sliding({size}{full})"
    if isinstance(evict, Time) and isinstance(trigger, Time):
        # On the clock windows are counted from where they begin.
        trigger = replace(trigger, phase=(trigger.phase - evict.period) % trigger.period)
    return f"pn.hopping({size}, every={_measure(trigger)}{bounds}{_grid(trigger)}{full})"


def _measure(policy: Policy | Gap) -> str:
    if isinstance(policy, Count):
        return f"pn.rows({policy.n})"
    if isinstance(policy, Delta):
        return f"pn.delta({policy.attribute!r}, {format_duration(policy.by) if policy.temporal else policy.by!r})"
    if isinstance(policy, (Time, Gap)):
        return repr(format_duration(policy.period if isinstance(policy, Time) else policy.gap))
    return f"pn.{policy}"


def _grid(policy: Policy | Gap) -> str:
    if not isinstance(policy, Time):
        return ""
    if policy.origin == "epoch":
        return f", offset={format_duration(policy.phase)!r}" if policy.phase else ""
    return f", origin={policy.origin!r}"


def windows_text(windows: Iterable[WindowDeclaration]) -> str:
    """Some windows."""
    return "; ".join(map(window_text, windows))


def value_text(value: Any) -> str:
    """Something that a user wrote.

    Examples
    --------
    >>> import panes as pn
    >>> value_text(pn.sum("x")), value_text(len), value_text(None)
    ('sum(x)', 'a function', 'None')
    """
    return "a function" if callable(value) else str(value)


def check_same(operator: str, was: str | None, now: str) -> None:
    """Refuse a state of another declaration."""
    if was != now:
        raise StateError(
            f"the state of {operator} was saved by one that was declared with [{was}], and this one is declared with "
            f"[{now}]. Declare it as before, or begin without the state."
        )
