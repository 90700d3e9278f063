"""Joins over windows of rows on Spark: batches and streams against this process, which has a loop beside it.

Catches keys that are split between tasks, times that change their zone on the way, watermarks of one side only, and
windows of a mixed call that hold each other up.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import panes as pn
from panes.errors import PlanError, SchemaError
from panes.testing import assert_same_answers
from tests.spark.streams import START, Collected, Recorded
from tests.spark.test_joining import LOCAL_TIME, UTC_TIME, frame, sides

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

MIXED = ["7s", pn.sliding(pn.rows(3)), pn.sliding(pn.delta("ts", "5s"), name="near")]


@pytest.mark.parametrize(("how", "time"), [("inner", UTC_TIME), ("full", LOCAL_TIME)])
def test_batches(spark, how, time):
    tables = [
        table.append_column("many", pa.array([[i % 60] for i in range(len(table))])) for table in sides(3, time=time)
    ]
    left, right = (frame(spark, table).repartition(3) for table in tables)
    joined = {"on": "key", "at": "ts", "over": MIXED, "where": "v_left <= v_right", "how": how}
    here = pn.join(*tables, **joined)
    assert len(pc.unique(here["window_name"])) == 3
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        assert_same_answers(pn.join(left, right, **joined), here)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def at_the_end(table, after):
    """A row of each key, long after the others."""
    values = {name: [1 if name == "v" else ""] * 3 for name in table.column_names}
    return pa.table(values | {"ts": pa.array([START + after] * 3, UTC_TIME), "key": [True, False, None]}).cast(
        table.schema
    )


@pytest.mark.usefixtures("one_partition")
@pytest.mark.parametrize("how", ["full", pytest.param("inner", marks=pytest.mark.soak)])
def test_streams(spark, tmp_path, how):
    """Also after a restart; at the end a row of each key and side, long after the others, lets all of them go."""
    tables, records, parts = [], [], []
    for number, table in enumerate(sides(4, 90, start=START)):
        table = table.filter(table["ts"].is_valid()).sort_by("ts")
        last, beyond = (at_the_end(table, (number + 1) * 10**power) for power in (13, 15))
        halves = (table.slice(0, 50), table.slice(50))
        shuffled = [half.take(np.random.default_rng(1).permutation(len(half))) for half in halves]
        parts.append([*shuffled, last, beyond.slice(0, 1)])
        tables.append(pa.concat_tables([table, last]))
        records.append(Recorded(spark, tmp_path / f"{number}", table.schema))
    joined = {"on": "key", "at": "ts", "over": MIXED, "where": "v_left <= v_right", "how": how}
    found = []
    for step in ((0,), (1, 2, 3)):
        for record, some in zip(records, parts, strict=True):
            record.add(*(some[number] for number in step))
        streams = (record.stream(delay="0 seconds") for record in records)
        found.append(Collected(pn.join(*streams, **joined), tmp_path / "checkpoint").finish())
    assert sum(run.metrics["late"] for run in found) == 0
    streamed, here = pa.concat_tables(run.rows for run in found), pn.join(*tables, **joined)
    assert streamed.schema.names == here.schema.names

    def of(rows, name):
        rows = rows.filter(pc.field("window_name") == name)
        # The very last rows of all are still in their windows.
        far = pa.scalar(START + 10**13 - 1, UTC_TIME)
        alone = pc.field("ts_left").is_null() | pc.field("ts_right").is_null()
        late = (pc.field("ts_left") > far) | (pc.field("ts_right") > far)
        return rows.filter(~(alone & late.is_valid() & late))

    for name in ("7s", "near"):
        assert len(of(here, name)) > 20
        assert_same_answers(of(streamed, name), of(here, name))
    matched = pc.field("ts_left").is_valid() & pc.field("ts_right").is_valid()
    assert_same_answers(of(streamed, "3rows").filter(matched), of(here, "3rows").filter(matched))
    alone, everything = (of(rows, "3rows").filter(~matched).to_pylist() for rows in (streamed, here))
    assert all(row in everything for row in alone)
    assert (how == "full") == (len(everything) - 18 < len(alone) <= len(everything) and len(alone) > 20)


def test_what_is_refused_before_any_job(spark, tmp_path):
    left = spark.createDataFrame([("a", 1, {"x": 1})], "k STRING, o BIGINT, m MAP<STRING, INT>").selectExpr(
        "current_timestamp() ts", "*"
    )
    right = left.withColumn("o", left.o.cast("double"))
    with pytest.raises(SchemaError, match=r"int64 in the left side and double in the right"):
        pn.join(left, right, on="k", at="ts", over=pn.sliding(pn.delta("o", 5)))
    stream = spark.readStream.schema("ts TIMESTAMP, k STRUCT<x: INT>").parquet(str(tmp_path))
    marked = stream.withWatermark("ts", "1 second")
    rows = pn.sliding(pn.rows(3))
    with pytest.raises(PlanError, match=r"right side has no watermark"):
        pn.join(marked, stream, on="k", at="ts", over=rows)
    with pytest.raises(PlanError, match=r"on='k' holds struct.*Take a field of it"):
        pn.join(marked, marked, on="k", at="ts", over=rows)
