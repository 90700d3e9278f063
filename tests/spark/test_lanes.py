"""The SQL that numbers panes, against integers: rounded products have to be right at every edge of every century."""

from __future__ import annotations

import random

import pytest

from panes.spark import lanes
from panes.timeline import DAY, SECOND, Edges

FARTHEST = 2**63 - 10 * DAY
PROGRESSIONS = {
    "one": [Edges(10 * SECOND, 3 * SECOND)],
    "seconds": [Edges(period * SECOND) for period in (28, 30, 34, 48, 54, 76, 85, 100, 130, 165, 205, 225, 290)],
    "offsets": [Edges(7 * SECOND, SECOND), Edges(11 * SECOND, 3 * SECOND), Edges(DAY, 5 * SECOND + 1)],
    "the finest to be rounded": [Edges(16385 * 3, 5), Edges(16385 * 5, 5), Edges(16385 * 7, 16385 + 5)],
    "the coarsest to be divided": [Edges(16384 * 3, 5), Edges(16384 * 5, 5), Edges(16384 * 7, 16384 + 5)],
    "microseconds": [Edges(3), Edges(1000, 7)],
}


@pytest.mark.parametrize("name", PROGRESSIONS)
def test_numbers_are_exact(spark, name):
    edges, rng = PROGRESSIONS[name], random.Random(name)
    origins = [0, 1_800_000_000 * SECOND, -62_135_596_800 * SECOND, FARTHEST, -FARTHEST]
    near = [e.floor(o + rng.randrange(-DAY, DAY)) + step for o in origins for e in edges * 40 for step in (-1, 0, 1)]
    anywhere = [rng.randint(-FARTHEST, FARTHEST) for _ in range(500)]
    found = (
        spark.createDataFrame([(t,) for t in near + anywhere], "t BIGINT")
        .selectExpr("t", f"{lanes._counted_from(edges, 't')} AS {lanes._COUNTED_FROM}")
        .selectExpr("t", f"{lanes._number(edges)} AS {lanes._NUMBER}")
        .selectExpr("t", lanes._NUMBER, lanes._place(edges, 2), lanes._place(edges, 32))
        .collect()
    )
    assert len(found) == len(near) + len(anywhere)
    for t, number, of_two, of_many in found:
        assert number == sum((t - e.offset) // e.period for e in edges)
        assert of_two == number // 2 * lanes._spread(edges, 2)
        assert of_many == number // 32 * lanes._spread(edges, 32)


def test_blocks_are_spread_where_their_numbers_fit():
    assert lanes._spread([Edges(10 * SECOND)], 16) > 1
    assert lanes._spread([Edges(1000)], 2) == 1
