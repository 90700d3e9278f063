"""What a window is declared to be: plain values, without logic or state.

Paper: Gedik 2014, section 3. Users declare windows by size and pace, and ``lowering`` makes these of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from panes.declare.eviction import LEAST_RECENTLY_UPDATED, Choose
from panes.declare.windows import Origin
from panes.timeline import format_duration

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
