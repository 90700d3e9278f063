"""Declared windows as policies: what evicts rows from a window, and what triggers its answers.

Paper: Gedik 2014, section 3. A size is an eviction policy and a pace a trigger policy; keys are partitions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

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
    Sliding,
    Time,
    Tumbling,
    TupleCount,
    WindowDeclaration,
)
from panes.operators.declarations import (
    Punctuation as PunctuationPolicy,
)
from panes.queries.eviction import Evict
from panes.queries.measures import Delta as DeltaMeasure
from panes.queries.measures import Measure, Rows
from panes.queries.measures import Punctuation as PunctuationMeasure
from panes.queries.windows import AnyWindow, DeclaredWindow, RowWindow, Window
from panes.queries.windows import Sliding as SlidingInTime
from panes.suggestions import each_of

WindowLike: TypeAlias = "AnyWindow | WindowDeclaration"
"""A window as users declare it, or as ``pn.apply`` gives it to operators, with its keys."""

By: TypeAlias = "Attribute | Iterable[Attribute] | None"


def lowered(window: AnyWindow, by: Iterable[Attribute] | None = None, evict: Evict | None = None) -> WindowDeclaration:
    """The policies of a declared window over the rows of tables.

    Parameters
    ----------
    by
        The key columns; None for a window without keys.

    Examples
    --------
    >>> import panes as pn
    >>> print(lowered(pn.hopping(pn.rows(100), every=pn.rows(10))))
    sliding, count(100), count(10)
    >>> print(lowered(pn.hopping("1 hour", every="5 min"), by=["device"]))
    sliding, partitioned, time(1h), time(5m) on the clock
    """
    _check_columns(window)
    return _lowered(window, None if by is None else Partitions(tuple(by), _eviction(evict), _choice(evict)))


def declaration_of(window: WindowLike, by: By = None, evict: Evict | None = None) -> WindowDeclaration:
    """The policies of the window of an operator.

    Parameters
    ----------
    by
        The attributes of the key: one, several, or ``()`` where the operator itself says to which key a tuple belongs.
        None for a window without keys, or one that has its keys already.

    Examples
    --------
    >>> import panes as pn
    >>> declaration_of(pn.sliding(pn.rows(10)), by=["source", "destination"], evict=pn.evict(age="1 hour")).partitioned
    Partitions(by=('source', 'destination'), evict=PartitionAge(age=3600000000), select='least recently updated')
    """
    if isinstance(window, (Tumbling, Sliding)):
        if by is not None or evict is not None:
            raise DeclarationError(
                "the window has its keys already, from pn.apply, so by= and evict= cannot give it others. Leave them "
                "out."
            )
        return window
    if evict is not None and not isinstance(evict, Evict):
        raise DeclarationError(f"evict={evict!r}: write for example evict=pn.evict(keys=1000).")
    if evict is not None and by is None:
        raise DeclarationError("evict= says which keys are forgotten, and there are none. Write by= too.")
    partitioned = None if by is None else Partitions(_attributes(by), _eviction(evict), _choice(evict))
    declared = _lowered(window, partitioned)
    _check_for_operators(declared)
    return declared


def _lowered(window: AnyWindow, partitioned: Partitions | None) -> WindowDeclaration:
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
        known = isinstance(window, DeclaredWindow)
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
    return Sliding(_policy(size), trigger, partitioned, window.partial, window.ago, window.before)


def _tumbling(window: RowWindow) -> Any:
    if isinstance(window.size, PunctuationMeasure):
        return PunctuationPolicy(window.size.column, window.size.scope)
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


def _attributes(by: Attribute | Iterable[Attribute]) -> tuple[Attribute, ...]:
    names = each_of(by)
    for name in names:
        if isinstance(name, bool) or not isinstance(name, (str, int)):
            raise DeclarationError(f"by={by!r}: {name!r} names no attribute. Write its name, as by='state'.")
    if len(set(names)) != len(names):
        raise DeclarationError(f"by={by!r} names an attribute twice: name it once.")
    return names


def _check_columns(window: AnyWindow) -> None:
    """Refuse what only tuples have: places, and punctuations between them."""
    if not isinstance(window, RowWindow):
        return
    for each in window.deltas:
        if not isinstance(each.column, str):
            raise DeclarationError(
                f"pn.delta({each.column!r}, ...) is a place in a tuple, and columns have names. Write it as a string."
            )
    if isinstance(window.size, PunctuationMeasure) and not window.size.column:
        raise DeclarationError(
            "pn.punctuation() names no column, so no row is a mark. Write for example pn.punctuation('refuelled')."
        )


def _check_for_operators(window: WindowDeclaration) -> None:
    """Refuse what no operator has that is given one tuple after another."""
    policy = window.evict
    if isinstance(policy, Gap):
        raise DeclarationError(
            "sessions are windows of queries, and no operator has them. Take pn.tumbling('30 min', origin='row'), "
            "pn.tumbling(pn.delta('ts', '30 min')), or a query."
        )
    if isinstance(policy, PunctuationPolicy) and (policy.column or policy.scope == "key"):
        raise DeclarationError(
            "operators are given punctuations in the stream and do not look for marks in a column. Write "
            "pn.tumbling(pn.punctuation()), and let PUNCTUATION arrive between the tuples."
        )
    if isinstance(window, Sliding) and window.before:
        raise DeclarationError(
            "bounds='[)' leaves out all rows of an instant, which only queries and lookups know at once. Leave it out."
        )
    if isinstance(window, Sliding) and window.ago:
        raise DeclarationError(
            f"ago=pn.rows({window.ago}) leaves out the last rows of a window, which only queries can. Leave it out."
        )
