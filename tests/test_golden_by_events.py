"""Session and count windows of other systems, replayed as windows of queries; see ``test_golden.py`` about the files.

Left out: the sum of distinct values, which there is no aggregate for, and the hopping count window of Quix, which
*begins* every so many events: ``pn.hopping(pn.rows(n), every=pn.rows(m))`` ends every so many.
"""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

import panes as pn
from tests.test_golden import GOLDEN, UNIT

TIME = pa.timestamp("us", "UTC")


def _cases():
    for path in sorted(GOLDEN.glob("*.json")):
        for case in json.loads(path.read_text())["cases"]:
            sums = any(kind == "sum_distinct" for kind, *_ in case.get("aggs", ()))
            if case["mode"] == "batch" and case["window"]["type"] in ("session", "count_sliding") and not sums:
                yield case


CASES = {case["id"]: case for case in _cases()}
pytestmark = pytest.mark.skipif(not CASES, reason="../shared/golden is not there")


def _text(column):
    """Texts one after another, in the order of time."""
    return pn.aggregate(
        column,
        name="text",
        state={"text": pa.string()},
        identity=("",),
        lift=lambda x: (np.array([f"{v}" for v in x], dtype=object),),
        combine=lambda a, b: (a[0] + b[0],),
        lower=lambda text: text,
        output=pa.string(),
    )


def replay(case, run):
    time, window = case["time_col"], case["window"]
    rows = case["input"]
    if "watermark" in case:
        # A batch knows no late rows: take away the one that the case's own watermark drops.
        rows = [row for i, row in enumerate(rows) if row[0] >= max(r[0] for r in rows[: i + 1])]
    columns = dict(zip(case["columns"], zip(*rows, strict=True), strict=True))
    instants = pa.array([None if t is None else t * UNIT for t in columns.pop(time)], TIME)
    table = pa.table({"at": instants, **{name: pa.array(values) for name, values in columns.items()}})
    select, expected_of = {}, []
    for number, (kind, column) in enumerate(case["aggs"]):
        alias, column = f"agg{number}", "at" if column == time else column
        made = {
            "count": lambda _: pn.count(),
            "avg": pn.mean,
            "sum": pn.sum,
            "first": pn.min,
            "last": pn.max,
            "avg_int": pn.mean,
            "collect": _text,
            "concat": _text,
        }[kind](column)
        select[alias] = made
        expected_of.append(alias)
    if "n" in window:
        over = pn.hopping(pn.rows(window["n"]), every=pn.rows(window["every"]))
    else:
        over = pn.session(f"{window['gap'] * UNIT} us")
    query = pn.query("q", at="at", by=tuple(case["key"]), select=select, over=over)
    found = []
    for row in run(pn.plan(query), table).to_pylist():
        bounds = {edge: round(row["window"][edge].timestamp() * 1e6) // UNIT for edge in ("start", "end")}
        answers = [_plain(row[alias], kind) for alias, (kind, *_) in zip(expected_of, case["aggs"], strict=True)]
        left = iter(answers)
        known = {**bounds, **{key: row[key] for key in case["key"]}}
        found.append([known[c] if c in known else next(left) for c in case["expected_columns"]])
    wanted = [["".join(v) if isinstance(v, list) else v for v in row] for row in case["expected"]]
    assert sorted(found, key=repr) == sorted(wanted, key=repr)


def _plain(value, kind):
    if hasattr(value, "timestamp"):
        return round(value.timestamp() * 1e6) // UNIT
    return int(value) if kind == "avg_int" or (kind == "avg" and value == int(value)) else value


@pytest.mark.parametrize("name", CASES)
def test_in_this_process(name):
    replay(CASES[name], lambda plan, table: plan.run(table))


@pytest.mark.parametrize("name", ["spark/session-keys", "spark/time-window.sql-22", "ibm/last10-trigger2-avg"])
def test_on_spark(spark, name):
    replay(CASES[name], lambda plan, table: plan.run(spark.createDataFrame(table)).toArrow())
