"""The windows a user declares: a size and a pace, each in time, in rows, or in an attribute.

Windows on the clock (``Window``, ``Cumulate``, ``Sliding``, ``Nested``) have instances that are known before any row
is. The instances of a ``RowWindow`` depend on the rows themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, NoReturn, TypeAlias, get_args

import numpy as np

from panes.aggregates.operations import Array
from panes.errors import DeclarationError, DurationError, PlanError
from panes.queries.measures import Delta, Measure, MeasureLike, Punctuation, Rows, measure, positive, text_of
from panes.suggestions import helpful
from panes.timeline import DurationLike, Geometry, format_duration, parse_duration

Bounds: TypeAlias = Literal["[)", "(]", "[]", "()"]
Origin: TypeAlias = Literal["epoch", "first", "row"]
_SPELT = {
    **dict.fromkeys(("weeks", "days", "hours", "minutes", "seconds", "milliseconds"), "write a duration, as '5 min'."),
    **dict.fromkeys(("rows", "count", "n"), "write pn.rows(100) for the size."),
    **dict.fromkeys(("on", "by", "key", "partition_by"), "keys stand in the query, as pn.query(by='card', ...)."),
    **dict.fromkeys(("at", "time", "ts", "time_column", "column"), "event time stands in the query, as at='ts'."),
    **dict.fromkeys(("start_time", "start"), "offset"),
    **dict.fromkeys(
        ("tz", "timezone", "time_zone", "zone"),
        "the grid of the clock is that of UTC; shift it with offset=, as pn.tumbling('1 day', offset='22 hours').",
    ),
    "label": "name",
    "alias": "name",
}
"""What other systems' windows are told, and where it stands here."""

_CLOSED = (
    "it is called bounds=, as pn.tumbling('5 min', bounds='(]') for windows that hold their end and not their start."
)


def _unless_time_first(said: str | None = None) -> Callable[..., str | None]:
    """What to say of too many arguments: in Spark the column of time is the first of them."""

    def told(first: object, *others: object) -> str | None:
        column = isinstance(first, str) and first.isidentifier()
        return "the time column stands in the query, as at='ts', and the size comes first." if column else said

    return told


def _step_first(step: object, upto: object, *others: object) -> str | None:
    try:
        swapped = parse_duration(step) > parse_duration(upto)  # type: ignore[arg-type]
    except DurationError:
        return _unless_time_first()(step)
    return f"the step comes first, as pn.cumulate({upto!r}, upto={step!r})." if swapped else None


TICK = 1
"""By how many µs an instance that holds its end and not its start lies later than one that holds its start."""


@dataclass(frozen=True, slots=True)
class Window:
    """A window over event time: where its instances lie, and what results call it.

    Parameters
    ----------
    geometry
        Where instances lie, as ``[start, end)`` in µs. An instance ``(start, end]`` holds the same instants as one
        that begins and ends a microsecond later.
    bounds
        Which of its bounds belong to an instance: ``[)`` or ``(]``; with an answer per event also ``[]`` and ``()``.
    finer
        For a level of a nested window: the ranges of the levels below it, in µs, from the narrowest on.
    since
        Events before this instant do not count, and instances begin no earlier; an edge of ``geometry``, in µs.
    per_event
        Whether an instance is answered once for every event at its last instant, and not otherwise.
    ago
        For a window with an answer per event: how long before the event an instance ended, in µs.
    """

    geometry: Geometry
    name: str
    bounds: Bounds = "[)"
    finer: tuple[int, ...] = ()
    since: int | None = None
    per_event: bool = False
    ago: int = 0

    def __str__(self) -> str:
        return self.name

    @property
    def suffix(self) -> str:
        """What its columns of the wide layout end with."""
        # What is aligned to an initiation time has no offset in its name.
        offset = 0 if self.since is not None else self.geometry.offset - self.shift
        return _suffix(self.name, default_name(replace(self.geometry, offset=offset)))

    @property
    def shift(self) -> int:
        """By how many µs instances start later than results say."""
        return TICK if self.bounds[0] == "(" else 0

    @property
    def end_shift(self) -> int:
        """By how many µs instances end later than results say."""
        return TICK if self.bounds[1] == "]" else 0

    @property
    def windows(self) -> tuple[Window, ...]:
        """The windows that are computed: this one."""
        return (self,)

    @property
    def lifespan(self) -> Geometry:
        """From where an instance begins to when it can be answered: later than its end where that was a while ago."""
        return replace(self.geometry, range=self.geometry.range + self.ago) if self.ago else self.geometry

    def begins(self, start: Array) -> Array:
        """Where instances begin that would start at some instants if the window had always been there."""
        return start if self.since is None else np.maximum(start, self.since)


@dataclass(frozen=True, slots=True)
class Cumulate:
    """Windows that begin together and end one step after another, until the widest ends and all begin again."""

    step: int
    upto: int
    offset: int
    name: str
    bounds: Bounds = "[)"

    def __str__(self) -> str:
        return self.name

    @property
    def suffix(self) -> str:
        """What its columns of the wide layout end with."""
        return _suffix(self.name, cumulating_name(self.step, self.upto, self.offset))

    @property
    def windows(self) -> tuple[Window, ...]:
        """The windows that are computed: a hopping one per step, all of one name."""
        sizes = range(self.step, self.upto + 1, self.step)
        return tuple(_window(size, self.upto, self.offset, self.name, self.bounds) for size in sizes)


@dataclass(frozen=True, slots=True)
class Sliding:
    """An answer per event at t, over ``(t - ago - size, t - ago]``. Made by :func:`sliding`, which checks it.

    Parameters
    ----------
    size, ago
        In µs.
    bounds
        Which of its bounds belong to a window.
    """

    size: int
    ago: int
    name: str
    bounds: Bounds = "(]"

    def __str__(self) -> str:
        return self.name

    @property
    def suffix(self) -> str:
        """What its columns of the wide layout end with."""
        return _suffix(self.name, sliding_name(self.size, self.ago, self.bounds))

    @property
    def windows(self) -> tuple[Window, ...]:
        """The windows that are computed: one, of which every instance that ends with an event is answered."""
        # Time is in whole µs: leaving out the end is ending a µs earlier, and so on.
        open_start, open_end = self.bounds[0] == "(", self.bounds[1] == ")"
        size = self.size + 1 - open_start - open_end
        return (Window(Geometry(size, 1), self.name, self.bounds, per_event=True, ago=self.ago + open_end),)


@dataclass(frozen=True, slots=True)
class RowWindow:
    """A window whose instances depend on the rows. Made by the functions below, which check it.

    Parameters
    ----------
    kind
        ``tumbling``: full, answered, and begun anew. ``hopping``, ``sliding``: the most recent rows, answered at a
        pace of its own. ``session``: until no row has come for the size.
    size, every
        What it holds, and when it is answered; None for a tumbling window and a session.
    origin, offset
        Where periods in time begin: on the grid of the clock, moved by an offset; with the first row of a key; with the
        next row.
    bounds
        Of a size in time, which of its bounds belong to it. Of the last rows, ``[)`` leaves out those of the
        event's own instant. None for the usual ones.
    partial
        Whether it is answered before it has been full for the first time.
    ago
        How many of the very last rows are left out.
    """

    kind: Literal["tumbling", "hopping", "sliding", "session"]
    size: Measure
    every: Measure | None
    name: str
    origin: Origin = "epoch"
    offset: int = 0
    bounds: Bounds | None = None
    partial: bool = True
    ago: int = 0

    def __str__(self) -> str:
        return self.name

    @property
    def suffix(self) -> str:
        """What its columns of the wide layout end with."""
        return _suffix(self.name, row_window_name(self))

    @property
    def each_row(self) -> bool:
        """Whether it is answered with every row, so that it has no phase."""
        return self.every == Rows(1)

    @property
    def before(self) -> bool:
        """Whether it holds the last rows before the instant of its event, and none of that instant."""
        return self.kind == "sliding" and self.bounds == "[)"

    @property
    def may_be_empty(self) -> bool:
        """Whether it leaves out the latest rows, and is answered though it holds none."""
        return self.before or self.ago > 0

    @property
    def deltas(self) -> tuple[Delta, ...]:
        """The measures that go by a column."""
        return tuple(each for each in (self.size, self.every) if isinstance(each, Delta))

    @property
    def windows(self) -> NoReturn:
        """None over time."""
        raise PlanError(
            f"the window {self.name!r} goes by rows, and this takes windows over time only, for example "
            "pn.tumbling('5 min')."
        )


@helpful(
    "pn.tumbling('5 min')",
    more=_unless_time_first(
        "one window follows on the other. Take pn.hopping(size, every=...) for a pace, and offset= for a start."
    ),
    **_SPELT,
    **dict.fromkeys(("window", "duration", "length", "period"), "size"),
    closed=_CLOSED,
    **dict.fromkeys(
        ("every", "slide"), "one window follows on the other; take pn.hopping(size, every=...) for a pace."
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
        A duration: instances are ``[offset + m * size, offset + (m + 1) * size)``, as Spark's. Or ``pn.rows(n)``,
        ``pn.delta(column, by)``: rows at most ``by`` above the window's first, or ``pn.punctuation(column)``: until a
        mark. A window that is not full when rows end is not answered.
    offset
        Move the grid of the clock by this much.
    origin
        Where windows in time begin: ``epoch``, on the grid of the clock; ``first``, on a grid that begins with the
        first row of each key; ``row``, each with the next row of its key.
    bounds
        ``[)``, the start belongs to a window, as in Spark; or ``(]``, the end does, as in Azure Stream Analytics.
    name
        What ``window_name`` shows.

    Examples
    --------
    >>> import panes as pn
    >>> print(pn.tumbling("20 min"), pn.tumbling(pn.rows(100)), pn.tumbling(pn.delta("odometer", 10)))
    20m 100rows odometer_10
    """
    length = measure(size, "size")
    checked_origin(origin)
    if isinstance(length, int) and origin == "epoch":
        return _on_the_clock(length, length, offset, bounds, name)
    _only_grid(offset, origin, length)
    _no_bounds(bounds, "a tumbling window holds its rows from its first on")
    if length == Rows(0):
        raise DeclarationError("a tumbling window of no rows would never hold one. Write pn.rows(1) or more.")
    return _row_window("tumbling", length, None, name, origin if isinstance(length, int) else "epoch")


@helpful(
    "pn.hopping('1 hour', every='5 min')",
    more=_unless_time_first(),
    **_SPELT,
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
    """Windows of one size, answered at a pace: each may be measured in time, in rows or in a column.

    With two durations these are Spark's windows: ``every`` may be longer than ``size`` (events between instances then
    belong to none), and ``size`` need not be a multiple of it.

    Parameters
    ----------
    size
        What a window holds: a duration, ``pn.rows(n)``, the last n rows, or ``pn.delta(column, by)``, the rows at most
        ``by`` below the latest.
    every
        When it is answered: a duration, on the clock; ``pn.rows(n)``, after every n-th row of a key; or
        ``pn.delta(column, by)``, when the column has moved on by more than ``by``.
    offset
        Move the grid of the clock by this much.
    origin
        Where a pace in time begins: ``epoch``, on the grid of the clock; ``first``, with the first row of each key.
    bounds
        On the clock ``[)``, which is the default, or ``(]``; at a pace of rows ``(]``, the default, or ``[]``.
    partial
        Whether a window is answered before it has been full for the first time.
    name
        What ``window_name`` shows.

    Examples
    --------
    >>> import panes as pn
    >>> print(pn.hopping("1 hour", every="5 min"), pn.hopping(pn.rows(100), every="1 min"))
    1h/5m 100rows/1m
    """
    length, pace = measure(size, "size"), measure(every, "every")
    checked_origin(origin)
    for what, each in (("size", length), ("every", pace)):
        if isinstance(each, Punctuation):
            raise DeclarationError(
                f"{what}=pn.punctuation({each.column!r}): marks cut a stream into windows that do not overlap. Write "
                f"pn.tumbling(pn.punctuation({each.column!r}))."
            )
        if each == Rows(0):
            raise DeclarationError(
                f"{what}=pn.rows(0) would hold no row, or never be answered. Write pn.rows(1) or more."
            )
    if isinstance(length, int) and isinstance(pace, int) and origin == "epoch":
        if not partial:
            raise DeclarationError(
                "partial=False: windows on the clock are answered where they hold an event, as in Spark, however long "
                "the key has been there. Write origin='first' for a grid that begins with a key, or filter by time."
            )
        return _on_the_clock(length, pace, offset, bounds, name)
    if origin == "row":
        raise DeclarationError("origin='row': each window of a tumbling one begins with a row. Write origin='first'.")
    _only_grid(offset, origin, pace)
    if isinstance(length, Rows) and pace == Rows(1):
        return sliding(length, bounds=bounds, partial=partial, name=name)
    return _row_window(
        "hopping",
        length,
        pace,
        name,
        origin if isinstance(pace, int) else "epoch",
        parse_duration(offset) % pace if isinstance(pace, int) else 0,
        _row_bounds(bounds, length, pace, origin),
        partial=partial,
    )


@helpful(
    "pn.sliding('1 hour')",
    more=_unless_time_first("it is answered with every event. Take pn.hopping(size, every=...) for another pace."),
    **_SPELT,
    **dict.fromkeys(("window", "duration", "length", "range", "period"), "size"),
    offset="it is answered with every event, so that there is no grid to move; ago='1 day' looks further back.",
    skip="leave out the last rows with ago=pn.rows(50), or all of the event's instant with bounds='[)'.",
    closed="write bounds='[)' to leave out the event itself, as pn.sliding('1 hour', bounds='[)').",
    exclude="write bounds='[)' to leave out the event itself, as pn.sliding('1 hour', bounds='[)').",
    every="a sliding window is answered with every event: take pn.hopping(size, every=...) for another pace.",
    slide="a sliding window is answered with every event: take pn.hopping(size, every=...) for another pace.",
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

    Of a duration it is ``(t - size, t]``, as SQL's RANGE: the event itself belongs to it, and so do all others at the
    same instant, so that two events of a key at one instant have equal answers. Of ``pn.rows(n)`` it is the last n
    events, as SQL's ROWS, and events of one instant are answered one by one.

    Parameters
    ----------
    size
        A duration, ``pn.rows(n)``, or ``pn.delta(column, by)``.
    ago
        How long before the event its window ended: ``(t - ago - size, t - ago]``; or ``pn.rows(k)``, to leave out the
        last k rows. Such a window may be empty; its count is 0 then, and other aggregates are null.
    bounds
        Which bounds belong to a window in time: ``(]``; ``[)``, only what was before the event; ``[]``; ``()``. For
        ``pn.rows(n)`` ``(]``, up to the event itself, or ``[)``, the last n rows before its instant: all rows of that
        instant are left out, and the window may be empty.
    partial
        Whether a window of rows is answered before it has been full for the first time.
    name
        What ``window_name`` shows.

    Examples
    --------
    >>> import panes as pn
    >>> print(pn.sliding("5 min"), pn.sliding("5 min", ago="1 day"), pn.sliding(pn.rows(10), ago=pn.rows(5)))
    5m/event 5m/event-1d 10rows/event-5rows
    """
    length = measure(size, "size")
    if isinstance(length, Punctuation):
        raise DeclarationError(
            "marks cut a stream into windows that do not overlap. Write "
            f"pn.tumbling(pn.punctuation({length.column!r}))."
        )
    if not isinstance(length, int):
        if isinstance(length, Rows) and ago is not None and not isinstance(ago, Rows):
            raise DeclarationError(
                f"ago={ago!r} beside a size of {text_of(length)}: a window of rows leaves out rows. Write "
                f"pn.sliding(pn.rows({length.n}), ago=pn.rows(1)), or a duration for the size."
            )
        if ago is not None and not isinstance(length, Rows):
            raise DeclarationError(
                f"ago={ago!r} beside a size of {text_of(length)}: the last rows are left out of a window of rows only. "
                "Write pn.sliding(pn.rows(100), ago=pn.rows(50))."
            )
        skipped = ago.n if isinstance(ago, Rows) else 0
        return _row_window(
            "sliding", length, Rows(1), name, bounds=_last_bounds(bounds, length), partial=partial, ago=skipped
        )
    if isinstance(ago, Rows):
        raise DeclarationError(f"ago=pn.rows({ago.n}) beside a size in time. Write a duration, as ago='1 day'.")
    if not partial:
        raise DeclarationError(
            "partial=False is for windows of rows, as pn.sliding(pn.rows(10), partial=False): nobody knows since when "
            "a window in time has been full."
        )
    before = 0 if ago is None else parse_duration(ago)
    if before < 0:
        raise DurationError(
            f"ago={ago!r} is negative, and what comes after an event is not known yet. Write for example ago='1 day'."
        )
    held = checked_bounds("(]" if bounds is None else bounds, get_args(Bounds))
    if length == 1 and held == "()":
        raise DurationError("size='1 us' with bounds='()' holds no instant. Write a longer one, or other bounds.")
    label = sliding_name(length, before, held) if name is None else checked_name(name)
    return Sliding(length, before, label, held)


@helpful(
    "pn.session('30 min')",
    more=_unless_time_first("a session has a gap and no other size."),
    **{**_SPELT, **dict.fromkeys(("offset", "start", "start_time"), "a session starts with its first event.")},
    **dict.fromkeys(("timeout", "size", "duration", "gap_duration", "window", "max_gap"), "gap"),
    **dict.fromkeys(("upto", "max_size", "max_duration"), "a session has no longest duration."),
)
def session(gap: DurationLike, *, name: str | None = None) -> RowWindow:
    """Events with no longer pause between them than a gap; two that are exactly a gap apart are of one session.

    A session starts with its first event and ends a gap after its last one, as Spark's ``session_window`` does.

    Parameters
    ----------
    name
        What ``window_name`` shows.

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
    return _row_window("session", length, None, name)


@helpful(
    "pn.cumulate('1 hour', upto='1 day')",
    more=_step_first,
    **_SPELT,
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
    shift = parse_duration(offset) % widest
    label = cumulating_name(every, widest, shift) if name is None else checked_name(name)
    return Cumulate(every, widest, shift, label, checked_bounds(bounds))


# Names


def default_name(geometry: Geometry) -> str:
    """What a window is called when it was given no name."""
    text = format_duration(geometry.range)
    if not geometry.tumbling:
        text += f"/{format_duration(geometry.slide)}"
    if geometry.offset:
        text += f"+{format_duration(geometry.offset)}"
    return text


def cumulating_name(step: int, upto: int, offset: int) -> str:
    """What a cumulating window is called when it was given no name."""
    text = f"{format_duration(upto)} by {format_duration(step)}"
    return f"{text}+{format_duration(offset)}" if offset else text


def sliding_name(size: int, ago: int = 0, bounds: Bounds = "(]") -> str:
    """What a sliding window in time is called when it was given no name."""
    text = f"{format_duration(size)}/event{f'-{format_duration(ago)}' if ago else ''}"
    return text if bounds == "(]" else f"{text} {bounds}"


def row_window_name(window: RowWindow) -> str:
    """What a window of rows is called when it was given no name."""
    size = text_of(window.size)
    if window.kind == "session":
        return f"session {size}"
    text = size if window.every is None else f"{size}/{'event' if window.kind == 'sliding' else text_of(window.every)}"
    if window.offset:
        text += f"+{format_duration(window.offset)}"
    if window.ago:
        text += f"-{Rows(window.ago)}"
    if window.origin != "epoch":
        text += f" from {window.origin}"
    if window.bounds is not None:
        text += f" {window.bounds}"
    return text if window.partial else f"{text} full"


def checked_name(name: str) -> str:
    """The name that a user gives to a window."""
    if not isinstance(name, str) or not name.strip():
        raise DeclarationError(f"name={name!r} cannot name a window. Write a word, or leave it out.")
    return name


def _suffix(name: str, default: str) -> str:
    """The name of a window at the end of a column's name: ``1h_by_5m``, ``10rows``; a name that was given, as it is."""
    if name != default:
        return name
    bounds = ((" [)", "_before"), (" []", "_closed"), (" ()", "_between"), (" (]", "_until"))
    for old, new in (*bounds, ("/event", ""), ("/", "_by_"), ("+", "_plus_"), ("-", "_ago_"), (" ", "_")):
        name = name.replace(old, new)
    return name


# Checks


def _window(size: int, slide: int, offset: int, name: str, bounds: Bounds) -> Window:
    return Window(Geometry(size, slide, offset + (TICK if bounds == "(]" else 0)), name, bounds)


def _on_the_clock(size: int, every: int, offset: DurationLike, bounds: Bounds | None, name: str | None) -> Window:
    geometry = Geometry(size, every, parse_duration(offset))
    label = default_name(geometry) if name is None else checked_name(name)
    held = checked_bounds("[)" if bounds is None else bounds)
    return _window(geometry.range, geometry.slide, geometry.offset, label, held)


def _row_window(
    kind: Literal["tumbling", "hopping", "sliding", "session"],
    size: Measure,
    every: Measure | None,
    name: str | None,
    origin: Origin = "epoch",
    offset: int = 0,
    bounds: Bounds | None = None,
    *,
    partial: bool = True,
    ago: int = 0,
) -> RowWindow:
    if not isinstance(partial, bool):
        raise DeclarationError(f"partial={partial!r}: write True or False.")
    made = RowWindow(kind, size, every, "", origin, offset, bounds, partial, ago)
    return replace(made, name=row_window_name(made) if name is None else checked_name(name))


def checked_bounds(bounds: Bounds, known: tuple[Bounds, ...] = ("[)", "(]")) -> Bounds:
    """The bounds that a user gives to a window."""
    if bounds not in known:
        meaning = {"[)": "the start belongs to it, as in Spark", "(]": "its end does", "[]": "both", "()": "neither"}
        raise DeclarationError(
            f"bounds={bounds!r}: write {' or '.join(f'{each!r} ({meaning[each]})' for each in known)}."
        )
    return bounds


def checked_origin(origin: Origin) -> None:
    """Refuse an origin that is none."""
    if origin not in get_args(Origin):
        raise DeclarationError(
            f"origin={origin!r}: write 'epoch' (the grid of the clock), 'first' (a grid from the key's first row) or "
            "'row' (each window opened by the next row)."
        )


def _only_grid(offset: DurationLike, origin: Origin, pace: Measure) -> None:
    """Refuse what moves a grid of the clock where there is none."""
    if not isinstance(pace, int) and origin != "epoch":
        raise DeclarationError(
            f"origin={origin!r} is for a pace in time, and this one is {text_of(pace)}. Leave it out."
        )
    if (not isinstance(pace, int) or origin != "epoch") and parse_duration(offset):
        raise DeclarationError(
            f"offset={offset!r} moves the grid of the clock, and this window is not on it. Leave it out."
        )


def _no_bounds(bounds: Bounds | None, why: str, write: str = "Leave it out") -> None:
    if bounds is not None:
        raise DeclarationError(f"bounds={bounds!r}: {why}, so there are none to choose. {write}.")


def _last_bounds(bounds: Bounds | None, size: Measure) -> Bounds | None:
    """The bounds of a sliding window of rows, None where they are the usual ones."""
    if not isinstance(size, Rows):
        _no_bounds(bounds, "a window that goes by a column holds all rows near enough to the latest")
        return None
    if bounds not in (None, "(]", "[)"):
        raise DeclarationError(
            f"bounds={bounds!r}: the last rows are counted back from their end, so that only the end can be left out. "
            "Write '(]' (up to the event itself) or '[)' (the last rows before its instant)."
        )
    return None if bounds == "(]" else bounds


def _row_bounds(bounds: Bounds | None, size: Measure, pace: Measure, origin: Origin) -> Bounds | None:
    """The bounds of a hopping window, None where they are the usual ones."""
    if isinstance(pace, int):
        if origin == "first":
            if bounds not in (None, "[)"):
                raise DeclarationError(f"bounds={bounds!r} is for windows on the grid of the clock. Leave it out.")
            return None
        return None if bounds is None or checked_bounds(bounds) == "[)" else bounds
    if not isinstance(size, int):
        _no_bounds(bounds, "a window of rows holds its rows")
        return None
    if isinstance(pace, Delta):
        if bounds not in (None, "[]"):
            raise DeclarationError(
                f"bounds={bounds!r}: a window that a column paces is answered before the row that moved it on, and "
                "holds both its ends. Leave it out."
            )
        return None
    return None if bounds is None or checked_bounds(bounds, ("(]", "[]")) == "(]" else bounds
