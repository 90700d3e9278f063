"""``pn.apply`` and ``pn.sort`` with plain functions on Spark: batches and streams against this process."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import panes as pn
from panes.errors import DeclarationError, PlanError, SchemaError, StateError
from tests.spark.streams import Collected, Recorded

TIME = pa.timestamp("us", "UTC")
SCHEMA = pa.schema(
    [("ts", TIME), ("k", pa.string()), ("odometer", pa.int64()), ("x", pa.int64()), ("stop", pa.bool_())]
)
OUTPUT = pa.schema({"n": pa.int64(), "total": pa.int64(), "number": pa.int64(), "rows": pa.string()})


def events(seed, rows=200, upto=300):
    rng = np.random.default_rng(seed)
    seconds = np.sort(rng.integers(0, upto, rows)) * 1_000_000
    table = pa.table(
        [
            pa.array(seconds, pa.int64()).cast(TIME),
            pa.array(rng.choice(["a", "b", "ü"], rows), pa.string(), mask=rng.random(rows) < 0.1),
            np.cumsum(rng.integers(0, 3, rows)),
            rng.integers(-9, 9, rows),
            rng.random(rows) < 0.08,
        ],
        schema=SCHEMA,
    )
    return table.take(rng.permutation(rows))


def summed(key, window, rows):
    assert rows.schema.names == SCHEMA.names
    assert rows.num_rows == 0 or rows["k"][0].as_py() == key.get("k", rows["k"][0].as_py())
    told = repr((window.name, window.start, window.end, window.processed, rows.to_pylist()))
    return {"n": rows.num_rows, "total": sum(rows["x"].to_pylist()), "number": window.number, "rows": told}


OVER = [
    pn.tumbling("10 s"),
    pn.hopping("15 s", every="4 s", bounds="(]"),
    pn.cumulate("5 s", upto="20 s"),
    pn.nested(["40 s", "20 s"], ["20 s", "10 s"]),
    pn.nested(["30 s", "10 s"], ["10 s", "5 s"], since="1970-01-01 00:01:03", name="late"),
    pn.sliding("7 s"),
    pn.sliding("7 s", ago="3 s", bounds="[]"),
    pn.session("3 s"),
    pn.sliding(pn.rows(4)),
    pn.hopping(pn.rows(6), every="10 s"),
    pn.hopping("6 s", every=pn.rows(2), bounds="[]"),
    pn.tumbling(pn.delta("odometer", 4)),
    pn.tumbling("9 s", origin="row"),
    pn.tumbling(pn.punctuation("stop")),
    pn.tumbling(pn.punctuation("stop", scope="key")),
    pn.sliding(pn.rows(3), ago=pn.rows(1)),
]


def shown(table):
    return sorted(map(repr, table.to_pylist()))


@pytest.mark.parametrize(("by", "where"), [("k", None), ((), "x > -5")])
def test_batches(spark, by, where):
    table = events(1)
    asked = {"by": by, "at": "ts", "over": OVER, "where": where, "schema": OUTPUT}
    found = pn.apply(spark.createDataFrame(table), summed, **asked).toArrow()
    here = pn.apply(table, summed, **asked)
    assert found.column_names == here.column_names == ["window_name", "window", *([by] if by else []), *OUTPUT.names]
    assert shown(found) == shown(here)
    assert len(found) > 500


def test_windows_are_those_of_queries(spark):
    table = events(2)
    query = pn.query(by="k", at="ts", select={"n": pn.count(), "total": pn.sum("x")}, over=OVER, where="x > -5")
    wanted = pn.plan(query).run(table).drop_columns(["query"])
    asked = {"by": "k", "at": "ts", "over": OVER, "where": "x > -5"}
    found = pn.apply(spark.createDataFrame(table), summed, schema=OUTPUT, **asked).toArrow()
    # Of no rows the aggregate is null.
    empty = pa.compute.equal(found["n"], 0)
    total = pa.compute.if_else(empty, pa.scalar(None, pa.int64()), found["total"])
    found = found.select(["window_name", "window", "k", "n"]).append_column("total", total)
    assert shown(found) == shown(wanted)


def streamed(spark, folder, table, make):
    """Three micro-batches in two runs from one checkpoint; the last event is far behind all windows."""
    record, found = Recorded(spark, folder, SCHEMA), []
    table = table.sort_by("ts")
    end = pa.table([pa.array([10**9], TIME), ["z"], [10**6], [0], [False]], schema=SCHEMA)
    parts = [table.slice(0, 90), table.slice(90, 60), table.slice(150), end]
    parts = [part.take(np.random.default_rng(4).permutation(len(part))) for part in parts]
    for some in (parts[:2], parts[2:]):
        record.add(*some)
        stream = make(record.stream(delay="0 seconds"), str(folder / "checkpoint"))
        found.append(Collected(stream, folder / "checkpoint").finish().rows)
    return record, pa.concat_tables(found)


@pytest.mark.soak
def test_a_stream_gives_what_a_batch_gives(spark, tmp_path, one_partition):
    table = events(3)
    asked = {"by": "k", "at": "ts", "over": OVER, "schema": OUTPUT}

    def make(stream, place, **other):
        return pn.apply(stream, summed, **{**asked, "shards": 2, "checkpoint": place, **other})

    record, found = streamed(spark, tmp_path, table, make)
    # The very last event moves the clock on.
    last = pa.compute.max(table["ts"])
    found, wanted = (
        some.filter(pa.compute.less_equal(pa.compute.struct_field(some["window"], "end"), last))
        for some in (found, pn.apply(table, summed, **asked))
    )
    assert shown(found) == shown(wanted)
    assert len(wanted) > 700
    with pytest.raises(StateError, match="the checkpoint was written with"):
        make(record.stream(delay="0 seconds"), str(tmp_path / "checkpoint"), where="x > 0")


SORTED = [pn.tumbling("10 s"), pn.session("3 s"), pn.tumbling(pn.rows(7)), pn.sliding(pn.rows(9))]


def test_sorts_of_batches(spark):
    table = events(4)
    for over in SORTED:
        asked = {"order": ["x desc", "odometer"], "over": over, "by": "k", "at": "ts"}
        found = pn.sort(spark.createDataFrame(table), **asked).toArrow()
        here = pn.sort(table, **asked)
        assert found.schema.names == table.schema.names
        assert found.to_pylist() == here.to_pylist() or shown(found) == shown(here)
        assert len(here) > 150
        one = {**asked, "by": ()}
        assert pn.sort(spark.createDataFrame(table), **one).toArrow().to_pylist() == pn.sort(table, **one).to_pylist()


@pytest.mark.parametrize("over", [pn.tumbling("10 s"), pn.sliding(pn.rows(9))], ids=str)
def test_sorts_of_streams(spark, tmp_path, one_partition, over):
    table = events(5)
    asked = {"order": "x desc", "over": over, "at": "ts"}
    _, found = streamed(spark, tmp_path, table, lambda stream, place: pn.sort(stream, checkpoint=place, **asked))
    here = pn.sort(table, **asked).to_pylist()
    assert found.to_pylist()[: len(here)] == here


@pytest.mark.parametrize(
    ("error", "says", "options"),
    [
        (PlanError, "Spark has to know what the function returns", {"schema": None}),
        (PlanError, "Write at= with the column of their time", {"at": None, "over": pn.sliding(pn.rows(1))}),
        (SchemaError, "'kk' is not a column of the data", {"by": "kk"}),
        (DeclarationError, "results already have", {"schema": pa.schema({"k": pa.int64()})}),
        (PlanError, "checkpoint= is for streams", {"checkpoint": "/tmp/place"}),
    ],
)
def test_mistakes(spark, error, says, options):
    asked = {"by": "k", "at": "ts", "over": pn.tumbling("10 s"), "schema": OUTPUT, **options}
    with pytest.raises(error, match=says):
        pn.apply(spark.createDataFrame(events(1)), summed, **asked)
