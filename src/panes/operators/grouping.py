"""Groups inside a window: what ``groups`` does when a window is processed, and nothing more.

Paper: Gedik 2014, Listings 2 to 4. Partitioning makes several windows, each with policies of its own; grouping looks at
the tuples of one window in several heaps.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from operator import call
from typing import Any, TypeAlias

from panes.operators.accumulators import Accumulator, state_of
from panes.operators.output_functions import OutputFunction
from panes.operators.summarizers import Summarizer

Groups: TypeAlias = dict[Hashable, list[Any]]
"""The values of the output functions for each group, in the order in which groups first occur."""


class Summary(Summarizer):
    """Accumulators for the tuples of a window."""

    def __init__(self, starts: Sequence[Callable[[], Accumulator]]) -> None:
        self._starts = starts
        self._accumulators: list[Accumulator] | None = None

    def insert(self, item: Any) -> None:
        """Take in a tuple."""
        accumulators = self._accumulators
        if accumulators is None:
            accumulators = self._begun()
        elif len(accumulators) == 1:
            # From now on a tuple goes straight to the one accumulator there is.
            self.__dict__["insert"] = accumulators[0].insert
        for accumulator in accumulators:
            accumulator.insert(item)

    def insert_all(self, items: Sequence[Any]) -> None:
        """Take in tuples."""
        for accumulator in self._begun():
            accumulator.insert_all(items)

    def merge(self, later: Any) -> None:
        """Take in the summary of later tuples, which is not changed."""
        if later._accumulators is not None:
            for accumulator, other in zip(self._begun(), later._accumulators, strict=True):
                accumulator.merge(other)

    def save(self) -> list[tuple[Hashable, list[dict[str, Any]]]]:
        """What has been taken in, as plain values."""
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

    def __init__(self, starts: Sequence[Callable[[], Accumulator]], group_of: Callable[[Any], Hashable]) -> None:
        self._starts = starts
        self._group_of = group_of
        self._groups: dict[Hashable, list[Accumulator]] = {}

    def insert(self, item: Any) -> None:
        """Take in a tuple."""
        for accumulator in self._begun(self._group_of(item)):
            accumulator.insert(item)

    def insert_all(self, items: Sequence[Any]) -> None:
        """Take in tuples."""
        for group, members in grouped(self._group_of, items).items():
            for accumulator in self._begun(group):
                accumulator.insert_all(members)

    def merge(self, later: Any) -> None:
        """Take in the summary of later tuples, which is not changed."""
        for group, others in later._groups.items():
            for accumulator, other in zip(self._begun(group), others, strict=True):
                accumulator.merge(other)

    def save(self) -> list[tuple[Hashable, list[dict[str, Any]]]]:
        """What has been taken in, as plain values."""
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
    for accumulator, values in zip(accumulators, saved, strict=True):
        for name, value in values.items():
            setattr(accumulator, name, value)


def grouped(group_of: Callable[[Any], Hashable], tuples: Iterable[Any]) -> dict[Hashable, list[Any]]:
    """The tuples of each group, in the order in which groups first occur."""
    groups: defaultdict[Hashable, list[Any]] = defaultdict(list)
    for item in tuples:
        groups[group_of(item)].append(item)
    return groups


def computed(
    functions: Sequence[OutputFunction], group_of: Callable[[Any], Hashable] | None, tuples: Sequence[Any]
) -> Groups:
    """The answers for each group of some tuples, all at once."""
    if not tuples:
        return {}
    if group_of is None:
        return {(): [function.over(tuples) for function in functions]}
    return {
        group: [function.over(members) for function in functions]
        for group, members in grouped(group_of, tuples).items()
    }


def several(value: Any, names: Sequence[Any]) -> Any:
    """The values of some attributes: the value itself where there is one attribute."""
    return (value,) if len(names) == 1 else value
