"""Accumulators against the algebra: what ``check_aggregate`` says of one that has another answer for single tuples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from panes.aggregates.collecting import CountDistinctOf
from panes.aggregates.extrema import MaxOf
from panes.aggregates.sums import CountOf, SumOf
from panes.errors import AlgebraError
from panes.testing import check_aggregate

EXAMPLES = [3, 1, None, 4, 1, 5, 9, 2, 6]


class Largest:
    """The largest of numbers above zero."""

    __slots__ = ("best",)

    def __init__(self, attribute: str) -> None:
        assert attribute == "a0"
        self.best = 0

    def insert(self, item: Any) -> None:
        self.best = max(self.best, item["a0"] or 0)

    def insert_all(self, items: Any) -> None:
        for item in items:
            self.insert(item)

    def merge(self, other: Any) -> None:
        self.best = max(self.best, other.best)

    def value(self) -> Any:
        return self.best or None


class InsertsNull(Largest):
    def value(self) -> Any:
        return self.best


class AnswersInWords(Largest):
    def value(self) -> Any:
        return "much"


class InsertsOneOfAll(Largest):
    def insert_all(self, items: Any) -> None:
        for item in items[:1]:
            self.insert(item)


class MergesNothing(Largest):
    def merge(self, other: Any) -> None:
        pass


class EmptiesTheOther(Largest):
    def merge(self, other: Any) -> None:
        self.best, other.best = max(self.best, other.best), 0


class Unsaved(Largest):
    def __init__(self, attribute: str) -> None:
        super().__init__(attribute)
        self.largest = 0  # not in __slots__

    def insert(self, item: Any) -> None:
        self.largest = max(self.largest, item["a0"] or 0)

    def merge(self, other: Any) -> None:
        self.largest = max(self.largest, other.largest)

    def value(self) -> Any:
        return self.largest or None


@dataclass(frozen=True)
class LargestOf(MaxOf):
    made: Any = Largest

    def accumulator(self, *attributes: Any) -> Any:
        return lambda: self.made(*attributes)


class InPlain(CountOf):
    def accumulator(self, *attributes: Any) -> Any:
        return SumOf(("x",)).accumulator(*attributes or ("a0",))


def test_a_right_accumulator_passes() -> None:
    check_aggregate(LargestOf(("x",)), EXAMPLES)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (InsertsNull, "insert of the events between .* gives 0 instead of None"),
        (AnswersInWords, "insert of the events between .* gives 'much', which is no int64"),
        (InsertsOneOfAll, "insert_all of the events between .* gives the state .* instead of .* of insert"),
        (MergesNothing, "merge of the events between"),
        (EmptiesTheOther, "merge of the events between .* gives another state of the later tuples"),
        (Unsaved, "state_of of the events between .* saved and loaded at .*__slots__"),
    ],
)
def test_one_that_differs_is_named(made: Any, message: str) -> None:
    with pytest.raises(AlgebraError, match=rf"'max\(x\)' has another answer for single tuples: {message}"):
        check_aggregate(LargestOf(("x",), made), EXAMPLES)


def test_one_of_all_tuples_is_checked_without_attributes() -> None:
    with pytest.raises(AlgebraError, match=r"'count\(\)' has another answer for single tuples: insert"):
        check_aggregate(InPlain(("1",)), EXAMPLES)


def test_values_that_are_collected_are_checked() -> None:
    class Repeats(CountDistinctOf):
        def over_values(self, values: list[Any]) -> int:
            return len(values)

    with pytest.raises(AlgebraError, match=r"single tuples: over_values of .* gives \d instead of \d"):
        check_aggregate(Repeats(("x",)), EXAMPLES)
