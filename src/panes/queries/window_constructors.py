"""The constructors of windows: ``pn.tumbling``, ``pn.hopping``, ``pn.sliding``, ``pn.session`` and ``pn.cumulate``.

Each checks its arguments and returns a value of ``windows``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar, get_args

from panes.errors import DeclarationError, DurationError
from panes.queries.limits import check_steps
from panes.queries.measures import Delta, Measure, MeasureLike, Punctuation, Rows, measure, positive, text_of
from panes.queries.windows import TICK, Bounds, Cumulate, Origin, RowWindow, Sliding, Window
from panes.suggestions import helpful
from panes.timeline import DurationLike, Geometry, parse_duration

W = TypeVar("W", Window, Cumulate, Sliding, RowWindow)

_ELSEWHERE = {
    **dict.fromkeys(("weeks", "days", "hours", "minutes", "seconds", "milliseconds"), "write a duration, as '5 min'."),
    **dict.fromkeys(("rows", "count", "n"), "write pn.rows(100) for the size."),
    **dict.fromkeys(("on", "by", "key", "partition_by"), "keys go in the query, as pn.query(by='card', ...)."),
    **dict.fromkeys(("at", "time", "ts", "time_column", "column"), "event time goes in the query, as at='ts'."),
    **dict.fromkeys(("start_time", "start"), "offset"),
    **dict.fromkeys(
        ("tz", "timezone", "time_zone", "zone"),
        "the grid of the clock is that of UTC; shift it with offset=, as pn.tumbling('1 day', offset='22 hours').",
    ),
    "label": "name",
    "alias": "name",
}
"""Arguments of windows in other systems, and what to write here."""

_CLOSED = (
    "it is called bounds=, as pn.tumbling('5 min', bounds='(]') for windows that include their end and not their start."
)
_BEFORE = "write bounds='[)' to leave out the event itself, as pn.sliding('1 hour', bounds='[)')."
_ANOTHER_PACE = "a sliding window is answered with every event: take pn.hopping(size, every=...) for another pace."


def _unless_time_first(hint: str | None = None) -> Callable[..., str | None]:
    """Return the hint for an extra argument. In Spark the time column is the first argument."""

    def explain(first: object, *others: object) -> str | None:
        column = isinstance(first, str) and first.isidentifier()
        return "the time column goes in the query, as at='ts', and the size comes first." if column else hint

    return explain


def _unless_step_last(step: object, upto: object, *others: object) -> str | None:
    try:
        swapped = parse_duration(step) > parse_duration(upto)  # type: ignore[arg-type]
    except DurationError:
        return _unless_time_first()(step)
    return f"the step comes first, as pn.cumulate({upto!r}, upto={step!r})." if swapped else None


@helpful(
    "pn.tumbling('5 min')",
    more=_unless_time_first(
        "each window follows the previous one. Take pn.hopping(size, every=...) for a pace, and offset= for a start."
    ),
    **_ELSEWHERE,
    **dict.fromkeys(("window", "duration", "length", "period"), "size"),
    closed=_CLOSED,
    **dict.fromkeys(
        ("every", "slide"), "each window follows the previous one; take pn.hopping(size, every=...) for a pace."
    ),
)
def tumbling(
    size: MeasureLike,
    *,
    offset: DurationLike = "0s",
    origin: Origin = "epoch",
    bounds: Bounds | None = None,
    name: str | None = None,
) -> Window | RowWindow:
    """Windows of one size, one after another.

    Parameters
    ----------
    size
        A duration: instances are ``[offset + m * size, offset + (m + 1) * size)``, as in Spark. Or ``pn.rows(n)``;
        ``pn.delta(column, by)``: rows at most ``by`` above the window's first; or ``pn.punctuation(column)``: until a
        mark. A window that is not full when the rows end is not answered.
    offset
        Shift the grid of the clock by this much.
    origin
        Where windows in time begin: ``epoch``, on the grid of the clock; ``first``, on a grid that begins with the
        first row of each key; ``row``, each with the next row of its key.
    bounds
        ``[)``, windows include their start, as in Spark; or ``(]``, they include their end, as in Azure Stream
        Analytics.
    name
        The name in the column ``window_name``.

    Examples
    --------
    >>> import panes as pn
    >>> print(pn.tumbling("20 min"), pn.tumbling(pn.rows(100)), pn.tumbling(pn.delta("odometer", 10)))
    20m 100rows odometer_10
    """
    length = measure(size, "size")
    _check_origin(origin)
    if isinstance(length, int) and origin == "epoch":
        return _on_the_clock(length, length, offset, bounds, name)
    _check_grid(offset, origin, length)
    _refuse_bounds(bounds, "a tumbling window holds its rows from its first on")
    if length == Rows(0):
        raise DeclarationError("a tumbling window of pn.rows(0) never holds a row. Write pn.rows(1) or more.")
    return _named(RowWindow("tumbling", length, None, "", origin), name)


@helpful(
    "pn.hopping('1 hour', every='5 min')",
    more=_unless_time_first(),
    **_ELSEWHERE,
    **dict.fromkeys(("slide", "hop", "step", "period", "slide_duration", "advance"), "every"),
    **dict.fromkeys(("window", "duration", "length", "window_duration"), "size"),
    closed=_CLOSED,
)
def hopping(
    size: MeasureLike,
    *,
    every: MeasureLike,
    offset: DurationLike = "0s",
    origin: Origin = "epoch",
    bounds: Bounds | None = None,
    partial: bool = True,
    name: str | None = None,
) -> Window | RowWindow | Sliding:
    """Windows of one size, answered at a pace. Both may be measured in time, in rows or in a column.

    With two durations these are Spark's windows: ``every`` may be longer than ``size`` (events between instances then
    belong to no window), and ``size`` need not be a multiple of it.

    Parameters
    ----------
    size
        What a window holds: a duration; ``pn.rows(n)``, the last n rows; or ``pn.delta(column, by)``, the rows at most
        ``by`` below the latest.
    every
        When it is answered: a duration, on the clock; ``pn.rows(n)``, after every n-th row of a key; or
        ``pn.delta(column, by)``, when the column has moved on by more than ``by``.
    offset
        Shift the grid of the clock by this much.
    origin
        Where a pace in time begins: ``epoch``, on the grid of the clock; ``first``, with the first row of each key.
    bounds
        On the clock ``[)``, which is the default, or ``(]``; at a pace of rows ``(]``, the default, or ``[]``.
    partial
        Whether a window is answered before it has been full for the first time.
    name
        The name in the column ``window_name``.

    Examples
    --------
    >>> import panes as pn
    >>> print(pn.hopping("1 hour", every="5 min"), pn.hopping(pn.rows(100), every="1 min"))
    1h/5m 100rows/1m
    """
    length, pace = measure(size, "size"), measure(every, "every")
    _check_origin(origin)
    for parameter, value in (("size", length), ("every", pace)):
        if isinstance(value, Punctuation):
            raise DeclarationError(
                f"{parameter}={value!r}: marks cut a stream into windows that do not overlap. Write "
                f"pn.tumbling({value!r})."
            )
        if value == Rows(0):
            raise DeclarationError(
                f"{parameter}=pn.rows(0) would hold no row, or never be answered. Write pn.rows(1) or more."
            )
    if isinstance(length, int) and isinstance(pace, int) and origin == "epoch":
        if not partial:
            raise DeclarationError(
                "partial=False: windows on the clock are answered if they hold an event, as in Spark, however long "
                "the key has existed. Write origin='first' for a grid that begins with a key, or filter by time."
            )
        return _on_the_clock(length, pace, offset, bounds, name)
    if origin == "row":
        raise DeclarationError("origin='row' is for pn.tumbling, where each window begins with a row. Write 'first'.")
    _check_grid(offset, origin, pace)
    if isinstance(length, Rows) and pace == Rows(1):
        return sliding(length, bounds=bounds, partial=partial, name=name)
    shift = parse_duration(offset) % pace if isinstance(pace, int) else 0
    held = _hopping_bounds(bounds, length, pace, origin)
    return _named(RowWindow("hopping", length, pace, "", origin, shift, held, partial), name)


@helpful(
    "pn.sliding('1 hour')",
    more=_unless_time_first("it is answered with every event. Take pn.hopping(size, every=...) for another pace."),
    **_ELSEWHERE,
    **dict.fromkeys(("window", "duration", "length", "range", "period"), "size"),
    offset="it is answered with every event, so there is no grid to shift; ago='1 day' looks further back.",
    skip="leave out the last rows with ago=pn.rows(50), or all of the event's instant with bounds='[)'.",
    closed=_BEFORE,
    exclude=_BEFORE,
    every=_ANOTHER_PACE,
    slide=_ANOTHER_PACE,
)
def sliding(
    size: MeasureLike,
    *,
    ago: DurationLike | Rows | None = None,
    bounds: Bounds | None = None,
    partial: bool = True,
    name: str | None = None,
) -> Sliding | RowWindow:
    """A window up to each event, or up to each request of a lookup.

    With a duration it is ``(t - size, t]``, as SQL's RANGE: it includes the event itself and all others at the same
    instant, so two events of a key at one instant have equal answers. With ``pn.rows(n)`` it is the last n events, as
    SQL's ROWS, and events of one instant are answered one by one.

    Parameters
    ----------
    size
        A duration, ``pn.rows(n)``, or ``pn.delta(column, by)``.
    ago
        How long before the event its window ended: ``(t - ago - size, t - ago]``; or ``pn.rows(k)``, to leave out the
        last k rows. Such a window may be empty; its count is then 0, and other aggregates are null.
    bounds
        Which bounds belong to a window in time: ``(]``; ``[)``, only what was before the event; ``[]``; ``()``. With
        ``pn.rows(n)``: ``(]``, up to the event itself, or ``[)``, the last n rows before its instant: all rows of that
        instant are left out, and the window may be empty.
    partial
        Whether a window of rows is answered before it has been full for the first time.
    name
        The name in the column ``window_name``.

    Examples
    --------
    >>> import panes as pn
    >>> print(pn.sliding("5 min"), pn.sliding("5 min", ago="1 day"), pn.sliding(pn.rows(10), ago=pn.rows(5)))
    5m/event 5m/event-1d 10rows/event-5rows
    """
    length = measure(size, "size")
    if isinstance(length, Punctuation):
        raise DeclarationError(f"marks cut a stream into windows that do not overlap. Write pn.tumbling({length!r}).")
    if not isinstance(length, int):
        return _sliding_rows(length, ago, bounds, name, partial=partial)
    if isinstance(ago, Rows):
        raise DeclarationError(f"ago={ago!r} beside a size in time. Write a duration, as ago='1 day'.")
    if not partial:
        raise DeclarationError(
            "partial=False is for windows of rows, as pn.sliding(pn.rows(10), partial=False): it is unknown since when "
            "a window in time has been full."
        )
    before = 0 if ago is None else parse_duration(ago)
    if before < 0:
        raise DurationError(
            f"ago={ago!r} is negative, but later events are not known yet. Write for example ago='1 day'."
        )
    held = check_bounds("(]" if bounds is None else bounds, get_args(Bounds))
    if length == 1 and held == "()":
        raise DurationError("size='1 us' with bounds='()' holds no instant. Write a longer size, or other bounds.")
    return _named(Sliding(length, before, "", held), name)


@helpful(
    "pn.session('30 min')",
    more=_unless_time_first("a session has a gap and no other size."),
    **{**_ELSEWHERE, **dict.fromkeys(("offset", "start", "start_time"), "a session starts with its first event.")},
    **dict.fromkeys(("timeout", "size", "duration", "gap_duration", "window", "max_gap"), "gap"),
    **dict.fromkeys(("upto", "max_size", "max_duration"), "a session has no longest duration."),
)
def session(gap: DurationLike, *, name: str | None = None) -> RowWindow:
    """Events with no pause longer than a gap between them; two events exactly a gap apart are in one session.

    A session starts with its first event and ends a gap after its last one, as Spark's ``session_window`` does.

    Parameters
    ----------
    name
        The name in the column ``window_name``.

    Examples
    --------
    >>> import panes as pn
    >>> str(pn.session("30 min"))
    'session 30m'
    """
    length = measure(gap, "gap")
    if not isinstance(length, int):
        raise DeclarationError(
            f"gap={text_of(length)}: a session ends after a time without an event. Write pn.session('30 min'), or "
            f"pn.tumbling(...) for windows by {'marks' if isinstance(length, Punctuation) else 'rows or a column'}."
        )
    return _named(RowWindow("session", length, None, ""), name)


@helpful(
    "pn.cumulate('1 hour', upto='1 day')",
    more=_unless_step_last,
    **_ELSEWHERE,
    **dict.fromkeys(("size", "max_size", "window", "until"), "upto"),
    **dict.fromkeys(("every", "slide"), "step"),
)
def cumulate(
    step: DurationLike,
    *,
    upto: DurationLike,
    offset: DurationLike = "0s",
    bounds: Bounds = "[)",
    name: str | None = None,
) -> Cumulate:
    """Windows that all begin together, of one step, two steps, and so on, up to the widest; then they begin again.

    The totals of a day so far, every hour: ``pn.cumulate("1 hour", upto="1 day")``.

    Examples
    --------
    >>> import panes as pn
    >>> day = pn.cumulate("1 hour", upto="1 day")
    >>> str(day), len(day.windows)
    ('1d by 1h', 24)
    """
    every, widest = positive(step, "step"), positive(upto, "upto")
    if every > widest:
        raise DeclarationError(
            f"step={step!r} is longer than upto={upto!r}. Write pn.cumulate({upto!r}, upto={step!r}) for totals so far."
        )
    if widest % every:
        raise DeclarationError(
            f"upto={upto!r} is not a multiple of step={step!r}, so no step would end with the widest window. Write for "
            "example cumulate('1 hour', upto='1 day')."
        )
    check_steps(widest // every, "pn.cumulate('1 hour', upto='1 day')")
    return _named(Cumulate(every, widest, parse_duration(offset) % widest, "", check_bounds(bounds)), name)


def _on_the_clock(size: int, every: int, offset: DurationLike, bounds: Bounds | None, name: str | None) -> Window:
    held = check_bounds("[)" if bounds is None else bounds)
    shift = TICK if held == "(]" else 0
    return _named(Window(Geometry(size, every, parse_duration(offset) + shift), "", held), name)


def _sliding_rows(
    size: Rows | Delta, ago: DurationLike | Rows | None, bounds: Bounds | None, name: str | None, *, partial: bool
) -> RowWindow:
    if isinstance(size, Rows) and ago is not None and not isinstance(ago, Rows):
        raise DeclarationError(
            f"ago={ago!r} beside a size of {text_of(size)}: a window of rows leaves out rows. Write "
            f"pn.sliding({size!r}, ago=pn.rows(1)), or a duration for the size."
        )
    if isinstance(size, Delta) and ago is not None:
        raise DeclarationError(
            f"ago={ago!r} beside a size of {text_of(size)}: only a window of rows leaves out the last rows. Write "
            "pn.sliding(pn.rows(100), ago=pn.rows(50))."
        )
    if isinstance(size, Delta):
        _refuse_bounds(bounds, "a window that is measured in a column holds all rows near enough to the latest")
    elif bounds not in (None, "(]", "[)"):
        raise DeclarationError(
            f"bounds={bounds!r}: the last rows are counted back from their end, so only the end can be left out. "
            "Write '(]' (up to the event itself) or '[)' (the last rows before its instant)."
        )
    held: Bounds | None = "[)" if bounds == "[)" else None
    skipped = ago.n if isinstance(ago, Rows) else 0
    return _named(RowWindow("sliding", size, Rows(1), "", bounds=held, partial=partial, ago=skipped), name)


def _named(window: W, name: str | None) -> W:
    """Return the window under the name that the user chose, or its default name."""
    if isinstance(window, RowWindow) and not isinstance(window.partial, bool):
        raise DeclarationError(f"partial={window.partial!r}: write True or False.")
    return replace(window, name=window.default_name if name is None else check_name(name))


# Checks


def check_name(name: str) -> str:
    """Return the name that a user chose for a window, if it is one."""
    if not isinstance(name, str) or not name.strip():
        raise DeclarationError(f"name={name!r} cannot name a window. Write a word, or leave it out.")
    return name


def check_bounds(bounds: Bounds, allowed: tuple[Bounds, ...] = ("[)", "(]")) -> Bounds:
    """Return the bounds that a user chose for a window, if they are allowed."""
    if bounds not in allowed:
        meaning = {
            "[)": "includes its start, as in Spark",
            "(]": "includes its end",
            "[]": "includes both",
            "()": "includes neither",
        }
        raise DeclarationError(
            f"bounds={bounds!r}: write {' or '.join(f'{each!r} ({meaning[each]})' for each in allowed)}."
        )
    return bounds


def _check_origin(origin: Origin) -> None:
    if origin not in get_args(Origin):
        raise DeclarationError(
            f"origin={origin!r}: write 'epoch' (the grid of the clock), 'first' (a grid from the key's first row) or "
            "'row' (each window opened by the next row)."
        )


def _check_grid(offset: DurationLike, origin: Origin, pace: Measure) -> None:
    """Reject arguments that shift the grid of the clock if there is none."""
    if not isinstance(pace, int) and origin != "epoch":
        raise DeclarationError(
            f"origin={origin!r} is for a pace in time, and this one is {text_of(pace)}. Leave it out."
        )
    if (not isinstance(pace, int) or origin != "epoch") and parse_duration(offset):
        raise DeclarationError(
            f"offset={offset!r} shifts the grid of the clock, and this window is not on it. Leave it out."
        )


def _refuse_bounds(bounds: Bounds | None, reason: str) -> None:
    if bounds is not None:
        raise DeclarationError(f"bounds={bounds!r}: {reason}, so there are none to choose. Leave it out.")


def _hopping_bounds(bounds: Bounds | None, size: Measure, pace: Measure, origin: Origin) -> Bounds | None:
    """Return the bounds of a hopping window, None for the default ones."""
    if isinstance(pace, int):
        if origin == "first":
            if bounds not in (None, "[)"):
                raise DeclarationError(f"bounds={bounds!r} is for windows on the grid of the clock. Leave it out.")
            return None
        return None if bounds is None or check_bounds(bounds) == "[)" else bounds
    if not isinstance(size, int):
        _refuse_bounds(bounds, "a window of rows holds its rows")
        return None
    if isinstance(pace, Delta):
        if bounds not in (None, "[]"):
            raise DeclarationError(
                f"bounds={bounds!r}: a window paced by a column is answered before the row that moved it on, and "
                "includes both bounds. Leave it out."
            )
        return None
    return None if bounds is None or check_bounds(bounds, ("(]", "[]")) == "(]" else bounds
