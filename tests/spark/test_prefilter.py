"""``having`` where answers are made: what is dropped there, what is left to Spark, and that nobody can tell."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import panes as pn
from panes.engine.answer import Answers
from panes.engine.bind_program import bind_store, types_in
from panes.planning.plan_queries import plan_queries
from panes.planning.statistics import Statistics
from panes.spark.prefilter import Prefilter
from tests.spark.test_corner_cases import setting

KEYS = {"k": pa.string()}
EVENTS = pa.schema({"ts": pa.timestamp("us", "UTC"), "k": pa.string(), "x": pa.int32()})


def kept(having: str, select: dict[str, Any] | None = None) -> list[int] | None:
    """Which of the answers n = 0, 1, 2, null of the keys a, b, c, d are kept; None where nothing is known."""
    select = select or {"n": pn.sum("x")}
    query = pn.query("q", by="k", at="ts", select=select, over=pn.tumbling("1 min"), having=having)
    store = plan_queries([query], Statistics.given(None, None), "columnar", factor_windows=False).stores[0]
    view = bind_store(store, types_in(EVENTS)).views[0]
    prefilter = Prefilter.of([query], KEYS, [view])
    answers = Answers(0, np.arange(4), np.arange(4), (pa.array([0, 1, 2, None], pa.int64()),))
    wanted = prefilter.wanted(view, answers, {"k": pa.array(["a", "b", "c", "d"])})
    if wanted is None:
        return None
    found = prefilter.kept(view, answers, {"k": pa.array(["a", "b", "c", "d"])})
    assert found.key.tolist() == np.flatnonzero(wanted).tolist() == found.start.tolist()
    return found.key.tolist()


@pytest.mark.parametrize(
    ("having", "expected"),
    [
        ("n > 0", [1, 2]),
        ("N > 5", []),
        ("n IS NULL", [3]),
        ("k = 'b' OR n = 0", [0, 1]),
        ("NOT k IN ('a', 'b')", [2, 3]),
        # Where a row cannot be computed, Spark decides on all of them.
        ("1 / (n - 1) > 0", None),
        ("n <> 1 AND 1 / (n - 1) > 0", [2]),
        # So is what hangs on the window, or on nothing.
        ("n > 0 AND window_name = '1m'", None),
        ("1 > 2", None),
    ],
)
def test_what_is_kept(having: str, expected: list[int] | None) -> None:
    assert kept(having) == expected


def test_derived_columns_are_written_out() -> None:
    select = {"n": pn.sum("x"), "twice": "n * 2", "more": "twice + n"}
    assert kept("more >= 3", select) == [1, 2]
    assert kept("more >= 3 AND k < 'c'", select) == [1]


def test_times_are_left_to_spark() -> None:
    assert kept("CAST(latest AS STRING) > '2026'", {"n": pn.sum("x"), "latest": pn.max("ts")}) is None
    assert kept("n > 0 AND TIMESTAMP '2026-01-01 00:00:00' = TIMESTAMP '2026-01-01 05:00:00Z'") is None


def test_times_within_keys_are_left_to_spark(spark: SparkSession) -> None:
    rows = [(dt.datetime(2026, 1, 1, hour, tzinfo=dt.UTC), 1) for hour in (3, 12)]
    events = spark.createDataFrame(rows, "ts timestamp, x int").selectExpr("ts", "x", "struct(ts AS t) AS k")
    having = "n > 0 AND k.t < TIMESTAMP '2026-01-01 00:00:00'"
    plan = pn.plan(pn.query("q", by="k", at="ts", select={"n": pn.count()}, over=pn.sliding("1 h"), having=having))
    with setting(spark, "spark.sql.session.timeZone", "America/New_York"):
        assert plan.run(events).count() == 1


@pytest.fixture
def events(spark: SparkSession) -> Any:
    noon = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
    rows = [(noon + dt.timedelta(seconds=20 * i), "abc"[i % 3], i) for i in range(60)]
    return spark.createDataFrame(rows, "ts timestamp, k string, x int")


@pytest.mark.parametrize("having", ["total > 60", "k = 'b' AND share > 1", "peak / (n - 2) > 3", "share / 0 > 1"])
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_every_strategy_gives_the_same(spark: SparkSession, events: Any, having: str, ansi: str) -> None:
    select = {"n": pn.count(), "total": pn.sum("x"), "peak": pn.max("x"), "share": "total / n"}
    over = [pn.tumbling("1 min"), pn.tumbling("2 min"), pn.hopping("6 min", every="2 min")]
    plan = pn.plan(pn.query("q", by="k", at="ts", select=select, over=over, having=having))

    def outcome(strategy: str) -> list[str]:
        try:
            return sorted(map(str, plan.run(events, strategy=strategy).collect()))
        except PySparkException as error:
            return [type(error).__name__, str("DIVIDE_BY_ZERO" in str(error))]

    with setting(spark, "spark.sql.ansi.enabled", ansi):
        found = outcome("columnar")
        assert found == outcome("native")
    if "total >" in having:
        assert 0 < len(found) < 60
