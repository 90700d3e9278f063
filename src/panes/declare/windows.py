"""The windows a user declares: tumbling, hopping and cumulating, with an offset, bounds and a name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from panes.algebra.operations import Array
from panes.errors import DeclarationError, DurationError
from panes.timeline import DurationLike, Geometry, format_duration, parse_duration

Bounds: TypeAlias = Literal["[)", "(]"]
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
        Which of its bounds belongs to an instance: ``[)`` or ``(]``.
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
    def shift(self) -> int:
        """By how many µs instances lie later than results say."""
        return TICK if self.bounds == "(]" else 0

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
    def windows(self) -> tuple[Window, ...]:
        """The windows that are computed: a hopping one per step, all of one name."""
        sizes = range(self.step, self.upto + 1, self.step)
        return tuple(_window(size, self.upto, self.offset, self.name, self.bounds) for size in sizes)


def tumbling(
    size: DurationLike, *, offset: DurationLike = "0s", bounds: Bounds = "[)", name: str | None = None
) -> Window:
    """Instances of one size, one after another: ``[offset + m * size, offset + (m + 1) * size)``.

    Examples
    --------
    >>> tumbling("20 min").geometry
    Geometry(range=1200000000, slide=1200000000, offset=0)
    """
    return hopping(size, every=size, offset=offset, bounds=bounds, name=name)


def hopping(
    size: DurationLike,
    *,
    every: DurationLike,
    offset: DurationLike = "0s",
    bounds: Bounds = "[)",
    name: str | None = None,
) -> Window:
    """Instances of one size, a new one every so often.

    ``every`` may be longer than ``size``: events between instances then belong to none. ``size`` need not be a
    multiple of ``every``. With ``bounds="(]"`` an event at the end of an instance belongs to it, and one at its start
    does not, as in Azure Stream Analytics.

    Examples
    --------
    >>> str(hopping("1 hour", every="5 min")), str(hopping("1 day", every="1 day", offset="6h"))
    ('1h/5m', '1d+6h')
    """
    geometry = Geometry(positive(size, "size"), positive(every, "every"), parse_duration(offset))
    label = default_name(geometry) if name is None else checked_name(name)
    return _window(geometry.range, geometry.slide, geometry.offset, label, checked_bounds(bounds))


def cumulate(
    step: DurationLike,
    *,
    upto: DurationLike,
    offset: DurationLike = "0s",
    bounds: Bounds = "[)",
    name: str | None = None,
) -> Cumulate:
    """Windows that all begin together, of one step, two steps, and so on, up to the widest; then they begin again.

    The totals of a day so far, every hour: ``cumulate("1 hour", upto="1 day")``.

    Examples
    --------
    >>> day = cumulate("1 hour", upto="1 day")
    >>> str(day), len(day.windows)
    ('1d by 1h', 24)
    """
    every, widest = positive(step, "step"), positive(upto, "upto")
    if widest % every:
        raise DeclarationError(
            f"upto={upto!r} is not a multiple of step={step!r}, so no step would end with the widest window. Write for "
            "example cumulate('1 hour', upto='1 day')."
        )
    shift = parse_duration(offset) % widest
    label = cumulating_name(every, widest, shift) if name is None else checked_name(name)
    return Cumulate(every, widest, shift, label, checked_bounds(bounds))


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


def checked_name(name: str) -> str:
    """The name that a user gives to a window."""
    if not isinstance(name, str) or not name.strip():
        raise DeclarationError(f"name={name!r} cannot name a window. Write a word, or leave it out.")
    return name


def _window(size: int, slide: int, offset: int, name: str, bounds: Bounds) -> Window:
    return Window(Geometry(size, slide, offset + (TICK if bounds == "(]" else 0)), name, bounds)


def positive(value: DurationLike, what: str) -> int:
    """The length of a duration that has to have some."""
    micros = parse_duration(value)
    if micros <= 0:
        raise DurationError(f"{what}={value!r} is not positive: a window needs some length. Write for example '5 min'.")
    return micros


def checked_bounds(bounds: Bounds) -> Bounds:
    """The bounds that a user gives to a window."""
    if bounds not in ("[)", "(]"):
        raise DeclarationError(
            f"bounds={bounds!r}: write '[)' (the start belongs to a window, as in Spark) or '(]' (its end does)."
        )
    return bounds
