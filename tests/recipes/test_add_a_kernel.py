"""Add a kernel, as CONTRIBUTING.md says: whole blocks of rows are combined beforehand."""

from __future__ import annotations

import importlib
from functools import cached_property

import numpy as np
import pytest

from panes.aggregates.operations import State
from panes.errors import AlgebraError
from panes.kernels import Reducer, choose
from panes.kernels.kernel import Kernel, Pairs, Work
from panes.kernels.naive import Naive
from tests.kernels import test_contract as contract

# The file: in panes.kernels the name is that of a function.
CHOOSE = importlib.import_module("panes.kernels.choose")
BLOCK = 16


# 1. The kernel, with the laws it needs (none beyond associativity), its work and its answers.


class Blocks(Kernel):
    """Combine whole blocks once; a pair folds the blocks that it covers, and single rows at both ends.

    ==========  ==================================================
    requires    any monoid
    build       O(n), once
    answer      O(width / block + block)
    memory      n / block states
    paper       none
    ==========  ==================================================
    """

    name = "blocks"

    def work(self, pairs: Pairs) -> Work:
        inside = np.maximum(0, pairs.width // BLOCK - 1)
        folded = int((pairs.width - inside * (BLOCK - 1)).sum())
        return Work(build=0 if "_blocks" in self.__dict__ else self.rows, folds=3 * len(pairs), folded=folded)

    @cached_property
    def _blocks(self) -> State:
        starts = np.arange(0, self.rows, BLOCK)
        return Naive(self.operations, self.state).answer(starts, np.minimum(starts + BLOCK, self.rows))

    def _answer(self, pairs: Pairs) -> State:
        first, last = -(-pairs.lo // BLOCK), pairs.hi // BLOCK
        covers = first < last
        before = np.where(covers, first * BLOCK, pairs.hi)
        after = np.where(covers, last * BLOCK, pairs.hi)
        rows, blocks = Naive(self.operations, self.state), Naive(self.operations, self._blocks)
        combine = self.operations.combine
        # From the left to the right: combine need not commute.
        left = combine(rows.answer(pairs.lo, before), blocks.answer(first, np.maximum(first, last)))
        return combine(left, rows.answer(after, pairs.hi))


# 2. Its place among the kernels, and its prices.


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setattr(CHOOSE, "KERNELS", (*CHOOSE.KERNELS[:-1], Blocks, Naive))
    tables = [table for table in vars(CHOOSE).values() if isinstance(table, dict) and "naive" in table]
    assert tables
    for table in tables:
        monkeypatch.setitem(table, "blocks", CHOOSE.Rates(build=2.0, step=1.0, pair=1, call=30_000))


# 3. The contract suite.

ALGEBRAS = [
    pytest.param(algebra, id=name) for name, algebra in contract.ALGEBRAS.items() if Blocks.can(algebra.operations)
]


@pytest.mark.parametrize("algebra", ALGEBRAS)
def test_it_passes_the_contract(algebra):
    contract.test_any_pairs(Blocks, algebra)
    contract.test_no_rows_and_no_pairs(Blocks, algebra)
    contract.test_the_column_is_not_written(Blocks, algebra)
    contract.test_pairs_beyond_the_column_are_refused(Blocks, algebra)
    for rows in (1, 8, 65, 200):
        contract.test_every_width(Blocks, algebra, rows)
    for width in (1, 3, 16, 31, 100):
        contract.test_hopping_by_one(Blocks, algebra, width)


@pytest.mark.parametrize("algebra", ALGEBRAS)
def test_it_is_found_by_name(algebra):
    state = contract.seeded(algebra, 100)
    lo = np.arange(0, 60, 7)
    assert choose(algebra.operations, state, lo, lo + 40, kernel="blocks").name == "blocks"
    answers = Reducer(algebra.operations, state, kernel="blocks").reduce(lo, lo + 40)
    contract.assert_answers(algebra, state, lo, lo + 40, answers)


def test_a_misspelt_name_gets_it_as_a_suggestion():
    algebra = contract.ALGEBRAS["int sum"]
    with pytest.raises(AlgebraError, match="did you mean 'blocks'"):
        Reducer(algebra.operations, contract.seeded(algebra, 3), kernel="block")
