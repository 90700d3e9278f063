"""Groups inside a window: what ``group_by`` does when a window is processed, and nothing more.

Paper: Gedik 2014, Listings 2 to 4. Partitioning makes several windows, each with policies of its own; grouping looks at
the tuples of one window in several heaps.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias

from panes.windowing.accumulators import Accumulator, state_of
from panes.windowing.output_functions import OutputFunction
from panes.windowing.summarizers import Summarizer

Groups: TypeAlias = dict[Hashable, list[Any]]
"""The values of the output functions for each group, in the order in which groups first occur."""


class Summary(Summarizer):
    """Accumulators for each group of a window."""

    def __init__(self, starts: Sequence[Callable[[], Accumulator]], group_of: Callable[[Any], Hashable] | None) -> None:
        self._starts = starts
        self._group_of = group_of
        self._groups: dict[Hashable, list[Accumulator]] = {}

    def insert(self, item: Any) -> None:
        """Take in a tuple."""
        group = () if self._group_of is None else self._group_of(item)
        accumulators = self._groups.get(group)
        if accumulators is None:
            accumulators = self._groups[group] = [start() for start in self._starts]
            if self._group_of is None and len(accumulators) == 1:
                # From now on a tuple goes straight to the one accumulator there is.
                self.__dict__["insert"] = accumulators[0].insert
        for accumulator in accumulators:
            accumulator.insert(item)

    def merge(self, later: Summary) -> None:
        """Take in the summary of later tuples, which is not changed."""
        for group, others in later._groups.items():
            accumulators = self._groups.get(group)
            if accumulators is None:
                accumulators = self._groups[group] = [start() for start in self._starts]
            for accumulator, other in zip(accumulators, others, strict=True):
                accumulator.merge(other)

    def save(self) -> list[tuple[Hashable, list[dict[str, Any]]]]:
        """What has been taken in, as plain values."""
        return [(group, [state_of(each) for each in found]) for group, found in self._groups.items()]

    def load(self, state: Sequence[tuple[Hashable, Sequence[dict[str, Any]]]]) -> Summary:
        """Continue where a summary of the same accumulators was saved."""
        for group, saved in state:
            self._groups[group] = accumulators = [start() for start in self._starts]
            for accumulator, values in zip(accumulators, saved, strict=True):
                for name, value in values.items():
                    setattr(accumulator, name, value)
        return self

    def values(self) -> Groups:
        """The answers for each group."""
        return {group: [each.value() for each in accumulators] for group, accumulators in self._groups.items()}


def computed(
    functions: Sequence[OutputFunction], group_of: Callable[[Any], Hashable] | None, tuples: Sequence[Any]
) -> Groups:
    """The answers for each group of some tuples, all at once."""
    if not tuples:
        return {}
    if group_of is None:
        return {(): [function.over(tuples) for function in functions]}
    groups: dict[Hashable, list[Any]] = {}
    for item in tuples:
        groups.setdefault(group_of(item), []).append(item)
    return {group: [function.over(members) for function in functions] for group, members in groups.items()}


def several(value: Any, names: Sequence[Any]) -> Any:
    """The values of some attributes: the value itself where there is one attribute."""
    return (value,) if len(names) == 1 else value
