"""Kinds of windows that SQL can say and that no runner answers yet: they are read, printed, and refused by plans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from panes.declare.windows import Cumulate, Window
from panes.errors import PlanError


@dataclass(frozen=True, slots=True)
class Sliding:
    """An answer per event, over the time before it."""

    size: int
    name: str

    @property
    def windows(self) -> NoReturn:
        """None yet."""
        raise PlanError(
            f"the window {self.name!r} has an answer per event, and such windows do not run yet. Take a hopping window "
            "with a small step instead, for example pn.hopping('1 hour', every='1 min')."
        )


@dataclass(frozen=True, slots=True)
class Session:
    """Events with no long pause between them."""

    gap: int
    longest: int | None
    name: str

    @property
    def windows(self) -> NoReturn:
        """None yet."""
        raise PlanError(
            f"the window {self.name!r} is a session, and sessions do not run yet. Spark itself has session_window for "
            "a single one."
        )


@dataclass(frozen=True, slots=True)
class Last:
    """A number of events, whatever their times."""

    count: int
    every: int
    name: str

    @property
    def windows(self) -> NoReturn:
        """None yet."""
        raise PlanError(
            f"the window {self.name!r} counts events, and such windows do not run yet. Take a window over time, for "
            "example pn.tumbling('5 min')."
        )


@dataclass(frozen=True, slots=True)
class Nested:
    """Several time frames of one query, from the widest to the narrowest."""

    ranges: tuple[int, ...]
    slides: tuple[int, ...]
    name: str

    @property
    def windows(self) -> NoReturn:
        """None yet."""
        raise PlanError(
            f"the window {self.name!r} has several time frames, and such windows do not run yet. Take one hopping "
            "window for each of them."
        )


AnyWindow: TypeAlias = Window | Cumulate | Sliding | Session | Last | Nested
KINDS = (Window, Cumulate, Sliding, Session, Last, Nested)
