"""Count windows of IBM Streams and rows of Flink through Aggregate; see ``tests/test_golden.py`` about the files.

Left out: the hopping count window of Quix, which *begins* every so many tuples. A trigger ends windows every so many.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import panes as pn
from panes.operators import PUNCTUATION, Aggregate, EventClock, Replay, tuples_of

GOLDEN = Path(__file__).parents[3] / "shared" / "golden"


def _cases(kind):
    for path in sorted(GOLDEN.glob("*.json")):
        for case in json.loads(path.read_text())["cases"]:
            if case["mode"] == "batch" and case["window"]["type"] == kind:
                yield case["id"], case


CASES = dict(_cases("count_sliding"))
ROWS = dict(_cases("rows_preceding"))
FUNCTIONS = {
    "avg": lambda column: pn.mean(column),
    "sum": lambda column: pn.sum(column),
    "avg_int": lambda column: lambda rows: sum(row[column] for row in rows) // len(rows),
    "concat": lambda column: lambda rows: "".join(row[column] for row in rows),
}


def replay(case, how):
    window, keys = case["window"], tuple(case["key"])
    size, every = pn.rows(window["n"]), pn.rows(window["every"])
    declared = pn.hopping(size, every=every)
    if how == "tumbling":
        declared = pn.tumbling(size)
    select = {f"agg{number}": FUNCTIONS[kind](column) for number, (kind, column) in enumerate(case["aggs"])}
    operator = Aggregate(declared, select, by=keys or None, rewrite=how == "rewritten")
    rows = [dict(zip(case["columns"], row, strict=True)) for row in case["input"]]
    return [[row[name] for name in (*keys, *select)] for row in operator.run(rows) if row is not PUNCTUATION]


@pytest.mark.skipif(not CASES, reason="../shared/golden is not there")
@pytest.mark.parametrize(
    ("name", "how"),
    [
        (name, how)
        for name, case in CASES.items()
        for how in ("as declared", "rewritten", "tumbling")
        if how != "tumbling" or case["window"]["n"] == case["window"]["every"]
    ],
)
def test_replayed(name, how):
    case = CASES[name]
    assert case["match"] == "list"
    assert replay(case, how) == case["expected"]


@pytest.mark.skipif(not ROWS, reason="../shared/golden is not there")
@pytest.mark.parametrize("followed", [True, False])
@pytest.mark.parametrize("name", ROWS)
def test_rows_preceding(name, followed):
    """``ROWS BETWEEN n PRECEDING AND CURRENT ROW``: a window of n + 1 rows with every row, in the order of event time.

    The row itself is among the answers: as a function of the window, which is then computed anew with every row, or
    left out, and the window is followed.
    """
    case = ROWS[name]
    assert case["match"] == "multiset"
    (key,), clock, out = case["key"], EventClock(), []
    select = {f"{kind}_{column}": {"count": pn.count, "sum": pn.sum}[kind](column) for kind, column in case["aggs"]}
    columns = [key, *select]
    if not followed:
        select["a"] = lambda rows: rows[-1]["a"]
        columns = case["expected_columns"]
    window = pn.sliding(pn.rows(case["window"]["n"] + 1))
    operator = Aggregate(window, select, by=key, clock=clock)
    assert operator._follows == followed
    operator.connect(out.append)
    arriving = Replay(operator, clock, at=case["time_col"])
    for step in case["arrival_with_watermarks"]:
        if step["do"] == "event":
            arriving.add([dict(zip(case["columns"], step["row"], strict=True))])
        else:
            # To Flink a watermark is the last instant of which no row will come.
            arriving.advance(step["ts"] + 1)
    wanted = [dict(zip(case["expected_columns"], row, strict=True)) for row in case["expected"]]
    assert arriving.late == 0
    assert sorted([row[name] for name in columns] for row in tuples_of(out)) == sorted(
        [row[name] for name in columns] for row in wanted
    )


def test_ibm_streams_fires_from_the_first_tuples_on():
    """``last(10).trigger(2)`` of IBM Streams (streamsx.topology, test_BasicCountCountWindow): partial windows count."""
    window = pn.hopping(pn.rows(10), every=pn.rows(2))
    found = Aggregate(window, {"mean": pn.mean("x")}).run({"x": x} for x in range(1, 16))
    assert [row["mean"] for row in found if row is not PUNCTUATION] == [1.5, 2.5, 3.5, 4.5, 5.5, 7.5, 9.5]
