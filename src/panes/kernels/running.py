"""Running: the difference of two prefixes."""

from __future__ import annotations

from functools import cached_property

from panes.aggregates.operations import Operations, State, concatenate
from panes.kernels.kernel import Kernel, Pairs, Work, gather
from panes.kernels.scan import prefixes


class Running(Kernel):
    """The running interval up to hi, without the running interval up to lo.

    ==========  =====================================================================
    requires    a group: subtract takes a part away exactly
    build       O(n), once
    answer      O(1)
    memory      n + 1 states
    paper       R-INT, Arasu & Widom 2004, section 3.2
    ==========  =====================================================================
    """

    name = "running"
    needs = "a group (an exact subtract)"

    @classmethod
    def can(cls, operations: Operations) -> bool:  # noqa: D102
        return operations.group

    def work(self, pairs: Pairs) -> Work:  # noqa: D102
        return Work(build=0 if "_prefixes" in self.__dict__ else self.rows, steps=2 * len(pairs))

    @cached_property
    def _prefixes(self) -> State:
        """Element r is the running interval of the first r rows."""
        block = 1 << self.rows.bit_length()
        nothing = self.operations.identities(self.state, 1)
        return concatenate([nothing, prefixes(self.operations, self.state, block)])

    def _answer(self, pairs: Pairs) -> State:
        assert self.operations.subtract is not None
        return self.operations.subtract(gather(self._prefixes, pairs.hi), gather(self._prefixes, pairs.lo))
