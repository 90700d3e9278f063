"""The kinds of windows: a size and a pace, each in time, in rows, or in a column.

Windows on the clock (``Window``, ``Cumulate``, ``Sliding``, ``Nested``) have instances that are known before any row
arrives. The instances of a ``RowWindow`` depend on the rows. Users make them with the constructors in
``window_constructors`` and ``nested``, which check their arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn, TypeAlias

import numpy as np

from panes.aggregates.operations import Array
from panes.errors import PlanError
from panes.queries.measures import Delta, Measure, Rows, text_of
from panes.timeline import Geometry, format_duration, format_instant

Bounds: TypeAlias = Literal["[)", "(]", "[]", "()"]
Origin: TypeAlias = Literal["epoch", "first", "row"]

TICK = 1
"""By how many µs an instance is shifted that includes its end but not its start."""


class DeclaredWindow:
    """The base of all kinds of windows: names, the call that declares one, and the windows computed for it."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def name(self) -> str:
            """The name in results."""

        @property
        def kind(self) -> str:
            """The constructor's name: ``hopping`` for ``pn.hopping``."""

    @property
    def default_name(self) -> str:
        """The name of a window that is declared without one."""
        raise NotImplementedError

    @property
    def arguments(self) -> dict[str, Any]:
        """The constructor's arguments in its order, without defaults; durations and instants are in µs."""
        raise NotImplementedError

    @property
    def windows(self) -> tuple[Window, ...]:
        """The windows on the clock that are computed."""
        raise NotImplementedError

    @property
    def suffix(self) -> str:
        """The suffix of its columns in the wide layout."""
        return _suffix(self.name, self.default_name)

    @property
    def names(self) -> tuple[str, ...]:
        """The names in results: one, or one per level of a nested window."""
        return (self.name,)

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The suffixes of columns in the wide layout, in the order of ``names``."""
        return (self.suffix,)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        first, *others = ((name, _as_python(name, value)) for name, value in self.arguments.items())
        return f"pn.{self.kind}({', '.join([first[1], *(f'{name}={text}' for name, text in others)])})"

    def _given(self, **arguments: Any) -> dict[str, Any]:
        """The arguments that are not None, and the name if it is not the default one."""
        arguments["name"] = None if self.name == self.default_name else self.name
        return {name: value for name, value in arguments.items() if value is not None}


@dataclass(frozen=True, slots=True, repr=False)
class Window(DeclaredWindow):
    """A window on the clock, tumbling or hopping.

    Parameters
    ----------
    geometry
        Where instances lie, as ``[start, end)`` in µs. An instance ``(start, end]`` holds the same instants as one
        that begins and ends a microsecond later.
    bounds
        Which bounds belong to an instance: ``[)`` or ``(]``; with an answer per event also ``[]`` and ``()``.
    finer
        Of a level of a nested window: the ranges of the levels below it, in µs, narrowest first.
    since
        Events before this instant do not count, and instances begin no earlier; an edge of ``geometry``, in µs.
    per_event
        Whether each event gets an answer, for the instance that ends with it.
    ago
        Of a window with an answer per event: how long before the event its instance ended, in µs.
    """

    geometry: Geometry
    name: str
    bounds: Bounds = "[)"
    finer: tuple[int, ...] = ()
    since: int | None = None
    per_event: bool = False
    ago: int = 0

    @property
    def kind(self) -> str:
        """``tumbling`` or ``hopping``."""
        return "tumbling" if self.geometry.tumbling else "hopping"

    @property
    def default_name(self) -> str:
        """The name of a window that is declared without one."""
        # Windows that are aligned to an initiation time have no offset in their name.
        offset = 0 if self.since is not None else self.geometry.offset - self.shift
        return geometry_name(replace(self.geometry, offset=offset))

    @property
    def arguments(self) -> dict[str, Any]:
        """The constructor's arguments."""
        geometry = self.geometry
        return self._given(
            size=geometry.range,
            every=None if geometry.tumbling else geometry.slide,
            offset=(geometry.offset - self.shift) % geometry.slide or None,
            bounds=None if self.bounds == "[)" else self.bounds,
        )

    @property
    def shift(self) -> int:
        """How many µs after the start in results an instance begins."""
        return TICK if self.bounds[0] == "(" else 0

    @property
    def end_shift(self) -> int:
        """How many µs after the end in results an instance ends."""
        return TICK if self.bounds[1] == "]" else 0

    @property
    def windows(self) -> tuple[Window, ...]:
        """The window itself."""
        return (self,)

    @property
    def lifespan(self) -> Geometry:
        """From the start of an instance to when it can be answered, which is later than its end if ``ago`` is set."""
        return replace(self.geometry, range=self.geometry.range + self.ago) if self.ago else self.geometry

    def begins(self, start: Array) -> Array:
        """Return where instances begin, given where they would without ``since``."""
        return start if self.since is None else np.maximum(start, self.since)

    def shown(self, start: Array) -> tuple[Array, Array]:
        """Return the bounds that results show, given where instances start without ``since``."""
        return self.begins(start) - self.shift, start + self.geometry.range - self.end_shift


@dataclass(frozen=True, slots=True, repr=False)
class Cumulate(DeclaredWindow):
    """Windows that begin together and end one step after another, until the widest ends and all begin again.

    Made by ``pn.cumulate``. All lengths are in µs.
    """

    kind: ClassVar = "cumulate"
    step: int
    upto: int
    offset: int
    name: str
    bounds: Bounds = "[)"

    @property
    def default_name(self) -> str:
        """The name of a window that is declared without one."""
        text = f"{format_duration(self.upto)} by {format_duration(self.step)}"
        return f"{text}+{format_duration(self.offset)}" if self.offset else text

    @property
    def arguments(self) -> dict[str, Any]:
        """The constructor's arguments."""
        bounds = None if self.bounds == "[)" else self.bounds
        return self._given(step=self.step, upto=self.upto, offset=self.offset or None, bounds=bounds)

    @property
    def windows(self) -> tuple[Window, ...]:
        """One hopping window per step, all with the same name."""
        offset = self.offset + (TICK if self.bounds == "(]" else 0)
        sizes = range(self.step, self.upto + 1, self.step)
        return tuple(Window(Geometry(size, self.upto, offset), self.name, self.bounds) for size in sizes)


@dataclass(frozen=True, slots=True, repr=False)
class Sliding(DeclaredWindow):
    """An answer per event at t, over ``(t - ago - size, t - ago]``. Made by ``pn.sliding``.

    Parameters
    ----------
    size, ago
        In µs.
    bounds
        Which bounds belong to the window.
    """

    kind: ClassVar = "sliding"
    size: int
    ago: int
    name: str
    bounds: Bounds = "(]"

    @property
    def default_name(self) -> str:
        """The name of a window that is declared without one."""
        ago = f"-{format_duration(self.ago)}" if self.ago else ""
        bounds = "" if self.bounds == "(]" else f" {self.bounds}"
        return f"{format_duration(self.size)}/event{ago}{bounds}"

    @property
    def arguments(self) -> dict[str, Any]:
        """The constructor's arguments."""
        bounds = None if self.bounds == "(]" else self.bounds
        return self._given(size=self.size, ago=self.ago or None, bounds=bounds)

    @property
    def windows(self) -> tuple[Window, ...]:
        """One window, of which the instances that end with an event are answered."""
        # Time is in whole µs: leaving out the end means ending a µs earlier, and so on.
        open_start, open_end = self.bounds[0] == "(", self.bounds[1] == ")"
        size = self.size + 1 - open_start - open_end
        return (Window(Geometry(size, 1), self.name, self.bounds, per_event=True, ago=self.ago + open_end),)


@dataclass(frozen=True, slots=True, repr=False)
class RowWindow(DeclaredWindow):
    """A window whose instances depend on the rows. Made by the constructors, which check it.

    Parameters
    ----------
    kind
        ``tumbling``: filled, answered, and emptied. ``hopping``, ``sliding``: the most recent rows, answered at a pace
        of its own. ``session``: until no row has arrived for ``size``.
    size, every
        What the window holds, and how often it is answered; ``every`` is None for a tumbling window and a session.
    origin, offset
        Where periods in time begin: on the grid of the clock, moved by ``offset``; with the first row of a key; with
        the next row.
    bounds
        For a size in time, which bounds belong to the window. For a number of rows, ``[)`` leaves out the rows of the
        event's own instant. None stands for the default.
    partial
        Whether the window is answered before it has been full for the first time.
    ago
        How many of the latest rows are left out.
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

    @property
    def default_name(self) -> str:
        """The name of a window that is declared without one."""
        text = text_of(self.size)
        if self.kind == "session":
            return f"session {text}"
        if self.every is not None:
            text += f"/{'event' if self.kind == 'sliding' else text_of(self.every)}"
        if self.offset:
            text += f"+{format_duration(self.offset)}"
        if self.ago:
            text += f"-{Rows(self.ago)}"
        if self.origin != "epoch":
            text += f" from {self.origin}"
        if self.bounds is not None:
            text += f" {self.bounds}"
        return text if self.partial else f"{text} full"

    @property
    def arguments(self) -> dict[str, Any]:
        """The constructor's arguments."""
        if self.kind == "session":
            return self._given(gap=self.size)
        return self._given(
            size=self.size,
            every=None if self.kind == "sliding" else self.every,
            ago=Rows(self.ago) if self.ago else None,
            offset=self.offset or None,
            origin=None if self.origin == "epoch" else self.origin,
            bounds=self.bounds,
            partial=None if self.partial else False,
        )

    @property
    def per_row(self) -> bool:
        """Whether it is answered with every row, so that it has no phase."""
        return self.every == Rows(1)

    @property
    def before(self) -> bool:
        """Whether it holds the last rows before the instant of its event."""
        return self.kind == "sliding" and self.bounds == "[)"

    @property
    def may_be_empty(self) -> bool:
        """Whether it may be answered while it holds no rows, because it leaves out the latest ones."""
        return self.before or self.ago > 0

    @property
    def deltas(self) -> tuple[Delta, ...]:
        """The size and the pace, if they are measured in a column."""
        return tuple(each for each in (self.size, self.every) if isinstance(each, Delta))

    @property
    def windows(self) -> NoReturn:
        """Raise an error: a window of rows is not computed on the clock."""
        raise PlanError(
            f"the window {self.name!r} depends on rows, and only windows in time work here, for example "
            "pn.tumbling('5 min')."
        )


@dataclass(frozen=True, slots=True, repr=False)
class Nested(DeclaredWindow):
    """Time frames that all end now, each with its own slide. Made by ``pn.nested``.

    Parameters
    ----------
    ranges, slides
        Of each level in µs, narrowest first: the paper's ω and β.
    offset
        Instances end at ``offset + m * slide``, in µs.
    given_name
        The name that the user chose, or None.
    since
        The initiation time in µs, the paper's τ0.
    """

    kind: ClassVar = "nested"
    ranges: tuple[int, ...]
    slides: tuple[int, ...]
    offset: int = 0
    given_name: str | None = None
    bounds: Bounds = "[)"
    since: int | None = None

    @property
    def default_name(self) -> str:
        """All levels, widest first."""
        return ", ".join(reversed(replace(self, given_name=None).names))

    @property
    def name(self) -> str:
        """The name that the user chose, or all levels, widest first."""
        return self.default_name if self.given_name is None else self.given_name

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each level in results, narrowest first."""
        if self.given_name is not None:
            return tuple(f"{self.given_name} {format_duration(range_)}" for range_ in self.ranges)
        offset = 0 if self.since is not None else self.offset
        shapes = zip(self.ranges, self.slides, strict=True)
        return tuple(geometry_name(Geometry(range_, slide, offset)) for range_, slide in shapes)

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The end of the column names of each level in the wide layout, narrowest first."""
        return tuple(window.suffix for window in self.windows)

    @property
    def arguments(self) -> dict[str, Any]:
        """The constructor's arguments."""
        arguments = self._given(
            ranges=self.ranges,
            slides=self.slides,
            since=self.since,
            offset=None if self.since is not None else self.offset or None,
            bounds=None if self.bounds == "[)" else self.bounds,
        )
        # A chosen name changes the names of the levels, even one that equals the default name of all of them.
        return arguments if self.given_name is None else {**arguments, "name": self.given_name}

    @property
    def windows(self) -> tuple[Window, ...]:
        """One window per level, narrowest first."""
        tick = TICK if self.bounds == "(]" else 0
        since = None if self.since is None else self.since + tick
        return tuple(
            Window(Geometry(range_, slide, self.offset + tick), name, self.bounds, self.ranges[:level], since)
            for level, (range_, slide, name) in enumerate(zip(self.ranges, self.slides, self.names, strict=True))
        )


AnyWindow: TypeAlias = Window | Cumulate | Sliding | RowWindow | Nested


# Names


def geometry_name(geometry: Geometry) -> str:
    """Return the default name of a window on the clock."""
    text = format_duration(geometry.range)
    if not geometry.tumbling:
        text += f"/{format_duration(geometry.slide)}"
    if geometry.offset:
        text += f"+{format_duration(geometry.offset)}"
    return text


def wide_names(windows: Iterable[DeclaredWindow], columns: Sequence[str]) -> tuple[tuple[str, str, str], ...]:
    """Return the columns of the wide layout: name of the window, output column, and the name of both together.

    Examples
    --------
    >>> import panes as pn
    >>> [name for *_, name in wide_names([pn.hopping("1 hour", every="5 min"), pn.sliding(pn.rows(10))], ["n"])]
    ['n_1h_by_5m', 'n_10rows']
    """
    return tuple(
        (name, column, f"{column}_{suffix}")
        for window in windows
        for name, suffix in zip(window.names, window.suffixes, strict=True)
        for column in columns
    )


def _suffix(name: str, default: str) -> str:
    """Return a window's name as the end of a column name: ``1h_by_5m``, ``10rows``. A chosen name is kept as it is."""
    if name != default:
        return name
    bounds = ((" [)", "_before"), (" []", "_closed"), (" ()", "_between"), (" (]", "_until"))
    for old, new in (*bounds, ("/event", ""), ("/", "_by_"), ("+", "_plus_"), ("-", "_ago_"), (" ", "_")):
        name = name.replace(old, new)
    return name


def _as_python(argument: str, value: Any) -> str:
    """Return an argument of a constructor as Python code."""
    if isinstance(value, tuple):
        return f"[{', '.join(_as_python(argument, each) for each in value)}]"
    if isinstance(value, bool) or not isinstance(value, int):
        return repr(value)
    return repr(format_instant(value) if argument == "since" else format_duration(value))
