"""Declared windows as policies: what evicts rows from a window, and what triggers its answers.

Paper: Gedik 2014, section 3. A size is an eviction policy and a pace a trigger policy; keys are partitions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from panes.declare.eviction import Evict
from panes.declare.kinds import KINDS, AnyWindow
from panes.declare.measures import Delta as DeltaMeasure
from panes.declare.measures import Measure, Rows
from panes.declare.measures import Punctuation as PunctuationMeasure
from panes.declare.windows import RowWindow, Window
from panes.declare.windows import Sliding as SlidingInTime
from panes.errors import DeclarationError
from panes.operators.declarations import (
    Attribute,
    Count,
    Delta,
    Gap,
    PartitionAge,
    PartitionCount,
    PartitionEviction,
    Partitions,
    Punctuation,
    Sliding,
    Time,
    Tumbling,
    TupleCount,
    WindowDeclaration,
)


def lowered(window: AnyWindow, by: Iterable[Attribute] | None = None, evict: Evict | None = None) -> WindowDeclaration:
    """The policies of a declared window.

    Parameters
    ----------
    by
        The key columns; None for a window without keys. With none of them an operator itself says to which key a tuple
        belongs.

    Examples
    --------
    >>> import panes as pn
    >>> print(lowered(pn.hopping(pn.rows(100), every=pn.rows(10))))
    sliding, count(100), count(10)
    >>> print(lowered(pn.hopping("1 hour", every="5 min"), by=["device"]))
    sliding, partitioned, time(1h), time(5m) on the clock
    """
    partitioned = None if by is None else Partitions(tuple(by), _eviction(evict), _choice(evict))
    if isinstance(window, Window) and not window.per_event:
        geometry = window.geometry
        if window.since is not None or window.finer:
            raise DeclarationError(f"{window} is a level of a nested window, which only queries have.")
        if geometry.tumbling:
            return Tumbling(Time(geometry.range, "epoch", geometry.offset), partitioned)
        phase = (geometry.offset + geometry.range) % geometry.slide
        return Sliding(Time(geometry.range), Time(geometry.slide, "epoch", phase), partitioned)
    if isinstance(window, SlidingInTime):
        if window.ago or window.bounds[1] == ")":
            raise DeclarationError(
                f"{window} does not hold the row that it is answered with, which only queries and lookups know. Write "
                "pn.sliding(size) here."
            )
        return Sliding(Time(window.size - (window.bounds[0] == "(")), Count(1), partitioned)
    if not isinstance(window, RowWindow):
        known = isinstance(window, KINDS)
        raise DeclarationError(
            f"{window} is several windows at once, which only queries have. Give one of them."
            if known
            else f"{window!r} is not a window. Write for example pn.tumbling(pn.rows(100)) or pn.sliding('10 s')."
        )
    if window.kind == "session":
        assert isinstance(window.size, int)
        return Tumbling(Gap(window.size), partitioned)
    if window.every is None:
        return Tumbling(_tumbling(window), partitioned)
    trigger = _policy(window.every, window.origin, window.offset + (window.bounds == "(]"))
    size: Any = window.size
    if isinstance(size, int) and isinstance(window.every, Rows) and window.bounds != "[]":
        size -= 1  # whole µs: without its start
    return Sliding(_policy(size), trigger, partitioned, window.partial, window.ago)


def _tumbling(window: RowWindow) -> Any:
    if isinstance(window.size, PunctuationMeasure):
        return Punctuation(window.size.column, window.size.scope)
    return _policy(window.size, window.origin)


def _policy(value: Measure, origin: Any = "first", phase: int = 0) -> Any:
    if isinstance(value, int):
        return Time(value, origin, phase % value if value and origin == "epoch" else 0)
    if isinstance(value, Rows):
        return Count(value.n)
    assert isinstance(value, DeltaMeasure)
    return Delta(value.column, value.by, value.temporal)


def _eviction(evict: Evict | None) -> PartitionEviction | None:
    if evict is None:
        return None
    if evict.keys is not None:
        return PartitionCount(evict.keys)
    if evict.rows is not None:
        return TupleCount(evict.rows)
    assert evict.age is not None
    return PartitionAge(evict.age)


def _choice(evict: Evict | None) -> Any:
    return Evict().choose if evict is None else evict.choose
