"""Summaries of windows: accumulators instead of tuples, for a whole window, for each group in it, or as it slides.

Paper: Gedik 2014, sections 4.1.6 and 4.1.8.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from operator import call
from typing import Any, TypeAlias

from panes.aggregates.accumulator import Accumulator, Start, restore, state_of
from panes.operators.subwindow import Summarizer

Groups: TypeAlias = dict[Hashable, list[Any]]
"""The values of the output functions for each group, in the order in which groups first occur."""


class Summary(Summarizer):
    """Accumulators for the tuples of a window."""

    def __init__(self, starts: Sequence[Start]) -> None:
        self._starts = starts
        self._accumulators: list[Accumulator] | None = None

    def insert(self, item: Any) -> None:
        """Add a tuple."""
        accumulators = self._accumulators
        if accumulators is None:
            accumulators = self._begun()
        elif len(accumulators) == 1:
            # From now on a tuple goes straight to the one accumulator there is.
            self.__dict__["insert"] = accumulators[0].insert
        for accumulator in accumulators:
            accumulator.insert(item)

    def insert_all(self, items: Sequence[Any]) -> None:
        """Add tuples."""
        for accumulator in self._begun():
            accumulator.insert_all(items)

    def merge(self, later: Any) -> None:
        """Add the summary of later tuples, which is not changed."""
        if later._accumulators is not None:
            for accumulator, other in zip(self._begun(), later._accumulators, strict=True):
                accumulator.merge(other)

    def save(self) -> list[tuple[Hashable, list[dict[str, Any]]]]:
        """The state, as plain values."""
        return [] if self._accumulators is None else [((), [state_of(each) for each in self._accumulators])]

    def load(self, state: Sequence[tuple[Hashable, Sequence[dict[str, Any]]]]) -> Any:
        """Continue where a summary of the same accumulators was saved."""
        for _, saved in state:
            _restore(self._begun(), saved)
        return self

    def values(self) -> Groups:
        """The answers for each group: there is one, unless no tuple has come."""
        found = self._accumulators
        return {} if found is None else {(): [each.value() for each in found]}

    def _begun(self) -> list[Accumulator]:
        found = self._accumulators
        if found is None:
            found = self._accumulators = list(map(call, self._starts))
        return found


class GroupedSummary(Summarizer):
    """Accumulators for each group of a window."""

    def __init__(self, starts: Sequence[Start], group_of: Callable[[Any], Hashable]) -> None:
        self._starts = starts
        self._group_of = group_of
        self._groups: dict[Hashable, list[Accumulator]] = {}

    def insert(self, item: Any) -> None:
        """Add a tuple."""
        for accumulator in self._begun(self._group_of(item)):
            accumulator.insert(item)

    def insert_all(self, items: Sequence[Any]) -> None:
        """Add tuples."""
        for group, members in grouped(self._group_of, items).items():
            for accumulator in self._begun(group):
                accumulator.insert_all(members)

    def merge(self, later: Any) -> None:
        """Add the summary of later tuples, which is not changed."""
        for group, others in later._groups.items():
            for accumulator, other in zip(self._begun(group), others, strict=True):
                accumulator.merge(other)

    def save(self) -> list[tuple[Hashable, list[dict[str, Any]]]]:
        """The state, as plain values."""
        return [(group, [state_of(each) for each in found]) for group, found in self._groups.items()]

    def load(self, state: Sequence[tuple[Hashable, Sequence[dict[str, Any]]]]) -> Any:
        """Continue where a summary of the same accumulators was saved."""
        for group, saved in state:
            _restore(self._begun(group), saved)
        return self

    def values(self) -> Groups:
        """The answers for each group."""
        return {group: [each.value() for each in accumulators] for group, accumulators in self._groups.items()}

    def _begun(self, group: Hashable) -> list[Accumulator]:
        found = self._groups.get(group)
        if found is None:
            found = self._groups[group] = list(map(call, self._starts))
        return found


def _restore(accumulators: Sequence[Accumulator], saved: Sequence[dict[str, Any]]) -> None:
    for accumulator, state in zip(accumulators, saved, strict=True):
        restore(accumulator, state)


def grouped(group_of: Callable[[Any], Hashable], tuples: Iterable[Any]) -> dict[Hashable, list[Any]]:
    """The tuples of each group, in the order in which groups first occur."""
    groups: defaultdict[Hashable, list[Any]] = defaultdict(list)
    for item in tuples:
        groups[group_of(item)].append(item)
    return groups


class TwoStacks:
    """The summary of a sliding window that is processed with every tuple: two stacks of partial summaries.

    ==========  =================================================================================================
    requires    accumulators that can be merged; tuples leave in the order in which they came
    costs       three insertions or merges for each tuple, amortised, instead of one for each tuple in the window
    paper       Gedik 2014, section 6.1.1: Aggregate hears what is inserted and evicted
    ==========  =================================================================================================

    Nothing is ever subtracted, so that sums of floats lose nothing, and any aggregate that can be merged will do. The
    back summarizes what came since the front was last built. The front has a summary for each tuple in it: of this
    tuple and all later ones of the front.

    Examples
    --------
    >>> from functools import partial
    >>> from panes.aggregates.extrema import RunningMax
    >>> window = TwoStacks([partial(RunningMax, "x")])
    >>> for x in (5, 1, 3):
    ...     window.insert({"x": x})
    >>> window.evict(); window.values()
    [3]
    """

    __slots__ = ("_back", "_front", "_items", "_starts")

    def __init__(self, starts: Sequence[Start]) -> None:
        self._starts = starts
        self._front: list[list[Accumulator]] = []
        self._items: list[Any] = []
        self._back = [start() for start in starts]

    def insert(self, item: Any) -> None:
        """A tuple came into the window."""
        self._items.append(item)
        for accumulator in self._back:
            accumulator.insert(item)

    def evict(self) -> None:
        """The oldest tuple left the window."""
        if not self._front:
            self._turn()
        self._front.pop()

    def values(self) -> list[Any]:
        """The answers over the window."""
        if not self._front:
            return [back.value() for back in self._back]
        answers = []
        for start, front, back in zip(self._starts, self._front[-1], self._back, strict=True):
            whole = start()
            whole.merge(front)
            whole.merge(back)
            answers.append(whole.value())
        return answers

    def _turn(self) -> None:
        """Make the back the front: from the newest tuple to the oldest, each with what came after it."""
        later: list[Accumulator] = []
        for item in reversed(self._items):
            summary = [start() for start in self._starts]
            for accumulator in summary:
                accumulator.insert(item)
            for accumulator, other in zip(summary, later, strict=False):
                accumulator.merge(other)
            self._front.append(summary)
            later = summary
        self._items = []
        self._back = [start() for start in self._starts]
