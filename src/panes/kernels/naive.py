"""Naive: fold every pair on its own."""

from __future__ import annotations

from functools import cached_property
from typing import Final

import numpy as np

from panes.aggregates.operations import Array, State, concatenate
from panes.kernels.kernel import Kernel, Pairs, Work, gather, place

_CHUNK: Final = 1 << 20


class Naive(Kernel):
    """Fold every pair on its own.

    ==========  =====================================================================
    requires    any monoid
    build       nothing
    answer      O(width)
    memory      bounded: a ufunc folds in place, others in chunks of pairs
    paper       none; the oracle of all others, and the fastest way for narrow pairs
    ==========  =====================================================================
    """

    name = "naive"

    def work(self, pairs: Pairs) -> Work:  # noqa: D102
        return Work(folds=len(pairs), folded=pairs.total)

    def _answer(self, pairs: Pairs) -> State:
        if self.operations.ufunc is not None:
            return (self._reduceat(self.operations.ufunc, pairs),)
        if self.operations.fold is not None:
            return self.operations.fold(self.state, pairs.lo, pairs.hi)
        stop = np.cumsum(pairs.width)
        answers, begin = [], 0
        while begin < len(pairs):
            limit = int(stop[begin] - pairs.width[begin]) + _CHUNK
            end = max(int(np.searchsorted(stop, limit, side="right")), begin + 1)
            answers.append(self._fold(pairs.only(slice(begin, end))))
            begin = end
        return answers[0] if len(answers) == 1 else concatenate(answers)

    def _reduceat(self, ufunc: np.ufunc, pairs: Pairs) -> Array:
        """``reduceat`` folds from each index to the next where that is greater, else takes one element.

        Pairs that follow one another are their own indices. Others interleave lo and hi, and every second
        result, from a hi to the next lo, is thrown away: sorted by lo, those cost one pass at most.
        """
        lo, hi = pairs.lo, pairs.hi
        if (lo[1:] == hi[:-1]).all():
            return ufunc.reduceat(self.state[0][: hi[-1]], lo, dtype=self.state[0].dtype)
        order = None
        if (lo[1:] < lo[:-1]).any():
            order = np.argsort(lo, kind="stable")
            lo, hi = lo[order], hi[order]
        edges = np.stack([lo, hi], axis=1).ravel()
        # The last hi folds to the end of what is given: one element behind the farthest pair, no more.
        within = self._padded[: int(hi.max()) + 1]
        folded: Array = ufunc.reduceat(within, edges, dtype=within.dtype)[::2]
        if order is None:
            return folded
        answers = np.empty_like(folded)
        answers[order] = folded
        return answers

    @cached_property
    def _padded(self) -> Array:
        """The column with one row more: ``reduceat`` refuses the index behind the last row."""
        return concatenate([self.state, self.operations.identities(self.state, 1)])[0]

    def _fold(self, pairs: Pairs) -> State:
        """Halve all pairs in step: combine neighbours, left to right, until one element of each is left."""
        lengths = pairs.width
        begins = np.cumsum(lengths) - lengths
        flat = gather(self.state, np.arange(int(lengths.sum())) + np.repeat(pairs.lo - begins, lengths))
        while int(lengths.max()) > 1:
            halves = (lengths + 1) >> 1
            ends = np.cumsum(halves)
            left = 2 * np.arange(int(ends[-1])) + np.repeat(begins - 2 * (ends - halves), halves)
            # The last element of an odd pair has no neighbour and stays as it is.
            alone = (ends - 1)[(lengths & 1) == 1]
            both = np.ones(len(left), np.bool_)
            both[alone] = False
            folded = gather(flat, left)
            coupled = np.flatnonzero(both)
            firsts = left[coupled]
            place(folded, coupled, self.operations.combine(gather(flat, firsts), gather(flat, firsts + 1)))
            flat, lengths, begins = folded, halves, ends - halves
        return flat
