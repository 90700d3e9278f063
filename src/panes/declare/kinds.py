"""All kinds of windows; those that no runner answers yet are read, printed, and refused by plans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NoReturn, TypeAlias

from panes.declare.nested import Nested
from panes.declare.sliding import Sliding
from panes.declare.windows import Cumulate, Window
from panes.errors import PlanError


@dataclass(frozen=True)
class _NotYet:
    """A window that has a meaning and no runner; says what it is, and what to take instead."""

    name: str
    what: ClassVar[str]
    instead: ClassVar[str]

    def __str__(self) -> str:
        return self.name

    @property
    def windows(self) -> NoReturn:
        """None yet."""
        raise PlanError(f"the window {self.name!r} {self.what}, which does not run yet. {self.instead}")


@dataclass(frozen=True)
class Session(_NotYet):
    """Events with no long pause between them."""

    gap: int
    longest: int | None
    what = "is a session"
    instead = "Spark itself has session_window for a single one."


@dataclass(frozen=True)
class Last(_NotYet):
    """A number of events, whatever their times; those of them that came last of all may be skipped."""

    count: int
    every: int
    skip: int = 0
    what = "counts events"
    instead = "Take a window over time, for example pn.tumbling('5 min'), or ask for it with pn.lookup."


AnyWindow: TypeAlias = Window | Cumulate | Sliding | Session | Last | Nested
KINDS = (Window, Cumulate, Sliding, Session, Last, Nested)


def names_of(declared: AnyWindow) -> tuple[str, ...]:
    """What results call a window: by its own name, or each level by one."""
    return declared.names if isinstance(declared, Nested) else (declared.name,)
