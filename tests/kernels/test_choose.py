"""The chooser: legal kernels only, cheap ones first, and builds that are paid for by what they save."""

from __future__ import annotations

import numpy as np
import pytest

from panes.aggregates.operations import from_ufunc
from panes.errors import AlgebraError
from panes.kernels import KERNELS, Reducer, choose

SUM = from_ufunc(np.add, 0, subtract=np.subtract)
MINIMUM = from_ufunc(np.minimum, 99, idempotent=True)
FLOAT_SUM = from_ufunc(np.add, 0.0)
ROWS = 100_000


def hopping(width, rows=ROWS):
    lo = np.arange(rows - width + 1)
    return lo, lo + width


def tumbling(width, rows=ROWS):
    lo = np.arange(0, rows - width + 1, width)
    return lo, lo + width


def column(dtype=np.int64, rows=ROWS):
    return (np.ones(rows, dtype),)


def test_the_naive_way_is_last():
    assert [kernel.name for kernel in KERNELS] == ["running", "overlapping", "landmark", "dyadic", "naive"]


@pytest.mark.parametrize(
    ("operations", "dtype", "pairs", "name"),
    [
        (SUM, np.int64, hopping(5_000), "running"),
        (MINIMUM, np.int64, hopping(5_000), "overlapping"),
        (FLOAT_SUM, np.float64, hopping(5_000), "landmark"),
        (SUM, np.int64, tumbling(1_000), "naive"),
        (MINIMUM, np.int64, tumbling(1_000), "naive"),
        (FLOAT_SUM, np.float64, tumbling(1_000), "naive"),
        (FLOAT_SUM, np.float64, tumbling(20), "naive"),
    ],
)
def test_choice(operations, dtype, pairs, name):
    assert choose(operations, column(dtype), *pairs).name == name


def test_empty_pairs_need_no_build():
    some = np.arange(10)
    assert choose(SUM, column(), some, some).name == "naive"


def test_a_kernel_by_name():
    assert choose(SUM, column(), *hopping(5_000), kernel="naive").name == "naive"
    with pytest.raises(AlgebraError, match="no kernel 'runing'; did you mean 'running'"):
        choose(SUM, column(), *hopping(10), kernel="runing")
    with pytest.raises(AlgebraError, match="no kernel"):
        Reducer(SUM, column(), kernel="fastest")


def test_a_build_is_bought_once_it_would_have_paid(monkeypatch):
    """Each call alone is too small to build for; many are not, and afterwards the build is free."""
    used = []
    for kernel in KERNELS:
        answer = kernel._answer
        monkeypatch.setattr(
            kernel, "_answer", lambda self, pairs, answer=answer: used.append(self.name) or answer(self, pairs)
        )
    reducer = Reducer(SUM, column())
    lo = np.arange(0, 90_000, 1_000)
    for _ in range(400):
        assert (reducer.reduce(lo, lo + 10_000)[0] == 10_000).all()
    assert used[0] == "naive"
    assert set(used[used.index("running") :]) == {"running"}
