"""Names with quotes, line breaks and statements in them are names in the SQL that Spark is given, too."""

import pytest

import panes as pn
from panes.errors import PlanError
from panes.testing import assert_same_answers
from tests.nasty_names import NAMES, SUBSTITUTED, query, quoted, table
from tests.spark.streams import Collected, Recorded

pytestmark = pytest.mark.usefixtures("one_partition")
SOME = (*NAMES[:5], NAMES[6])
"""Keys of many columns make Spark's code long: the others are in the tests of one name."""


@pytest.mark.parametrize("strategy", ["native", "rewrite", "columnar"])
def test_every_strategy(spark, strategy):
    events = table(SOME)
    plan = pn.plan(query(SOME))
    assert_same_answers(plan.run(spark.createDataFrame(events), strategy=strategy), plan.run(events))


def test_rows_and_wide(spark):
    events = table(SOME)
    plan = pn.plan(query(SOME, pn.sliding(pn.rows(2), name=NAMES[5])))
    assert_same_answers(plan.run(spark.createDataFrame(events)), plan.run(events))
    wide = pn.plan(query(SOME, pn.tumbling("2 min", name=NAMES[5]), pn.tumbling("4 min", name=NAMES[2])))
    assert_same_answers(wide.run(spark.createDataFrame(events), layout="wide"), wide.run(events, layout="wide"))


def test_lookup_and_join(spark):
    events = table(SOME)
    frame = spark.createDataFrame(events)
    plan = pn.plan(query(SOME, pn.sliding("3 min", name=NAMES[5]), lookup=True))
    requests = events.select([0, *range(1, len(SOME) + 1)])
    assert_same_answers(plan.lookup(frame, spark.createDataFrame(requests)), plan.lookup(events, requests))
    keys = [f"k {name}" for name in SOME]
    for over in ("2 min", pn.sliding(pn.rows(2), name=NAMES[5])):
        joined = {"on": keys, "at": f"at {SOME[0]}", "over": over}
        assert_same_answers(pn.join(frame, frame, **joined), pn.join(events, events, **joined))


def test_stream(spark, tmp_path):
    events = table(SOME)
    record = Recorded(spark, tmp_path, events.schema)
    record.add(events.slice(0, 12), events.slice(12))
    plan = pn.plan(query(SOME, pn.tumbling("2 min", name=NAMES[5]), label=NAMES[2]))
    rows = (
        Collected(plan.stream(record.stream(quoted(f"at {SOME[0]}")), shards=1), tmp_path / "checkpoint").finish().rows
    )
    assert rows.num_rows > 5
    expected = {str(row) for row in plan.run(events).to_pylist()}
    assert {str(row) for row in rows.select(plan.run(events).column_names).to_pylist()} <= expected


def test_what_spark_would_replace_is_refused(spark):
    events = spark.createDataFrame(table((SUBSTITUTED,)))
    plan = pn.plan(query((SUBSTITUTED,)))
    with pytest.raises(PlanError, match=r"in SQL Spark replaces \$\{\.\.\.\} by settings"):
        plan.run(events)
    with pytest.raises(PlanError, match="substitute to false"):
        pn.join(events, events, on=f"k {SUBSTITUTED}", at=f"at {SUBSTITUTED}", over="1 min")
    spark.conf.set("spark.sql.variable.substitute", "false")
    try:
        assert_same_answers(plan.run(events), plan.run(table((SUBSTITUTED,))))
    finally:
        spark.conf.unset("spark.sql.variable.substitute")
