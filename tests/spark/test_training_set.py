"""Features without the label's own payment: declared once, and the same in a stream, a lookup and a batch."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

import panes as pn
from tests.spark.streams import Collected, Recorded, split

pytestmark = pytest.mark.usefixtures("one_partition")

SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("card", pa.string()), ("amount", pa.int64())])
NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)
# With two payments of a card at one instant, one exactly a day after another, and one long after all others.
HOURS = [("a", 0, 10), ("b", 1, 7), ("a", 3, 20), ("a", 3, 30), ("a", 24, 40), ("b", 25, 1), ("b", 26, 2), ("a", 99, 5)]
PAYMENTS = [(NOON + dt.timedelta(hours=hours), card, amount) for card, hours, amount in HOURS]


def before(at: dt.datetime, card: str, bounds: str) -> tuple[int, int | None]:
    """How many payments of a card there were in the day before an instant, and their total."""
    inside = {"[)": lambda t: at - DAY <= t < at, "()": lambda t: at - DAY < t < at}[bounds]
    amounts = [amount for t, other, amount in PAYMENTS if other == card and inside(t)]
    return len(amounts), sum(amounts) if amounts else None


@pytest.mark.parametrize("bounds", ["[)", "()"])
def test_the_label_s_own_payment_is_left_out_alike(spark, tmp_path, bounds: Any) -> None:
    table = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in PAYMENTS], SCHEMA)
    declared = pn.query(
        by="card", at="ts", select={"n": pn.count(), "total": pn.sum("amount")}, over=pn.sliding("1 day", bounds=bounds)
    )
    plan = pn.plan(declared)
    expected = sorted((at, card, *before(at, card, bounds)) for at, card, _ in PAYMENTS)
    assert expected[0][2] == 0

    def answers(rows: pa.Table) -> list[tuple[Any, ...]]:
        return sorted((r["window"]["end"], r["card"], r["n"], r["total"]) for r in rows.to_pylist())

    n, total = (f"{name}_1d_{'before' if bounds == '[)' else 'between'}" for name in ("n", "total"))
    for features in (plan.lookup(table, table), plan.lookup(*[spark.createDataFrame(table)] * 2).toArrow()):
        assert sorted((r["ts"], r["card"], r[n], r[total]) for r in features.to_pylist()) == expected
    assert answers(plan.run(table)) == expected
    record = Recorded(spark, tmp_path, SCHEMA)
    # The last event only moves the watermark.
    far = pa.table([[NOON + 10 * DAY], ["z"], [0]], schema=SCHEMA)
    record.add(*split(table, [3, 3]), far)
    found = Collected(plan.stream(record.stream(delay="1 second"), shards=2), tmp_path / "checkpoint").finish()
    assert answers(found.rows) == expected
