"""A stream that starts again with other types, or whose state is damaged, stops with a sentence."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F

import panes as pn
from panes.errors import StateError
from panes.spark.processor import ShardRunner
from panes.state.manifest import encode_manifest, read_state
from panes.timeline import SECOND
from tests.spark.streams import START, Collected, Recorded, finished
from tests.state.memory_blob_store import MemoryBlobStore

pytestmark = pytest.mark.usefixtures("one_partition")

SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.int32()), ("x", pa.int64())])


def batch(first):
    instants = pa.array([START + (first + i) * SECOND for i in range(20)], SCHEMA.field("ts").type)
    return pa.table([instants, [i % 3 for i in range(20)], list(range(20))], schema=SCHEMA)


def test_another_type_is_refused_before_the_stream_starts_or_in_its_first_micro_batch(spark, tmp_path):
    record = Recorded(spark, tmp_path, SCHEMA)
    record.add(batch(0), batch(20))
    select = {"total": pn.sum("x"), "top": pn.max("x * 2")}
    kinds = {
        "time": pn.plan(pn.query(by="k", at="ts", select=select, over=pn.tumbling("10 s"))),
        "rows": pn.plan(pn.query(by="k", at="ts", select=select, over=pn.sliding(pn.rows(3)))),
    }

    def started(kind, stream, **options):
        return Collected(kinds[kind].stream(stream, shards=1, **options), tmp_path / kind)

    finished([started(kind, record.stream()) for kind in kinds])
    record.add(batch(40))
    others = {
        "x": (record.stream().withColumn("x", F.col("x").cast("double")), "BIGINT", "DOUBLE"),
        "k": (record.stream().withColumn("k", F.col("k").cast("bigint")), "INT", "BIGINT"),
    }
    for name, (stream, was, now) in others.items():
        says = f"{name} was of type {was} when the checkpoint was written, and is of type {now} now"
        write = re.escape(f"Write events.withColumn('{name}', F.col('{name}').cast('{was}')) before the stream")
        for kind in kinds:
            with pytest.raises(StateError, match=f"{says}: .*{write}"):
                started(kind, stream, checkpoint=str(tmp_path / kind))
    # Without checkpoint=, by the shard that reads its state.
    with pytest.raises(StreamingQueryException, match=r"StateError: shard \d+: x was of type BIGINT when"):
        started("time", others["x"][0]).finish()
    # Cast as the message says, it goes on.
    cast = others["x"][0].withColumn("x", F.col("x").cast("BIGINT"))
    for kind in kinds:
        assert started(kind, cast, checkpoint=str(tmp_path / kind)).finish().rows.num_rows


class Reads:
    """A job whose shards only read their manifest."""

    def collect(self, rows):
        return None

    def open(self, blob_store):
        return read_state(blob_store, {})


def test_an_error_names_the_shard():
    blob_store = MemoryBlobStore()
    blob_store.write_manifest(encode_manifest({"declared": {}})[:-1] + b"!")
    with pytest.raises(StateError, match=r"^shard 7: the manifest of the state is damaged: its checksum is wrong"):
        list(ShardRunner(Reads(), blob_store).with_rows((7,), iter(()), 0))
