"""Plain values as text: what operators save between micro-batches. Data, never code.

JSON, where an object with one name stands for what JSON has no form for.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from panes.engine.keys import NAN, NotANumber
from panes.errors import StateError

_WRITE: Final[tuple[tuple[type, str, Callable[[Any], Any]], ...]] = (
    # A datetime is a date, so that it comes first.
    (dt.datetime, "time", lambda value: value.isoformat()),
    (dt.date, "date", lambda value: value.isoformat()),
    (dt.time, "clock", lambda value: value.isoformat()),
    (dt.timedelta, "span", lambda value: value // dt.timedelta(microseconds=1)),
    (Decimal, "decimal", str),
    (NotANumber, "nan", lambda value: None),
    (bytes, "bytes", lambda value: base64.b64encode(value).decode()),
    (tuple, "tuple", lambda value: [_written(each) for each in value]),
    (frozenset, "frozenset", lambda value: [_written(each) for each in value]),
    (set, "set", lambda value: [_written(each) for each in value]),
    (dict, "dict", lambda value: [[_written(key), _written(each)] for key, each in value.items()]),
)
_READ: Final[dict[str, Callable[[Any], Any]]] = {
    "time": dt.datetime.fromisoformat,
    "date": dt.date.fromisoformat,
    "clock": dt.time.fromisoformat,
    "span": lambda micros: dt.timedelta(microseconds=micros),
    "decimal": Decimal,
    "nan": lambda _: NAN,
    "bytes": base64.b64decode,
    "tuple": lambda values: tuple(_read(each) for each in values),
    "frozenset": lambda values: frozenset(_read(each) for each in values),
    "set": lambda values: {_read(each) for each in values},
    "dict": lambda pairs: {_read(key): _read(value) for key, value in pairs},
}


def to_text(value: Any) -> str:
    """A value as text.

    Examples
    --------
    >>> from_text(to_text({("a", None): [1, 2.5, float("inf"), b"x"], "at": dt.date(2026, 1, 1)}))
    {('a', None): [1, 2.5, inf, b'x'], 'at': datetime.date(2026, 1, 1)}
    >>> from_text(to_text((NAN, "a"))) == (NAN, "a")
    True
    """
    return json.dumps(_written(value), separators=(",", ":"))


def from_text(text: str) -> Any:
    """The value that was written."""
    return _read(json.loads(text))


def _written(value: Any) -> Any:
    if value is None or (isinstance(value, (bool, int, float, str)) and type(value).__module__ == "builtins"):
        return value
    if type(value) is list:
        return [_written(each) for each in value]
    for type_, name, write in _WRITE:
        if isinstance(value, type_):
            return {name: write(value)}
    raise StateError(
        f"an operator keeps {value!r}, of type {type(value).__name__}, which is no plain value that a state store "
        "could keep. Write methods save and load that say how it is kept: numbers, texts, times, lists and dicts."
    )


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return [_read(each) for each in value]
    if isinstance(value, dict):
        ((name, inner),) = value.items()
        return _READ[name](inner)
    return value
