"""Joins on Spark against Spark's own interval joins, one per window: batches, streams, and what is refused."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

import panes as pn
from panes.testing import assert_same_answers, events, spark_joins
from tests.spark.streams import START, Collected, Recorded, finished, split

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

UTC_TIME, LOCAL_TIME = pa.timestamp("us", "UTC"), pa.timestamp("us")
OVER = {"short": "2s", "medium": "7s", "long": "20s"}
SOAK_BATCHES = [
    pytest.param(seed, how, marks=pytest.mark.soak)
    for seed in range(3, 15)
    for how in ("inner", "left", "right", "full")
]
SOAK_STREAMS = [pytest.param(how, marks=pytest.mark.soak) for how in ("inner", "left", "right")]


def windows(over):
    return [pn.sliding(size, name=name) for name, size in over.items()]


def frame(spark, table):
    return spark.createDataFrame(table, schema=from_arrow_schema(table.schema, prefer_timestamp_ntz=True))


def sides(seed, rows=60, **options):
    """Two tables with ties, gaps, null keys and null times; some rows are there twice."""
    for number, other in enumerate(("x", "y")):
        values = {"v": pa.int32(), other: pa.string()}
        # Of two keys, so that both sides have the same ones.
        keys = {"key": pa.bool_()}
        table = events(rows, keys=keys, values=values, null_times=0.05, seed=2 * seed + number, **options)
        yield pa.concat_tables([table, table.slice(0, 5)])


@pytest.mark.parametrize(("seed", "how"), [(1, "inner"), (2, "left"), (1, "right"), (2, "full"), *SOAK_BATCHES])
def test_batches_equal_one_join_per_window(spark, seed, how):
    theirs, ours = [("l.v < r.v", "v_left < v_right"), ("TRUE", None)][seed % 2]
    tables = list(sides(seed, time=[UTC_TIME, LOCAL_TIME][seed % 2]))
    left, right = (frame(spark, table) for table in tables)
    expected = spark_joins(left, right, on="key", over=OVER, where=theirs, how=how).toArrow()
    assert len(expected) - expected["expires"].null_count > 50
    joined = {"on": "key", "at": "ts", "over": windows(OVER), "where": ours, "how": how}
    assert_same_answers(pn.join(left, right, **joined), expected)
    assert_same_answers(pn.join(*tables, **joined), expected)
    assert_same_answers(pn.join(left, right, **joined, layout="matches"), pn.join(*tables, **joined, layout="matches"))


class Pair:
    """Two recorded streams of the same length in micro-batches, some of whose rows are late."""

    def __init__(self, spark, folder, seed):
        tables = list(sides(seed, 80, start=START))
        self.records = [Recorded(spark, folder / name, t.schema) for name, t in zip("lr", tables, strict=True)]
        self.parts = [split(_arriving(table), [30, 25]) for table in tables]
        self.tables = tables

    def add(self, *numbers):
        for record, parts in zip(self.records, self.parts, strict=True):
            record.add(*(parts[number] for number in numbers))

    def end(self):
        """Rows far ahead, so that the watermark passes all others."""
        for record, table in zip(self.records, self.tables, strict=True):
            last = table.slice(0, 1).set_column(0, "ts", pa.array([START + 10**12], UTC_TIME))
            record.add(last)

    def streams(self):
        return [
            record.stream(delay=delay) for record, delay in zip(self.records, ("2 seconds", "4 seconds"), strict=True)
        ]


def _arriving(table):
    """Roughly in the order of time."""
    instants = table["ts"].cast(pa.int64()).to_pylist()
    arrival = [(START if t is None else t) + (i % 5 == 0) * 30 * 10**6 for i, t in enumerate(instants)]
    return table.take(sorted(range(len(arrival)), key=arrival.__getitem__))


@pytest.mark.usefixtures("one_partition")
@pytest.mark.parametrize("how", ["full", *SOAK_STREAMS])
def test_streams_equal_one_streaming_join_per_window(spark, tmp_path, how):
    """Also after a restart; rows that are late for one are late for all.

    A query per window, as users have to write it: in a union of several joins over the same streams, Spark moves the
    watermark of the first one only.
    """
    over = {"near": "2s", "far": "20s"}
    pair = Pair(spark, tmp_path, seed=3)
    joined = {"on": "key", "at": "ts", "over": windows(over), "how": how}
    runs = []
    for step in ((0,), (1, 2)):
        pair.add(*step)
        if step[-1] == 2:
            pair.end()
        asked = {layout: pn.join(*pair.streams(), **joined, layout=layout) for layout in ("long", "matches")}
        # A row without a time is dropped, here as there: no watermark would ever pass it.
        timed = {name: [rows.where("ts IS NOT NULL") for rows in pair.streams()] for name in over}
        asked |= {name: spark_joins(*timed[name], on="key", over={name: over[name]}, how=how) for name in over}
        runs.append(finished(Collected(rows, tmp_path / f"checkpoint {name}") for name, rows in asked.items()))
    long, once, *alone = (pa.concat_tables(run[i].rows for run in runs) for i in range(4))
    assert_same_answers(long, pa.concat_tables(alone))
    if how == "inner":
        for ours, _, *theirs in runs:
            for number, batch in ours.batches.items():
                assert_same_answers(batch, pa.concat_tables(one.batches[number] for one in theirs))
    assert_same_answers(once.drop(["level", "window_name", "expires"]), alone[-1].drop(["window_name", "expires"]))
    apart = [
        abs(a - b) if a and b else None
        for a, b in zip(*(_micros(once, f"ts_{s}") for s in ("left", "right")), strict=True)
    ]
    assert once["level"].to_pylist() == [2 if d is None else int(d >= 2 * 10**6) for d in apart]
    assert once.filter(once["expires"].is_null()).num_rows == sum(d is None for d in apart)
    # Spark read from the condition how long to keep rows: only the last ones are left.
    assert [run.query.lastProgress.stateOperators[0].numRowsTotal for run in runs[-1][:2]] == [
        2 if how == "inner" else 2 * len(over),
        2,
    ]
    all_in_time = pn.join(*pair.tables, on="key", at="ts", over=windows(over))
    assert 0 < once.num_rows - once["expires"].null_count < all_in_time.num_rows


def _micros(table, column):
    return table[column].cast(pa.int64()).to_pylist()
