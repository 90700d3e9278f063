"""Plans on real streams give what Spark's own windows give, micro-batch by micro-batch."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import panes as pn
from panes.errors import DeclarationError, PlanError, SchemaError, StateError, StateWarning
from panes.queries.windows import Window
from panes.testing import assert_same_answers, spark_answers
from tests.spark.streams import Collected, Recorded, finished, recorded

EVERY_AGGREGATE = {
    "n": pn.count(),
    "total": pn.sum("i"),
    "mean": pn.mean("x"),
    "low": pn.min("x"),
    "high": pn.max("s"),
    "spread": pn.std("i"),
    "first": pn.first("s"),
    "last": pn.last("i"),
    "least": pn.arg_min("s", "i"),
    "most": pn.arg_max("x", "i"),
}

EVERY_COLLECTION = {"words": pn.count_distinct("s"), "all": pn.distinct("i"), "median": pn.quantile("x", 0.5)}

pytestmark = pytest.mark.usefixtures("one_partition")


@pytest.fixture
def zone(spark):
    before = spark.conf.get("spark.sql.session.timeZone")
    yield lambda name: spark.conf.set("spark.sql.session.timeZone", name)
    spark.conf.set("spark.sql.session.timeZone", before)


def windows(seed: int) -> list[Window]:
    rng = random.Random(seed)
    slide = rng.randint(2, 20)
    drawn = pn.hopping(
        f"{slide + rng.randint(0, 40)}s", every=f"{slide}s", offset=f"{rng.randint(0, 5)}s", name="drawn"
    )
    return [pn.tumbling("10s"), pn.hopping("30s", every="10s"), drawn]


SOAK = [pytest.param(mode, seed, marks=pytest.mark.soak) for seed in range(2, 20) for mode in ("append", "update")]


@pytest.mark.parametrize(("mode", "seed"), [("append", 0), ("update", 1), *SOAK])
def test_every_micro_batch_equals_one_query_per_window(spark, tmp_path, mode, seed, zone):
    # Times come to Python in the zone of the session.
    zone(["UTC", "America/New_York"][seed % 2])
    record = recorded(spark, tmp_path, seed)
    over = windows(seed)
    queries = [
        pn.query("all", by="k", at="ts", select=EVERY_AGGREGATE, over=over),
        pn.query("some", by="k", at="ts", select={"n": pn.count()}, over=over[1], where="i > 0"),
        pn.query("keyless", at="ts", select={"n": pn.count(), "total": pn.sum("i")}, over=over[2]),
        pn.query("values", by="k", at="ts", select=EVERY_COLLECTION, over=over),
    ]
    with pytest.warns(StateWarning, match=r"'values': count_distinct\(s\) keeps every different value .* for 5?\d+s"):
        answers = pn.plan(queries).stream(record.stream(), mode=mode, shards=3)
    ours = Collected(answers, tmp_path / "ours", mode)
    theirs = Collected(spark_answers(queries, record.stream()), tmp_path / "theirs", mode)
    finished([ours, theirs])
    assert len(ours.batches) == len(theirs.batches) >= 4
    for number, batch in ours.batches.items():
        assert_same_answers(batch, theirs.batches[number], absolute=1e-9)
    if mode == "append":
        batch_answers = pn.plan(queries).run(
            record.spark.read.schema(record.stream().schema).parquet(str(record.folder))
        )
        assert ours.rows.num_rows < batch_answers.count()


GOLDEN = Path(__file__).parents[3] / "shared" / "golden" / "spark.json"


@pytest.mark.skipif(not GOLDEN.exists(), reason="../shared/golden is not there")
@pytest.mark.parametrize("name", ["spark/stream-append", "spark/stream-update"])
def test_spark_s_own_cases(spark, tmp_path, name):
    case = next(c for c in json.loads(GOLDEN.read_text())["cases"] if c["id"] == name)
    record = Recorded(spark, tmp_path, pa.schema([("ts", pa.timestamp("us", "UTC"))]))
    query = pn.query("q", at="ts", select={"n": pn.count()}, over=pn.tumbling(f"{case['window']['size']}s"))
    mode = case["output_mode"]
    for step in case["steps"]:
        # A run of its own for every step, from one checkpoint: so that the watermark moves between them, as there.
        record.add(pa.table({"ts": pa.array([row[0] * 10**6 for row in step["batch"]], pa.timestamp("us", "UTC"))}))
        stream = record.stream(delay=f"{case['watermark_delay']} seconds")
        found = Collected(pn.plan(query).stream(stream, mode=mode, shards=1), tmp_path / "checkpoint", mode).finish()
        answers = [[row["window"]["start"].timestamp(), row["n"]] for row in found.rows.to_pylist()]
        assert sorted(answers) == sorted(step["emits"])
        assert found.metrics.get("late", 0) == step.get("dropped", 0)


def test_late_events_come_out_as_rows(spark, tmp_path):
    record = Recorded(spark, tmp_path, pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.string())]))
    query = pn.query("q", by="k", at="ts", select={"n": pn.count()}, over=pn.tumbling("10s"), where="k <> 'c'")
    instant = lambda *seconds: pa.array([s * 10**6 for s in seconds], pa.timestamp("us", "UTC"))  # noqa: E731
    for batch in ((5, "a"), (50, "a")), ((3, "b"), (4, "c"), (60, "b")):
        record.add(pa.table({"ts": instant(*(s for s, _ in batch)), "k": [k for _, k in batch]}))
        stream = pn.plan(query).stream(record.stream(delay="0 seconds"), late="emit", shards=2)
        found = Collected(stream, tmp_path / "checkpoint").finish()
    rows = [(row["kind"], row["k"], row["n"], row["detail"]) for row in found.rows.to_pylist()]
    late = '{"ts":"1970-01-01T00:00:03.000Z","k":"b"}'
    assert sorted(rows, key=str) == [("answer", "a", 1, None), ("late", None, None, late)]


def test_what_a_condition_leaves_out_is_not_evaluated(spark, tmp_path):
    schema = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.string()), ("q", pa.int64())])
    record = Recorded(spark, tmp_path, schema)
    instants = pa.array([10**6, 2 * 10**6, 60 * 10**6, 2**61], pa.timestamp("us", "UTC"))
    record.add(pa.table([instants, ["a"] * 4, [0, 2, 1, 1]], schema=schema))
    queries = [
        pn.query(name, by=by, at="ts", select={"r": pn.sum("10 / q")}, over=pn.tumbling("10s"), where="q > 0")
        for name, by in (("by key", "k"), ("all", ()))
    ]
    stream = pn.plan(queries).stream(record.stream(delay="0 seconds"), shards=1)
    found = Collected(stream, tmp_path / "checkpoint").finish()
    assert sorted(row["r"] for row in found.rows.to_pylist()) == [5.0, 5.0, 10.0, 10.0]
    assert found.metrics["absurd_timestamps"] == 1


def test_zero_is_one_key_and_called_as_spark_calls_it(spark, tmp_path):
    record = Recorded(spark, tmp_path, pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.float64())]))
    instants = pa.array([10**6, 2 * 10**6, 60 * 10**6], pa.timestamp("us", "UTC"))
    events = pa.table({"ts": instants, "k": [-0.0, 0.0, 1.0]})
    record.add(events)
    plan = pn.plan(pn.query("q", by="k", at="ts", select={"n": pn.count()}, over=pn.tumbling("10s")))
    stream = plan.stream(record.stream(delay="0 seconds"), shards=2)
    found = Collected(stream, tmp_path / "checkpoint").finish().rows
    batch = plan.run(spark.createDataFrame(events), strategy="native").toArrow()
    first = [[(str(row["k"]), row["n"]) for row in rows.to_pylist()][:1] for rows in (found, batch.sort_by("k"))]
    assert first == [[("0.0", 2)]] * 2
    assert str(plan.run(events)["k"][0].as_py()) == "0.0"


def test_keys_are_evicted_and_say_so(spark, tmp_path):
    record = Recorded(spark, tmp_path, pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.int64())]))
    for number in range(3):
        instants = pa.array([(number * 20 + i) * 10**6 for i in range(10)], pa.timestamp("us", "UTC"))
        record.add(pa.table({"ts": instants, "k": [100 * number + i for i in range(10)]}))
    query = pn.query("q", by="k", at="ts", select={"n": pn.count()}, over=pn.tumbling("1 min"))
    stream = pn.plan(query).stream(record.stream(delay="0 seconds"), limits=pn.Limits(keys=10), shards=1)
    found = Collected(stream, tmp_path / "checkpoint").finish()
    assert found.metrics["evicted"] >= 20
    assert found.rows.num_rows >= 20
    assert all(0 <= row["coverage"] < 1 for row in found.rows.to_pylist())


def test_bad_use_is_refused_before_the_stream_starts(spark, tmp_path):
    record = Recorded(spark, tmp_path, pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.string())]))
    plan = pn.plan(pn.query("q", by="k", at="ts", select={"n": pn.count()}, over=pn.tumbling("5s")))
    bare = spark.readStream.schema("ts TIMESTAMP, k STRING").parquet(str(record.folder))
    with pytest.raises(PlanError, match=r"no watermark on 'ts'.*withWatermark\('ts'"):
        plan.run(bare)
    for option in ({"late": "emit"}, {"limits": pn.Limits(keys=1)}, {"shards": 2}, {"mode": "update"}):
        with pytest.raises(DeclarationError, match=rf"run\(\) has no {next(iter(option))}=: it is for streams"):
            plan.run(pa.table({}), **option)
    with pytest.raises(PlanError, match="for batches"):
        plan.run(record.stream(), strategy="native")
    with pytest.raises(DeclarationError, match=r"stream\(\) has no strategy=: a stream runs one stateful operator"):
        plan.stream(record.stream(), strategy="native")
    with pytest.raises(PlanError, match="takes a streaming DataFrame, and was given a Table"):
        plan.stream(pa.table({}))
    unknown = pn.query("q", by="kk", at="ts", select={"n": pn.count()}, over=pn.tumbling("5s"))
    with pytest.raises(SchemaError, match="'kk' is not a column"):
        pn.plan(unknown).stream(record.stream())


def test_a_checkpoint_of_another_plan_is_refused_before_the_stream_starts(spark, tmp_path):
    record = Recorded(spark, tmp_path, pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.string())]))
    record.add(pa.table({"ts": pa.array([10**6], pa.timestamp("us", "UTC")), "k": ["a"]}))
    place, over = str(tmp_path / "checkpoint"), pn.tumbling("5s")
    written = pn.query("q", by="k", at="ts", select={"n": pn.count()}, over=over)
    plan = pn.plan(written)
    Collected(plan.stream(record.stream(), shards=2, checkpoint=place), tmp_path / "checkpoint").finish()
    plan.stream(record.stream(), shards=2, checkpoint=place)
    with pytest.raises(StateError, match="written with shards=2, and this run has shards=3"):
        plan.stream(record.stream(), shards=3, checkpoint=place)
    with pytest.raises(StateError, match="written with mode='append'"):
        plan.stream(record.stream(), shards=2, mode="update", checkpoint=place)
    others = {
        "keeps nothing by": pn.query("q", at="ts", select={"n": pn.count()}, over=over),
        "the checkpoint has no": pn.query("q", by="k", at="ts", select={"low": pn.min("k")}, over=over),
        "keeps all events": pn.query("q", by="k", at="ts", select={"n": pn.count()}, over=over, where="k > 'b'"),
    }
    for reason, query in others.items():
        with pytest.raises(StateError, match=reason):
            pn.plan(query).stream(record.stream(), shards=2, checkpoint=place)
    # A driver that died in its first micro-batch has left a checkpoint that nothing was committed to.
    shutil.rmtree(tmp_path / "checkpoint" / "commits")
    plan.stream(record.stream(), shards=3, checkpoint=place)
