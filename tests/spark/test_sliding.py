"""Sliding windows on Spark: batches against Spark's own window functions, streams against the definition."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime
from functools import reduce

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

import panes as pn
from panes.errors import PlanError, StateError
from panes.spark.naming import micros
from panes.testing import assert_same_answers, events, spark_answers
from panes.timeline import SECOND
from tests.spark.streams import START, Collected, Recorded
from tests.state.simulation import PerEvent

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

VALUES = {"i": pa.int32(), "x": pa.float64(), "s": pa.string()}
SIMPLE = {
    "n": (pn.count(), "count(1)"),
    "n_x": (pn.count("x"), "count(x)"),
    "total": (pn.sum("i"), "sum(i)"),
    "sum_x": (pn.sum("x"), "sum(x)"),
    "low": (pn.min("x"), "min(x)"),
    "high": (pn.max("s"), "max(s)"),
    "mean": (pn.mean("i"), "avg(i)"),
    "spread": (pn.std("i"), "stddev_samp(i)"),
}


def frame(spark, table):
    return spark.createDataFrame(table, schema=from_arrow_schema(table.schema, prefer_timestamp_ntz=True))


def own_windows(query: pn.Query, rows: DataFrame) -> DataFrame:
    """What Spark's window functions give, in the long form of Panes."""
    rows = rows.where("ts IS NOT NULL")
    rows = rows if query.where is None else rows.where(query.where.sql)
    instant = micros("ts", next(field.dataType for field in rows.schema if field.name == "ts"))
    parts = []
    for window in query.over:
        ordered = Over.partitionBy(*query.by).orderBy(F.expr(instant))
        # Open to the left: one µs less.
        near = ordered.rangeBetween(-(window.ago + window.size - 1), -window.ago)
        end = F.col("ts") - F.expr(f"INTERVAL '{window.ago}' MICROSECOND")
        start = end - F.expr(f"INTERVAL '{window.size}' MICROSECOND")
        parts.append(
            rows.select(
                F.lit(query.name).alias("query"),
                F.lit(window.name).alias("window_name"),
                F.struct(start.alias("start"), end.alias("end")).alias("window"),
                *query.by,
                *(F.expr(SIMPLE[alias][1]).over(near).alias(alias) for alias, _ in query.aggregates),
            )
        )
    return reduce(DataFrame.unionAll, parts)


@pytest.mark.parametrize("seed", range(3))
def test_what_window_functions_give(spark, seed):
    rng = random.Random(seed)
    time = [pa.timestamp("us", "UTC"), pa.timestamp("us")][seed % 2]
    table = events(400, keys={"k": pa.string()}, values=VALUES, start=START, null_times=0.03, seed=seed)
    # Many ties, and instants before the epoch.
    instants = [None if t is None else (t - START) // SECOND * SECOND // 3 - 60 * SECOND
                for t in table["ts"].cast(pa.int64()).to_pylist()]  # fmt: skip
    table = table.set_column(table.column_names.index("ts"), "ts", pa.array(instants, pa.int64()).cast(time))
    over = [pn.sliding(f"{rng.randint(1, 90)}s"), pn.sliding("500ms"), pn.sliding("1 day"),
            pn.sliding("20s", ago=f"{rng.randint(1, 40)}s", name="before")]  # fmt: skip
    select = {alias: ours for alias, (ours, _) in SIMPLE.items()}
    where = [None, "i > 0", None][seed]
    query = pn.query("q", at="ts", by=["k"] if seed < 2 else [], select=select, over=over, where=where)
    rows = frame(spark, table)
    found = pn.plan(query).run(rows).toArrow()
    assert_same_answers(found, own_windows(query, rows).toArrow(), absolute=1e-6)
    assert_same_answers(pn.plan(query).run(table), found, absolute=1e-9)


def test_every_aggregate_beside_other_windows(spark):
    table = events(150, keys={"k": pa.string(), "d": pa.float64()}, values=VALUES, start=START, seed=5)
    select = {
        "first": pn.first("s"),
        "last": pn.last("i"),
        "least": pn.arg_min("s", "i"),
        "most": pn.arg_max("x", "i"),
        "words": pn.count_distinct("s"),
        "all": pn.distinct("i"),
        "median": pn.quantile("x", 0.5),
        "together": pn.corr("i", "x"),
    }
    over = [pn.sliding("10s"), pn.sliding("40s", ago="15s"), pn.tumbling("20s"), pn.hopping("30s", every="10s")]
    queries = [
        pn.query("all", at="ts", by=["k", "d"], select=select, over=over),
        pn.query("some", at="ts", by="k", select={"n": pn.count(), "twice": "n * 2"}, over=over[:3], where="i > 0",
                 having="n > 1"),
    ]  # fmt: skip
    rows = frame(spark, table)
    plan = pn.plan(queries)
    found = plan.run(rows).toArrow()
    assert_same_answers(found, spark_answers(queries, rows).toArrow(), absolute=1e-6)
    assert_same_answers(plan.run(table), found, absolute=1e-9)
    narrow = pn.plan(pn.query("q", at="ts", by="k", select={"n": pn.count()}, over=over[:3]))
    assert_same_answers(narrow.run(table, layout="wide"), narrow.run(rows, layout="wide").toArrow())


@pytest.mark.parametrize("by", [[], ["k", "d"]])
def test_the_wide_form_of_one_instant_is_the_long_form(spark, by):
    """Where all windows have the same rows, these are made at once; elsewhere, of the long form."""
    table = events(150, keys={"k": pa.string(), "d": pa.float64()}, values=VALUES, start=START, null_times=0.1, seed=6)
    over = [pn.sliding("10s"), pn.sliding("40s"), pn.sliding("0.5s", name="short")]
    queries = [
        pn.query("all", at="ts", by=by, select={"n": pn.count(), "total": pn.sum("x"), "all": pn.distinct("i")},
                 over=over),
        pn.query("some", at="ts", by=by[::-1], select={"m": pn.count(), "top": pn.max("s")}, over=over, where="i > 0"),
        pn.query("none", at="ts", by=by, select={"o": pn.count()}, over=over[0], where="i > 1000000"),
    ]  # fmt: skip
    found = pn.plan(queries).run(frame(spark, table), layout="wide").toArrow()
    assert found.num_rows > 50
    assert_same_answers(found, pn.plan(queries).run(table, layout="wide"), absolute=1e-9)


def recorded(spark, folder, batches):
    schema = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.int64()), ("x", pa.int64())])
    record = Recorded(spark, folder, schema)
    return record, lambda some: record.add(*(as_table(batch, schema) for batch in some))


def as_table(batch, schema):
    columns = [[t for _, t, _ in batch], [k for k, _, _ in batch], [x for _, _, x in batch]]
    return pa.table([pa.array(c, pa.int64()).cast(f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)


def micro_batches(seed, count):
    """Events that come roughly in the order of time, some of them late, some at one instant."""
    rng = random.Random(seed)
    return [
        [
            (rng.randint(0, 2), (20 * number + rng.choice([0, 0, 0, -15, -40, 5]) + rng.randint(0, 15)) * SECOND, 1)
            for _ in range(25)
        ]
        for number in range(1, count + 1)
    ]


@pytest.mark.usefixtures("one_partition")
def test_a_stream_that_is_started_again(spark, tmp_path):
    batches = micro_batches(1, 4)
    record, add = recorded(spark, tmp_path, batches)
    over = [pn.sliding("30s"), pn.sliding("10s", ago="20s"), pn.sliding("1500ms")]
    queries = [
        pn.query(
            "q", at="ts", by="k", select={"n": pn.count(), "total": pn.sum("x")}, over=[*over, pn.tumbling("10s")]
        ),
        pn.query("everything", at="ts", select={"n": pn.count()}, over=over[0]),
    ]
    plan = pn.plan(queries)
    runs = []
    for some in (batches[:3], batches[3:]):
        add(some)
        stream = plan.stream(record.stream(delay="10 seconds"), shards=2, checkpoint=str(tmp_path / "checkpoint"))
        runs.append(Collected(stream, tmp_path / "checkpoint").finish())
        assert "30s/event: answers of all events before 1970-01-01" in plan.status(runs[-1].query)
    model, arrivals, expected = PerEvent(over, 0), iter(batches), Counter()
    keyless = PerEvent(over[:1], 0)
    for run in runs:
        for progress in run.query.recentProgress:
            batch = next(arrivals) if progress.numInputRows else []
            watermark = int(datetime.fromisoformat(progress.eventTime["watermark"]).timestamp() * SECOND)
            for name, key, start, end, held in model.step(batch, watermark):
                expected["q", name, key, start, end, len(held), sum(held) or None] += 1
            for name, _, start, end, held in keyless.step([(0, *event[1:]) for event in batch], watermark):
                expected["everything", name, None, start, end, len(held), None] += 1
    assert next(arrivals, None) is None
    rows = pa.concat_tables([run.rows for run in runs]).to_pylist()
    found = Counter(
        (row["query"], row["window_name"], row["k"], *(int(row["window"][b].timestamp() * SECOND)
         for b in ("start", "end")), row["n"], row["total"])
        for row in rows
        if "event" in row["window_name"]
    )  # fmt: skip
    assert sum(found.values()) > 100
    assert any("event" not in row["window_name"] for row in rows)
    assert found == expected
    # Some were too late for an answer of their own.
    assert sum(run.metrics["late"] for run in runs) > 0
    assert sum(n for at, n in found.items() if at[:2] == ("q", "30s/event")) < sum(map(len, batches))


@pytest.mark.usefixtures("one_partition")
def test_what_a_stream_refuses(spark, tmp_path):
    record, add = recorded(spark, tmp_path, [])
    add([[(0, SECOND, 1)]])
    tumbling = pn.query("t", at="ts", by="k", select={"n": pn.count()}, over=pn.tumbling("10s"))
    sliding = pn.query("s", at="ts", by="k", select={"n": pn.count()}, over=pn.sliding("10s"))
    with pytest.raises(PlanError, match="empty=True answers windows on the clock where they hold no event"):
        pn.plan(sliding).stream(record.stream(), empty=True)
    with pytest.raises(PlanError, match="leave strategy='native' out"):
        pn.plan(sliding).run(frame(spark, as_table([], record.schema)), strategy="native")
    Collected(pn.plan(tumbling).stream(record.stream()), tmp_path / "checkpoint").finish()
    with pytest.raises(StateError, match=r"nothing for sliding windows by \(k\)"):
        pn.plan([tumbling, sliding]).stream(record.stream(), checkpoint=str(tmp_path / "checkpoint"))
