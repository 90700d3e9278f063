"""A column that is asked for many windows: kernels are chosen per call, and what they built is kept."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from panes.algebra.operations import Operations, State
from panes.kernels.choose import candidates, cost, named
from panes.kernels.kernel import Kernel
from panes.kernels.pairs import Integers, Pairs

_LITTLE: Final = 1 << 14
"""Elements that NumPy folds in less time than it takes to choose a kernel."""


class Reducer:
    """The state of one column, reduced over any pairs of rows.

    Nobody knows how many windows will still ask. So a build is paid for as skis are bought after renting: once
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
    >>> from panes.algebra.operations import from_ufunc
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
