"""What a run does, as a list of steps: the same list is carried out and shown by ``explain``.

A runner first lists its steps, so an explanation cannot differ from the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from panes.planning.explanation import counted, figures_of, title_of
from panes.planning.forest import FACTOR
from panes.planning.physical_plan import PhysicalPlan

Name: TypeAlias = Literal[
    "read", "count", "look", "panes", "merge", "group", "sort", "answer", "pack", "state", "unpack", "widen", "union"
]

SHUFFLES: Final[frozenset[Name]] = frozenset({"panes", "merge", "group", "sort", "state", "widen"})
"""The steps before which Spark shuffles."""

_PASSES: Final[frozenset[Name]] = frozenset({"panes", "group", "sort", "pack"})
"""The steps that pass over all events if they read them."""


@dataclass(frozen=True)
class Step:
    """One step of a run.

    Parameters
    ----------
    name
        The kind of step.
    detail
        A description.
    reads
        The numbers of the steps whose results it takes.
    work
        The function to call with those results.
    windows
        The windows that it answers; with ``← provider`` if one is read from another window.
    """

    name: Name
    detail: str
    reads: tuple[int, ...]
    work: Callable[..., Any] = field(repr=False, compare=False)
    windows: tuple[str, ...] = ()


class Steps:
    """The steps of one run, in order; the result of the last is that of the run.

    Parameters
    ----------
    what
        The title: which call takes these steps.
    notes
        Why these steps.

    Examples
    --------
    >>> steps = Steps("a sum")
    >>> numbers = steps.add("read", "numbers", lambda: [1, 2])
    >>> ordered = steps.add("sort", "numbers", sorted, numbers)
    >>> _ = steps.add("answer", "their sum", sum, ordered, windows=["all"])
    >>> steps.carry_out()
    3
    >>> print(steps)
    a sum: 1 window, 1 pass over the events
      1 read    numbers
      2 sort    numbers (1)
      3 answer  their sum (2)
          all
    """

    def __init__(self, what: str, *, shuffling: bool = False) -> None:
        self.what, self._shuffling = what, shuffling
        self.notes: list[str] = []
        self._steps: list[Step] = []

    def __iter__(self) -> Iterator[Step]:
        return iter(self._steps)

    def __len__(self) -> int:
        return len(self._steps)

    def add(self, name: Name, detail: str, work: Callable[..., Any], *reads: int, windows: Iterable[str] = ()) -> int:
        """Append a step and return its number, for steps that read it."""
        self._steps.append(Step(name, detail, reads, work, tuple(windows)))
        return len(self._steps) - 1

    def because(self, physical: PhysicalPlan, why: Iterable[str] = ()) -> None:
        """Note why the planner decided as it did, and the statistics it knew."""
        known = physical.statistics
        self.notes += [*why, f"{known.origin}: {known.rate:,.6g} events/s"]
        for store in physical.stores:
            self.notes += [title_of(store), *(f"  {line}" for line in (*figures_of(physical, store), *store.trace))]

    def carry_out(self) -> Any:
        """Run all steps and return the result of the last."""
        last = {number: at for at, step in enumerate(self._steps) for number in step.reads}
        found: dict[int, Any] = {}
        for number, step in enumerate(self._steps):
            # Free a result after its last reader: sorted events may be large.
            given = [found[i] if last[i] > number else found.pop(i) for i in step.reads]
            found[number] = step.work(*given)
            del given
        return found[len(self._steps) - 1]

    @property
    def passes(self) -> int:
        """How often the events are read."""
        roots = {number for number, step in enumerate(self._steps) if step.name in ("read", "count")}
        return sum(bool(roots & {*step.reads}) for step in self._steps if step.name in _PASSES)

    @property
    def shuffles(self) -> int:
        """How many shuffles there are on Spark."""
        return sum(step.name in SHUFFLES for step in self._steps) if self._shuffling else 0

    def __str__(self) -> str:
        windows = sum(not window.startswith(FACTOR) for step in self._steps for window in step.windows)
        figures = [counted(windows, "window"), f"{counted(self.passes, 'pass', 'passes')} over the events"]
        if self._shuffling:
            figures.append(counted(self.shuffles, "shuffle"))
        lines = [f"{self.what}: {', '.join(figures)}"]
        width = max((len(step.name) for step in self._steps), default=0)
        places = len(str(len(self._steps)))
        for number, step in enumerate(self._steps, start=1):
            reads = f" ({', '.join(str(i + 1) for i in step.reads)})" if step.reads else ""
            lines.append(f"  {number:>{places}} {step.name:<{width}}  {step.detail}{reads}")
            lines += [f"      {window}" for window in step.windows]
        if self.notes:
            lines += ["", *self.notes]
        return "\n".join(lines)
