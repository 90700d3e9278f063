"""Days in a session whose time zone changes its clocks: Spark's own windows are the oracle."""

import warnings

import pytest
from pyspark.sql import functions as F

import panes as pn
from panes.errors import ZoneWarning
from panes.queries import time_zones

NEW_YORK = "America/New_York"
QUERY = pn.query(by="k", at="ts", select={"n": pn.count()}, over=[pn.tumbling("1 day"), pn.tumbling("1 hour")])
DAYS = "date_format(window.start, 'dd HH:mm') AS day"


@pytest.fixture(autouse=True)
def _nothing_was_said(monkeypatch):
    monkeypatch.setattr(time_zones, "_warned", set())


@pytest.fixture
def zone(spark):
    before = spark.conf.get("spark.sql.session.timeZone")
    yield lambda name: spark.conf.set("spark.sql.session.timeZone", name)
    spark.conf.set("spark.sql.session.timeZone", before)


def hours(spark, day, count):
    """An event per hour of real time from local midnight of a day."""
    first = f"to_utc_timestamp(TIMESTAMP_NTZ '{day} 00:00:00', '{NEW_YORK}')"
    sql = f"SELECT timestamp_seconds(unix_seconds({first}) + 3600 * id) AS ts, 'a' AS k FROM range({count})"
    return spark.sql(sql)


def days(answers):
    return sorted(tuple(row) for row in answers.where("window_name = '1d'").selectExpr(DAYS, "n").collect())


@pytest.mark.parametrize("strategy", ["native", "rewrite", "columnar"])
def test_days_of_a_session_in_a_zone_are_those_of_spark_and_that_is_said(spark, zone, strategy):
    zone("UTC")
    events = hours(spark, "2026-03-08", 23)
    zone(NEW_YORK)
    with pytest.warns(ZoneWarning, match=f"'1d' follows the clock of UTC: in {NEW_YORK} '1d' begins at 19:00 or 20:00"):
        found = days(pn.plan(QUERY).run(events, strategy=strategy))
    own = events.groupBy("k", F.window("ts", "1 day")).count().selectExpr(DAYS, "count").collect()
    assert found == sorted(tuple(row) for row in own) == [("07 19:00", 19), ("08 20:00", 4)]


@pytest.mark.parametrize(("day", "count"), [("2026-03-08", 23), ("2026-11-01", 25)])
def test_local_days_by_a_cast_to_times_without_a_zone(spark, zone, day, count):
    zone("UTC")
    events = hours(spark, day, count)
    zone(NEW_YORK)
    local = events.withColumn("ts", F.col("ts").cast("timestamp_ntz"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert days(pn.plan(QUERY).run(local)) == [(f"{day[-2:]} 00:00", count)]
        requests = spark.sql(f"SELECT TIMESTAMP_NTZ '{day} 00:00:00' + INTERVAL 25 HOURS AS ts, 'a' AS k")
        looked_up = pn.plan(QUERY).lookup(local, requests)
        assert looked_up.select("n_1d").collect() == [(count,)]


def test_local_days_of_a_stream(spark, zone, tmp_path):
    zone("UTC")
    hours(spark, "2026-03-08", 24).write.parquet(str(tmp_path / "events"))
    read = spark.readStream.schema("ts TIMESTAMP, k STRING").parquet(str(tmp_path / "events"))
    local = read.withColumn("ts", F.from_utc_timestamp("ts", NEW_YORK)).withWatermark("ts", "0 seconds")
    answers = pn.plan(QUERY).stream(local, shards=1)
    stream = answers.writeStream.format("memory").queryName("local_days").trigger(availableNow=True).start()
    stream.awaitTermination()
    assert days(spark.table("local_days")) == [("08 00:00", 23)]
    zone(NEW_YORK)
    with pytest.warns(ZoneWarning, match="from_utc_timestamp"):
        pn.plan(QUERY).stream(read.withWatermark("ts", "0 seconds"))
