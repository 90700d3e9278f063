"""Durations as SQL spells them: ``INTERVAL '10' MINUTES``, ``5 MINUTES``, ``minute, 5``, ``'5 minutes'``."""

from __future__ import annotations

from fractions import Fraction

from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from panes.dialect.tokens import Cursor
from panes.errors import DurationError
from panes.timeline import parse_duration

UNITS = {
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1000,
    "microsecond": 1,
}
"""Units as Azure's window functions name them, with their microseconds; the largest first."""

_DIGITS = 15
_WEEK = 7 * UNITS["day"]
_ABBREVIATED = {"dd": "day", "d": "day", "hh": "hour", "mi": "minute", "n": "minute", "ss": "second", "s": "second"}
_ABBREVIATED |= {"ms": "millisecond", "mcs": "microsecond"}


def unit(words: Cursor) -> int:
    """The microseconds of a unit: ``minute``."""
    token = words.next()
    name = token.text.lower()
    name = _ABBREVIATED.get(name, name.removesuffix("s"))
    if name == "week":
        return _WEEK
    if name not in UNITS:
        words.fail(f"{token.text!r} is no unit of time here. Write one of week, {', '.join(UNITS)}.", [token])
    return UNITS[name]


def whole(words: Cursor, what: str) -> int:
    """A whole number, with a sign or without."""
    negative = words.took("-")
    token = words.next()
    if token.token_type is not TokenType.NUMBER or not _plain(token.text):
        words.fail(f"{what} has to be a whole number, and no longer than {_DIGITS} digits.", [token])
    return -int(token.text) if negative else int(token.text)


def counted(words: Cursor) -> int:
    """A number and a unit: ``300 SECONDS``."""
    number = whole(words, "the number of units")
    return number * unit(words)


def interval(words: Cursor) -> int:
    """``INTERVAL '10' MINUTES``, ``INTERVAL '1.5' HOURS``, ``INTERVAL '10 minutes'``, or just ``'10 minutes'``."""
    begin = words.at
    given = words.took("INTERVAL")
    token = words.next()
    number = _number(token.text.strip()) if given else None
    if number is not None:
        length = number * unit(words)
        if length.denominator > 1:
            words.fail("this is finer than a microsecond, the resolution of time here.", words.tokens[begin : words.at])
        return int(length)
    if token.token_type is not TokenType.STRING:
        words.fail("expected a duration here, as INTERVAL '10' MINUTES or '10 minutes'.", [token])
    try:
        return parse_duration(token.text)
    except (DurationError, ValueError) as error:
        words.fail(str(error), words.tokens[begin : words.at])


def _number(text: str) -> Fraction | None:
    """A number with a sign, a point, or neither."""
    if len(text) > _DIGITS or not set(text) <= set("+-.0123456789"):
        return None
    try:
        return Fraction(text)
    except ValueError:
        return None


def _plain(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _DIGITS
