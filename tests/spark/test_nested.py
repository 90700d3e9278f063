"""Nested windows on Spark: in batches and on a stream, with an initiation time and without, as Spark itself answers."""

from __future__ import annotations

import datetime as dt
import random

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

import panes as pn
from panes.errors import StateWarning
from panes.testing import assert_same_answers, events, spark_answers
from tests.spark.streams import START, VALUES, Collected, Recorded, finished, recorded, split

pytestmark = pytest.mark.usefixtures("one_partition")

SINCE = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=START + 7_000_000)
SELECT = {"n": pn.count(), "total": pn.sum("i"), "low": pn.min("x"), "last": pn.last("s"), "until": "expires"}
HIDDEN = {"line": pn.trend("i"), "ticks": pn.trend("i", every="2s")}


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (0, 2, 3))])
def test_batches(spark, seed):
    rng = random.Random(seed)
    time = [pa.timestamp("us", "UTC"), pa.timestamp("us")][seed % 2]
    table = events(80, keys={"k": pa.string()}, values=VALUES, start=START, time=time, null_times=0.05, seed=seed)
    data = spark.createDataFrame(table, schema=from_arrow_schema(table.schema, prefer_timestamp_ntz=True))
    slides = rng.choice([["1s", "3s", "12s"], ["2s", "3s", "5s"]])
    ranges = [f"{int(slide[:-1]) * n}s" for slide, n in zip(slides, (4, 6, 12), strict=True)]
    bounds = ["[)", "(]"][seed % 2]
    queries = [
        pn.query("since", at="ts", by="k", select=SELECT, over=pn.nested(ranges, slides, since=SINCE, bounds=bounds)),
        pn.query(
            "always", at="ts", select=SELECT, over=pn.nested(ranges[:2], slides[:2]), where="i > 0", having="n > 1"
        ),
        # A column of the name under which others ask when answers expire.
        pn.query("named", at="ts", by="k", select={"n": pn.count(), "expires": "n + 1"}, over=pn.tumbling("10s")),
    ]
    plan = pn.plan(queries)
    own = spark_answers(queries, data)
    expected = spark.createDataFrame(own.toArrow(), own.schema)
    assert_same_answers(plan.run(data), expected, absolute=1e-9)
    assert_same_answers(plan.run(table), expected, absolute=1e-9)
    if seed:
        native = pn.plan(queries[1]).run(data, strategy="native")
        assert_same_answers(native, expected.where("query = 'always'").drop("k", "expires"), absolute=1e-9)


@pytest.mark.soak
def test_a_stream_with_late_rows(spark, tmp_path):
    record = recorded(spark, tmp_path, 3, rows=120)
    over = pn.nested(["6s", "20s", "60s"], ["2s", "10s", "20s"], since=SINCE, symmetric=True)
    query = pn.query("q", at="ts", by="k", select=SELECT, over=over)
    stream = record.stream(delay="1 second")
    ours = Collected(pn.plan(query).stream(stream, shards=2), tmp_path / "ours")
    theirs = Collected(spark_answers(query, stream), tmp_path / "theirs")
    finished([ours, theirs])
    assert len(ours.batches) == len(theirs.batches) >= 4
    for number, batch in ours.batches.items():
        assert_same_answers(batch, theirs.batches[number], absolute=1e-9)
    assert ours.metrics["late"] > 0
    starts = {row["start"] for row in ours.rows["window"].to_pylist()}
    assert min(starts).replace(tzinfo=None) == SINCE


def test_a_stream_that_is_started_again_looks_at_levels_apart(spark, tmp_path):
    """Everything that only columns know, in one stream that is stopped after every micro-batch."""
    over = pn.nested(["6s", "20s", "60s"], ["2s", "10s", "20s"], symmetric=True)
    select = {
        "again": pn.recurring("s"),
        "often": pn.recurring("s", ranked=True),
        "weight": pn.aged(pn.count(), weights=[1, 0.5, 0.25]),
        "decayed": pn.aged(pn.sum("i"), half_life="10s"),
        "slope": "line.slope",
        "by_tick": "ticks.slope",
        "median": pn.quantile("i", 0.5),
    }
    query = pn.query("q", at="ts", by="k", select=select, hidden=HIDDEN, over=over)
    table = events(150, keys={"k": pa.string()}, values=VALUES, start=START, seed=5).sort_by("ts")
    record = Recorded(spark, tmp_path, table.schema)
    found = []
    for part in split(table, [50, 50]):
        record.add(part)
        with pytest.warns(StateWarning):
            answers = pn.plan(query).stream(record.stream(delay="1 second"), shards=2)
        found.append(Collected(answers, tmp_path / "checkpoint").finish().rows)
    ours = pa.concat_tables(found)
    expected = pn.plan(query).run(table)
    last = max(row["end"] for row in ours["window"].to_pylist())
    ended = [row["end"] <= last for row in expected["window"].to_pylist()]
    assert ours.num_rows > 100
    assert_same_answers(ours, expected.filter(pa.array(ended)), absolute=1e-9)
