"""What operators say about the windows of their ports: which partitions, and evictions of them, they support."""

from __future__ import annotations

from dataclasses import replace

import pytest

import panes as pn
from panes.errors import DeclarationError
from panes.operators import EVERY_TUPLE, FREE, TUMBLING_WINDOWS, Event, InputPort, Operator, OperatorModel
from panes.operators.operator_model import PARTITIONS
from panes.operators.policies import operator_policies
from tests.operators.configurations import configurations

PARTITIONED = {
    "not partitioned": {},
    "never evicted": {"by": "k"},
    "partition count": {"by": "k", "evict": pn.evict(keys=1)},
    "tuple count": {"by": "k", "evict": pn.evict(rows=9)},
    "partition age": {"by": "k", "evict": pn.evict(age="1 s")},
}


def model(*families):
    return OperatorModel("Mine", (InputPort(families),), (FREE,))


@pytest.mark.parametrize("supported", PARTITIONS)
@pytest.mark.parametrize("declared", PARTITIONS)
def test_a_model_says_which_partitions_it_supports(supported, declared):
    checked = model(replace(EVERY_TUPLE, partitions=(supported,)))
    window = operator_policies(pn.sliding(pn.rows(3)), **PARTITIONED[declared])
    if supported == declared:
        checked.check(window)
    else:
        with pytest.raises(DeclarationError, match=r"Mine does not support the window .* It supports pn.sliding\("):
            checked.check(window)


def test_configurations_are_counted_once():
    """To an operator, one partition and many that stay are the same."""
    assert len(configurations(model(EVERY_TUPLE))) == 3 * 4
    kept = ("not partitioned", "never evicted")
    assert len(configurations(model(replace(EVERY_TUPLE, partitions=kept)))) == 3
    assert len(configurations(model(replace(EVERY_TUPLE, partitions=(*kept, "tuple count"))))) == 3 * 2
    assert len(configurations(model(replace(EVERY_TUPLE, partitions=("tuple count",))))) == 3


@pytest.mark.parametrize(
    ("families", "message"),
    [
        (
            (EVERY_TUPLE,),
            r"pn.tumbling\(pn.rows\(2\)\). It supports pn.sliding\(.*; each of them partitioned or not\.$",
        ),
        (
            (replace(EVERY_TUPLE, partitions=("not partitioned",)),),
            r"partial=False; each of them not partitioned\.$",
        ),
        (
            (replace(EVERY_TUPLE, partitions=("never evicted", "partition age")), replace(EVERY_TUPLE, every=2)),
            r"each with partitions that are never evicted or with partitions evicted by partition age; .*, "
            r"each partitioned or not\.$",
        ),
        ((), r"It supports no window at all\.$"),
    ],
)
def test_an_error_says_what_partitions_may_be(families, message):
    with pytest.raises(DeclarationError, match=message):
        model(*families).check(operator_policies(pn.tumbling(pn.rows(2))))


def test_an_error_names_the_eviction_that_is_not_supported():
    with pytest.raises(DeclarationError, match=r"pn.tumbling\(pn.rows\(2\)\) \(partition count\)\. It supports"):
        model(replace(TUMBLING_WINDOWS, partitions=PARTITIONS[:2])).check(
            operator_policies(pn.tumbling(pn.rows(2)), **PARTITIONED["partition count"])
        )


@pytest.mark.parametrize(("partitions", "what"), [(("by count",), "names 'by count'"), ((), "is empty")])
def test_partitions_that_no_window_has(partitions, what):
    with pytest.raises(DeclarationError, match=what):
        replace(EVERY_TUPLE, partitions=partitions)


def test_what_an_operator_excludes_is_refused_when_it_is_built():
    class Deduplicator(Operator):
        kept = replace(EVERY_TUPLE, partitions=("not partitioned", "never evicted"))
        model = OperatorModel("Deduplicator", (InputPort((kept,)),), (FREE,))

        def __init__(self, window, **options):
            super().__init__(window, **options)
            self.window(window, Event.AFTER_INSERTION, Event.BEFORE_EVICTION)

    Deduplicator(pn.sliding(pn.rows(3)), by=0)
    with pytest.raises(DeclarationError, match="Deduplicator does not support"):
        Deduplicator(pn.sliding(pn.rows(3)), by=0, evict=pn.evict(keys=1))
