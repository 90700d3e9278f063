"""A windowed join: which rows of two streams meet, over which windows, and what comes out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from panes.declare.expressions import Expression, ExpressionLike, expression
from panes.declare.kinds import KINDS
from panes.declare.measures import Delta, Punctuation, Rows
from panes.declare.windows import checked_name
from panes.errors import DeclarationError, DurationError
from panes.timeline import DurationLike, format_duration, parse_duration

How: TypeAlias = Literal["inner", "left", "right", "full"]
JoinLayout: TypeAlias = Literal["long", "matches"]
Windows: TypeAlias = "DurationLike | Iterable[DurationLike] | Mapping[str, DurationLike]"


@dataclass(frozen=True, slots=True)
class Join:
    """A join over several windows. Made by :func:`declare_join`, which checks it.

    Parameters
    ----------
    on
        The key columns, which both sides have.
    at
        The columns of event time, of the left side and of the right.
    names, sizes
        What the windows are called, and how wide they are in µs; from the narrowest to the widest.
    where
        What else a match has to fulfil, over the columns that come out.
    how
        Which rows without a match come out too.
    layout
        ``long``: a row per match and window. ``matches``: a row per match.
    suffixes
        What is added to the names of columns that both sides have.
    """

    on: tuple[str, ...]
    at: tuple[str, str]
    names: tuple[str, ...]
    sizes: tuple[int, ...]
    where: Expression | None
    how: How
    layout: JoinLayout
    suffixes: tuple[str, str]

    @property
    def widest(self) -> int:
        """The size of the widest window, which holds all matches."""
        return self.sizes[-1]

    @property
    def keeps_left(self) -> bool:
        """Whether rows of the left side come out without a match."""
        return self.how in ("left", "full")

    @property
    def keeps_right(self) -> bool:
        """Whether rows of the right side come out without a match."""
        return self.how in ("right", "full")

    @property
    def labels(self) -> tuple[str, ...]:
        """The columns of the result that come from neither side."""
        return ("window_name", "expires") if self.layout == "long" else ("window_name", "level", "expires")


def declare_join(
    *,
    on: str | Iterable[str],
    at: str | Sequence[str],
    over: Windows,
    where: ExpressionLike | None = None,
    how: How = "inner",
    layout: JoinLayout = "long",
    suffixes: Sequence[str] = ("_left", "_right"),
) -> Join:
    """Check what a user writes about a join.

    Examples
    --------
    >>> join = declare_join(on="symbol", at="ts", over=["1 min", "5s"])
    >>> join.names, join.sizes, join.at
    (('5s', '1m'), (5000000, 60000000), ('ts', 'ts'))
    """
    keys = _keys(on)
    times = _pair(at, "at", "at='ts', or at=('ordered', 'paid') for the left and the right side")
    lowered = [key.lower() for key in keys]
    for time in times:
        if time.lower() in lowered:
            raise DeclarationError(
                f"on= names the time column {time!r}: only rows of the same instant could match, in any window. Leave "
                "it out of on=."
            )
    windows = _windows(over)
    if how not in get_args(How):
        raise DeclarationError(
            f"how={how!r}: write 'inner', or 'left', 'right' or 'full' for rows without a match too."
        )
    if layout not in get_args(JoinLayout):
        raise DeclarationError(
            f"layout={layout!r}: write 'long' (a row per match and window) or 'matches' (a row per match, with the "
            "narrowest window that holds it)."
        )
    return Join(
        on=keys,
        at=times,
        names=tuple(name for name, _ in windows),
        sizes=tuple(size for _, size in windows),
        where=None if where is None else expression(where),
        how=how,
        layout=layout,
        suffixes=_pair(suffixes, "suffixes", "suffixes=('_left', '_right')", may_be_empty=True),
    )


def _keys(on: Any) -> tuple[str, ...]:
    keys = (on,) if isinstance(on, str) else tuple(on) if isinstance(on, Iterable) else (on,)
    if not keys:
        raise DeclarationError("on= names no column, but rows match by equal keys. Write on='device', or several.")
    for key in keys:
        if not isinstance(key, str) or not key:
            raise DeclarationError(f"on={key!r} is not the name of a column. Write it as a string.")
    for key in keys:
        if [other.lower() for other in keys].count(key.lower()) > 1:
            raise DeclarationError(f"on= names {key!r} twice (upper and lower case count as equal). Name it once.")
    return keys


def _pair(value: Any, what: str, write: str, *, may_be_empty: bool = False) -> tuple[str, str]:
    both = (value, value) if isinstance(value, str) and not may_be_empty else value
    fits = isinstance(both, Sequence) and not isinstance(both, str) and len(both) == 2
    if not fits or not all(isinstance(part, str) and (part or may_be_empty) for part in both):
        raise DeclarationError(f"{what}={value!r} is not one for the left side and one for the right. Write {write}.")
    return both[0], both[1]


def _windows(over: Any) -> list[tuple[str, int]]:
    """The windows by size; each size once, each name once."""
    if isinstance(over, Mapping):
        named = [(checked_name(name), _size(size)) for name, size in over.items()]
    else:
        listed = list(over) if isinstance(over, Iterable) and not isinstance(over, str) else [over]
        named = [(format_duration(size), size) for size in map(_size, listed)]
    if not named:
        raise DeclarationError("the join has no window. Write over=['10 s', '1 min'], or {'short': '10 s'}.")
    found: dict[int, str] = {}
    for name, size in sorted(named, key=lambda window: window[1]):
        if size in found:
            raise DeclarationError(
                f"two windows of the join are {format_duration(size)} wide ({found[size]!r} and {name!r}), so they "
                "have the same matches. Drop one."
            )
        found[size] = name
    return [(name, size) for size, name in found.items()]


def _size(value: Any) -> int:
    if isinstance(value, (Rows, Delta, Punctuation)):
        raise DeclarationError(
            f"over={value}: two rows match by how far apart their times are, so windows are durations. Write for "
            "example over=['10 s', '1 min']."
        )
    if isinstance(value, KINDS):
        raise DeclarationError(
            f"over= has the window {str(value)!r}, but a join looks back from each row: its windows are durations. "
            "Write for example over=['10 s', '1 min']."
        )
    size = parse_duration(value)
    if size <= 0:
        raise DurationError(
            f"over= has {value!r}, which is not positive: no rows could match. Write for example '5 s'."
        )
    return size
