"""A few random and mutated inputs for everything that reads them; ``make fuzz`` tries many more."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.targets import TARGETS


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
@given(seed=st.integers(0, 2**32))
def test_only_errors_of_panes_come_out(target, seed):
    target(Random(seed))
