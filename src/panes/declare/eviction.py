"""Which keys a windowed query forgets, as part of what it means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from panes.calls import helpful
from panes.errors import DeclarationError, DurationError
from panes.timeline import DurationLike, parse_duration

LEAST_RECENTLY_UPDATED = "least recently updated"
LEAST_FREQUENTLY_UPDATED = "least frequently updated"
OLDEST = "oldest"
BY_OPERATOR = "by operator"
CHOICES = (LEAST_RECENTLY_UPDATED, LEAST_FREQUENTLY_UPDATED, OLDEST, BY_OPERATOR)

Choose: TypeAlias = "str | Callable[[Any], object]"


@dataclass(frozen=True, slots=True)
class Evict:
    """What bounds the keys of a window, and which goes first. Made by :func:`evict`, which checks it.

    Parameters
    ----------
    keys, rows, age
        One of them: at most so many keys, so many rows in all windows together, or no key without a row for so many µs.
    choose
        Which key goes first, of those that could.
    """

    keys: int | None = None
    rows: int | None = None
    age: int | None = None
    choose: Choose = LEAST_RECENTLY_UPDATED


@helpful("pn.evict(keys=1000)", count="keys", tuples="rows", select="choose")
def evict(
    *,
    keys: int | None = None,
    rows: int | None = None,
    age: DurationLike | None = None,
    choose: Choose = LEAST_RECENTLY_UPDATED,
) -> Evict:
    """Forget keys of windows by rows, as part of what a query means: an evicted key begins anew with its next row.

    ``pn.Limits`` is something else: it bounds the state of a stream, and says of every answer how much it has seen.

    Parameters
    ----------
    keys
        At most so many keys.
    rows
        At most so many rows in the windows of all keys together.
    age
        No key that had no row for longer. Exactly one of ``keys``, ``rows`` and ``age`` is given.
    choose
        Which key goes: ``'least recently updated'``, ``'least frequently updated'``, ``'oldest'``, ``'by operator'``
        (the operator's handler of the partition selection event marks some), or a function that is given the
        candidates and marks some. For ``keys`` and ``rows``.

    Examples
    --------
    >>> import panes as pn
    >>> pn.evict(age="1 hour").age
    3600000000
    """
    if sum(limit is not None for limit in (keys, rows, age)) != 1:
        raise DeclarationError(
            "keys are evicted by one policy: write one of keys=, rows= and age=. Where several bound a window, there "
            "would be no one order in which keys go."
        )
    if isinstance(choose, str) and choose not in CHOICES:
        raise DeclarationError(f"choose={choose!r}: write one of {', '.join(map(repr, CHOICES))}, or a function.")
    if choose != LEAST_RECENTLY_UPDATED and age is not None:
        raise DeclarationError("choose= says which key goes when keys= or rows= is exceeded: write one of them.")
    for what, value in (("keys", keys), ("rows", rows)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise DeclarationError(f"{what}={value!r}: write a whole number, 1 or more.")
    longest = None if age is None else parse_duration(age)
    if longest is not None and longest <= 0:
        raise DurationError(f"age={age!r} is not positive. Write for example '1 hour'.")
    return Evict(keys, rows, longest, choose)
