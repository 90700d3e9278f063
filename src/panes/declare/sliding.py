"""Sliding windows: an answer per event, over the time up to it."""

from __future__ import annotations

from dataclasses import dataclass

from panes.declare.windows import Window, checked_name, positive
from panes.errors import DurationError
from panes.timeline import DurationLike, Geometry, format_duration, parse_duration


@dataclass(frozen=True, slots=True)
class Sliding:
    """An answer per event at t, over ``(t - ago - size, t - ago]``. Made by :func:`sliding`, which checks it.

    Parameters
    ----------
    size, ago
        In µs.
    """

    size: int
    ago: int
    name: str

    def __str__(self) -> str:
        return self.name

    @property
    def windows(self) -> tuple[Window, ...]:
        """The windows that are computed: one, of which every instance that ends with an event is answered."""
        return (Window(Geometry(self.size, 1), self.name, "(]", per_event=True, ago=self.ago),)


def sliding(size: DurationLike, *, ago: DurationLike | None = None, name: str | None = None) -> Sliding:
    """An answer per event: at an event at t, over the events of its key in ``(t - size, t]``.

    The event itself belongs to its window, and so do all others at the same instant. Two events of a key at one
    instant have two equal answers.

    Parameters
    ----------
    ago
        How long before the event its window ended: ``(t - ago - size, t - ago]``. Such a window may be empty; its
        count is 0 then, and other aggregates are null.
    name
        What ``window_name`` shows.

    Examples
    --------
    >>> str(sliding("5 min")), str(sliding("5 min", ago="1 day"))
    ('5m/event', '5m/event-1d')
    """
    length, before = positive(size, "size"), 0 if ago is None else parse_duration(ago)
    if before < 0:
        raise DurationError(
            f"ago={ago!r} is negative, and what comes after an event is not known yet. Write for example ago='1 day'."
        )
    return Sliding(length, before, sliding_name(length, before) if name is None else checked_name(name))


def sliding_name(size: int, ago: int = 0) -> str:
    """What a sliding window is called when it was given no name."""
    text = f"{format_duration(size)}/event"
    return f"{text}-{format_duration(ago)}" if ago else text
