"""The adviser: which algorithm suits the mix of updates and lookups, and when to change to it.

No algorithm is best for all mixes: elements are cheapest to take in and dearest to look up, landmark intervals the
other way round. Arasu & Widom (2004, section 8) leave adapting to the mix as future work. Here every update and lookup
is priced for each algorithm that is legal, by counts and widths alone. What the present algorithm costs more than
another adds up to a regret; once that is as much as building the other one takes, it is built. So changing never costs
more than staying has cost, and a mix that comes and goes does not make the adviser hurry after it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from panes.aggregates.operations import Array, Operations, State

_FORGET: Final = 0.9
"""How much of the past the mix of widths keeps with every call."""

_RARE: Final = 0.01
"""Widths that are asked for less often than this do not make a partition of their own worth while."""


@dataclass(frozen=True, slots=True)
class LiveRates:
    """Nanoseconds to take in a row, per step (fetch and combine), per window folded and per row of it."""

    write: float
    step: float
    fold: float
    folded: float


# Measured on one core with batches of 10,000 over one key of 100,000 rows, windows of 10 to 10,000 rows: int64 under
# add and maximum for numbers, moments for the general case, Python integers for objects.
_NUMBERS: Final = LiveRates(write=8.0, step=10.0, fold=100.0, folded=0.18)
_GENERAL: Final = LiveRates(write=15.0, step=25.0, fold=200.0, folded=150.0)
_OBJECTS: Final = LiveRates(write=20.0, step=70.0, fold=300.0, folded=30.0)
# A combine of sketches takes some 20 µs, whatever surrounds it (as in panes.kernels.choose).
_SKETCHES: Final = LiveRates(write=20.0, step=10_000.0, fold=15_000.0, folded=5_000.0)


@dataclass(frozen=True, slots=True)
class Lookups:
    """Some lookups: how many, over how many rows together, and how many levels of base intervals these have."""

    count: int = 0
    rows: int = 0
    levels: int = 0

    def and_(self, other: Lookups) -> Lookups:
        """Both."""
        return Lookups(self.count + other.count, self.rows + other.rows, self.levels + other.levels)


_UPDATE: Final[dict[str, Callable[[LiveRates, float], float]]] = {
    "running": lambda rates, partitions: rates.write + rates.step,
    "landmark": lambda rates, partitions: rates.write + 8 * rates.step * partitions,
    "dyadic": lambda rates, partitions: rates.write + 7 * rates.step,
    "elements": lambda rates, partitions: rates.write,
}
"""Nanoseconds per row, by how many partitions the widths of lookups have."""

_LOOKUP: Final[dict[str, Callable[[LiveRates, Lookups], float]]] = {
    "running": lambda rates, lookups: rates.step * lookups.count,
    "landmark": lambda rates, lookups: 5 * rates.step * lookups.count,
    "dyadic": lambda rates, lookups: 3 * rates.step * lookups.levels,
    "elements": lambda rates, lookups: rates.fold * lookups.count + rates.folded * lookups.rows,
}
"""Nanoseconds for some lookups."""


@dataclass
class Adviser:
    """Counts what one column is asked for, and says which algorithm it should have.

    Parameters
    ----------
    rates
        What its states cost.
    candidates
        The algorithms that are legal.
    current
        The one it has.

    Examples
    --------
    >>> adviser = Adviser(_NUMBERS, ("landmark", "dyadic", "elements"), "elements")
    >>> adviser.looked_up(np.full(1000, 4096)), adviser.advise(held=5000)
    (None, 'landmark')
    >>> for _ in range(100):
    ...     adviser.updated(1000)
    >>> adviser.advise(held=5000)
    'elements'
    """

    rates: LiveRates
    candidates: tuple[str, ...]
    current: str
    rows: int = 0
    lookups: Lookups = field(default_factory=Lookups)
    changes: int = 0
    _regret: dict[str, float] = field(default_factory=dict)
    _by_magnitude: Array = field(default_factory=lambda: np.zeros(64))

    def updated(self, rows: int) -> None:
        """Count rows that have come."""
        self.rows += rows
        self._regret_of({name: rows * self._update(name) for name in self.candidates})

    def looked_up(self, width: Array) -> None:
        """Count lookups, by their widths in rows; those of no row cost nothing."""
        held = width[width > 0]
        if not len(held):
            return
        # A width is far below 2**53, so its exponent as a float is exact.
        by_magnitude = np.bincount(np.frexp(held.astype(np.float64))[1], minlength=64)
        self._by_magnitude = _FORGET * self._by_magnitude + by_magnitude
        lookups = Lookups(len(held), int(held.sum()), int(by_magnitude @ np.arange(64)))
        self.lookups = self.lookups.and_(lookups)
        self._regret_of({name: _LOOKUP[name](self.rates, lookups) for name in self.candidates})

    def advise(self, held: int) -> str:
        """The algorithm to have from now on, while so many rows are held."""
        gains = {name: self._regret.get(name, 0.0) - held * self._update(name) for name in self.candidates}
        best = max(gains, key=gains.__getitem__)
        if best != self.current and gains[best] > 0:
            self.current, self.changes = best, self.changes + 1
            self._regret.clear()
            self.rows, self.lookups = 0, Lookups()
        return self.current

    def explain(self) -> str:
        """What was counted since the last change, and what each algorithm would take for it."""
        wide = self.lookups.rows / max(self.lookups.count, 1)
        costs = {
            name: self.rows * self._update(name) + _LOOKUP[name](self.rates, self.lookups) for name in self.candidates
        }
        shown = ", ".join(f"{name} {cost / 1e6:,.3g}" for name, cost in sorted(costs.items(), key=lambda c: c[1]))
        changed = "once" if self.changes == 1 else f"{self.changes} times"
        return (
            f"{self.current} (changed {changed}); since then {self.rows:,} rows and {self.lookups.count:,} "
            f"lookups over {wide:,.0f} rows on average, about in ms: {shown}"
        )

    def _update(self, name: str) -> float:
        """Nanoseconds per row."""
        # A window of one row needs no partition.
        often = self._by_magnitude[2:] > _RARE * self._by_magnitude.sum()
        return _UPDATE[name](self.rates, max(int(often.sum()), 1))

    def _regret_of(self, costs: dict[str, float]) -> None:
        own = costs[self.current]
        for name, cost in costs.items():
            self._regret[name] = max(0.0, self._regret.get(name, 0.0) + own - cost)


def rates_of(operations: Operations, like: State) -> LiveRates:
    """What states of some types cost under an algebra."""
    if operations.fold is not None:
        return _SKETCHES
    if any(array.dtype == object for array in like):
        return _OBJECTS
    return _GENERAL if operations.ufunc is None else _NUMBERS
