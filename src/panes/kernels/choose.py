"""A column that is asked for many windows: kernels are chosen per call, and what they built is kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from panes.aggregates.operations import Operations, State
from panes.errors import AlgebraError
from panes.kernels.dyadic import Dyadic, Overlapping
from panes.kernels.kernel import Integers, Kernel, Pairs
from panes.kernels.landmark import Landmark
from panes.kernels.naive import Naive
from panes.kernels.running import Running
from panes.suggestions import nearest

# Which kernel answers: the cheapest one that is legal, from one ordered list with the naive way last.


# Of two that cost the same, the earlier one is taken.
KERNELS: Final[tuple[type[Kernel], ...]] = (Running, Overlapping, Landmark, Dyadic, Naive)


@dataclass(frozen=True, slots=True)
class Rates:
    """Nanoseconds per element built, per element fetched (or folded) and combined, per pair, and per call."""

    build: float
    step: float
    pair: float
    call: float


# Measured on one core, columns of a million rows (numbers) and of 100,000 (the others), pairs 4, 60
# and 1440 rows wide that hop by one row or tumble: the first answer (fresh memory included) less the second is
# the build, the second the answer; a call with ten pairs gives the cost per call.
# Numbers: int64 and float64 under add, minimum, fmin. Objects: Python integers under add.
# General: moments (three arrays, ten ufuncs) and pairs of sums (two arrays, two ufuncs); nearer to the dear ones.
_NUMBERS: Final = {
    "running": Rates(3.0, 2.0, 1, 12_000),
    "overlapping": Rates(1.5, 2.5, 1, 20_000),
    "landmark": Rates(6.0, 5.0, 1, 30_000),
    "dyadic": Rates(2.0, 8.0, 0, 120_000),
    "naive": Rates(0.0, 0.12, 18, 15_000),
}
_OBJECTS: Final = {
    "running": Rates(35.0, 16.0, 4, 12_000),
    "overlapping": Rates(35.0, 16.0, 4, 20_000),
    "landmark": Rates(48.0, 18.0, 4, 30_000),
    "dyadic": Rates(25.0, 38.0, 0, 120_000),
    "naive": Rates(0.0, 17.0, 5, 15_000),
}
_GENERAL: Final = {
    "running": Rates(20.0, 2.5, 1, 12_000),
    "overlapping": Rates(15.0, 5.0, 1, 20_000),
    "landmark": Rates(40.0, 7.0, 1, 40_000),
    "dyadic": Rates(12.0, 11.0, 0, 300_000),
    "naive": Rates(0.0, 35.0, 5, 200_000),
}
# Sketches: all time goes into combines, about 20 µs each (a step is half of one, and less where one side is empty);
# folding makes one result per pair.
_SKETCHES: Final = {
    "running": Rates(20_000, 10_000, 0, 12_000),
    "overlapping": Rates(20_000, 10_000, 0, 20_000),
    "landmark": Rates(30_000, 10_000, 0, 30_000),
    "dyadic": Rates(20_000, 8_000, 0, 120_000),
    "naive": Rates(0, 5_000, 15_000, 15_000),
}


def legal(operations: Operations) -> tuple[type[Kernel], ...]:
    """The kernels whose laws an algebra has."""
    return tuple(kernel for kernel in KERNELS if kernel.can(operations))


def candidates(operations: Operations) -> tuple[type[Kernel], ...]:
    """The legal kernels worth comparing: with a group, only folding few rows can beat a difference of prefixes."""
    return (Running, Naive) if operations.group else legal(operations)


def named(name: str) -> type[Kernel]:
    """The kernel of a name."""
    for kernel in KERNELS:
        if kernel.name == name:
            return kernel
    raise AlgebraError(f"there is no kernel {name!r}; {nearest(name, [kernel.name for kernel in KERNELS])}")


def cost(kernel: Kernel, pairs: Pairs) -> tuple[float, float]:
    """Estimated nanoseconds to build what is missing, and to answer; every pair holds a row."""
    table = _OBJECTS if any(array.dtype == object for array in kernel.state) else _GENERAL
    if kernel.operations.fold is not None:
        table = _SKETCHES
    elif kernel.operations.ufunc is not None and table is _GENERAL:
        table = _NUMBERS
    rates, work = table[kernel.name], kernel.work(pairs)
    fold = table["naive"]
    folding = fold.step * work.folded + fold.pair * work.folds
    looking = rates.step * work.steps + rates.pair * (len(pairs) - work.folds)
    return rates.build * work.build, folding + looking + rates.call


def cheapest(kernels: Iterable[Kernel], pairs: Pairs) -> Kernel:
    """The kernel with the least build and answer together."""
    return min(kernels, key=lambda kernel: sum(cost(kernel, pairs)))


def choose(operations: Operations, state: State, lo: Integers, hi: Integers, kernel: str | None = None) -> Kernel:
    """A kernel for some pairs over a column, asked once; `Reducer` serves a column asked again and again.

    Examples
    --------
    >>> import numpy as np
    >>> from panes.aggregates.operations import from_ufunc
    >>> column, rows = (np.arange(100_000),), np.arange(50_000)
    >>> choose(from_ufunc(np.add, 0, subtract=np.subtract), column, rows, rows + 10_000).name
    'running'
    >>> choose(from_ufunc(np.add, 0), column, rows[::100], rows[::100] + 100).name
    'naive'
    >>> choose(from_ufunc(np.add, 0), column, rows, rows + 10_000, kernel="running")
    Traceback (most recent call last):
    ...
    panes.errors.AlgebraError: the kernel 'running' needs a group (an exact subtract), and this aggregate has none. ...
    """
    if kernel is not None:
        return named(kernel)(operations, state)
    pairs = Pairs(lo, hi, len(state[0]))
    held = pairs if pairs.narrowest > 0 else pairs.only(pairs.width > 0)
    if not len(held):
        return Naive(operations, state)
    return cheapest([kind(operations, state) for kind in candidates(operations)], held)


_LITTLE: Final = 1 << 14
"""Elements that NumPy folds in less time than it takes to choose a kernel."""


class Reducer:
    """The state of one column, reduced over any pairs of rows.

    How many windows will still ask is unknown. So a build is paid for as skis are bought after renting: once
    the answers that it would have made cheaper have cost as much as the build. That is never worse than twice
    the best choice made in hindsight.

    Parameters
    ----------
    operations, state
        The algebra and the column.
    kernel
        The name of the one kernel to use; an error where the algebra lacks a law that it needs.

    Examples
    --------
    >>> import numpy as np
    >>> from panes.aggregates.operations import from_ufunc
    >>> reducer = Reducer(from_ufunc(np.minimum, 99, idempotent=True), (np.array([5, 3, 8, 1]),))
    >>> reducer.reduce(np.array([0, 2, 1]), np.array([3, 4, 1]))
    (array([ 3,  1, 99]),)
    """

    def __init__(self, operations: Operations, state: State, kernel: str | None = None) -> None:
        kinds = candidates(operations) if kernel is None else (named(kernel),)
        every = [kind(operations, state) for kind in kinds]
        self._kernels: tuple[Kernel, ...] = tuple(k for k in every if k.fits() or kernel is not None)
        self._regret: defaultdict[tuple[str, int], float] = defaultdict(float)
        self._rows = len(state[0])
        self._folds_fast = operations.ufunc is not None and state[0].dtype != object

    def reduce(self, lo: Integers, hi: Integers) -> State:
        """The combined state of each pair ``[lo, hi)``; the identity for an empty one."""
        return self.reduce_pairs(Pairs(lo, hi, self._rows))

    def reduce_pairs(self, pairs: Pairs) -> State:
        """The same, for pairs whose facts other columns of as many rows may have asked for already."""
        return self._choose(pairs).answer_pairs(pairs)

    def _choose(self, pairs: Pairs) -> Kernel:
        if len(self._kernels) == 1:
            return self._kernels[0]
        if pairs.widest <= 1 or (self._folds_fast and len(pairs) * pairs.widest <= _LITTLE):
            return self._kernels[-1]
        held = pairs if pairs.narrowest > 0 else pairs.only(pairs.width > 0)
        costs = [(kernel, (kernel.name, kernel.part(held)), *cost(kernel, held)) for kernel in self._kernels]
        chosen, bought, price, spent = min(costs, key=lambda c: max(0.0, c[2] - self._regret[c[1]]) + c[3])
        self._regret[bought] = max(0.0, self._regret[bought] - price)
        for _, build, _, answer in costs:
            self._regret[build] += max(0.0, spent - answer)
        return chosen
