"""Windows of rows and sessions on Spark: batches and streams against this process and Spark itself.

Catches an order of events that Spark makes otherwise, sessions that Spark would cut elsewhere, and state that does not
come back after a restart.
"""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

import panes as pn
from panes.errors import PlanError, StateError
from tests.spark.streams import Collected, Recorded
from tests.test_golden import GOLDEN

TIME = pa.timestamp("us", "UTC")
SCHEMA = pa.schema([("ts", TIME), ("k", pa.string()), ("x", pa.int64())])


def events(seed, rows=300, upto=400):
    rng = np.random.default_rng(seed)

    def some(values, type_, share):
        return pa.array(values, type_, mask=rng.random(rows) < share)

    seconds = rng.integers(0, upto, rows) * 1_000_000
    return pa.table(
        [
            some(seconds, TIME, 0.02),
            some(rng.choice(["a", "b", "ü"], rows), pa.string(), 0.1),
            rng.integers(-9, 9, rows),
        ],
        schema=SCHEMA,
    )


SELECT = {"n": pn.count(), "total": pn.sum("x * 2"), "middle": pn.quantile("x", 0.5), "mean": "total / n"}


def query_of(over, name="q", **more):
    return pn.query(name, **{"at": "ts", "by": "k", "select": SELECT, "over": over, **more})


def shown(table):
    return sorted(map(repr, table.to_pylist()))


def test_batches(spark):
    table = events(1)
    plan = pn.plan(
        [
            query_of(
                [
                    *(pn.sliding(pn.rows(5)), pn.hopping(pn.rows(20), every=pn.rows(3))),
                    *(pn.session("7 s"), pn.hopping("1 min", every="20 s")),
                ],
                where="x > -5",
            ),
            pn.query("all", at="ts", select={"high": pn.max("x")}, over=pn.session("1 s"), having="high > 3"),
        ]
    )
    assert shown(plan.run(spark.createDataFrame(table)).toArrow()) == shown(plan.run(table))


def test_sessions_are_those_of_spark(spark):
    from pyspark.sql import functions as F

    table = events(2)
    found = pn.plan(query_of(pn.session("5 s"))).run(table).to_pylist()
    frame = spark.createDataFrame(table).where("ts IS NOT NULL")
    own = frame.groupBy("k", F.session_window("ts", "5 seconds").alias("w")).agg(F.count("*"), F.sum("x")).collect()
    mine = [
        (r["k"], r["window"]["start"].timestamp(), r["window"]["end"].timestamp(), r["n"], r["total"]) for r in found
    ]
    theirs = [(r[0], r[1].start.timestamp(), r[1].end.timestamp(), r[2], 2 * r[3]) for r in own]
    assert sorted(mine, key=str) == sorted(theirs, key=str)
    assert len(mine) > 20


def test_a_stream_gives_what_a_batch_gives(spark, tmp_path, one_partition):
    """Four micro-batches in two runs from one checkpoint."""
    table = events(3).drop_null().sort_by("ts")
    over = [
        *(pn.sliding(pn.rows(4)), pn.hopping(pn.rows(10), every=pn.rows(4))),
        *(pn.session("6 s"), pn.tumbling("30 s")),
    ]
    plan = pn.plan(query_of(over, select={"n": pn.count(), "total": pn.sum("x")}))
    record, found = Recorded(spark, tmp_path, SCHEMA), []
    end = pa.table([pa.array([10**9], TIME), ["z"], [0]], schema=SCHEMA)
    parts = [table.slice(0, 120), table.slice(120, 100), table.slice(220), end]
    # Out of order within a micro-batch.
    parts = [part.take(np.random.default_rng(4).permutation(len(part))) for part in parts]
    for some in (parts[:2], parts[2:]):
        record.add(*some)
        stream = plan.stream(record.stream(delay="0 seconds"), shards=2, checkpoint=str(tmp_path / "checkpoint"))
        ran = Collected(stream, tmp_path / "checkpoint").finish()
        found.append(ran.rows)
    told = plan.status(ran.query)
    assert "30s: [" in told
    assert "session 6s: all events before 1970-01-01 00:" in told
    # What is complete when the watermark stands at the last event of all.
    wanted = plan.run(table)
    assert shown(pa.concat_tables(found)) == shown(wanted)
    # Other values of the same type would be taken for those that are kept.
    for other in ({"select": {"n": pn.count(), "total": pn.sum("-x")}}, {"where": "x > 0"}):
        one = pn.plan(query_of(pn.sliding(pn.rows(4)), **{"select": {"n": pn.count(), "total": pn.sum("x")}, **other}))
        with pytest.raises(StateError, match="the checkpoint was written with"):
            one.stream(record.stream(delay="0 seconds"), shards=2, checkpoint=str(tmp_path / "checkpoint"))


def test_figures_of_several_operators_are_one_line():
    from panes.spark.progress import line_of

    figures = {"events": 9, "answers": 2, "watermark": 10**6, "open_windows": 1, "keys": 3, "granules": 4, "bytes": 10}
    line = line_of("q", 0, 1.0, {"panes": figures, "panes_1": {**figures, "watermark": 0}, "mine": {"events": 7}})
    assert (
        "9 events (1/s), watermark 1970-01-01 00:00:01, 4 answers, 2 windows open, holding 6 keys, 8 granules" in line
    )


def test_a_name_has_one_type(spark):
    """Spark would cast the one to the other."""
    plan = pn.plan(
        [query_of(pn.sliding(pn.rows(2))), query_of(pn.session("1 s"), name="text", select={"n": pn.max("k")})]
    )
    for table in (events(1), spark.createDataFrame(events(1))):
        with pytest.raises(PlanError, match=r"the column 'n' is \w+ in .*query.* but string in "):
            plan.run(table)


@pytest.mark.skipif(not GOLDEN.exists(), reason="../shared/golden is not there")
def test_spark_s_own_stream_of_sessions(spark, tmp_path, one_partition):
    cases = json.loads((GOLDEN / "spark.json").read_text())["cases"]
    case = next(c for c in cases if c["id"] == "spark/stream-session-append")
    record = Recorded(spark, tmp_path, pa.schema([("word", pa.string()), ("ts", TIME)]))
    plan = pn.plan(pn.query("q", by="word", at="ts", select={"n": pn.count()}, over=pn.session("10 s")))
    for step in case["steps"]:
        words, seconds = zip(*step["batch"], strict=True)
        record.add(pa.table({"word": words, "ts": pa.array([s * 10**6 for s in seconds], TIME)}))
    found = Collected(plan.stream(record.stream(delay="30 seconds"), shards=1), tmp_path / "checkpoint").finish()
    answers = []
    for row in found.rows.to_pylist():
        start, end = (int(row["window"][edge].timestamp()) for edge in ("start", "end"))
        answers.append([row["word"], start, end, end - start, row["n"]])
    assert sorted(answers) == sorted(row for step in case["steps"] for row in step["emits"])
    assert found.metrics["late"] == sum(step.get("dropped", 0) for step in case["steps"])
