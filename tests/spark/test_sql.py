"""Every dialect on real flights gives what Spark's own SQL gives."""

from __future__ import annotations

import pytest

import panes as pn
from panes.demo import flights
from panes.testing import assert_same_answers

ROWS = 4000
AZURE = """
SELECT carrier, System.Window().Id, MIN(delay) AS low FROM ev TIMESTAMP BY ts
GROUP BY carrier, Windows(Window('20 min', TumblingWindow(minute, 20)), Window('1 h', HoppingWindow(minute, 60, 5)))
"""
CUMULATED = " UNION ALL ".join(
    f"""SELECT '1d by 6h' AS window_name, struct(date_trunc('DAY', ts) AS start,
        date_trunc('DAY', ts) + INTERVAL {hours} HOURS AS end) AS window, origin, count(*) AS n
        FROM ev WHERE hour(ts) < {hours} GROUP BY origin, date_trunc('DAY', ts)"""
    for hours in (6, 12, 18, 24)
)
CASES = {
    "Azure": (
        AZURE,
        """SELECT '20 min' AS window_name, window(ts, '20 minutes') AS window, carrier, min(delay) AS low
        FROM ev GROUP BY ALL UNION ALL SELECT '1 h', window(ts, '1 hour', '5 minutes'), carrier, min(delay)
        FROM ev GROUP BY ALL""",
    ),
    "Azure, (start, end]": (
        "SELECT COUNT(*) AS n FROM ev TIMESTAMP BY ts GROUP BY TumblingWindow(Duration(minute, 30), Bounds('(]'))",
        """SELECT '30m' AS window_name, window(ts - INTERVAL 1 MICROSECOND, '30 minutes') AS window, count(*) AS n
        FROM ev GROUP BY ALL""",
    ),
    "CQL": (
        "SELECT origin, SUM(delay) AS total FROM ev TIMESTAMP BY ts [RANGE 3600 SECONDS SLIDE 600 SECONDS] "
        "GROUP BY origin HAVING SUM(delay) > 100",
        """SELECT '1h/10m' AS window_name, window(ts, '1 hour', '10 minutes') AS window, origin, sum(delay) AS total
        FROM ev GROUP BY ALL HAVING sum(delay) > 100""",
    ),
    "Flink, TUMBLE": (
        "SELECT window_start, window_end, SUM(delay) AS total "
        "FROM TABLE(TUMBLE(TABLE ev, DESCRIPTOR(ts), INTERVAL '10' MINUTES)) GROUP BY window_start, window_end",
        """SELECT '10m' AS window_name, window, window.start AS window_start, window.end AS window_end, total
        FROM (SELECT window(ts, '10 minutes') AS window, sum(delay) AS total FROM ev GROUP BY ALL)""",
    ),
    "Flink, HOP": (
        "SELECT carrier, AVG(delay) AS mean FROM TABLE(HOP(TABLE ev, DESCRIPTOR(ts), INTERVAL '5' MINUTES, "
        "INTERVAL '15' MINUTES)) GROUP BY window_start, window_end, carrier",
        """SELECT '15m/5m' AS window_name, window(ts, '15 minutes', '5 minutes') AS window, carrier, avg(delay) AS mean
        FROM ev GROUP BY ALL""",
    ),
    "Flink, CUMULATE": (
        "SELECT origin, COUNT(*) AS n FROM TABLE(CUMULATE(TABLE ev, DESCRIPTOR(ts), INTERVAL '6' HOURS, "
        "INTERVAL '1' DAY)) GROUP BY window_start, window_end, origin",
        CUMULATED,
    ),
    "Spark": (
        "SELECT origin, MAX(delay) - MIN(delay) AS spread FROM ev WHERE carrier <> 'UA' "
        "GROUP BY origin, window(ts, '1 hour', '5 minutes') HAVING COUNT(*) > 3",
        """SELECT '1h/5m' AS window_name, window(ts, '1 hour', '5 minutes') AS window, origin,
        max(delay) - min(delay) AS spread FROM ev WHERE carrier <> 'UA' GROUP BY ALL HAVING count(*) > 3""",
    ),
    "Spark, the window again": (
        "SELECT window(ts, INTERVAL '1.5' HOURS), window(ts, INTERVAL '1.5' HOURS) AS w, origin, COUNT(*) AS n FROM ev "
        "GROUP BY origin, window(ts, INTERVAL '1.5' HOURS)",
        """SELECT '1h30m' AS window_name, window, window AS w, origin, n
        FROM (SELECT window(ts, '90 minutes') AS window, origin, count(*) AS n FROM ev GROUP BY ALL)""",
    ),
    "Spark, weeks": (
        "SELECT origin, carrier, COUNT(*) AS n FROM ev GROUP BY origin, carrier, window(ts, INTERVAL '1' WEEK)",
        """SELECT '7d' AS window_name, window(ts, '1 week') AS window, origin, carrier, count(*) AS n
        FROM ev GROUP BY ALL""",
    ),
}


@pytest.fixture(scope="module")
def ev(spark):
    events = spark.createDataFrame(flights().slice(0, ROWS).to_pandas())
    events = events.withColumn("delay", events["delay"].cast("int")).cache()
    events.createOrReplaceTempView("ev")
    yield events
    events.unpersist()


@pytest.mark.parametrize("name", CASES)
def test_a_dialect_on_real_flights(spark, ev, name):
    ours, theirs = CASES[name]
    found = pn.plan(pn.sql(ours)).run(ev).toArrow()
    expected = spark.sql(f"SELECT 'query1' AS query, * FROM ({theirs})").toArrow()
    assert found.num_rows > 20
    assert_same_answers(found, expected.select(found.column_names), absolute=1e-9)
