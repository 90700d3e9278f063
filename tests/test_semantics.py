"""Semantic questions that are settled, each as a fact, with the source it was settled by.

Times are written in seconds since the epoch; a timeline above a test shows events as dots and instances as brackets.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import panes as pn


def answers(seconds, over, *, values=None, select=None, **options):
    """``(start, end, *answers)`` of each instance, in seconds."""
    micros = [None if s is None else round(s * 1_000_000) for s in seconds]
    table = pa.table(
        {"ts": pa.array(micros, pa.timestamp("us", "UTC")), "v": values or list(range(1, len(micros) + 1))}
    )
    query = pn.query("q", at="ts", select=select or {"n": pn.count()}, over=over, **options)
    found = pn.plan(query).run(table)
    bounds = [pc.struct_field(found["window"], part).cast(pa.int64()).to_pylist() for part in ("start", "end")]
    columns = [found[alias].to_pylist() for alias in query.columns]
    return sorted((s / 1e6, e / 1e6, *rest) for s, e, *rest in zip(*bounds, *columns, strict=True))


def test_instances_are_half_open():
    """An event at an edge belongs to the instance that starts there.

    Spark: sql-tests/results/time-window.sql.out, events at 00:04:59.999999 and 00:05:00.000001.

    0         5         10
    [ .      )[.        )
    """
    assert answers([4.999999, 5.0], pn.tumbling("5s")) == [(0, 5, 1), (5, 10, 1)]


def test_instances_before_the_first_event_exist():
    """Spark: DataFrameTimeWindowingSuite, "sliding window grouping" (10 s every 3 s).

    Bytewax gives the same: test_fold_window_sliding has a window -1.
    """
    assert answers([1], pn.hopping("10s", every="5s")) == [(-5, 5, 1), (0, 10, 1)]
    assert answers([7], pn.hopping("10s", every="3s")) == [(0, 10, 1), (3, 13, 1), (6, 16, 1)]


def test_a_range_need_not_be_a_multiple_of_the_slide():
    """Spark: time-window.sql.out, 7 minutes every 3 minutes.

    An event lies in two or in three instances, depending on where it falls.
    """
    found = answers([0, 270, 360, 60], pn.hopping("7 min", every="3 min"))
    assert found == [(-360, 60, 1), (-180, 240, 2), (0, 420, 4), (180, 600, 2), (360, 780, 1)]


def test_empty_instances_are_not_answered():
    """Spark: an instance without events is no group."""
    assert answers([1, 21], pn.tumbling("10s")) == [(0, 10, 1), (20, 30, 1)]


def test_a_negative_offset_is_one_modulo_the_slide():
    """Spark: SPARK-21590, "tumbling window using negative start time"."""
    events = [1459107570, 1459107565]
    expected = [(1459107565, 1459107575, 2)]
    assert answers(events, pn.tumbling("10s", offset="-5s")) == expected
    assert answers(events, pn.tumbling("10s", offset="5s")) == expected


def test_times_before_the_epoch_are_floored_not_truncated():
    """Spark: DataFrameTimeWindowingSuite, "negative timestamps"."""
    select = {"total": pn.sum("v")}
    found = answers([-31622398, -31622388], pn.tumbling("10s", offset="5s"), select=select)
    assert found == [(-31622405, -31622395, 1), (-31622395, -31622385, 2)]


def test_events_without_a_time_are_in_no_window():
    """Spark: time-window.sql.out, NULL timestamps with 10 seconds, and with 7 seconds every 3."""
    select = {"total": pn.sum("v")}
    assert answers([5, 32, None, None], pn.tumbling("10s"), select=select) == [(0, 10, 1), (30, 40, 2)]


def test_a_null_key_is_a_key():
    """Flink: WindowAggregateITCase, the row with name = null comes out as a group of its own; so in Spark."""
    table = pa.table({"ts": pa.array([0, 1], pa.timestamp("us")), "k": ["a", None]})
    query = pn.query("q", at="ts", by="k", select={"n": pn.count()}, over=pn.tumbling("5s"))
    assert sorted(pn.plan(query).run(table)["k"].to_pylist(), key=str) == [None, "a"]


def test_aggregates_of_nothing_but_nulls():
    """Flink: WindowAggregateITCase, max of a window whose only value is null is null; count is 0; so in Spark."""
    select = {"n": pn.count("v"), "total": pn.sum("v"), "mean": pn.mean("v"), "top": pn.max("v"), "last": pn.last("v")}
    nothing = pa.array([None], pa.int64())
    assert answers([1], pn.tumbling("10s"), values=nothing, select=select) == [(0, 10, 0, None, None, None, None)]


def test_a_single_value_has_no_sample_variance():
    """Spark: var_samp of one value is null (spark.sql.legacy.statisticalAggregate is false), var_pop is 0."""
    select = {"sample": pn.var("v"), "population": pn.var("v", ddof=0)}
    assert answers([1], pn.tumbling("10s"), select=select) == [(0, 10, None, 0.0)]


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], [1, 2, 0]])
def test_first_and_last_go_by_event_time_not_by_arrival(order):
    """Bytewax: test_collect_window, values come out in the order of event time. Ties are broken by value."""
    seconds, values = [1, 5, 5], [10, 20, 30]
    select = {"first": pn.first("v"), "last": pn.last("v")}
    found = answers([seconds[i] for i in order], pn.tumbling("10s"), values=[values[i] for i in order], select=select)
    assert found == [(0, 10, 10, 30)]


def test_azures_windows_hold_their_end_and_not_their_start():
    """Azure Stream Analytics: windows are (start, end]; "Count unique values" has events at 401 and 402, size 2 s."""
    events = [401, 402, 401, 402, 403]
    assert answers(events, pn.tumbling("2s", bounds="(]")) == [(400, 402, 4), (402, 404, 1)]
    assert answers(events, pn.tumbling("2s")) == [(400, 402, 2), (402, 404, 3)]


def test_cumulating_windows_begin_together():
    """Flink's CUMULATE: totals so far, every step, until the widest window ends."""
    found = answers([0, 4, 11], pn.cumulate("3s", upto="9s"))
    assert found == [(0, 3, 1), (0, 6, 2), (0, 9, 2), (9, 12, 1), (9, 15, 1), (9, 18, 1)]
    assert answers([0, 3], pn.cumulate("3s", upto="6s", offset="1s", bounds="(]")) == [
        (-5, 1, 1),
        (1, 4, 1),
        (1, 7, 1),
    ]


def test_expressions_know_the_window_and_hidden_aggregates():
    table = pa.table({"ts": pa.array([1, 12], pa.timestamp("s")).cast(pa.timestamp("us")), "v": [1, 5]})
    query = pn.query(
        "q",
        at="ts",
        select={"ends": "window.end", "twice": "total * 2", "label": "CONCAT(window_name, '!')"},
        hidden={"total": pn.sum("v")},
        over=pn.tumbling("10s"),
        having="total > 1",
    )
    found = pn.plan(query).run(table)
    assert found.column_names == ["query", "window_name", "window", "ends", "twice", "label"]
    assert found.select(["twice", "label"]).to_pylist() == [{"twice": 10, "label": "10s!"}]
    assert found["ends"].to_pylist()[0].second == 20


def test_a_slide_beyond_the_range_leaves_gaps():
    """Spark refuses such windows; here events in the gaps belong to no instance."""
    assert answers([0, 2, 3, 9, 10, 12.5], pn.hopping("3s", every="10s")) == [(0, 3, 2), (10, 13, 2)]


def test_where_decides_which_instances_exist_and_having_which_come_out():
    """An instance is answered when an event passes ``where``, as in Spark's filter before the group-by."""
    assert answers([1, 2, 11], pn.tumbling("10s"), where="v < 3") == [(0, 10, 2)]
    assert answers([1, 2, 11], pn.tumbling("10s"), having="n < 2") == [(10, 20, 1)]


def test_nan_is_the_largest_number():
    """Spark: NaN semantics, "NaN is larger than any other numeric value", NaN = NaN."""
    nan = float("nan")
    select = {"low": pn.min("v"), "high": pn.max("v")}
    assert answers([1, 2], pn.tumbling("10s"), values=[nan, 1.0], select=select)[0][2] == 1.0
    assert str(answers([1, 2], pn.tumbling("10s"), values=[nan, 1.0], select=select)[0][3]) == "nan"
    assert str(answers([1], pn.tumbling("10s"), values=[nan], select=select)[0][2]) == "nan"
