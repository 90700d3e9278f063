"""A stream feeds a live plan: micro-batches of a real file stream, and the answers of brute force."""

from __future__ import annotations

import pyarrow as pa

import panes as pn
from panes.testing import events
from panes.testing.reference import answers_of
from tests.live.test_index import assert_same, live_of
from tests.spark.streams import START, VALUES, Recorded, split

SELECT = {
    "n": pn.count(),
    "total": pn.sum("i"),
    "low": pn.min("x"),
    "word": pn.last("s"),
    "median": pn.quantile("x", 0.5),
}


def test_a_stream_feeds_a_live_plan(spark, tmp_path):
    table = events(240, keys={"k": pa.string()}, values=VALUES, start=START, null_times=0.03, seed=6)
    record = Recorded(spark, tmp_path, table.schema)
    record.add(*split(table, [70, 1, 100]))
    index, sizes = live_of(SELECT, by="k", at="ts", keep="1 hour"), []

    def feed(batch, number):
        assert number == len(sizes)
        rows = batch.toArrow()
        sizes.append(rows.num_rows)
        index.update(rows)

    writer = record.stream().writeStream.foreachBatch(feed).trigger(availableNow=True)
    writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
    assert sizes == [70, 1, 100, 69]
    assert index.null_times == table["ts"].null_count > 0
    keys = table["k"].unique()
    requests = pa.table({"k": pa.concat_arrays([keys, pa.array(["nobody"])])})
    instants = table["ts"].cast(pa.int64()).to_pylist()
    newest = max(t for t in instants if t is not None)
    for seconds in (10, 100, 1000):
        answers = index.lookup(requests, over=f"{seconds}s")
        expected = requests
        begin, own = newest - seconds * 1_000_000, table["k"].to_pylist()
        rows = [
            ([i for i, t in enumerate(instants) if t is not None and begin < t <= newest and own[i] == key], 0, 0)
            for key in requests["k"].to_pylist()
        ]
        for alias, aggregate in SELECT.items():
            expected = expected.append_column(alias, answers_of(aggregate, table, rows, at="ts"))
        assert_same(answers, expected)
    assert answers["n"].to_pylist()[-1] == 0
