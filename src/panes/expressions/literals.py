"""Literals inside expressions: what the text of a number, a date or a timestamp stands for."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Final, TypeAlias

from panes.errors import ExpressionError

Scalar: TypeAlias = "bool | int | float | Decimal | str | date | datetime | None"

_DAY: Final = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})")
_TIME: Final = re.compile(r"[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6}))?)?")
_ZONE: Final = re.compile(r" ?(?:(Z|UTC)|([+-])(\d{2}):(\d{2}))")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST: Final = 38


def number(text: str) -> int | float | Decimal:
    """Read a number as Spark does: an integer, an exact decimal, or a double when it has an exponent.

    Examples
    --------
    >>> number("12"), number("1.50"), number("1e3")
    (12, Decimal('1.50'), 1000.0)
    """
    try:
        double, exact = float(text), Decimal(text)
    except (ValueError, ArithmeticError):
        raise ExpressionError(f"{text!r} is not a number: write it as 12, 1.5 or 1e3.") from None
    if "e" in text.lower():
        if math.isinf(double):
            raise ExpressionError(f"{text} is too large for a double.")
        return double
    _, digits, exponent = exact.as_tuple()
    if max(len(digits), -int(exponent)) > _LONGEST:
        raise ExpressionError(f"{text} has more than the {_LONGEST} digits of the widest decimal.")
    return exact if "." in text else int(exact)


def day(text: str) -> date:
    """Read the text of ``DATE '...'``.

    Examples
    --------
    >>> day("2024-2-29")
    datetime.date(2024, 2, 29)
    """
    found = _DAY.fullmatch(text.strip())
    try:
        if found:
            return date(*map(int, found.groups()))
    except ValueError:
        pass  # a day that is not in the calendar: the same error
    raise ExpressionError(f"DATE {text!r} is not a date: write it as DATE '2024-02-29'.")


def instant(text: str) -> tuple[datetime, bool]:
    """Read the text of ``TIMESTAMP '...'``: an instant, and whether the text named its zone.

    Without a zone the text is in the session's time zone; here it is read as UTC.

    Examples
    --------
    >>> instant("2024-02-29 12:00:00+02:00")
    (datetime.datetime(2024, 2, 29, 10, 0, tzinfo=datetime.timezone.utc), True)
    >>> instant("2024-02-29")[1]
    False
    """
    stripped = text.strip()
    found = _DAY.match(stripped)
    try:
        if found:
            (year, month, day_of_month), end = map(int, found.groups()), found.end()
            clock = timedelta()
            time = _TIME.match(stripped, end)
            if time:
                hour, minute, second, fraction = time.groups()
                datetime(year, month, day_of_month, int(hour), int(minute), int(second or 0))  # refuses 24:00 and 12:60
                clock = timedelta(
                    hours=int(hour),
                    minutes=int(minute),
                    seconds=int(second or 0),
                    microseconds=int((fraction or "").ljust(6, "0")),
                )
                end = time.end()
            zone = _ZONE.match(stripped, end) if time else None
            shift = timedelta()
            if zone:
                end = zone.end()
                if zone.group(2):
                    shift = timedelta(hours=int(zone.group(3)), minutes=int(zone.group(4)))
                    shift = -shift if zone.group(2) == "-" else shift
            if end == len(stripped) and abs(shift) <= timedelta(hours=18):
                return datetime(year, month, day_of_month, tzinfo=UTC) + clock - shift, zone is not None
    except (ValueError, OverflowError):
        pass  # a day or an hour that does not exist: the same error
    raise ExpressionError(
        f"TIMESTAMP {text!r} is not a timestamp: write it as TIMESTAMP '2024-02-29 12:00:00.000000', "
        "with Z, UTC or an offset as +02:00 behind it when the session's time zone is not meant."
    )


def write(value: Scalar) -> str:
    """Write a Python value as a SQL literal of the same type.

    Examples
    --------
    >>> write("it's"), write(1.5), write(Decimal("1.5")), write(None), write(date(2024, 2, 29))
    ("'it\\\\'s'", '1.5E0', '1.5', 'NULL', "DATE '2024-02-29'")
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, (float, Decimal)) and not math.isfinite(value):
        raise ExpressionError(f"{value} cannot be written as a literal: only finite numbers can.")
    if isinstance(value, float):
        text = repr(value).upper()
        return text if "E" in text else f"{text}E0"
    if isinstance(value, Decimal):
        text = format(value, "f")
        return text if "." in text else f"{text}."
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, datetime):
        if value.tzinfo is None:
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        shifted = _EPOCH + (value - _EPOCH)
        return f"TIMESTAMP '{shifted.replace(tzinfo=None).isoformat(sep=' ')}Z'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    raise ExpressionError(
        f"{value!r} is no literal of the subset: give None, a bool, a number, a string, a date or a datetime."
    )


def quoted(text: str) -> str:
    """Write a string literal, in single quotes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
