"""Which keys a windowed query evicts (``pn.evict``), and how much state a stream may keep (``pn.Limits``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from panes.errors import DeclarationError, DurationError
from panes.suggestions import helpful
from panes.timeline import DurationLike, parse_duration

LEAST_RECENTLY_UPDATED = "least recently updated"
LEAST_FREQUENTLY_UPDATED = "least frequently updated"
OLDEST = "oldest"
BY_OPERATOR = "by operator"
CHOICES = (LEAST_RECENTLY_UPDATED, LEAST_FREQUENTLY_UPDATED, OLDEST, BY_OPERATOR)

Choose: TypeAlias = "str | Callable[[Any], object]"


@dataclass(frozen=True, slots=True)
class Evict:
    """What bounds the keys of a window, and which key is evicted first. Made by :func:`evict`, which checks it.

    Parameters
    ----------
    keys, rows, age
        One of them: the most keys, the most rows of all keys together, or the longest time without a row, in µs.
    choose
        Which key is evicted first.
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
    """Evict keys of windows of rows, as part of what a query means: an evicted key starts afresh with its next row.

    ``pn.Limits`` is different: it bounds the state of a stream, and reports how much of a window every answer has seen.

    Parameters
    ----------
    keys
        The most keys.
    rows
        The most rows in the windows of all keys together.
    age
        The longest time that a key may have no row. Give exactly one of ``keys``, ``rows`` and ``age``.
    choose
        Which key is evicted, for ``keys`` and ``rows``: ``'least recently updated'``, ``'least frequently updated'``,
        ``'oldest'``, ``'by operator'`` (the operator's handler of the partition selection event marks some), or a
        function that marks some of the candidates it is given.

    Examples
    --------
    >>> import panes as pn
    >>> pn.evict(age="1 hour").age
    3600000000
    """
    if sum(limit is not None for limit in (keys, rows, age)) != 1:
        raise DeclarationError(
            "keys are evicted by one policy: write one of keys=, rows= and age=. With several, the order in which keys "
            "are evicted would be undefined."
        )
    if isinstance(choose, str) and choose not in CHOICES:
        raise DeclarationError(f"choose={choose!r}: write one of {', '.join(map(repr, CHOICES))}, or a function.")
    if choose != LEAST_RECENTLY_UPDATED and age is not None:
        raise DeclarationError("choose= says which key is evicted if keys= or rows= is exceeded: write one of them.")
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
    """When to evict keys from the state of a stream; the least recently updated go first.

    An incomplete answer is always marked. The open windows of an evicted key are emitted at once, with the part that
    was seen in ``coverage``, or not at all with ``emit=False``. When the key returns, windows that began before are
    marked by ``coverage`` or left out in the same way.

    Parameters
    ----------
    age
        Evict keys whose last event is older than this, by the watermark.
    keys, rows
        Evict keys while the stream holds more keys or granules than this.
    emit
        Whether to emit windows that were not seen in full.

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
            raise DeclarationError("pn.Limits() without a limit. Give age=, keys= or rows=.")
        if self.age is not None and parse_duration(self.age) <= 0:
            raise DeclarationError(f"age={self.age!r} is not positive. Write for example '1 hour'.")
        for name in ("keys", "rows"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < 1):
                raise DeclarationError(f"{name}={value!r}: write a whole number, 1 or more.")

    def shared_by(self, shards: int) -> Limits:
        """The limits of each shard of a stream."""
        keys, rows = (None if limit is None else -(-limit // shards) for limit in (self.keys, self.rows))
        return replace(self, keys=keys, rows=rows)
