"""Every window configuration that an operator's model names, as a window that can be run."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

from panes.operators import Aggregate, Join, Sort
from panes.operators.operator_model import EVICTIONS_OF_PARTITIONS
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


class Configuration(NamedTuple):
    """One way to configure the window of a port, by the kinds of its policies.

    ``partition_eviction`` is None for a window that is not partitioned, and for one whose partitions are never evicted:
    to an operator both are the same, a window with one or many partitions.
    """

    type: str
    evict: str
    trigger: str | None
    partition_eviction: str | None


def configurations(model, port=0):
    """All window configurations of a port."""
    return [each for family in model.inputs[port].supports for each in _configurations(family)]


def _configurations(family):
    partitions = dict.fromkeys(each if each in EVICTIONS_OF_PARTITIONS else None for each in family.partitions)
    for evict, trigger, eviction in product(family.evictions, family.triggers or (None,), partitions):
        yield Configuration("sliding" if trigger else "tumbling", evict, trigger, eviction)


AGGREGATE = configurations(Aggregate.model)
SORT = configurations(Sort.model)
# Two ports: three evictions each, and no partitions at all or, on both ports, one of the three evictions of them.
JOIN = [
    (left, right)
    for left, right in product(configurations(Join.model, 0), configurations(Join.model, 1))
    if (left.partition_eviction is None) == (right.partition_eviction is None)
]


def name(configuration):
    return ", ".join(filter(None, configuration))
