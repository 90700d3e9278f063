"""Turn a declared window into policies: what evicts rows from it, and what triggers its processing.

Paper: Gedik 2014, section 3. A size is an eviction policy, a pace is a trigger policy, and keys are partitions. Sizes
and paces in rows, in a column or up to a mark are policies as declared (``panes.queries.measures``). Durations become
``Time`` here, since periods need an origin.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, TypeAlias

from panes.errors import DeclarationError
from panes.frames.order import ORDER, Order
from panes.queries.eviction import LEAST_RECENTLY_UPDATED, Evict
from panes.queries.measures import Delta, Measure, Punctuation, Rows
from panes.queries.windows import AnyWindow, DeclaredWindow, Origin, RowWindow, Window
from panes.queries.windows import Sliding as SlidingInTime
from panes.suggestions import each_of
from panes.timeline import format_duration

Attribute: TypeAlias = "str | int"
"""The name of an item of a tuple: a key of a mapping, or a position in a sequence."""

By: TypeAlias = "Attribute | Iterable[Attribute] | None"


# Policies


@dataclass(frozen=True, slots=True)
class Time:
    """A period in µs on the clock of the window (section 3.3.3).

    Parameters
    ----------
    origin
        Where periods begin: ``first``, back to back from the first tuple; ``row``, each with the first tuple after the
        previous period (the paper's partitioned tumbling windows); ``epoch``, on the grid of the clock, at
        ``phase + m * period``.
    """

    period: int
    origin: Origin = "first"
    phase: int = 0


@dataclass(frozen=True, slots=True)
class Gap:
    """A session, which ends this many µs after its last row. Not in the paper, and only for sorted rows."""

    gap: int


EvictionPolicy: TypeAlias = Rows | Delta | Time | Punctuation | Gap
TriggerPolicy: TypeAlias = Rows | Delta | Time

_KINDS: Final = {Rows: "count", Delta: "delta", Time: "time", Punctuation: "punctuation", Gap: "gap"}


def kind_of(policy: EvictionPolicy) -> str:
    """Return the paper's word for a policy: ``count``, ``delta``, ``time``, ``punctuation``; or ``gap``."""
    return _KINDS[type(policy)]


@dataclass(frozen=True, slots=True)
class Partitions:
    """One subwindow per value of the partition-by attributes (section 3.2).

    Parameters
    ----------
    by
        The attributes; empty if the operator passes a partition with each tuple.
    evict
        Which subwindows are removed (section 3.5); None keeps them all.
    """

    by: tuple[Attribute, ...]
    evict: Evict | None = None


def eviction_kind(partitioned: Partitions) -> str:
    """Return the paper's word for the eviction of partitions (section 3.5.1)."""
    evict = partitioned.evict
    if evict is None:
        return "never evicted"
    if evict.keys is not None:
        return "partition count"
    return "tuple count" if evict.rows is not None else "partition age"


@dataclass(frozen=True, slots=True)
class TumblingPolicies:
    """A window that is processed and emptied when it is full (section 3.1.1)."""

    evict: EvictionPolicy
    partitioned: Partitions | None = None
    kind: ClassVar[str] = "tumbling"

    def __str__(self) -> str:
        return _text(self)

    @property
    def policies(self) -> tuple[EvictionPolicy, ...]:
        """Its one policy."""
        return (self.evict,)

    @property
    def deltas(self) -> tuple[Delta, ...]:
        """The policies that are measured in an attribute."""
        return tuple(policy for policy in self.policies if isinstance(policy, Delta))

    @property
    def order(self) -> Order:
        """The order of steps when a tuple arrives."""
        return ORDER[kind_of(self.evict), None]


@dataclass(frozen=True, slots=True)
class SlidingPolicies:
    """A window of the most recent tuples, processed when its trigger policy says so (section 3.1.2).

    Parameters
    ----------
    partial
        Whether it is processed before it has been full for the first time.
    ago
        The number of latest rows that it leaves out. Not in the paper, and only for sorted rows.
    before
        Whether it leaves out all rows of the instant at which it is processed; likewise, and only with a trigger by
        count.
    """

    evict: TriggerPolicy
    trigger: TriggerPolicy
    partitioned: Partitions | None = None
    partial: bool = True
    ago: int = 0
    before: bool = False
    kind: ClassVar[str] = "sliding"

    def __str__(self) -> str:
        return _text(self)

    @property
    def policies(self) -> tuple[TriggerPolicy, TriggerPolicy]:
        """Both policies."""
        return (self.evict, self.trigger)

    @property
    def deltas(self) -> tuple[Delta, ...]:
        """The policies that are measured in an attribute."""
        return tuple(policy for policy in self.policies if isinstance(policy, Delta))

    @property
    def order(self) -> Order:
        """The order of steps when a tuple arrives."""
        return ORDER[kind_of(self.evict), kind_of(self.trigger)]


WindowPolicies: TypeAlias = TumblingPolicies | SlidingPolicies

WindowLike: TypeAlias = "AnyWindow | WindowPolicies"
"""A window as users declare it, or as ``pn.apply`` passes it to operators, with its keys."""


# From a declared window to its policies


def policies_of(window: AnyWindow, by: Iterable[Attribute] | None = None, evict: Evict | None = None) -> WindowPolicies:
    """Return the policies of a declared window over the rows of tables.

    Parameters
    ----------
    by
        The key columns; None for a window without keys.

    Examples
    --------
    >>> import panes as pn
    >>> window = policies_of(pn.hopping("1 hour", every="5 min"), by=["device"])
    >>> window.evict.period, window.trigger.period, window.partitioned.by
    (3600000000, 300000000, ('device',))
    """
    _check_columns(window)
    return _lower(window, None if by is None else Partitions(tuple(by), evict))


def operator_policies(window: WindowLike, by: By = None, evict: Evict | None = None) -> WindowPolicies:
    """Return the policies of the window of an operator.

    Parameters
    ----------
    by
        The attributes of the key: one, several, or ``()`` if the operator passes a key with each tuple. None for a
        window without keys, or one that already has its keys.

    Examples
    --------
    >>> import panes as pn
    >>> operator_policies(pn.sliding(pn.rows(10)), by=["source", "destination"]).partitioned.by
    ('source', 'destination')
    """
    if isinstance(window, WindowPolicies):
        if by is not None or evict is not None:
            raise DeclarationError(
                "the window has its keys already, from pn.apply, so by= and evict= cannot change them. Leave them out."
            )
        return window
    if evict is not None and not isinstance(evict, Evict):
        raise DeclarationError(f"evict={evict!r}: write for example evict=pn.evict(keys=1000).")
    if evict is not None and by is None:
        raise DeclarationError("evict= limits keys, and the window has none. Write by= too.")
    policies = _lower(window, None if by is None else Partitions(_attributes(by), evict))
    _check_for_operators(policies)
    return policies


def _lower(window: AnyWindow, partitioned: Partitions | None) -> WindowPolicies:
    if isinstance(window, Window) and not window.per_event:
        geometry = window.geometry
        if window.since is not None or window.finer:
            raise DeclarationError(f"{window} is a level of a nested window, which only queries support.")
        if geometry.tumbling:
            return TumblingPolicies(Time(geometry.range, "epoch", geometry.offset), partitioned)
        phase = (geometry.offset + geometry.range) % geometry.slide
        return SlidingPolicies(Time(geometry.range), Time(geometry.slide, "epoch", phase), partitioned)
    if isinstance(window, SlidingInTime):
        if window.ago or window.bounds[1] == ")":
            raise DeclarationError(
                f"{window} leaves out the row that it is answered with, which only queries and lookups support. Write "
                "pn.sliding(size) here."
            )
        return SlidingPolicies(Time(window.size - (window.bounds[0] == "(")), Rows(1), partitioned)
    if not isinstance(window, RowWindow):
        raise DeclarationError(
            f"{window} is several windows at once, which only queries support. Pass one of them."
            if isinstance(window, DeclaredWindow)
            else f"{window!r} is not a window. Write for example pn.tumbling(pn.rows(100)) or pn.sliding('10 s')."
        )
    if window.kind == "session":
        assert isinstance(window.size, int)
        return TumblingPolicies(Gap(window.size), partitioned)
    if window.every is None:
        return TumblingPolicies(_policy(window.size, window.origin), partitioned)
    trigger: Any = _policy(window.every, window.origin, window.offset + (window.bounds == "(]"))
    size = window.size
    if isinstance(size, int) and isinstance(window.every, Rows) and window.bounds != "[]":
        size -= 1  # whole µs: without its start
    return SlidingPolicies(_policy(size), trigger, partitioned, window.partial, window.ago, window.before)


def _policy(measure: Measure, origin: Origin = "first", phase: int = 0) -> Any:
    if isinstance(measure, int):
        return Time(measure, origin, phase % measure if measure and origin == "epoch" else 0)
    return measure


# Checks


def _attributes(by: Attribute | Iterable[Attribute]) -> tuple[Attribute, ...]:
    names = each_of(by)
    for name in names:
        if isinstance(name, bool) or not isinstance(name, (str, int)):
            raise DeclarationError(f"by={by!r}: {name!r} is not an attribute. Write its name, as by='state'.")
    if len(set(names)) != len(names):
        raise DeclarationError(f"by={by!r} names an attribute twice. Name it once.")
    return names


def _check_columns(window: AnyWindow) -> None:
    """Reject what only tuples have: places, and punctuations between them."""
    if not isinstance(window, RowWindow):
        return
    for each in window.deltas:
        if not isinstance(each.column, str):
            raise DeclarationError(
                f"pn.delta({each.column!r}, ...) is a place in a tuple, and columns have names. Write it as a string."
            )
    if isinstance(window.size, Punctuation) and not window.size.column:
        raise DeclarationError(
            "pn.punctuation() names no column, so no row is a mark. Write for example pn.punctuation('refuelled')."
        )


def _check_for_operators(window: WindowPolicies) -> None:
    """Reject what an operator cannot do with one tuple after another."""
    policy = window.evict
    if isinstance(policy, Gap):
        raise DeclarationError(
            "sessions are windows of queries; operators do not support them. Write pn.tumbling('30 min', origin='row') "
            "or pn.tumbling(pn.delta('ts', '30 min')), or use a query."
        )
    if isinstance(policy, Punctuation) and (policy.column or policy.scope == "key"):
        raise DeclarationError(
            "operators receive punctuations between tuples and do not look for marks in a column. Write "
            "pn.tumbling(pn.punctuation()), and send PUNCTUATION between the tuples."
        )
    if isinstance(window, SlidingPolicies) and window.before:
        raise DeclarationError(
            "bounds='[)' leaves out all rows of an instant, which only queries and lookups see at once. Leave it out."
        )
    if isinstance(window, SlidingPolicies) and window.ago:
        raise DeclarationError(
            f"ago=pn.rows({window.ago}) leaves out the last rows of a window, which only queries can. Leave it out."
        )


# Policies as text: for error messages, and to compare the declarations of saved state


def policies_text(*windows: WindowPolicies) -> str:
    """Return windows as text, with their keys and eviction.

    Examples
    --------
    >>> import panes as pn
    >>> policies_text(policies_of(pn.tumbling(pn.rows(3)), ["state"], pn.evict(keys=9)))
    "pn.tumbling(pn.rows(3)) by ['state'], evict=pn.evict(keys=9)"
    """
    return "; ".join(f"{window}{_partitions_text(window.partitioned)}" for window in windows)


def _partitions_text(partitioned: Partitions | None) -> str:
    if partitioned is None:
        return ""
    evict = "" if partitioned.evict is None else f", evict={eviction_text(partitioned.evict)}"
    return f" by {list(partitioned.by)}{evict}"


def eviction_text(evict: Evict) -> str:
    """Return an eviction of keys as users write it."""
    limits = {"keys": evict.keys, "rows": evict.rows, "age": evict.age and format_duration(evict.age)}
    (limit,) = (f"{name}={limit!r}" for name, limit in limits.items() if limit is not None)
    choose = "" if evict.choose == LEAST_RECENTLY_UPDATED else f", choose={argument_text(evict.choose)}"
    return f"pn.evict({limit}{choose})"


def argument_text(value: Any) -> str:
    """Return an argument as text; functions all alike, since their text differs between processes.

    Examples
    --------
    >>> import panes as pn
    >>> argument_text(pn.sum("x")), argument_text(len), argument_text(None)
    ('sum(x)', 'a function', 'None')
    """
    return "a function" if callable(value) else str(value)


def policy_text(policy: EvictionPolicy) -> str:
    """Return a policy as users write it.

    Examples
    --------
    >>> import panes as pn
    >>> policy_text(pn.delta("odometer", 10))
    "pn.delta('odometer', 10)"
    """
    if isinstance(policy, Rows):
        return f"pn.rows({policy.n})"
    if isinstance(policy, Delta):
        by = format_duration(policy.by) if policy.temporal else policy.by
        return f"pn.delta({policy.column!r}, {by!r})"
    if isinstance(policy, Punctuation):
        scope = "" if policy.scope == "stream" else f", scope={policy.scope!r}"
        return f"pn.punctuation({repr(policy.column) if policy.column else ''}{scope})"
    return repr(format_duration(policy.gap if isinstance(policy, Gap) else policy.period))


def _text(window: WindowPolicies) -> str:
    """A window as users write it, without its keys.

    Examples
    --------
    >>> import panes as pn
    >>> print(policies_of(pn.hopping(pn.rows(100), every=pn.rows(10), partial=False)))
    pn.hopping(pn.rows(100), every=pn.rows(10), partial=False)
    >>> print(policies_of(pn.tumbling("1 min")), policies_of(pn.sliding("10 s")))
    pn.tumbling('1m') pn.sliding('10s')
    """
    if isinstance(window, TumblingPolicies):
        function = "session" if isinstance(window.evict, Gap) else "tumbling"
        return f"pn.{function}({policy_text(window.evict)}{_grid(window.evict)})"
    evict, trigger = window.evict, window.trigger
    more = f"{'' if window.partial else ', partial=False'}{f', ago=pn.rows({window.ago})' if window.ago else ''}"
    more += ", bounds='[)'" if window.before else ""
    if isinstance(evict, Time) and isinstance(trigger, Rows):
        # A window without its start is a µs shorter; most declared sizes are whole milliseconds.
        open_start = evict.period % 1000 == 999
        evict = replace(evict, period=evict.period + open_start)
        more += "" if open_start else ", bounds='[]'"
    if trigger == Rows(1) and not (isinstance(evict, Time) and more):
        return f"pn.sliding({policy_text(evict)}{more})"
    if isinstance(evict, Time) and isinstance(trigger, Time):
        # On the clock, windows count from where they begin.
        trigger = replace(trigger, phase=(trigger.phase - evict.period) % trigger.period)
    return f"pn.hopping({policy_text(evict)}, every={policy_text(trigger)}{_grid(trigger)}{more})"


def _grid(policy: EvictionPolicy) -> str:
    if not isinstance(policy, Time):
        return ""
    if policy.origin == "epoch":
        return f", offset={format_duration(policy.phase)!r}" if policy.phase else ""
    return f", origin={policy.origin!r}"
