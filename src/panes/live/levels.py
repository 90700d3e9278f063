"""Levels: states by powers of two over the slots of rings, for base intervals and for trees."""

from __future__ import annotations

from panes.algebra.operations import State
from panes.kernels.pairs import gather
from panes.live.algorithm import LiveAlgorithm
from panes.live.rings import Runs


class Levelled(LiveAlgorithm):
    """Level 0 has the rows, and level l a state for every ``2**l`` slots."""

    _levels: tuple[State, ...] = ((),)

    def resize(self, slots: int) -> None:  # noqa: D102
        count = max(slots.bit_length(), 1)
        levels = self._levels + ((),) * (count - len(self._levels))
        self._levels = tuple(self._resized(state, slots >> level) for level, state in enumerate(levels[:count]))

    @property
    def states(self) -> int:  # noqa: D102
        return sum(len(state[0]) for state in self._levels)

    def elements(self, rows: Runs) -> State:  # noqa: D102
        return gather(self._levels[0], rows.slot)
