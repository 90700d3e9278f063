"""Durations as SQL spells them, read and written: ``INTERVAL '10' MINUTES``, ``5 MINUTES``, ``minute, 5``."""

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
"""Units as Azure's window functions name them, with their microseconds, largest first."""

_DIGITS = 15
_WEEK = 7 * UNITS["day"]
_ABBREVIATED = {"dd": "day", "d": "day", "hh": "hour", "mi": "minute", "n": "minute", "ss": "second", "s": "second"}
_ABBREVIATED |= {"ms": "millisecond", "mcs": "microsecond"}


# Reading


def read_interval(words: Cursor) -> int:
    """Read ``INTERVAL '10' MINUTES``, ``INTERVAL '1.5' HOURS``, ``INTERVAL '10 minutes'`` or ``'10 minutes'``."""
    begin = words.at
    has_keyword = words.took("INTERVAL")
    token = words.next()
    number = _number(token.text.strip()) if has_keyword else None
    if number is not None:
        length = number * read_unit(words)
        if length.denominator > 1:
            words.fail("this is finer than a microsecond, the resolution of time here.", words.tokens[begin : words.at])
        return int(length)
    if token.token_type is not TokenType.STRING:
        words.fail("expected a duration here, as INTERVAL '10' MINUTES or '10 minutes'.", [token])
    try:
        return parse_duration(token.text)
    except (DurationError, ValueError) as error:
        words.fail(str(error), words.tokens[begin : words.at])


def read_count(words: Cursor) -> int:
    """Read a number and a unit: ``300 SECONDS``."""
    number = read_whole(words, "the number of units")
    return number * read_unit(words)


def read_whole(words: Cursor, meaning: str) -> int:
    """Read a whole number, with or without a sign; ``meaning`` is for error messages."""
    negative = words.took("-")
    token = words.next()
    text = token.text
    if token.token_type is not TokenType.NUMBER or not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS):
        words.fail(f"{meaning} must be a whole number of at most {_DIGITS} digits.", [token])
    return -int(text) if negative else int(text)


def read_unit(words: Cursor) -> int:
    """Read a unit, as ``minute``, and return its microseconds."""
    token = words.next()
    name = token.text.lower()
    name = _ABBREVIATED.get(name, name.removesuffix("s"))
    if name == "week":
        return _WEEK
    if name not in UNITS:
        words.fail(f"{token.text!r} is not a unit of time here. Write one of week, {', '.join(UNITS)}.", [token])
    return UNITS[name]


def _number(text: str) -> Fraction | None:
    """Read a number with an optional sign and decimal point; None for any other text."""
    if len(text) > _DIGITS or not set(text) <= set("+-.0123456789"):
        return None
    try:
        return Fraction(text)
    except ValueError:
        return None


# Writing


def largest_unit(*lengths: int) -> tuple[str, int]:
    """Return the largest unit in which all lengths are whole, and its microseconds."""
    return next((name, factor) for name, factor in UNITS.items() if all(length % factor == 0 for length in lengths))


def write_interval(length: int) -> str:
    """Return ``INTERVAL '10' MINUTES``."""
    unit, factor = largest_unit(length)
    return f"INTERVAL '{length // factor}' {unit.upper()}S"


def write_count(length: int) -> str:
    """Return ``5 MINUTES``."""
    unit, factor = largest_unit(length)
    number = length // factor
    return f"{number} {unit.upper()}{'' if number == 1 else 'S'}"
