"""Limits on Spark: long conditions run; what nobody can mean is refused by the driver or, per task, with a sentence."""

from __future__ import annotations

import datetime as dt

import pytest
from pyspark.errors import PythonException

import panes as pn
from panes.errors import PlanError


def plan(window, **options):
    return pn.plan(pn.query("q", by="k", at="ts", select={"n": pn.count()}, over=window, **options))


@pytest.fixture
def events(spark):
    first = dt.datetime(2026, 1, 1)
    rows = [("a", first + dt.timedelta(days=day), day) for day in range(100)]
    return spark.createDataFrame(rows, "k string, ts timestamp, a int")


def test_a_long_condition_keeps_the_same_events(events):
    condition = " OR ".join(f"a = {2 * i}" for i in range(300))
    (row,) = plan(pn.tumbling("1000 days", offset="1 day"), where=condition).run(events).collect()
    assert row["n"] == 50


@pytest.mark.parametrize("strategy", [None, "native", "rewrite", "columnar"])
def test_too_many_instances_per_event_are_refused_before_any_job(events, strategy):
    with pytest.raises(PlanError, match="each event is in 31,536,000,000,000 instances"):
        plan(pn.hopping("365 days", every="1 us")).run(events, strategy=strategy)


@pytest.mark.parametrize("strategy", ["native", "rewrite"])
def test_group_bys_copy_only_so_often(events, strategy):
    with pytest.raises(PlanError, match="copies each event into the 86,400 instances"):
        plan(pn.hopping("1 day", every="1 s")).run(events, strategy=strategy)


def test_a_task_with_too_many_answers_says_so(events):
    with pytest.raises(PythonException, match=r"would give 900,000,000 rows, .*Take a longer every="):
        plan(pn.hopping("9 s", every="1 us")).run(events).collect()
    with pytest.raises(PythonException, match=r"every 1us would be answered [\d,]+ times"):
        plan(pn.hopping(pn.rows(10), every="1 us")).run(events).collect()
