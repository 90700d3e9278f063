"""Tools for tests of windowed queries: random events and windows, slow references, Spark as an oracle, comparisons."""

from panes.testing.event_tables import events
from panes.testing.laws import check_aggregate
from panes.testing.lookup_reference import brute_force_lookup
from panes.testing.optimum import optimum
from panes.testing.oracle import spark_answers, spark_joins, spark_lookups
from panes.testing.reference import brute_force
from panes.testing.same_answers import assert_same_answers
from panes.testing.window_sets import random_gen, sequential_gen, sliding_class

__all__ = [
    "assert_same_answers",
    "brute_force",
    "brute_force_lookup",
    "check_aggregate",
    "events",
    "optimum",
    "random_gen",
    "sequential_gen",
    "sliding_class",
    "spark_answers",
    "spark_joins",
    "spark_lookups",
]
