"""The adviser follows the mix of updates and lookups, in both directions, and answers stay the same meanwhile."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import panes as pn
from panes.aggregates.extrema import LARGEST
from panes.aggregates.integers import MACHINE
from panes.live.adviser import Adviser, rates_of
from tests.live.test_index import live_of

LIKE = (np.zeros(0, np.int64),)
OTHERS = ("landmark", "dyadic", "elements")


def adviser(current="dyadic", candidates=OTHERS, operations=LARGEST):
    return Adviser(rates_of(operations, LIKE), candidates, current)


def test_updates_alone_make_it_keep_elements():
    one = adviser()
    for _ in range(50):
        one.updated(1000)
    assert one.advise(held=10_000) == "elements"


@pytest.mark.parametrize(
    ("widths", "expected"),
    [([3], "elements"), ([3000], "landmark"), ([60_000], "landmark"), (2 ** np.arange(17), "dyadic")],
)
def test_lookups_of_widths(widths, expected):
    """As many updates as lookups: narrow windows are folded, wide ones of one width have landmarks, others levels."""
    one = adviser("elements")
    for _ in range(200):
        one.updated(1700)
        one.looked_up(np.resize(widths, 1700))
        one.advise(held=100_000)
    assert one.current == expected


def test_lookups_alone_make_landmarks_worth_while_until_rows_come():
    one = adviser()
    for _ in range(100):
        one.looked_up(np.full(10_000, 3000))
    assert one.advise(held=10_000) == "landmark"
    for _ in range(100):
        one.updated(10_000)
        one.looked_up(np.full(100, 3000))
        one.advise(held=10_000)
    assert one.current == "elements"
    assert one.changes == 2


def test_widths_of_many_magnitudes_cost_a_partition_each():
    """The same number of lookups and rows: landmarks suit one width, and not eighteen."""
    found = {}
    for label, widths in (("one", np.full(3600, 4096)), ("many", np.repeat(2 ** np.arange(18), 200))):
        one = adviser("landmark")
        for _ in range(100):
            one.updated(3600)
            one.looked_up(widths)
            one.advise(held=10_000)
        found[label] = one.current
    assert found == {"one": "landmark", "many": "dyadic"}


def test_a_build_has_to_be_worth_while():
    """A few wide lookups do not make it build a large structure."""
    one = adviser("elements")
    one.looked_up(np.full(3, 10_000))
    assert one.advise(held=1_000_000) == "elements"
    assert one.advise(held=10) == "landmark"


def test_a_group_has_running_intervals_while_it_is_looked_up():
    one = adviser("running", ("running", *OTHERS), MACHINE)
    for _ in range(20):
        one.updated(100)
        one.looked_up(np.full(100, 50))
        assert one.advise(held=1000) == "running"


def test_empty_windows_count_for_nothing():
    one = adviser()
    one.looked_up(np.zeros(1000, np.int64))
    assert one.lookups.count == 0


def batch(start, rows):
    ts = pa.array(start + np.arange(rows), pa.timestamp("us"))
    return pa.table({"ts": ts, "v": np.sin(np.arange(start, start + rows))})


def algorithm_of(live):
    [column] = (column for column in live._parts[0].columns.values() if column.component.name == "max(v)")
    return column.algorithm


def test_an_index_changes_in_both_directions():
    index = live_of({"top": pn.max("v"), "n": pn.count()}, at="ts", keep=pn.rows(20_000))
    rows, seen = 0, []

    def update(times):
        nonlocal rows
        for _ in range(times):
            index.update(batch(rows, 4000))
            rows += 4000
        seen.append(algorithm_of(index))

    def look(times, last):
        for _ in range(times):
            answers = index.lookup(pa.table({"r": np.zeros(500)}), over=pn.rows(last))
            exact = np.sin(np.arange(rows - last, rows)).max()
            assert answers["top"].unique().to_pylist() == [exact]
            assert answers["n"].unique().to_pylist() == [last]
        seen.append(algorithm_of(index))

    update(1)
    update(30)
    look(1, 9000)
    look(30, 9000)
    update(20)
    look(3, 5)
    assert seen == ["elements", "elements", "elements", "landmark", "elements", "elements"]
    assert "max(v): elements (changed" in index.explain()


def test_an_algorithm_that_was_asked_for_stays():
    index = live_of({"top": pn.max("v")}, at="ts", keep=pn.rows(1000), algorithm="elements")
    for at in range(20):
        index.update(batch(1000 * at, 1000))
        index.lookup(pa.table({"r": np.zeros(500)}), over=pn.rows(1000))
    assert (
        index.explain()
        == "query: the last 1,000 rows of each key, 1,000 events held\n  max(v): elements, nothing to choose from"
    )
