"""How much state a stream may keep when its keys are without bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from panes.errors import DeclarationError, DurationError
from panes.suggestions import helpful
from panes.timeline import DurationLike, parse_duration

# Which keys a windowed query forgets, as part of what it means.


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


@helpful(
    "pn.Limits(age='1 hour', keys=1_000_000)",
    **dict.fromkeys(("ttl", "max_age", "timeout"), "age"),
    max_keys="keys",
    **dict.fromkeys(("max_rows", "granules"), "rows"),
)
@dataclass(frozen=True)
class Limits:
    """When keys are evicted from a stream's state; those that were updated least recently go first.

    A key that is evicted is never answered silently in part. Its open windows come out at once, with the part that was
    seen in ``coverage``, or with ``emit=False`` not at all; and when it returns, windows that had begun before are
    told by their ``coverage``, or left out.

    Parameters
    ----------
    age
        Evict keys whose last event is older than this, by the watermark.
    keys, rows
        Evict keys while there are more keys or granules than this, in the whole stream.
    emit
        Whether windows that were not seen in full come out.

    Examples
    --------
    >>> Limits(age="1 hour", keys=1_000_000)
    Limits(age='1 hour', keys=1000000, rows=None, emit=True)
    """

    age: DurationLike | None = None
    keys: int | None = None
    rows: int | None = None
    emit: bool = True

    def __post_init__(self) -> None:
        if self.age is None and self.keys is None and self.rows is None:
            raise DeclarationError("these limits limit nothing. Give age=, keys= or rows=.")
        if self.age is not None and parse_duration(self.age) <= 0:
            raise DeclarationError(f"age={self.age!r} has to be positive.")
        for name in ("keys", "rows"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < 1):
                raise DeclarationError(f"{name}={value!r} has to be a whole number, 1 or more.")
