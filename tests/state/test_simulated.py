"""A few schedules of the simulation in every run of the tests; ``make soak`` runs as many as fit into its time."""

from __future__ import annotations

import warnings

from hypothesis import given, settings
from hypothesis import strategies as st

from panes.errors import StateWarning
from tests.state.simulated import SHARED, Done, run_one


@settings(max_examples=100)
@given(seed=st.integers(0, SHARED - 1))
def test_a_schedule(seed: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StateWarning)
        wrong = run_one(seed, Done())
    assert wrong is None, f"python -m tests.state.simulated --replay {seed}\n{wrong}"
