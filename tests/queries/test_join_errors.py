"""Joins that cannot mean anything, or do not fit their data: the class of each error, and what it says to write."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest

import panes as pn
from panes.errors import DeclarationError, DurationError, ExpressionError, PanesError, PlanError, SchemaError

TIME = pa.timestamp("us", "UTC")
LEFT = pa.table(
    {
        "ts": pa.array([0, 1], TIME),
        "device": ["a", "b"],
        "temp": [1.0, 2.0],
        "number": pa.array([1, 2], pa.int32()),
        "when": ["2026-01-01", "2026-01-02"],
        "tags": pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64())),
    }
)
RIGHT = LEFT.set_column(3, "number", pa.array([1, 2], pa.int64()))

DECLARED_WRONG = {
    "no key": ({"on": []}, DeclarationError, "on='device'"),
    "key not text": ({"on": [1]}, DeclarationError, "Write it as a string"),
    "key a number": ({"on": 1}, DeclarationError, "Write it as a string"),
    "key twice": ({"on": ["device", "Device"]}, DeclarationError, "Name it once"),
    "key is time": ({"on": "TS"}, DeclarationError, "Leave it out of on="),
    "three times": ({"at": ("ts", "ts", "ts")}, DeclarationError, "at='ts'"),
    "time not text": ({"at": 5}, DeclarationError, "at='ts'"),
    "no window": ({"over": []}, DeclarationError, r"over=\['10 s'"),
    "names": ({"over": {"s": "1s"}}, DeclarationError, r"over=\[pn.sliding\('1s', name='s'\)"),
    "nothing by name": ({"over": {}}, DeclarationError, r"over=\[pn.sliding\('10 s', name='short'\)"),
    "zero window": ({"over": ["0s"]}, DurationError, "Write for example"),
    "negative window": ({"over": timedelta(-1)}, DurationError, "Write for example"),
    "bare number": ({"over": [5]}, DurationError, "as '5 minutes'"),
    "two of one size": ({"over": ["1 min", "60s"]}, DeclarationError, "Drop one"),
    "two of one size, written differently": (
        {"over": ["1 min", pn.sliding("60s", name="m")]},
        DeclarationError,
        "'1m' and 'm'.*Drop one",
    ),
    "two of as many rows": (
        {"over": [pn.sliding(pn.rows(3)), pn.hopping(pn.rows(3), every=pn.rows(1), name="few")]},
        DeclarationError,
        "hold 3rows \\('3rows' and 'few'\\).*Drop one",
    ),
    "two of one name": (
        {"over": [pn.sliding("1s", name="x"), pn.sliding(pn.rows(3), name="x")]},
        DeclarationError,
        "two windows of the join are called 'x'",
    ),
    "another window": ({"over": [pn.tumbling("1 min")]}, DeclarationError, r"Write durations, as over=\['10 s'"),
    "another pace": ({"over": pn.hopping(pn.rows(9), every="1 s")}, DeclarationError, r"pn.sliding\(pn.rows\(10\)\)"),
    "a session": ({"over": pn.session("1 s")}, DeclarationError, "not answered with every row"),
    "marks": ({"over": pn.tumbling(pn.punctuation("m"))}, DeclarationError, "not answered with every row"),
    "a measure": (
        {"over": pn.delta("temp", 3)},
        DeclarationError,
        r"is a measure.*over=pn.sliding\(pn.delta\('temp', 3\)\)",
    ),
    "a number of rows": ({"over": pn.rows(3)}, DeclarationError, r"Write over=pn.sliding\(pn.rows\(3\)\)"),
    "a window for each side": (
        {"over": [(pn.sliding(pn.rows(3)), pn.sliding(pn.rows(1)))]},
        DeclarationError,
        "same windows.*panes.operators.Join takes a window for each side",
    ),
    "an aggregate": ({"over": pn.last("temp")}, DeclarationError, "is not a window. Write durations"),
    "a while ago": ({"over": pn.sliding("1 s", ago="1 s")}, DeclarationError, "leaves out what came last.*where="),
    "without the row": (
        {"over": pn.sliding("1 s", bounds="[)")},
        DeclarationError,
        "leaves out what came last.*where=",
    ),
    "rows ago": ({"over": pn.sliding(pn.rows(3), ago=pn.rows(1))}, DeclarationError, "Leave ago= out"),
    "full": ({"over": pn.sliding(pn.rows(3), partial=False)}, DeclarationError, "Leave partial= out"),
    "no rows": (
        {"over": pn.sliding(pn.rows(0))},
        DeclarationError,
        r"panes.operators.Join takes a window for each side",
    ),
    "a place": ({"over": pn.sliding(pn.delta(0, 3))}, DeclarationError, "columns have names"),
    "matches of rows": ({"over": pn.sliding(pn.rows(3)), "layout": "matches"}, DeclarationError, "Leave layout= out"),
    "how": ({"how": "outer"}, DeclarationError, "'left', 'right' or 'full'"),
    "layout": ({"layout": "wide"}, DeclarationError, "'long' .* or 'matches'"),
    "one suffix": ({"suffixes": "_right"}, DeclarationError, "suffixes=\\('_left', '_right'\\)"),
    "not SQL": ({"where": "temp >"}, ExpressionError, "temp >"),
}
DATA_WRONG = {
    "unknown key": ({"on": "devcie"}, SchemaError, "left side .*did you mean 'device'"),
    "unknown time": ({"at": "tss"}, SchemaError, "did you mean 'ts'"),
    "unknown on the right": ({"at": ("ts", "tss")}, SchemaError, "right side .*did you mean 'ts'"),
    "time is text": ({"at": "when"}, SchemaError, r"to_timestamp\(when\)"),
    "key types": ({"on": "number"}, SchemaError, "int32 in the left side and int64 in the right.*Cast one"),
    "key is a map": ({"on": "tags"}, SchemaError, "Take a field of it"),
    "unknown in where": ({"where": "tem_left > 1"}, SchemaError, "did you mean 'temp_left'"),
    "without a suffix": ({"where": "temp > 1"}, SchemaError, "temp_left"),
    "where is no condition": ({"where": "temp_left + 1"}, ExpressionError, "compare it"),
    "names alike": ({"suffixes": ("", "")}, SchemaError, "two columns called 'ts'.*suffixes="),
}


def join(left=LEFT, right=RIGHT, **changes):
    return pn.join(left, right, **({"on": "device", "at": "ts", "over": "1 min"} | changes))


@pytest.mark.parametrize("case", DECLARED_WRONG)
def test_declarations(case):
    changes, error, message = DECLARED_WRONG[case]
    with pytest.raises(error, match=message) as raised:
        join(**changes)
    assert isinstance(raised.value, PanesError)


@pytest.mark.parametrize("case", DATA_WRONG)
def test_data_in_this_process(case):
    changes, error, message = DATA_WRONG[case]
    with pytest.raises(error, match=message):
        join(**changes)


def test_data_on_spark_before_any_job(spark):
    left, right = spark.createDataFrame(LEFT), spark.createDataFrame(RIGHT)
    for changes, error, message in (*DECLARED_WRONG.values(), *DATA_WRONG.values()):
        with pytest.raises(error, match=message):
            join(left, right, **changes)


def test_columns_that_would_hide_labels():
    labelled = LEFT.append_column("Expires", pa.array([1, 2]))
    with pytest.raises(SchemaError, match=r"'Expires' would hide .*Rename it"):
        join(labelled)
    levelled = LEFT.append_column("level", pa.array([1, 2]))
    assert join(levelled, how="left").num_rows == 2
    with pytest.raises(SchemaError, match="'level' would hide"):
        join(levelled, layout="matches")


def test_times_in_a_zone_and_without():
    local = LEFT.set_column(0, "ts", pa.array([0, 1], pa.timestamp("us")))
    with pytest.raises(SchemaError, match=r"TIMESTAMP_NTZ in the left.*TIMESTAMP in the.*right.*Cast the one without"):
        join(local)


def test_what_is_no_table(spark):
    with pytest.raises(PlanError, match=r"cannot join a list \(the right side\)"):
        join(right=[1])
    with pytest.raises(PlanError, match="createDataFrame first"):
        join(spark.createDataFrame(LEFT))


def test_streams(spark, tmp_path):
    stream = spark.readStream.schema("ts TIMESTAMP, device STRING, temp DOUBLE").parquet(str(tmp_path))
    marked = stream.withWatermark("ts", "1 second")
    batch = spark.createDataFrame(LEFT)
    for left, right in ((marked, batch), (batch, marked)):
        with pytest.raises(PlanError, match="both as streams, or both as batches"):
            join(left, right)
    with pytest.raises(PlanError, match=r"left side has no watermark .*left.withWatermark\('ts'"):
        join(stream, marked)
    with pytest.raises(PlanError, match=r"right side has no watermark .*right.withWatermark\('ts'"):
        join(marked, stream)
