"""Candidates in, the factor windows worth adding out: add greedily, then drop and swap until nothing improves.

Requires: the assignment of the user's windows alone, and candidates. Costs: rows times candidates per round. The
problem is a Steiner tree (Factor Windows, section IV-C), so this is a heuristic; ``panes.testing.optimum``
measures its gap.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from panes.planning.cost import Assignment, cheapest_provider, costs_from
from panes.planning.coverage import Floats, Integers, Semantics, divisors
from panes.timeline import Geometry

#: A smaller fraction of the total is no improvement, so rounding cannot cause a loop.
_NOTHING = 1e-12
_ROUNDS = 64


@dataclass(frozen=True, slots=True)
class Offers:
    """What every row (the user's windows, then the candidates) costs if it reads each candidate.

    Attributes
    ----------
    candidates
        The columns.
    base
        What a row costs from the raw stream or the user's windows.
    price
        What a row costs from a candidate; infinite if the candidate cannot answer it. Columns are contiguous.
    """

    candidates: tuple[Geometry, ...]
    base: Floats = field(compare=False)
    price: Floats = field(compare=False)

    @classmethod
    def of(cls, alone: Assignment, candidates: Sequence[Geometry], eta: float) -> Offers:
        """Price candidates for the windows of an assignment, and for each other."""
        graph = alone.graph.extended(candidates)
        base = [cheapest_provider(alone.graph, window, eta)[1] for window in candidates]
        price = np.full((len(graph), len(candidates)), np.inf, order="F")
        for column, factor in enumerate(candidates):
            consumers = graph.downstream(factor)
            price[consumers, column] = costs_from(factor, graph, consumers)
        return cls(tuple(candidates), np.concatenate([alone.costs, base]), price)

    @property
    def users(self) -> int:
        """How many of the rows are the user's windows."""
        return len(self.base) - len(self.candidates)

    def only(self, columns: Sequence[int]) -> Offers:
        """Return the offers of some of the candidates."""
        rows = [*range(self.users), *(self.users + column for column in columns)]
        price = np.asfortranarray(self.price[np.ix_(rows, list(columns))])
        return Offers(tuple(self.candidates[column] for column in columns), self.base[rows], price)

    def prices(self, chosen: Sequence[int]) -> Floats:
        """Return the cheapest price of every row if some candidates exist."""
        best = self.base.copy()
        for column in chosen:
            np.minimum(best, self.price[:, column], out=best)
        return best

    def total(self, chosen: Sequence[int]) -> float:
        """Return the cost of the user's windows and of the chosen candidates."""
        return float(self.prices(chosen)[self.rows(chosen)].sum())

    def rows(self, chosen: Sequence[int]) -> Integers:
        """Return the rows that exist: the user's windows and the chosen candidates."""
        return np.concatenate([np.arange(self.users), self.users + np.array(chosen, dtype=np.int64)])

    def gains(self, chosen: Sequence[int]) -> Floats:
        """Return how much each candidate would save in addition to the chosen ones."""
        best, rows = self.prices(chosen), self.rows(chosen)
        saved: Floats = np.maximum(best[rows, None] - self.price[rows], 0).sum(axis=0) - best[self.users :]
        saved[list(chosen)] = -np.inf
        return saved


def search(offers: Offers, start: Sequence[int], swaps: bool) -> list[int]:
    """Improve a choice of candidates until no step helps.

    Parameters
    ----------
    offers
        The prices.
    start
        The candidates to begin with.
    swaps
        Whether to also replace one candidate by one or two others, which is expensive for many windows.
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
    """Keep adding the candidate that saves most.

    A candidate's saving mostly shrinks as others are added, so it is only weighed again when it comes first.
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

    On a tie the smaller forest is better, since a factor window also costs memory.
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
    """Replace one candidate by one or two others if that helps."""
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


def candidates(
    windows: Sequence[Geometry], semantics: Semantics, limit: int = 4096, ranges: int | None = None
) -> tuple[Geometry, ...]:
    """Return candidates for factor windows of every subset of some windows, without those windows.

    The paper's footnote 3 names what Algorithm 3 leaves out: windows such as ⟨15, 15⟩ that help only some of the
    downstream. A factor window with given consumers is no worse when its slide is as large as they allow, which is the
    gcd of their slides, of their differences of offsets and of their differences of ranges. So slides come from the
    closure of the windows under that gcd. With disjoint instances the closure holds an optimum: a window of it is
    tumbling, and lengthening it to the gcd of its consumers makes them cheaper and itself no dearer.

    With overlapping instances a range remains free. Its cost is linear between the points where consumers or providers
    change, so the candidates are those points: as short as possible, just below a consumer, just above a provider.
    If the ranges are not multiples of the slide, a smaller slide with a shorter range may win, so divisors count too.

    Parameters
    ----------
    windows
        Distinct windows, in ticks.
    semantics
        The relation between a factor window and its consumers.
    limit
        The most slides to consider, and the most candidates to return.
    ranges
        With overlapping instances, next to how many of the shortest consumers and providers of a slide to try a
        range; None for all.

    Examples
    --------
    >>> found = candidates([Geometry(r, r) for r in (20, 30, 45)], Semantics.PARTITIONED_BY)
    >>> [factor.range for factor in found]
    [5, 10, 15]
    """
    columns = np.array([(w.slide, w.offset, w.range) for w in windows], dtype=np.int64)
    if semantics is Semantics.PARTITIONED_BY:
        columns[:, 0] = np.gcd(columns[:, 0], columns[:, 2])
    columns[:, 1:] %= columns[:, :1]
    found = closure(columns, limit)
    if semantics is Semantics.PARTITIONED_BY:
        factors = [Geometry(step, step, offset) for step, offset, _ in found]
    else:
        shortest_first = np.array(sorted((w.range, w.slide, w.offset) for w in windows), dtype=np.int64)
        table = shortest_first[:, [1, 2, 0]].T
        factors = [factor for row in _with_divisors(found, limit) for factor in _lengths(row, table, ranges)]
    known = set(windows)
    return tuple(dict.fromkeys(factor for factor in factors if factor not in known))[:limit]


def closure(classes: Integers, limit: int) -> list[tuple[int, int, int]]:
    """Close rows (step, offset, range), the last two modulo the first, under the gcd of all differences.

    Stops after a round that leaves more rows than the limit, and keeps the smallest steps, which most windows share.

    Examples
    --------
    >>> [step for step, _, _ in closure(np.array([[20, 0, 0], [30, 0, 0], [45, 0, 0]]), limit=100)]
    [5, 10, 15, 20, 30, 45]
    """
    given = np.unique(classes, axis=0)
    fresh: set[tuple[int, int, int]] = set(map(tuple, given.tolist()))
    found = set(fresh)
    while fresh and len(found) <= limit:
        step, offset, length = np.array(sorted(fresh)).T[:, :, None]
        common = np.gcd(np.gcd(step, given[:, 0]), np.gcd(offset - given[:, 1], length - given[:, 2]))
        rows = np.stack([common, offset % common, length % common], axis=-1).reshape(-1, 3)
        fresh = set(map(tuple, np.unique(rows, axis=0).tolist())) - found
        found |= fresh
    return sorted(found)[:limit]


def _with_divisors(classes: list[tuple[int, int, int]], limit: int) -> list[tuple[int, int, int]]:
    found = dict.fromkeys(classes)
    for step, offset, length in classes:
        if len(found) >= limit:
            break
        # If the range is a multiple of the slide, no divisor of the slide does better.
        for part in divisors(step) if length else ():
            found.setdefault((part, offset % part, length % part))
    return list(found)


def _lengths(row: tuple[int, int, int], columns: Integers, ranges: int | None) -> list[Geometry]:
    """Return the windows to try for one slide; columns are slide, offset and range of the windows, shortest first."""
    step, offset, length = row
    slides, offsets, lengths = columns
    consumes = (slides % step == 0) & ((offsets - offset) % step == 0) & ((lengths - length) % step == 0)
    consumers = lengths[consumes & (lengths > step)].tolist()
    if not consumers:
        return []
    found = {step + length, *(consumer - step for consumer in consumers[:ranges])}
    provides = (step % slides == 0) & ((offsets - offset) % slides == 0) & ((lengths - length) % slides == 0)
    for above in lengths[provides & (lengths >= slides)][:ranges].tolist():
        found.add(above + 1 + (length - above - 1) % step)
    return [Geometry(r, step, offset) for r in sorted(found) if step <= r <= consumers[-1] - step]
