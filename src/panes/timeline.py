"""Durations, instants and the geometry of windows, as integers: microseconds since the epoch, half-open intervals.

Runners use microseconds; the planner measures windows in any unit (the papers' examples use minutes and ticks).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

from panes.errors import DeclarationError, DurationError

DurationLike: TypeAlias = "str | timedelta"
InstantLike: TypeAlias = "str | datetime"

MICROSECOND: Final = 1
MILLISECOND: Final = 1_000
SECOND: Final = 1_000_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR
WEEK: Final = 7 * DAY

_UNITS: Final[dict[str, int]] = {
    name: size
    for size, names in {
        MICROSECOND: "us µs μs microsecond microseconds",
        MILLISECOND: "ms msec millisecond milliseconds",
        SECOND: "s sec secs second seconds",
        MINUTE: "m min mins minute minutes",
        HOUR: "h hr hrs hour hours",
        DAY: "d day days",
        WEEK: "w week weeks",
    }.items()
    for name in names.split()
}
_MONTHS: Final = frozenset({"mon", "month", "months", "y", "yr", "year", "years", "quarter", "quarters"})
_PART: Final = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([a-zA-Zµμ]+)")
_LARGEST: Final = 2**60


def parse_duration(value: DurationLike) -> int:
    """Read a duration as whole microseconds.

    Parameters
    ----------
    value
        ``"5 minutes"``, ``"5m"``, ``"1h30m"``, ``"INTERVAL '10' MINUTES"`` or a ``timedelta``.

    Examples
    --------
    >>> parse_duration("1h30m") == 90 * MINUTE
    True
    >>> parse_duration("interval '10' minutes") == 10 * MINUTE
    True
    >>> parse_duration("3 months")
    Traceback (most recent call last):
    ...
    panes.errors.DurationError: '3 months' has no fixed length: the length of a month or a year varies. ...
    """
    if isinstance(value, timedelta):
        return _bounded(value, value.days * DAY + value.seconds * SECOND + value.microseconds)
    if not isinstance(value, str):
        raise DurationError(
            f"{value!r} is not a duration: a bare number has no unit. "
            "Write it with one, as '5 minutes', or give a timedelta."
        )
    text = value.strip()
    if text[:8].lower() == "interval":
        text = text[8:]
    text = text.replace("'", " ").replace('"', " ").replace(",", " ").strip()
    total, at = 0, 0
    while at < len(text):
        part = _PART.match(text, at)
        if part is None:
            raise DurationError(
                f"{value!r} is not a duration: cannot read {text[at:].strip()!r}. "
                "Write a number and a unit, as '5 minutes', '5m' or '1h30m'."
            )
        total += _part_of_duration(value, part.group(1), part.group(2))
        at = part.end()
    if not text:
        raise DurationError(f"{value!r} is not a duration: it is empty. Write for example '5 minutes'.")
    return _bounded(value, total)


def _bounded(value: DurationLike, micros: int) -> int:
    if abs(micros) > _LARGEST:
        raise DurationError(f"{value!r} is longer than 36,000 years, more than a window can span.")
    return micros


def _part_of_duration(whole: str, number: str, unit: str) -> int:
    if unit == "M":
        raise DurationError(f"{whole!r} is ambiguous: M may be minutes or months. Write 'm' or 'minutes'.")
    if unit.lower() in _MONTHS:
        raise DurationError(
            f"{whole!r} has no fixed length: the length of a month or a year varies. "
            "Write it in days or weeks, as '30 days'."
        )
    size = _UNITS.get(unit.lower())
    if unit.lower() in ("row", "rows", "event", "events"):
        raise DurationError(f"{whole!r} is not a duration. Write pn.rows({number}) for a number of rows.")
    if size is None:
        raise DurationError(
            f"{whole!r} has the unknown unit {unit!r}. Units: us, ms, s, m (minutes), h, d, w, or their full names."
        )
    integral, _, fraction = number.partition(".")
    micros = int(integral or 0) * size
    if fraction:
        scaled, rest = divmod(int(fraction) * size, 10 ** len(fraction))
        if rest:
            raise DurationError(f"{whole!r} is finer than a microsecond, the resolution of a Spark timestamp.")
        micros += -scaled if integral.startswith("-") else scaled
    return micros


def format_duration(micros: int) -> str:
    """Write microseconds as the shortest exact duration, which ``parse_duration`` reads back.

    Examples
    --------
    >>> format_duration(90 * MINUTE), format_duration(7 * DAY), format_duration(1_500)
    ('1h30m', '7d', '1ms500us')
    """
    if micros == 0:
        return "0s"
    sign, rest, parts = ("-" if micros < 0 else ""), abs(micros), []
    for unit, size in (("d", DAY), ("h", HOUR), ("m", MINUTE), ("s", SECOND), ("ms", MILLISECOND), ("us", 1)):
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{sign}{count}{unit}")
    return "".join(parts)


def parse_instant(value: InstantLike) -> int:
    """Read an instant as microseconds since the epoch; one without a time zone is in UTC.

    Examples
    --------
    >>> parse_instant("1970-01-01 00:00:01"), parse_instant("1970-01-01T01:00:00+01:00")
    (1000000, 0)
    >>> parse_instant("yesterday")
    Traceback (most recent call last):
    ...
    panes.errors.DeclarationError: 'yesterday' is not an instant. Write for example '2026-01-01 09:30', or give a ...
    """
    try:
        instant = datetime.fromisoformat(value.strip()) if isinstance(value, str) else value
        if not isinstance(instant, datetime):
            raise ValueError
    except ValueError:
        raise DeclarationError(
            f"{value!r} is not an instant. Write for example '2026-01-01 09:30', or give a datetime."
        ) from None
    aware = instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant
    return (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def format_instant(micros: int) -> str:
    """Write an instant in UTC; ``parse_instant`` reads back those of the years 1 to 9999.

    Examples
    --------
    >>> format_instant(1_500_000)
    '1970-01-01 00:00:01.500000'
    """
    try:
        return str(datetime(1970, 1, 1) + timedelta(microseconds=micros))
    except OverflowError:
        # Messages may name instants beyond Python's calendar.
        return f"{micros:,} µs after 1970"


@dataclass(frozen=True, slots=True, order=True)
class Edges:
    """The instants ``offset + m * period`` for every integer m."""

    period: int
    offset: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "offset", self.offset % self.period)

    def floor(self, instant: int) -> int:
        """Return the last edge at or before an instant."""
        return instant - (instant - self.offset) % self.period

    def within(self, other: Edges) -> bool:
        """Whether all edges are also edges of the other."""
        return self.period % other.period == 0 and (self.offset - other.offset) % other.period == 0

    def common(self, other: Edges) -> Edges:
        """Return the sparsest edges that include both: the gcd of the periods and of the difference of offsets."""
        return Edges(math.gcd(self.period, other.period, self.offset - other.offset), self.offset)


def all_within(inner: Iterable[Edges], outer: Iterable[Edges]) -> bool:
    """Whether all edges of some progressions are also edges of others.

    Examples
    --------
    >>> all_within([Edges(10), Edges(20, 5)], [Edges(5)]), all_within([Edges(5)], [Edges(10), Edges(10, 5)])
    (True, False)
    """
    outer = tuple(outer)
    return all(any(edges.within(other) for other in outer) for edges in inner)


@dataclass(frozen=True, slots=True, order=True)
class Geometry:
    """The instances ``[offset + m * slide, offset + m * slide + range)`` of a window, for every integer m.

    Examples
    --------
    >>> Geometry(range=10, slide=5, offset=7)
    Geometry(range=10, slide=5, offset=2)
    >>> print(Geometry(10, 5, 7))
    ⟨10, 5⟩+2
    >>> Geometry(10, 4).edges()
    (Edges(period=4, offset=0), Edges(period=4, offset=2))
    """

    range: int
    slide: int
    offset: int = 0

    def __post_init__(self) -> None:
        if self.range <= 0 or self.slide <= 0:
            raise DurationError(f"a window needs a positive range and slide, not ⟨{self.range}, {self.slide}⟩")
        object.__setattr__(self, "offset", self.offset % self.slide)

    def __str__(self) -> str:
        """The window as the papers write it, with its offset if it has one."""
        return f"⟨{self.range}, {self.slide}⟩" + (f"+{self.offset}" if self.offset else "")

    @property
    def tumbling(self) -> bool:
        """Whether instances neither overlap nor leave gaps."""
        return self.range == self.slide

    @property
    def starts(self) -> Edges:
        """Where instances start."""
        return Edges(self.slide, self.offset)

    def edges(self) -> tuple[Edges, ...]:
        """Return where instances start and end: one progression, or two if the range is not a multiple of the slide."""
        ends = Edges(self.slide, self.offset + self.range)
        return (self.starts,) if self.starts == ends else (self.starts, ends)
