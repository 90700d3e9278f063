"""Which kernel answers: the cheapest one that is legal, from one ordered list with the naive way last."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from panes.algebra.operations import Operations, State
from panes.errors import AlgebraError, nearest
from panes.kernels.dyadic import Dyadic
from panes.kernels.kernel import Kernel
from panes.kernels.landmark import Landmark
from panes.kernels.naive import Naive
from panes.kernels.overlapping import Overlapping
from panes.kernels.pairs import Integers, Pairs
from panes.kernels.running import Running

# Of two that cost the same, the earlier one is taken.
KERNELS: Final[tuple[type[Kernel], ...]] = (Running, Overlapping, Landmark, Dyadic, Naive)


@dataclass(frozen=True, slots=True)
class Rates:
    """Nanoseconds per element built, per element fetched and combined, and per pair."""

    build: float
    step: float
    pair: float


# Measured on a million rows, as the medians over pairs 4, 60 and 1440 rows wide, hopping by one row:
# int64 and float64 under add, minimum and maximum; Python integers under add; moments of three float arrays.
_NUMBERS: Final = {
    "running": Rates(2.0, 2.0, 2),
    "overlapping": Rates(0.6, 2.5, 2),
    "landmark": Rates(3.0, 5.0, 2),
    "dyadic": Rates(1.0, 12.0, 10),
    "naive": Rates(0.0, 0.1, 15),
}
_OBJECTS: Final = {
    "running": Rates(40.0, 25.0, 5),
    "overlapping": Rates(40.0, 25.0, 5),
    "landmark": Rates(60.0, 25.0, 5),
    "dyadic": Rates(40.0, 60.0, 20),
    "naive": Rates(0.0, 30.0, 30),
}
_GENERAL: Final = {
    "running": Rates(20.0, 10.0, 5),
    "overlapping": Rates(10.0, 10.0, 5),
    "landmark": Rates(20.0, 12.0, 5),
    "dyadic": Rates(12.0, 25.0, 20),
    "naive": Rates(0.0, 30.0, 30),
}


def legal(operations: Operations) -> tuple[type[Kernel], ...]:
    """The kernels whose laws an algebra has."""
    return tuple(kernel for kernel in KERNELS if kernel.can(operations))


def named(name: str) -> type[Kernel]:
    """The kernel of a name."""
    for kernel in KERNELS:
        if kernel.name == name:
            return kernel
    raise AlgebraError(f"there is no kernel {name!r}; {nearest(name, [kernel.name for kernel in KERNELS])}")


def cost(kernel: Kernel, pairs: Pairs) -> tuple[float, float]:
    """Estimated nanoseconds to build what is missing, and to answer; every pair holds a row."""
    table = _OBJECTS if any(array.dtype == object for array in kernel.state) else _GENERAL
    if kernel.operations.ufunc is not None and table is _GENERAL:
        table = _NUMBERS
    rates, work = table[kernel.name], kernel.work(pairs)
    return rates.build * work.build, rates.step * work.steps + rates.pair * len(pairs)


def cheapest(kernels: Iterable[Kernel], pairs: Pairs) -> Kernel:
    """The kernel with the least build and answer together."""
    return min(kernels, key=lambda kernel: sum(cost(kernel, pairs)))


def choose(operations: Operations, state: State, lo: Integers, hi: Integers, kernel: str | None = None) -> Kernel:
    """A kernel for some pairs over a column, asked once; `Reducer` serves a column asked again and again.

    Examples
    --------
    >>> import numpy as np
    >>> from panes.algebra.operations import from_ufunc
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
    return cheapest([kind(operations, state) for kind in legal(operations)], held)
