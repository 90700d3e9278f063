"""Plans on real streams give what Spark's own windows give, micro-batch by micro-batch."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

import panes as pn
from panes.testing import assert_same_answers, events, spark_answers
from tests.spark.streams import Collected, Recorded, finished, split

START = 1_700_000_000_000_000
VALUES = {"i": pa.int32(), "x": pa.float64(), "s": pa.string()}
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


@pytest.fixture(autouse=True)
def few_partitions(spark):
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    yield
    spark.conf.set("spark.sql.shuffle.partitions", before)


def recorded(spark, folder: Path, seed: int, *, rows: int = 160, batches: int = 5) -> Recorded:
    """Events that come roughly in the order of time, some of them late, some without a time."""
    rng = random.Random(seed)
    table = events(rows, keys={"k": pa.string()}, values=VALUES, start=START, null_times=0.03, seed=seed)
    instants = table.column("ts").cast(pa.int64()).to_pylist()
    arrival = [(START if t is None else t) + rng.choice([0, 0, 5, 40]) * rng.random() * 1e6 for t in instants]
    table = table.take(sorted(range(rows), key=arrival.__getitem__))
    record = Recorded(spark, folder, table.schema)
    record.add(*split(table, sorted(rng.sample(range(10, rows // 2), batches - 1))[: batches - 1]))
    return record


def windows(seed: int) -> list[pn.Window]:
    rng = random.Random(seed)
    drawn = [pn.tumbling("10s"), pn.hopping("30s", every="10s")]
    for _ in range(3):
        slide = rng.randint(2, 20)
        size = slide + rng.randint(0, 40)
        drawn.append(pn.hopping(f"{size}s", every=f"{slide}s", offset=f"{rng.randint(0, 5)}s"))
    return list({window.name: window for window in drawn}.values())


@pytest.mark.parametrize("mode", ["append", "update"])
@pytest.mark.parametrize("seed", range(3))
def test_every_micro_batch_equals_one_query_per_window(spark, tmp_path, mode, seed):
    record = recorded(spark, tmp_path, seed)
    over = windows(seed)
    queries = [
        pn.query("all", by="k", at="ts", select=EVERY_AGGREGATE, over=over),
        pn.query("some", by="k", at="ts", select={"n": pn.count()}, over=over[:2], where="i > 0"),
        pn.query("keyless", at="ts", select={"n": pn.count(), "total": pn.sum("i")}, over=over[1:3]),
    ]
    ours = Collected(pn.plan(queries).run(record.stream(), mode=mode, shards=3), tmp_path / "ours", mode)
    theirs = Collected(spark_answers(queries, record.stream()), tmp_path / "theirs", mode)
    finished([ours, theirs])
    assert len(ours.batches) == len(theirs.batches) >= 5
    for number, batch in ours.batches.items():
        assert_same_answers(batch, theirs.batches[number], absolute=1e-9)
    if mode == "append":
        batch_answers = pn.plan(queries).run(
            record.spark.read.schema(record.stream().schema).parquet(str(record.folder))
        )
        assert ours.rows.num_rows < batch_answers.count()
