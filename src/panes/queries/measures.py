"""The units of sizes and paces: time, rows, the distance in a column, or marks in the stream."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from numbers import Real
from typing import Any, Final, Literal, TypeAlias

from panes.errors import DeclarationError, DurationError
from panes.suggestions import helpful
from panes.timeline import DurationLike, format_duration, parse_duration

Scope: TypeAlias = Literal["stream", "key"]

MOST_ROWS: Final = 2**60
"""The largest number of rows: positions have to fit 64 bits."""


@dataclass(frozen=True, slots=True, repr=False)
class Rows:
    """A number of rows. Made by :func:`rows`, which checks it."""

    n: int

    def __str__(self) -> str:
        return f"{self.n}row{'' if self.n == 1 else 's'}"

    def __repr__(self) -> str:
        return f"pn.rows({self.n})"


@dataclass(frozen=True, slots=True, repr=False)
class Delta:
    """A distance in a column that never decreases. Made by :func:`delta`, which checks it.

    Parameters
    ----------
    column
        The name of the column; for operators that are given tuples, also a position in the tuple.
    by
        A number, or µs if the column is a timestamp.
    temporal
        Whether the column is a timestamp.
    """

    column: str | int
    by: Any
    temporal: bool = False

    @property
    def distance(self) -> Any:
        """The distance as users write it: a number, or a duration."""
        return format_duration(self.by) if self.temporal else self.by

    def __str__(self) -> str:
        return f"{self.column}_{self.distance}"

    def __repr__(self) -> str:
        return f"pn.delta({self.column!r}, {self.distance!r})"


@dataclass(frozen=True, slots=True, repr=False)
class Punctuation:
    """Marks that end windows. Made by :func:`punctuation`, which checks it.

    Parameters
    ----------
    column
        The boolean column that marks rows; empty for operators, which receive punctuations between the tuples.
    scope
        Whether a mark ends the windows of all keys (``stream``) or those of its own key (``key``).
    """

    column: str
    scope: Scope = "stream"

    def __str__(self) -> str:
        return f"until_{self.column or 'punctuation'}{'_of_key' if self.scope == 'key' else ''}"

    def __repr__(self) -> str:
        scope = "scope='key'" if self.scope == "key" else ""
        return f"pn.punctuation({', '.join(filter(None, (repr(self.column) if self.column else '', scope)))})"


Measure: TypeAlias = int | Rows | Delta | Punctuation
"""A size or a pace; durations are in µs."""

MeasureLike: TypeAlias = "DurationLike | Rows | Delta | Punctuation"


@helpful("pn.rows(100)", **dict.fromkeys(("count", "size", "rows"), "n"))
def rows(n: int) -> Rows:
    """Measure a window in rows: ``pn.sliding(pn.rows(10))`` holds the last ten rows of a key.

    ``pn.rows(0)`` is the empty window of one side of a join.

    Examples
    --------
    >>> import panes as pn
    >>> str(pn.sliding(pn.rows(10))), str(pn.hopping(pn.rows(100), every=pn.rows(10)))
    ('10rows/event', '100rows/10rows')
    """
    if isinstance(n, bool) or not isinstance(n, int) or not 0 <= n <= MOST_ROWS:
        raise DeclarationError(f"rows({n!r}) is not a number of rows. Write a whole number, as pn.rows(100).")
    return Rows(n)


@helpful(
    "pn.delta('odometer', 10)",
    **dict.fromkeys(("attribute", "on", "name"), "column"),
    **dict.fromkeys(("distance", "size", "threshold", "step"), "by"),
)
def delta(column: str | int, by: DurationLike | Any) -> Delta:
    """Measure a window by the distance between values of a column that never decreases within a key.

    Parameters
    ----------
    column
        The name of the column; for operators of ``panes.operators``, also a position in a tuple.
    by
        A number, or a duration if the column is a timestamp.

    Examples
    --------
    >>> import panes as pn
    >>> str(pn.tumbling(pn.delta("odometer", 100))), str(pn.sliding(pn.delta("ts", "10 s")))
    ('odometer_100', 'ts_10s/event')
    """
    if isinstance(column, bool) or not isinstance(column, int):
        _check_column(column, "delta", "pn.delta('odometer', 10)")
    temporal = isinstance(by, (str, timedelta))
    threshold: Any = parse_duration(by) if isinstance(by, (str, timedelta)) else by
    if isinstance(threshold, bool) or not isinstance(threshold, (Real, Decimal)):
        raise DeclarationError(
            f"delta({column!r}, {by!r}) has no distance. Write a number, or a duration such as '10 s'."
        )
    try:
        distance = float(threshold)
    except OverflowError:
        distance = math.inf
    if not 0 <= distance < math.inf:
        raise DeclarationError(
            f"delta({column!r}, {by!r}): the column never decreases, so the distance must be finite and at least 0."
        )
    return Delta(column, threshold, temporal)


@helpful("pn.punctuation('refuelled')", **dict.fromkeys(("by", "on", "mark", "when", "name"), "column"))
def punctuation(column: str | None = None, *, scope: Scope = "stream") -> Punctuation:
    """End windows at marks in the stream: the rows where a boolean column is true.

    A mark is not part of the windows that it ends, and comes after the other rows of its instant.

    Parameters
    ----------
    column
        The boolean column. Omit it for operators of ``panes.operators``, which receive punctuations between the tuples.
    scope
        ``stream``: a mark ends the windows of all keys. ``key``: only those of its own key.

    Examples
    --------
    >>> import panes as pn
    >>> str(pn.tumbling(pn.punctuation("refuelled", scope="key")))
    'until_refuelled_of_key'
    """
    if column is not None:
        _check_column(column, "punctuation", "pn.punctuation('refuelled')")
    if scope not in ("stream", "key"):
        raise DeclarationError(
            f"scope={scope!r}: write 'stream' (a mark ends the windows of all keys) or 'key' (only those of its key)."
        )
    return Punctuation(column or "", scope)


def measure(value: MeasureLike, parameter: str) -> Measure:
    """Check a size or a pace as a user wrote it; durations become µs.

    Parameters
    ----------
    parameter
        The name of the parameter, for error messages.
    """
    if isinstance(value, (Rows, Delta, Punctuation)):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        raise DurationError(
            f"{parameter}={value!r} has no unit. Write it with one, as '5 minutes', or pn.rows(100) for rows."
        )
    if not isinstance(value, (str, timedelta)):
        raise DurationError(
            f"{parameter}={value!r} is not a {parameter}. Write a duration such as '5 min', pn.rows(100), "
            "pn.delta('odometer', 10) or pn.punctuation('mark')."
        )
    return positive(value, parameter)


def positive(value: DurationLike, parameter: str) -> int:
    """Read a duration that must be longer than zero."""
    micros = parse_duration(value)
    if micros <= 0:
        raise DurationError(f"{parameter}={value!r} is not positive. Write for example '5 min'.")
    return micros


def text_of(value: Measure) -> str:
    """Return a measure as it appears in the names of windows."""
    return format_duration(value) if isinstance(value, int) else str(value)


def _check_column(column: object, function: str, example: str) -> None:
    if not isinstance(column, str) or not column:
        raise DeclarationError(f"{function}({column!r}) needs the name of a column. Write it as a string: {example}.")
