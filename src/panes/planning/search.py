"""Which candidates to add as factor windows: greedy steps, then add, drop and swap until nothing improves.

Requires: the assignment of the user's windows alone, and candidates. Costs: rows times candidates per round. The
problem is a Steiner tree (Factor Windows, section IV-C), so this is a heuristic; ``exact`` states its gap.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from panes.planning.cost import CostModel
from panes.planning.graph import Integers
from panes.planning.min_cost import Assignment, cheapest_provider
from panes.planning.numbers import Floats
from panes.timeline import Geometry

#: Only differences above this part of the total count as an improvement, so that rounding cannot make a loop.
_NOTHING = 1e-12
_ROUNDS = 64


@dataclass(frozen=True, slots=True)
class Offers:
    """What every row (the user's windows, then the candidates) would pay each candidate.

    Attributes
    ----------
    candidates
        The columns.
    base
        What a row costs from the raw stream or the user's windows.
    price
        What a row costs from a candidate, infinite where the candidate cannot answer it; columns are contiguous.
    """

    candidates: tuple[Geometry, ...]
    base: Floats = field(compare=False)
    price: Floats = field(compare=False)

    @classmethod
    def of(cls, alone: Assignment, candidates: Sequence[Geometry], model: CostModel) -> Offers:
        """Price candidates for the windows of an assignment, and for each other."""
        graph = alone.graph.extended(candidates)
        own = [cheapest_provider(alone.graph, window, model)[1] for window in candidates]
        price = np.full((len(graph), len(candidates)), np.inf, order="F")
        recurrences = model.period.recurrences_of(graph.ranges, graph.slides)
        for column, factor in enumerate(candidates):
            hits = graph.downstream(factor)
            price[hits, column] = recurrences[hits] * (1 + (graph.ranges[hits] - factor.range) // factor.slide)
        return cls(tuple(candidates), np.concatenate([alone.costs, own]), price)

    @property
    def users(self) -> int:
        """How many rows are the user's windows."""
        return len(self.base) - len(self.candidates)

    def only(self, columns: Sequence[int]) -> Offers:
        """The same with some of the candidates."""
        rows = [*range(self.users), *(self.users + column for column in columns)]
        price = np.asfortranarray(self.price[np.ix_(rows, list(columns))])
        return Offers(tuple(self.candidates[column] for column in columns), self.base[rows], price)

    def prices(self, chosen: Sequence[int]) -> Floats:
        """The cheapest price of every row when some candidates exist."""
        best = self.base.copy()
        for column in chosen:
            np.minimum(best, self.price[:, column], out=best)
        return best

    def total(self, chosen: Sequence[int]) -> float:
        """The cost of the user's windows and of the chosen candidates."""
        return float(self.prices(chosen)[self.rows(chosen)].sum())

    def rows(self, chosen: Sequence[int]) -> Integers:
        """The rows that exist: the user's windows and the chosen candidates."""
        return np.concatenate([np.arange(self.users), self.users + np.array(chosen, dtype=np.int64)])

    def gains(self, chosen: Sequence[int]) -> Floats:
        """How much each candidate would save if it were added to the chosen ones."""
        best, rows = self.prices(chosen), self.rows(chosen)
        saved: Floats = np.maximum(best[rows, None] - self.price[rows], 0).sum(axis=0) - best[self.users :]
        saved[list(chosen)] = -np.inf
        return saved


def search(offers: Offers, start: Sequence[int], swaps: bool) -> list[int]:
    """Improve a choice of candidates until no step does.

    Parameters
    ----------
    offers
        The prices.
    start
        The candidates to begin with.
    swaps
        Whether to also try exchanges of one candidate for one or two others, which is dear for many windows.
    """
    chosen = list(start)
    for _ in range(_ROUNDS if swaps else 2):
        before = sorted(chosen)
        chosen = _drop(offers, _grow(offers, chosen))
        if sorted(chosen) == before:
            better = _swap(offers, chosen) if swaps else None
            if better is None:
                break
            chosen = better
    return chosen


def _grow(offers: Offers, chosen: list[int]) -> list[int]:
    """Add the candidate that saves most, again and again.

    A candidate's saving mostly shrinks as others are added, so it is weighed again only when it comes first.
    """
    chosen, best = list(chosen), offers.prices(chosen)
    present = np.zeros(len(best), dtype=np.bool_)
    present[offers.rows(chosen)] = True
    least = _NOTHING * float(best[present].sum())
    heap = [(-gain, column) for column, gain in enumerate(offers.gains(chosen).tolist()) if gain > least]
    heapq.heapify(heap)
    while heap:
        _, column = heapq.heappop(heap)
        price = offers.price[:, column]
        gain = float(np.maximum(best - price, 0)[present].sum() - best[offers.users + column])
        if gain <= least:
            continue
        if heap and -heap[0][0] > gain:
            heapq.heappush(heap, (-gain, column))
            continue
        chosen.append(column)
        present[offers.users + column] = True
        np.minimum(best, price, out=best)
    return chosen


def _drop(offers: Offers, chosen: list[int]) -> list[int]:
    """Drop the candidate that saves least, until each one saves something.

    On a tie the smaller forest is better, since a factor window costs memory too.
    """
    chosen = list(chosen)
    while chosen:
        best, second = offers.base.copy(), np.full(len(offers.base), np.inf)
        source = np.full(len(best), -1, dtype=np.int64)
        for at, column in enumerate(chosen):
            price = offers.price[:, column]
            lower = price < best
            second = np.where(lower, best, np.minimum(second, price))
            best = np.where(lower, price, best)
            source[lower] = at
        rows = offers.rows(chosen)
        read = rows[source[rows] >= 0]
        lost = np.bincount(source[read], weights=second[read] - best[read], minlength=len(chosen))
        saved = lost - best[rows[offers.users :]]
        worst = int(np.argmin(saved))
        if saved[worst] > 0:
            break
        del chosen[worst]
    return chosen


def _swap(offers: Offers, chosen: list[int]) -> list[int] | None:
    """Exchange one candidate for one or two others where that helps."""
    total = offers.total(chosen)
    for column in chosen:
        trial = [other for other in chosen if other != column]
        for _ in range(2):
            gains = offers.gains(trial)
            gains[column] = -np.inf
            best = int(np.argmax(gains))
            if not np.isfinite(gains[best]):
                break
            trial = [*trial, best]
            if offers.total(trial) < total * (1 - _NOTHING):
                return trial
    return None
