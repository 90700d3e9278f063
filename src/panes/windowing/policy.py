"""What a user writes for a window: its type and its policies. Public as ``pn.policy``.

Paper: Gedik 2014, section 3. A window tumbles or slides. Its *eviction* policy says when it is full, the *trigger*
policy of a sliding window when it is processed, and *partitions* whether there is one window for each value of some
attributes. Nothing here runs: the logic is in ``tumbling_window`` and ``sliding_window``, the state in ``subwindow``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import timedelta
from decimal import Decimal
from numbers import Real
from typing import Any, Final

from panes.errors import DeclarationError, DurationError
from panes.timeline import DurationLike, parse_duration
from panes.windowing.declarations import (
    LEAST_RECENTLY_UPDATED,
    SELECTIONS,
    Attribute,
    Count,
    Delta,
    PartitionAge,
    PartitionCount,
    PartitionEviction,
    Partitions,
    Policy,
    Punctuation,
    Select,
    Sliding,
    Time,
    Tumbling,
    TupleCount,
)

_EVERY_TUPLE: Final = Count(1)


def count(n: int) -> Count:
    """So many tuples.

    ``count(0)`` is the empty window of a one-sided join, and of no use elsewhere.

    Examples
    --------
    >>> print(count(100))
    count(100)
    """
    return Count(_whole(n, "count", least=0))


def time(period: DurationLike) -> Time:
    """A period on the clock: wall-clock time, or event time that watermarks drive.

    Examples
    --------
    >>> print(time("10 s"))
    time(10s)
    """
    micros = parse_duration(period)
    if micros <= 0:
        raise DurationError(f"time({period!r}) is not positive: a window needs some length. Write for example '10 s'.")
    return Time(micros)


def delta(attribute: Attribute, by: DurationLike | Any) -> Delta:
    """How far the values of an attribute may lie apart: a number, or a duration where the attribute is an instant.

    Examples
    --------
    >>> print(delta("odometer", 100), delta("ts", "10 s"))
    delta(odometer, 100) delta(ts, 10s)
    """
    if isinstance(attribute, bool) or not isinstance(attribute, (str, int)):
        raise DeclarationError(f"{attribute!r} names no attribute. Write its name, as delta('ts', '10 s').")
    temporal = isinstance(by, (str, timedelta))
    threshold: Any = parse_duration(by) if isinstance(by, (str, timedelta)) else by
    if not _is_number(threshold):
        raise DeclarationError(
            f"delta({attribute!r}, {by!r}) has no threshold. Write a number, or a duration as '10 s'."
        )
    if not threshold >= 0 or (isinstance(threshold, float) and math.isinf(threshold)):
        raise DeclarationError(
            f"delta({attribute!r}, {by!r}): the attribute never decreases, so a threshold is 0 or more, and finite."
        )
    return Delta(attribute, threshold, temporal)


def punctuation() -> Punctuation:
    """Until a window punctuation arrives in the stream; for tumbling windows.

    Examples
    --------
    >>> print(tumbling(punctuation()))
    tumbling, punctuation()
    """
    return Punctuation()


def partitions(
    *by: Attribute,
    count: int | None = None,
    tuples: int | None = None,
    age: DurationLike | None = None,
    select: Select = LEAST_RECENTLY_UPDATED,
) -> Partitions:
    """A subwindow for each value of some attributes, and which subwindows are removed.

    Parameters
    ----------
    by
        The partition-by attributes; none where an operator says for each tuple to which partition it belongs.
    count
        At most so many subwindows.
    tuples
        At most so many tuples in all subwindows together.
    age
        No subwindow that was not updated for longer. At most one of ``count``, ``tuples`` and ``age`` is given.
    select
        Which subwindow has to go: ``'least recently updated'``, ``'least frequently updated'``, ``'oldest'``,
        ``'by operator'`` (its handler of the partition selection event marks some), or a function that is given the
        candidates and marks some. For ``count`` and ``tuples``.

    Examples
    --------
    >>> partitions("source", "destination", age="1 hour").evict
    PartitionAge(age=3600000000)
    """
    for attribute in by:
        if isinstance(attribute, bool) or not isinstance(attribute, (str, int)):
            raise DeclarationError(f"{attribute!r} names no attribute. Write its name, as partitions('state').")
    if len(set(by)) != len(by):
        raise DeclarationError(f"partitions{by!r} names an attribute twice: name it once.")
    given = [limit for limit in (count, tuples, age) if limit is not None]
    if len(given) > 1:
        raise DeclarationError(
            "partitions are evicted by one policy: write one of count=, tuples= and age=. A window that several bound "
            "would have no one order in which partitions go."
        )
    if isinstance(select, str) and select not in SELECTIONS:
        raise DeclarationError(f"select={select!r}: write one of {', '.join(map(repr, SELECTIONS))}, or a function.")
    if select != LEAST_RECENTLY_UPDATED and count is None and tuples is None:
        raise DeclarationError(
            "select= chooses among subwindows when count= or tuples= is exceeded: write one of them."
        )
    evict: PartitionEviction | None = None
    if count is not None:
        evict = PartitionCount(_whole(count, "count=", least=1))
    if tuples is not None:
        evict = TupleCount(_whole(tuples, "tuples=", least=1))
    if age is not None:
        evict = PartitionAge(parse_duration(age))
        if evict.age <= 0:
            raise DurationError(f"age={age!r} is not positive. Write for example '1 hour'.")
    return Partitions(tuple(by), evict, select)


def tumbling(evict: Policy, *, partitioned: Partitions | Attribute | Iterable[Attribute] | None = None) -> Tumbling:
    """A window that is processed when it is full, and then begins anew.

    Parameters
    ----------
    evict
        ``count``, ``delta``, ``time`` or ``punctuation``.
    partitioned
        An attribute, several, or ``partitions(...)``: one window for each of their values.

    Examples
    --------
    >>> print(tumbling(count(100)))
    tumbling, count(100)
    """
    if not isinstance(evict, (Count, Delta, Time, Punctuation)):
        raise DeclarationError(
            f"{evict!r} is no eviction policy of a tumbling window. Write count(n), delta(attribute, by), "
            "time(period) or punctuation()."
        )
    if evict == Count(0):
        raise DeclarationError("tumbling(count(0)) would never hold a tuple. Write count(1) for a window per tuple.")
    return Tumbling(evict, _as_partitions(partitioned))


def sliding(
    evict: Policy,
    trigger: Policy = _EVERY_TUPLE,
    *,
    partitioned: Partitions | Attribute | Iterable[Attribute] | None = None,
) -> Sliding:
    """A window of the most recent tuples.

    Parameters
    ----------
    evict
        What the window holds: ``count``, ``delta`` or ``time``.
    trigger
        When it is processed: ``count``, ``delta`` or ``time``; without it, with every tuple.
    partitioned
        An attribute, several, or ``partitions(...)``: one window for each of their values.

    Examples
    --------
    >>> print(sliding(count(100), count(10), partitioned="state"))
    sliding, partitioned, count(100), count(10)
    >>> sliding(punctuation())
    Traceback (most recent call last):
    ...
    panes.errors.DeclarationError: punctuation() cannot evict from a sliding window: ... Write tumbling(punctuation()).
    """
    for role, policy in (("evict from", evict), ("trigger", trigger)):
        if isinstance(policy, Punctuation):
            raise DeclarationError(
                f"punctuation() cannot {role} a sliding window: punctuations cut a stream into windows that do not "
                "overlap. Write tumbling(punctuation())."
            )
        if not isinstance(policy, (Count, Delta, Time)):
            raise DeclarationError(
                f"{policy!r} is no policy of a sliding window. Write count(n), delta(attribute, by) or time(period)."
            )
    if trigger == Count(0):
        raise DeclarationError("a trigger after no tuple at all cannot be. Write count(1) for one with every tuple.")
    assert not isinstance(evict, Punctuation)
    assert not isinstance(trigger, Punctuation)
    return Sliding(evict, trigger, _as_partitions(partitioned))


def _as_partitions(value: Partitions | Attribute | Iterable[Attribute] | None) -> Partitions | None:
    if value is None or isinstance(value, Partitions):
        return value
    if isinstance(value, (str, int)):
        return partitions(value)
    if isinstance(value, Iterable):
        return partitions(*value)
    raise DeclarationError(f"partitioned={value!r}: write an attribute, as 'state', several, or partitions(...).")


def _is_number(value: object) -> bool:
    return isinstance(value, (Real, Decimal)) and not isinstance(value, bool)


def _whole(value: Any, what: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise DeclarationError(f"{what} {value!r}: write a whole number, {least} or more.")
    return value
