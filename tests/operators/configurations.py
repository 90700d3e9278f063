"""Every window configuration that an operator's model names, as a window that can be run."""

from __future__ import annotations

from itertools import product

from panes.operators import Aggregate, Join, Sort
from panes.operators.policies import Partitions, SlidingPolicies, Time, TumblingPolicies
from panes.queries.eviction import Evict
from panes.queries.measures import Delta, Punctuation, Rows

EVICT = {"count": Rows(4), "delta": Delta(1, 5), "time": Time(7), "punctuation": Punctuation("")}
REOPENED = Time(7, "row")
TRIGGER = {"count": Rows(2), "delta": Delta(2, 3), "time": Time(3)}
PARTITION_EVICTIONS = {
    "partition count": Evict(keys=2),
    "tuple count": Evict(rows=7),
    "partition age": Evict(age=6),
}


def window_of(configuration, every=None, partitioned=False):
    """A window of a configuration; without partition eviction it is partitioned only if it is asked to be."""
    eviction = configuration.partition_eviction
    partitions = None
    if eviction is not None or partitioned:
        partitions = Partitions(("k",), PARTITION_EVICTIONS.get(eviction))
    if configuration.type == "tumbling":
        # The paper's partitioned windows by time go when they are flushed; the grids are drawn elsewhere.
        reopened = configuration.evict == "time" and partitions is not None
        return TumblingPolicies(REOPENED if reopened else EVICT[configuration.evict], partitions)
    trigger = TRIGGER[configuration.trigger] if every is None else Rows(every)
    return SlidingPolicies(EVICT[configuration.evict], trigger, partitions)


AGGREGATE = Aggregate.model.configurations()
SORT = Sort.model.configurations()
# Two ports: three evictions each, and no partitions at all or, on both ports, one of the three evictions of them.
JOIN = [
    (left, right)
    for left, right in product(Join.model.configurations(0), Join.model.configurations(1))
    if (left.partition_eviction is None) == (right.partition_eviction is None)
]


def name(configuration):
    return ", ".join(filter(None, vars_of(configuration)))


def vars_of(configuration):
    return (configuration.type, configuration.evict, configuration.trigger, configuration.partition_eviction)
