"""What a sample says: keys from repetitions, the rate from the span, and beliefs kept where nothing was seen."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

import panes as pn
from panes.planning.statistics import Statistics
from panes.spark.sampling import _all_keys, sample

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

START = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = "Ts timestamp, device string, user int"


@pytest.mark.parametrize("keys", [1, 2, 10, 100, 1_000, 5_000])
@pytest.mark.parametrize("rows", [2_000, 20_000])
def test_the_number_of_uniform_keys_is_recovered(keys: int, rows: int) -> None:
    rng = random.Random(keys)
    seen = len({rng.randrange(keys) for _ in range(rows)})
    assert _all_keys(seen, rows) == pytest.approx(keys, rel=0.3)


@pytest.mark.parametrize("keys", [20_000, 60_000, 200_000])
def test_more_keys_than_rows_are_recovered_from_few_repetitions(keys: int) -> None:
    test_the_number_of_uniform_keys_is_recovered(keys, 20_000)


def test_more_keys_seen_are_more_keys() -> None:
    estimates = [_all_keys(seen, 1000) for seen in (1, 10, 100, 500, 900, 999)]
    assert estimates == sorted(estimates)
    assert all(estimate >= seen for estimate, seen in zip(estimates, (1, 10, 100, 500, 900, 999), strict=True))


def test_keys_that_never_repeat_are_more_than_the_rows() -> None:
    assert _all_keys(1000, 1000) > 10_000


def asked(*by: str) -> pn.Query:
    return pn.query(f"by {by}", at="ts", by=by, select={"n": pn.count()}, over=pn.tumbling("1 min"))


def events(spark: SparkSession, rows: int, step: timedelta) -> DataFrame:
    """Three devices and eleven users in turns, and a row without a time."""
    made = [(START + i * step, f"d{i % 3}", i % 11) for i in range(rows)]
    return spark.createDataFrame([*made, (None, "lost", -1)], SCHEMA)


def test_a_sample_tells_rate_and_keys(spark: SparkSession) -> None:
    queries = (asked("user", "device"), asked("device"), asked())
    found = sample(events(spark, 1001, timedelta(milliseconds=100)), queries, Statistics())
    assert found.origin == "sampled"
    assert found.rate == pytest.approx(10, rel=0.01)
    assert found.distinct(("device",)) == pytest.approx(3, rel=0.05)
    assert found.distinct(("device", "user")) == pytest.approx(33, rel=0.05)
    assert found.distinct(("user",)) == Statistics().default_keys, "nobody groups by it"


def test_what_the_user_says_about_keys_stays(spark: SparkSession) -> None:
    believed = Statistics(keys={("device",): 77})
    found = sample(events(spark, 100, timedelta(seconds=1)), (asked("device"),), believed)
    assert found.distinct(("device",)) == 77


@pytest.mark.parametrize("rows", [0, 1])
def test_without_a_span_beliefs_stay(spark: SparkSession, rows: int) -> None:
    believed = Statistics(rate=5, default_keys=6)
    assert sample(events(spark, rows, timedelta(seconds=1)), (asked("device"),), believed) == believed


def test_shuffled_data_say_nothing_about_their_rate(spark: SparkSession) -> None:
    times = [START + timedelta(minutes=i) for i in range(3_000)]
    random.Random(1).shuffle(times)
    shuffled = spark.createDataFrame([(at, f"d{i % 3}", 0) for i, at in enumerate(times)], SCHEMA)
    found = sample(shuffled, (asked("device"),), Statistics(rate=123))
    assert (found.rate, found.origin) == (123, "assumed")
    assert found.distinct(("device",)) == pytest.approx(3, rel=0.05)


def test_a_single_wrong_time_does_not_hide_the_rate(spark: SparkSession) -> None:
    wrong = spark.createDataFrame([(datetime(1970, 1, 1, tzinfo=UTC), "d", 0)], SCHEMA)
    found = sample(wrong.union(events(spark, 1001, timedelta(milliseconds=100))), (asked("device"),), Statistics())
    assert found.rate == pytest.approx(10, rel=0.02)


def test_events_are_not_sorted_where_a_sample_may_show_a_fraction_of_the_rate() -> None:
    """It does where files share their time."""

    def sorts_events(rate: float, origin: str) -> bool:
        known = Statistics(rate=rate, origin=origin)
        return pn.plan(asked("device")).physical_plan(known, "columnar").stores[0].from_events

    assert sorts_events(rate=0.02, origin="given")
    assert not sorts_events(rate=0.02, origin="sampled")
    assert sorts_events(rate=0.0001, origin="sampled")
