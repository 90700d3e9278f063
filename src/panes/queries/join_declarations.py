"""What ``pn.join`` declares: which rows of two streams match, over which windows, and what comes out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, TypeAlias, get_args

from panes.errors import DeclarationError, DurationError
from panes.expressions.expression import Expression, ExpressionLike, expression
from panes.queries.measures import Delta, Punctuation, Rows
from panes.queries.windows import DeclaredWindow, RowWindow, Sliding
from panes.suggestions import each_of, shown
from panes.timeline import DurationLike, format_duration, parse_duration

How: TypeAlias = Literal["inner", "left", "right", "full"]
JoinLayout: TypeAlias = Literal["long", "matches"]
JoinWindow: TypeAlias = "DurationLike | Sliding | RowWindow"
Windows: TypeAlias = "JoinWindow | Iterable[JoinWindow]"

_SIZES: tuple[Any, ...] = (str, timedelta, int, float)
"""The types of a size, with or without a unit."""


@dataclass(frozen=True, slots=True)
class JoinDeclaration:
    """A join over several windows. Made by :func:`declare_join`, which checks it.

    Parameters
    ----------
    on
        The key columns, which both sides have.
    at
        The event time columns of the left and the right side.
    names, sizes
        The names of the windows in time and their sizes in µs, from the narrowest to the widest.
    where
        A further condition on matches, over the output columns.
    how
        Which rows without a match are also in the result.
    layout
        ``long``: a row per match and window. ``matches``: a row per match.
    suffixes
        The suffixes of columns that both sides have.
    rows
        The windows whose size is in rows or in a column.
    """

    on: tuple[str, ...]
    at: tuple[str, str]
    names: tuple[str, ...]
    sizes: tuple[int, ...]
    where: Expression | None
    how: How
    layout: JoinLayout
    suffixes: tuple[str, str]
    rows: tuple[RowWindow, ...] = ()

    @property
    def widest(self) -> int:
        """The size of the widest window in time."""
        return self.sizes[-1]

    @property
    def keeps_left(self) -> bool:
        """Whether rows of the left side without a match are in the result."""
        return self.how in ("left", "full")

    @property
    def keeps_right(self) -> bool:
        """Whether rows of the right side without a match are in the result."""
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
) -> JoinDeclaration:
    """Check the arguments of ``pn.join``.

    Examples
    --------
    >>> join = declare_join(on="symbol", at="ts", over=["1 min", "5s"])
    >>> join.names, join.sizes, join.at
    (('5s', '1m'), (5000000, 60000000), ('ts', 'ts'))
    >>> import panes as pn
    >>> mixed = declare_join(on="symbol", at="ts", over=["1 min", pn.sliding(pn.rows(10))])
    >>> mixed.names, [window.suffix for window in mixed.rows]
    (('1m',), ['10rows'])
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
    windows, rows = _windows(over)
    if how not in get_args(How):
        raise DeclarationError(
            f"how={how!r}: write 'inner', or 'left', 'right' or 'full' for rows without a match too."
        )
    if layout not in get_args(JoinLayout):
        raise DeclarationError(
            f"layout={layout!r}: write 'long' (a row per match and window) or 'matches' (a row per match, with the "
            "narrowest window that holds it)."
        )
    if layout == "matches" and rows:
        raise DeclarationError(
            f"layout='matches' gives the narrowest window that holds a match, and {rows[0].name!r} is measured in "
            "rows: it is neither narrower nor wider than another. Leave layout= out, for a row per match and window."
        )
    return JoinDeclaration(
        on=keys,
        at=times,
        names=tuple(name for name, _ in windows),
        sizes=tuple(size for _, size in windows),
        where=None if where is None else expression(where),
        how=how,
        layout=layout,
        suffixes=_pair(suffixes, "suffixes", "suffixes=('_left', '_right')", may_be_empty=True),
        rows=rows,
    )


def _keys(on: Any) -> tuple[str, ...]:
    keys = each_of(on)
    if not keys:
        raise DeclarationError("on= names no column, but rows match by equal keys. Write on='device', or several.")
    for key in keys:
        if not isinstance(key, str) or not key:
            raise DeclarationError(f"on={shown(key)} is not the name of a column. Write it as a string.")
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


def _windows(over: Any) -> tuple[list[tuple[str, int]], tuple[RowWindow, ...]]:
    """Return the windows in time by size, and the others in their order; reject equal windows and equal names."""
    if isinstance(over, Mapping):
        name, size = next(iter(over.items()), ("short", "10 s"))
        raise DeclarationError(
            f"over= is a mapping, but a name belongs to its window. Write "
            f"over=[pn.sliding({size!r}, name={name!r}), ...]."
        )
    listed = each_of(over)
    if not listed:
        raise DeclarationError("the join has no window. Write over=['10 s', '1 min'], or over=pn.sliding(pn.rows(10)).")
    found: dict[Any, tuple[str, RowWindow | None]] = {}
    for each in listed:
        name, size, window = _window(each)
        if size in found:
            shown = f"are {format_duration(size)} wide" if isinstance(size, int) else f"hold {size}"
            raise DeclarationError(
                f"two windows of the join {shown} ({found[size][0]!r} and {name!r}), so they have the same matches. "
                "Drop one."
            )
        if name in (known for known, _ in found.values()):
            raise DeclarationError(f"two windows of the join are called {name!r}; rename one.")
        found[size] = name, window
    in_time = sorted((size, name) for size, (name, window) in found.items() if window is None)
    return [(name, size) for size, name in in_time], tuple(window for _, window in found.values() if window is not None)


def _window(value: Any) -> tuple[str, Any, RowWindow | None]:
    """Return the name and the size of a window, and the window itself if it is not in time."""
    if isinstance(value, (Rows, Delta, Punctuation)):
        measure = f"pn.delta({value.column!r}, {value.by!r})" if isinstance(value, Delta) else "pn.rows(10)"
        if isinstance(value, Rows) and value.n:
            measure = f"pn.rows({value.n})"
        raise DeclarationError(
            f"over={value} is a measure, and a join takes durations or windows up to each row. Write "
            f"over=pn.sliding({measure})."
        )
    if isinstance(value, Sliding):
        return _in_time(value)
    if isinstance(value, RowWindow) and value.per_row:
        return _of_rows(value)
    if isinstance(value, DeclaredWindow):
        raise DeclarationError(
            f"over= has the window {str(value)!r}, which is not answered with every row; but a join looks back from "
            "each row, when it comes. Write durations, as over=['10 s', '1 min'], or windows up to each row, as "
            "pn.sliding(pn.rows(10)) or pn.sliding(pn.delta('odometer', 10))."
        )
    if isinstance(value, tuple):
        raise DeclarationError(
            "over= has several windows as one: both sides of a join have the same windows. Write "
            "over=pn.sliding(pn.rows(10)); panes.operators.Join takes a window for each side."
        )
    if not isinstance(value, _SIZES):
        raise DeclarationError(
            f"over= has {shown(value)}, which is not a window. Write durations, as over=['10 s', '1 min'], or "
            "over=pn.sliding(pn.rows(10))."
        )
    size = parse_duration(value)
    if size <= 0:
        raise DurationError(
            f"over= has {value!r}, which is not positive: no rows could match. Write for example '5 s'."
        )
    return format_duration(size), size, None


def _in_time(window: Sliding) -> tuple[str, int, None]:
    if window.ago or window.bounds[1] == ")":
        raise DeclarationError(
            f"over= has the window {window.name!r}, which leaves out what came last; but in a join the row that comes "
            "meets all that its window holds. Write pn.sliding(size), and any further condition with where=, "
            "as where='ts_left < ts_right'."
        )
    # In whole µs, a window that includes its start is one wider.
    return window.suffix, window.size + (window.bounds[0] == "["), None


def _of_rows(window: RowWindow) -> tuple[str, Any, RowWindow | None]:
    if window.size == Rows(0):
        raise DeclarationError(
            "pn.sliding(pn.rows(0)) is empty on both sides here, so no row could meet another. Write pn.rows(1) or "
            "more; panes.operators.Join takes a window for each side."
        )
    if window.ago:
        raise DeclarationError(
            f"over= has the window {window.name!r}: a row that comes meets all that the window of the other side "
            "holds, and none are left out. Leave ago= out."
        )
    if not window.partial:
        raise DeclarationError(
            f"over= has the window {window.name!r}: rows meet those of a window whether it is full or not. Leave "
            "partial= out."
        )
    if isinstance(window.size, int):
        # Two rows of one instant match either way.
        return window.suffix, window.size + (window.bounds == "[]"), None
    if isinstance(window.size, Delta) and not isinstance(window.size.column, str):
        raise DeclarationError(
            f"pn.delta({window.size.column!r}, ...) is a place in a tuple, and columns have names. Write one of them."
        )
    return window.suffix, window.size, window
