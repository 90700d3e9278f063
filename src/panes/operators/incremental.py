"""The summary of a sliding window that is processed with every tuple: two stacks of partial summaries.

==========  =====================================================================================================
requires    accumulators that can be merged; tuples leave in the order in which they came
costs       three insertions or merges for each tuple, amortised, instead of one for each tuple in the window
paper       Gedik 2014, section 6.1.1: Aggregate hears what is inserted and evicted
==========  =====================================================================================================

Nothing is ever subtracted, so that sums of floats lose nothing, and any aggregate that can be merged will do. The back
summarizes what came since the front was last built. The front has a summary for each tuple in it: of this tuple and all
later ones of the front.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from panes.operators.accumulators import Accumulator


class TwoStacks:
    """Follows a window, and has its values at hand.

    Examples
    --------
    >>> from functools import partial
    >>> from panes.operators.accumulators import Largest
    >>> window = TwoStacks([partial(Largest, "x")])
    >>> for x in (5, 1, 3):
    ...     window.insert({"x": x})
    >>> window.evict(); window.values()
    [3]
    """

    __slots__ = ("_back", "_front", "_items", "_starts")

    def __init__(self, starts: Sequence[Callable[[], Accumulator]]) -> None:
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
