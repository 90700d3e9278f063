"""All kinds of windows: over time, and by the events themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NoReturn, TypeAlias

from panes.declare.nested import Nested
from panes.declare.sliding import Sliding
from panes.declare.windows import Cumulate, Window, checked_name, positive
from panes.errors import PlanError
from panes.timeline import DurationLike, format_duration


@dataclass(frozen=True)
class _ByEvents:
    """A window whose bounds are not known before its events are: it has no place among windows over time."""

    name: str
    what: ClassVar[str]

    def __str__(self) -> str:
        return self.name

    @property
    def windows(self) -> NoReturn:
        """None over time."""
        raise PlanError(
            f"the window {self.name!r} {self.what}, which only plans answer. Write pn.plan([query]).run(events), and "
            "take a window over time here, for example pn.tumbling('5 min')."
        )


@dataclass(frozen=True)
class Session(_ByEvents):
    """Events with no long pause between them. Made by :func:`session`, which checks it."""

    gap: int
    longest: int | None
    what = "is a session"


@dataclass(frozen=True)
class Last(_ByEvents):
    """A number of events, whatever their times; those of them that came last of all may be skipped."""

    count: int
    every: int
    skip: int = 0
    what = "counts events"


def session(gap: DurationLike, *, name: str | None = None) -> Session:
    """Events with no longer pause between them than a gap; two that are exactly a gap apart are of one session.

    A session starts with its first event and ends a gap after its last one, as Spark's ``session_window`` does.

    Parameters
    ----------
    name
        What ``window_name`` shows.

    Examples
    --------
    >>> str(session("30 min"))
    'session 30m'
    """
    length = positive(gap, "gap")
    return Session(session_name(length) if name is None else checked_name(name), length, None)


def last_name(count: int, every: int = 1, skip: int = 0) -> str:
    """What a window of events is called when it was given no name."""
    return f"last_{count}{f'_every_{every}' if every > 1 else ''}{f'_skip_{skip}' if skip else ''}"


def session_name(gap: int) -> str:
    """What a session is called when it was given no name."""
    return f"session {format_duration(gap)}"


AnyWindow: TypeAlias = Window | Cumulate | Sliding | Session | Last | Nested
KINDS = (Window, Cumulate, Sliding, Session, Last, Nested)


def names_of(declared: AnyWindow) -> tuple[str, ...]:
    """What results call a window: by its own name, or each level by one."""
    return declared.names if isinstance(declared, Nested) else (declared.name,)
