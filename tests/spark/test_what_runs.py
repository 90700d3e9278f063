"""What explain shows is what runs on Spark: its steps against the operators of the plan that Spark makes of the result.

Catches steps that stand in an explanation and not in the job, shuffles and passes to Python that nobody told of, and
explanations that run more than the look that ``run`` itself takes.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from decimal import Decimal

import pytest
from pyspark.sql import Observation
from pyspark.sql import functions as F

import panes as pn
from panes.errors import DeclarationError, PlanError
from panes.spark import rows as windows_of_rows
from panes.spark import shards

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
SCHEMA = "ts timestamp, k string, l string, x long, d decimal(38, 10)"
SELECT = {"n": pn.count(), "total": pn.sum("x")}
CLOCK = [pn.hopping("1 min", every="10 s"), pn.tumbling("20 s"), pn.hopping("2 min", every="10 s")]
ROWS = [pn.sliding(pn.rows(3)), pn.session("3 s"), pn.hopping(pn.rows(3), every=pn.rows(2))]
IN_PYTHON = ("answer", "pack", "unpack")
"""The steps that run in Python workers."""
LOOKED_UP = [pn.sliding("1 min"), pn.tumbling("10 s"), pn.sliding(pn.rows(3))]


def query(over, name="q", by="k", select=SELECT, **more):
    return pn.query(name, at="ts", by=by, select=select, over=over, **more)


@pytest.fixture(scope="module")
def events(spark):
    rows = [(START + dt.timedelta(seconds=i), f"a{i % 3}", f"b{i % 2}", i, Decimal(i)) for i in range(200)]
    return spark.createDataFrame(rows, SCHEMA).cache()


@pytest.fixture
def as_written(spark):
    """Spark's plans as they are before anything has run: with exchanges that are shared, and nothing adapted."""
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    yield
    spark.conf.unset("spark.sql.adaptive.enabled")


def operators(frame) -> Counter:
    """How often each operator stands in the physical plan of a DataFrame."""
    execution = frame._jdf.queryExecution()
    if frame.isStreaming:
        text = frame.sparkSession._jvm.PythonSQLUtils.explainString(execution, "simple")
    else:
        text = execution.executedPlan().toString()
    lines = [line for line in text.splitlines() if re.match(r"^[ :+!-]*(\*\(\d+\) )?\w", line)]
    names = [re.sub(r"^[ :+!-]*(\*\(\d+\) *)?", "", line) for line in lines]
    found = Counter(name.split()[0].split("(")[0] for name in names)
    found["partial"] = sum("Aggregate(" in name.replace(" ", "") and "partial_" in name for name in names)
    return found


def compared(plan, events, requests=None, **options) -> list[str]:
    """The steps of a run, which are those of the explanation, and of the plan that Spark makes of what they give."""
    steps = plan._steps(events, requests, options)
    answers, done = steps.carry_out(), [step.name for step in steps]
    explained = plan.explain(events, requests, **options)
    assert explained == str(steps)
    found = operators(answers)
    count = Counter(done)
    assert found["Exchange"] == steps.shuffles
    assert found["MapInArrow"] == sum(count[name] for name in IN_PYTHON)
    assert found["partial"] == sum(count[name] for name in ("panes", "merge", "group", "widen"))
    assert sum(n for name, n in found.items() if name.startswith("TransformWithState")) == count["state"]
    return done


def tree(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if re.match(r"^ {6}\S", line)]


@pytest.mark.usefixtures("as_written")
class TestBatches:
    def test_native(self, events):
        plan = pn.plan(query(CLOCK), strategy="native")
        assert compared(plan, events) == ["read", "group", "group", "group", "union"]
        assert plan.explain(events).startswith(
            "plan.run on a DataFrame: 3 windows, 3 passes over the events, 3 shuffles"
        )

    def test_a_tree_of_group_bys(self, events):
        plan = pn.plan(query(CLOCK))
        assert compared(plan, events, strategy="rewrite") == ["read", *["group"] * 4, "union"]
        text = plan.explain(events, strategy="rewrite")
        assert tree(text)[0] == "factor window 10s"
        assert all(line.endswith("← factor window 10s") for line in tree(text)[1:])

    def test_columns(self, events):
        plan = pn.plan(query(CLOCK))
        assert compared(plan, events, strategy="columnar") == ["read", "panes", "sort", "answer"]
        assert compared(plan, events, strategy="columnar", layout="wide")[-1] == "widen"

    def test_panes_that_feed_coarser_ones(self, events):
        fed = [query(CLOCK, "fine", ("k", "l")), query([pn.tumbling("1 min")], "coarse")]
        plan = pn.plan(fed, rate=50_000, keys={("k", "l"): 6, "k": 3})
        assert compared(plan, events) == ["read", "panes", "sort", "answer", "merge", "sort", "answer", "union"]

    def test_a_sample_decides_for_both(self, events):
        """What is shown is what the sample says, and not what was assumed."""
        plan = pn.plan(query([*CLOCK, pn.tumbling("30 s")]))
        compared(plan, events)
        assert "assumed: " in plan.explain()
        assert "sampled: " in plan.explain(events)
        assert "  3 keys\n" in plan.explain(events)

    def test_a_plan_that_changes_after_the_sample(self, events):
        """What was assumed runs in columns; so few events of so many keys run in Spark's own windows."""
        plan = pn.plan(query([pn.tumbling("10 s"), pn.tumbling("30 s")]))
        sparse = events.withColumn("k", F.concat("k", F.col("x").cast("string")))
        assert {store.strategy for store in plan.physical_plan().stores} == {"columnar"}
        assert compared(plan, sparse) == ["read", "group", "group", "union"]
        assert "took native" in plan.explain(sparse)

    def test_decimals_that_sql_cannot_read_out(self, events, monkeypatch):
        plan = pn.plan(query(CLOCK, select={"mean": pn.mean("d")}))
        own = type(plan).physical_plan
        monkeypatch.setattr(
            type(plan), "physical_plan", lambda self, s=None, strategy=None: own(self, s, strategy or "rewrite")
        )
        assert compared(plan, events) == ["read", "panes", "sort", "answer"]
        assert "column 'mean': the average of decimals has digits" in plan.explain(events)
        with pytest.raises(PlanError, match="strategy='rewrite' cannot run it"):
            plan.explain(events, strategy="rewrite")

    def test_empty_windows_run_in_columns(self, events):
        plan = pn.plan(query([pn.tumbling("10 s")]))
        assert compared(plan, events) == ["read", "group"]
        assert compared(plan, events, empty=True) == ["read", "panes", "sort", "answer"]
        assert "empty=True runs in columns" in plan.explain(events, empty=True)

    def test_windows_of_rows_and_all_kinds(self, events):
        assert compared(pn.plan(query(ROWS)), events) == ["read", "sort", "answer"]
        paced = [*ROWS, pn.hopping(pn.rows(3), every="10 s")]
        assert compared(pn.plan(query(paced)), events) == ["read", "look", "sort", "answer"]
        both = [query([*paced, pn.sliding("1 min"), pn.tumbling("10 s")]), query([pn.session("5 s")], "all", ())]
        steps = compared(pn.plan(both), events)
        assert steps == [
            "read",
            "group",
            "sort",
            "answer",
            "union",
            "look",
            "sort",
            "answer",
            "sort",
            "answer",
            "union",
        ]
        assert compared(pn.plan(query([pn.sliding("1 min")])), events, layout="wide") == ["read", "sort", "answer"]

    def test_lookups(self, events):
        plan = pn.plan([query(LOOKED_UP), query([pn.sliding("2 min")], "all", (), where="x > 3")])
        asked = events.select("ts", "k")
        both = ["read", "read", "sort", "answer", "sort", "answer", "union"]
        assert compared(plan, events, asked) == both
        assert compared(plan, events, asked, layout="long") == both
        assert plan.explain(events, asked).startswith("plan.lookup on DataFrames: 4 windows, 2 passes over the events")
        assert "slices of 4m" in plan.explain(events, asked)
        with pytest.raises(DeclarationError, match=r"lookup\(\) has no strategy="):
            plan.explain(events, asked, strategy="native")


def test_an_observation_is_not_used_up(events):
    """Spark takes each once; only the job that answers counts."""
    for over in (CLOCK, [*ROWS, pn.hopping(pn.rows(3), every="10 s")]):
        plan, seen = pn.plan(query(over)), Observation()
        assert " count " in plan.explain(events, observation=seen)
        plan.run(events, observation=seen).collect()
        assert seen.get["events"] == 200


def test_an_explanation_runs_no_more_than_the_sample(spark, events, monkeypatch):
    plan = pn.plan(query([*CLOCK, pn.hopping(pn.rows(3), every="10 s")]), rate=100)
    asked = pn.plan(query([pn.sliding(pn.rows(3))]))
    monkeypatch.setattr(windows_of_rows, "_when", lambda *_: pytest.fail("it looked"))
    spark.sparkContext.setJobGroup("explaining", "")
    plan.explain(events)
    asked.explain(events, events.select("ts", "k"))
    assert list(spark.sparkContext.statusTracker().getJobIdsForGroup("explaining")) == []
    pn.plan(query(CLOCK)).explain(events)
    assert len(spark.sparkContext.statusTracker().getJobIdsForGroup("explaining")) in (1, 2)
    spark.sparkContext.setJobGroup("", "")


class TestStreams:
    @pytest.fixture
    def stream(self, spark, events, tmp_path):
        events.write.parquet(str(tmp_path / "events"))
        return spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "events")).withWatermark("ts", "1 second")

    def test_on_the_clock(self, stream):
        """One operator, and no factor windows: not the plan of a batch."""
        wide = [pn.tumbling("1 min"), *(pn.hopping(size, every="1 hour") for size in ("10 hours", "5 hours"))]
        plan = pn.plan(query(wide), rate=1000, keys=3)
        assert "factor window" in plan.explain()
        assert compared(plan, stream, mode="update", shards=2) == ["read", "pack", "state", "unpack"]
        assert "factor window" not in plan.explain(stream)
        assert "in 2 shards" in plan.explain(stream, shards=2)
        assert Counter(tree(plan.explain(stream))) == Counter(["1m", "10h/1h", "5h/1h"])

    def test_windows_of_rows(self, stream):
        assert compared(pn.plan(query(ROWS)), stream) == ["read", "pack", "state", "unpack"]
        assert compared(pn.plan(query([pn.session("3 s"), pn.session("9 s")])), stream)[1:] == [
            "pack",
            "state",
            "unpack",
        ]

    def test_mixed(self, stream):
        plan = pn.plan([query([*CLOCK, pn.sliding("1 min"), *ROWS]), query([pn.session("5 s")], "all", ())])
        assert compared(plan, stream) == ["read", *["pack", "state", "unpack"] * 3, "union"]
        assert plan.explain(stream).startswith("plan.stream: 8 windows, 3 passes over the events, 3 shuffles")

    def test_run_on_a_stream_is_that_of_stream(self, stream):
        plan = pn.plan(query(CLOCK))
        assert operators(plan.run(stream)) == operators(plan.stream(stream))

    def test_it_sets_nothing(self, stream, monkeypatch):
        monkeypatch.setattr(shards, "_use_rocksdb", lambda *_: pytest.fail("it set something"))
        plan = pn.plan(query([*CLOCK, *ROWS]))
        assert "state" in plan.explain(stream)
        with pytest.raises(DeclarationError, match=r"stream\(\) has no strategy="):
            plan.explain(stream, strategy="native")
