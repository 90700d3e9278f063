"""The equalities on Spark: batches, streams and lookups are those of this process, over all windows at once."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

import panes as pn
from panes.queries.windows import RowWindow, Sliding
from tests.model.drawing import (
    CLASSES,
    CLOCK,
    LAST_ROWS,
    MARKS,
    OF_ROWS,
    SCHEMA,
    SESSIONS,
    SLIDING,
    TIME,
    rows_of,
    table_of,
)
from tests.spark.streams import Collected, Recorded

pytestmark = pytest.mark.filterwarnings("ignore::panes.errors.StateWarning")

EVERY = {alias: value for some in CLASSES.values() for alias, value in some.items()}
WIDE = pa.schema([*SCHEMA, ("id", pa.int64())])


def drawn(seed, rows=60, unit=1):
    """Rows in the order of time, many of one instant, times in some unit of µs."""
    rng, now, odometer, found = random.Random(seed), 0, 0, []
    for _ in range(rows):
        now, odometer = now + rng.choice([0, 0, 1, 1, 2, 3, 9]) * unit, odometer + rng.randint(0, 3)
        values = rng.choice([None, -3, -1, 0, 2]), rng.randint(0, 2), rng.choice([None, -1.5, 0.0, 2.5])
        stop = rng.choice([False, False, False, True, None])
        found.append((now, rng.choice(["a", "b", None]), rng.choice(["u", "v", None]), odometer, *values, stop))
    ids = rng.sample(range(rows), rows)
    return table_of(found).append_column("id", pa.array(ids, pa.int64()))


def queries():
    """Windows of all kinds, and all options of a query."""
    few = [CLOCK[2], *SLIDING[:2], LAST_ROWS[0]]
    numbered = {"low": pn.min("x"), "which": "number"}
    over = [*CLOCK, *SLIDING, *OF_ROWS, *SESSIONS, *MARKS]
    yield pn.query("all", by="k", at="ts", select={**EVERY, "range": "top - low"}, over=over, where="y < 2")
    yield pn.query("ties", by="k", at="ts", select=CLASSES["idempotent"], over=few, ties="id")
    yield pn.query("two keys", by=("k", "g"), at="ts", select={"n": pn.count()}, over=few, having="n > 1")
    yield pn.query("no key", at="ts", select={"n": pn.count(), "late": pn.last("y")}, over=[*few, MARKS[1]])
    yield pn.query("groups", by="k", at="ts", select={"low": pn.min("x")}, over=few[-1:], groups="g")
    evict = pn.evict(keys=1)
    yield pn.query("evict", by="k", at="ts", select=numbered, over=few[-1:], evict=evict)


def test_a_batch_is_the_run_of_this_process(spark, one_partition):
    table = drawn(1)
    plan = pn.plan(list(queries()))
    mixed = table.take(random.Random(2).sample(range(len(table)), len(table)))
    frame = spark.createDataFrame(mixed, schema=from_arrow_schema(WIDE)).coalesce(1)
    # All windows on the clock at once: what else the planner chooses is tested elsewhere, and takes Spark longer.
    answers = plan.run(frame, strategy="columnar").toArrow()
    wanted = plan.run(table)
    assert rows_of(answers) == rows_of(wanted)
    assert len(set(wanted["window_name"].to_pylist())) > 40


@pytest.mark.parametrize("strategy", ["native", "rewrite", "columnar"])
def test_ties_decide_whatever_the_strategy(spark, strategy, one_partition):
    table = drawn(3)
    select = {"late": pn.last("y"), "early": pn.first("z"), "most": pn.arg_max("y", "x")}
    queries = [
        pn.query(
            "id",
            by="k",
            at="ts",
            select=select,
            over=[pn.tumbling("6 us"), pn.hopping("6 us", every="2 us")],
            ties="id",
        ),
        pn.query("none", by="k", at="ts", select=select, over=pn.tumbling("6 us")),
    ]
    found = pn.plan(queries).run(spark.createDataFrame(table), strategy=strategy).toArrow()
    assert rows_of(found.select(pn.plan(queries).run(table).column_names)) == rows_of(pn.plan(queries).run(table))


IN_SECONDS = [
    *(pn.tumbling("5 s"), pn.hopping("7 s", every="3 s"), pn.cumulate("2 s", upto="8 s")),
    *(pn.sliding("5 s"), pn.sliding("4 s", bounds="[)"), pn.nested(["8 s", "4 s"], ["4 s", "2 s"])),
    *(pn.sliding(pn.rows(3)), pn.hopping(pn.rows(3), every=pn.rows(2)), pn.tumbling(pn.rows(2))),
    *(pn.hopping(pn.rows(3), every="4 s"), pn.hopping("6 s", every=pn.rows(2)), pn.tumbling("6 s", origin="row")),
    *(pn.tumbling(pn.delta("odometer", 5)), pn.session("2 s"), pn.session("6 s"), *MARKS),
]


def test_a_stream_is_the_run(spark, tmp_path, one_partition):
    table = drawn(4, unit=10**6)
    end = table_of([(10**9, "z", None, 10**6, 0, 0, 0.0, False)]).append_column("id", pa.array([10**6]))
    select = {"n": pn.count(), "total": pn.sum("x"), "late": pn.last("y")}
    plan = pn.plan(
        [
            pn.query("keyed", by="k", at="ts", select=select, over=IN_SECONDS, ties="id"),
            pn.query("not", at="ts", select={**select, "more": "n + 1"}, over=IN_SECONDS[:7], having="n > 1"),
        ]
    )
    record = Recorded(spark, tmp_path, WIDE)
    record.add(table.slice(0, 35), table.slice(35), end)
    stream = plan.stream(record.stream(delay="0 seconds"), shards=1)
    found = Collected(stream, tmp_path / "checkpoint").finish().rows
    # What the last event opens or ends is not complete; everything before it is.
    wanted = plan.run(pa.concat_tables([table, end]))
    kinds = {name: window for window in IN_SECONDS for name in getattr(window, "names", (window.name,))}

    def complete(row):
        window, last = kinds[row["window_name"]], row["window"]["end"].timestamp()
        answered = isinstance(window, Sliding) or (isinstance(window, RowWindow) and not isinstance(window.every, int))
        return last < 1000 or (last == 1000 and not answered)

    kept = wanted.filter(pa.array([complete(row) for row in wanted.to_pylist()]))
    assert rows_of(found) == rows_of(kept)
    assert len(kept) > 500


def test_a_lookup_is_that_of_this_process(spark, one_partition):
    table = drawn(5)
    over = [*CLOCK[1:], *SLIDING, *LAST_ROWS, pn.hopping(pn.rows(3), every="4 us", bounds="(]")]
    plan = pn.plan(
        [
            pn.query("keyed", by="k", at="ts", select=EVERY, over=over, ties="id"),
            pn.query("not", at="ts", select={"all": pn.count()}, over=over, where="y < 2"),
        ]
    )
    asked = pa.table(
        {"ts": pa.array([0, 7, 7, 30, 90, None], TIME), "k": ["a", "b", None, "a", "b", "a"], "n": range(6)}
    )
    frames = [spark.createDataFrame(side) for side in (table, asked.rename_columns(["ts", "k", "number"]))]
    asked = asked.rename_columns(["ts", "k", "number"])
    wanted = plan.lookup(table, asked, delay="2 us")
    assert rows_of(plan.lookup(*frames, delay="2 us").toArrow().select(wanted.column_names)) == rows_of(wanted)
