"""A long run: 100,000 partitions at a time, all replaced many times over, in steady memory."""

from __future__ import annotations

import random
import tracemalloc

import pytest

import panes as pn
from panes.operators import Aggregate, EventClock
from panes.operators.policies import operator_policies

AGE = 175_000  # µs; about four in seven of as many keys are held


@pytest.mark.soak
@pytest.mark.parametrize("evict", [pn.rows(3), "1 hour"], ids=str)
def test_age_eviction_holds_steady_memory(evict):
    """Deadlines an hour ahead must go with their partitions."""
    clock = EventClock(0)
    declared = operator_policies(pn.hopping(evict, every=pn.rows(1000)), by="key", evict=pn.evict(age=f"{AGE} us"))
    aggregate = Aggregate(declared, {"mean": pn.mean("value")}, clock=clock)
    drawn = random.Random(1)
    held, memory = [], []
    tracemalloc.start()
    try:
        for at in range(1_500_000):
            clock.advance(at)
            aggregate.process({"key": at // 2 + drawn.randrange(AGE // 2), "value": 1.0})
            if at % 200_000 == 199_999 and at > 500_000:
                held.append(len(aggregate.windows[0].subwindows))
                memory.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert min(held) > 90_000
    assert max(held) < 1.05 * min(held)
    assert max(memory) < 1.1 * min(memory)
