"""Bad input: the class of each error, that its message says what to write instead, and that no job runs before it.

Left out on purpose: what Spark refuses by itself deep inside a job.
"""

from __future__ import annotations

import re
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pytest

import panes as pn
from panes.errors import DeclarationError, DurationError, ExpressionError, PanesError, PlanError, SchemaError, SqlError

TABLE = pa.table(
    {
        "ts": pa.array([0, 1], pa.timestamp("us", "UTC")),
        "device": ["a", "b"],
        "temp": [1.0, 2.0],
        "count": [1, 2],
        "tags": pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64())),
        "list": pa.array([[1], [2]], pa.list_(pa.int64())),
        "when": ["2026-01-01", "2026-01-02"],
    }
)
WINDOW = pn.tumbling("5 min")


def query(name="q", **changes):
    declared = {"at": "ts", "select": {"n": pn.count()}, "over": WINDOW} | changes
    return pn.query(name, **declared)


# What is wrong, the class of the error, and what the message has to say (what to write instead among it).
DECLARED_WRONG = {
    "no name": (lambda: query(name=" "), DeclarationError, "not the name of a query"),
    "no window": (lambda: query(over=[]), DeclarationError, r"over=\[pn.tumbling"),
    "not a window": (lambda: query(over=[None]), DeclarationError, r"pn.tumbling\(size\)"),
    "a bare duration": (lambda: query(over=["5 min"]), DeclarationError, r"pn.tumbling\('5 min'\)"),
    "no aggregate": (lambda: query(select={}), DeclarationError, r"pn.count\(\)"),
    "not an aggregate": (lambda: query(select={"n": 5}), DeclarationError, "Write for example pn.sum"),
    "only derived": (lambda: query(select={"n": "1 + 1"}), DeclarationError, r"pn.count\(\)"),
    "reserved name": (lambda: query(select={"Window": pn.count()}), DeclarationError, "Give it another name"),
    "reserved key": (lambda: query(by="query"), DeclarationError, "Give it another name"),
    "key twice": (lambda: query(by=["device", "device"]), DeclarationError, "name it once"),
    "key is time": (lambda: query(by="ts"), DeclarationError, "Leave it out of by="),
    "key not text": (lambda: query(by=[1]), DeclarationError, "Write it as a string"),
    "names by case": (lambda: query(select={"n": pn.count(), "N": pn.count()}), DeclarationError, "rename one"),
    "alias is key": (
        lambda: query(by="device", select={"device": pn.count()}),
        DeclarationError,
        "the key, .*rename it",
    ),
    "two windows": (lambda: query(over=[WINDOW, pn.tumbling("300s")]), DeclarationError, "name="),
    "derived of unknown": (
        lambda: query(select={"lowest": pn.min("temp"), "d": "lowst + 1"}),
        DeclarationError,
        "did you mean 'lowest'",
    ),
    "having of unknown": (lambda: query(having="temp > 1"), DeclarationError, "Select what it needs"),
    "not SQL": (lambda: query(where="temp >"), ExpressionError, "temp >"),
    "not deterministic": (lambda: query(where="rand() > 0.5"), ExpressionError, "not deterministic"),
    "aggregate of a number": (lambda: pn.sum(5), DeclarationError, "as a string"),
    "ddof": (lambda: pn.var("temp", ddof=2), DeclarationError, "1 for the sample or 0"),
    "zero size": (lambda: pn.tumbling("0s"), DurationError, "Write for example '5 min'"),
    "negative size": (lambda: pn.tumbling(timedelta(seconds=-1)), DurationError, "Write for example"),
    "zero slide": (lambda: pn.hopping("1h", every="0 min"), DurationError, "every="),
    "bare number": (lambda: pn.tumbling(5), DurationError, "as '5 minutes', or pn.rows"),
    "no unit": (lambda: pn.tumbling("5"), DurationError, "a number and a unit"),
    "unknown unit": (lambda: pn.tumbling("5 parsecs"), DurationError, "Units:"),
    "months": (lambda: pn.tumbling("1 month"), DurationError, "30 days"),
    "M": (lambda: pn.tumbling("5M"), DurationError, "'m' or 'minutes'"),
    "empty duration": (lambda: pn.tumbling(""), DurationError, "Write for example"),
    "too fine": (lambda: pn.tumbling("0.1us"), DurationError, "finer than a microsecond"),
    "window name": (lambda: pn.tumbling("1s", name=""), DeclarationError, "leave it out"),
    "no query": (lambda: pn.plan([]), DeclarationError, "Pass at least one"),
    "not a query": (lambda: pn.plan([5]), DeclarationError, r"pn.query\("),
    "not a query in SQL": (lambda: pn.plan(["q"]), SqlError, "A statement is SELECT"),
    "same name": (lambda: pn.plan([query(), query()]), DeclarationError, "rename one"),
    "strategy": (lambda: pn.plan(query(), strategy="fast"), PlanError, "native, rewrite, columnar"),
    "rate": (lambda: pn.plan(query(), rate=-1), PlanError, "positive"),
    "identities": (
        lambda: pn.aggregate(
            "x", name="a", state={"p": np.int64}, identity=(), lift=abs, combine=lambda a, b: a, lower=abs
        ),
        DeclarationError,
        "one identity per part",
    ),
    "no argument": (
        lambda: pn.aggregate(name="a", state={"p": np.int64}, identity=(0,), lift=abs, combine=min, lower=abs),
        DeclarationError,
        "at least one column",
    ),
}


@pytest.mark.parametrize("case", DECLARED_WRONG)
def test_declarations(case):
    declare, error, message = DECLARED_WRONG[case]
    with pytest.raises(error, match=message) as raised:
        declare()
    assert isinstance(raised.value, PanesError)


# The same against data: the in-process runner and Spark have to say the same.
DATA_WRONG = {
    "unknown time": (lambda: query(at="tss"), SchemaError, "did you mean 'ts'"),
    "unknown key": (lambda: query(by="devcie"), SchemaError, "did you mean 'device'"),
    "time is text": (lambda: query(at="when"), SchemaError, r"to_timestamp\(when\)"),
    "time is number": (lambda: query(at="count"), SchemaError, "timestamp_millis"),
    "key is a map": (lambda: query(by="tags"), SchemaError, "Group by a field of it"),
    "unknown argument": (lambda: query(select={"x": pn.sum("tempp")}), PanesError, "did you mean 'temp'"),
    "unknown in where": (lambda: query(where="tmp > 1"), PanesError, "did you mean 'temp'"),
    "where is no condition": (lambda: query(where="temp + 1"), ExpressionError, "compare it"),
    "having is no condition": (lambda: query(having="n + 1"), ExpressionError, "compare it"),
    "sum of text": (lambda: query(select={"x": pn.sum("device")}), SchemaError, "Cast it"),
    "mean of text": (lambda: query(select={"x": pn.mean("device")}), SchemaError, "Cast it"),
    "variance of time": (lambda: query(select={"x": pn.var("ts")}), SchemaError, "Cast it"),
    "least list": (lambda: query(select={"x": pn.min("list")}), SchemaError, "Cast it"),
    "last list": (lambda: query(select={"x": pn.last("list")}), SchemaError, "Cast it"),
    "types in where": (lambda: query(where="temp > device AND list"), ExpressionError, "cast one of them"),
    "alias with two types": (
        lambda: [query("a", select={"x": pn.min("temp")}), query("b", select={"x": pn.min("device")})],
        PlanError,
        "Rename one of them",
    ),
    "alias is a key elsewhere": (
        lambda: [query("a", by="device"), query("b", select={"device": pn.count()})],
        DeclarationError,
        "Rename it",
    ),
}


@pytest.mark.parametrize("case", DATA_WRONG)
def test_data_in_this_process(case):
    declare, error, message = DATA_WRONG[case]
    with pytest.raises(error, match=message):
        pn.plan(declare()).run(TABLE)


RUN_WRONG = {
    "layout": ({"layout": "tall"}, "'long' .* or 'wide'"),
    "strategy": ({"strategy": "fastest"}, "native, rewrite, columnar"),
}


@pytest.mark.parametrize("case", RUN_WRONG)
def test_how_to_run(case):
    options, message = RUN_WRONG[case]
    with pytest.raises(PlanError, match=message):
        pn.plan(query()).run(TABLE, **options)


def test_not_a_table():
    with pytest.raises(PlanError, match="give a Spark DataFrame, a pyarrow Table"):
        pn.plan(query()).run([{"ts": 1}])


def test_wide_needs_one_set_of_keys_and_distinct_columns():
    with pytest.raises(PlanError, match="layout='long'"):
        pn.plan([query("a", by="device"), query("b")]).run(TABLE, layout="wide")
    with pytest.raises(
        PlanError, match=r"'n' over '5m' of query 'a', and 'n' over '5m' of query 'b'\). Rename an output column"
    ):
        pn.plan([query("a"), query("b")]).run(TABLE, layout="wide")


def test_two_kinds_of_event_time():
    both = TABLE.append_column("local", TABLE["ts"].cast(pa.timestamp("us")))
    with pytest.raises(PlanError, match="Cast one of them"):
        pn.plan([query("a"), query("b", at="local")]).run(both)


def test_two_columns_of_one_name():
    with pytest.raises(SchemaError, match="same name"):
        pn.plan(query()).run(TABLE.append_column("TS", TABLE["ts"]))


def test_spark_says_the_same_before_any_job(spark):
    """Every mistake against data, on Spark: same class, same advice, no job."""
    data = spark.createDataFrame(TABLE)
    tracker = spark.sparkContext.statusTracker()
    data.count()
    before = set(tracker.getJobIdsForGroup())
    for case, (declare, error, message) in DATA_WRONG.items():
        for strategy in ("columnar", None):  # told how to run, and left to look at a sample first
            with pytest.raises(PanesError) as raised:
                pn.plan(declare()).run(data, strategy=strategy)
            assert isinstance(raised.value, error), case
            assert re.search(message, str(raised.value)), f"{case}: {raised.value}"
    for options, message in RUN_WRONG.values():
        with pytest.raises(PlanError, match=message):
            pn.plan(query()).run(data, **options)
    with pytest.raises(PlanError, match="layout='long'"):
        pn.plan([query("a", by="device"), query("b")]).run(data, layout="wide")
    assert set(tracker.getJobIdsForGroup()) == before


def test_a_column_that_arrow_cannot_carry(spark):
    data = spark.sql("SELECT timestamp_micros(0) AS ts, INTERVAL '1' MONTH AS months, 1 AS x")
    assert pn.plan(query(select={"n": pn.sum("x")})).run(data).collect()[0]["n"] == 1
    with pytest.raises(SchemaError, match=r"cast it to another type|cannot be a key here"):
        pn.plan(query(by="months")).run(data)
