"""Count windows of IBM Streams, replayed through Aggregate; see ``tests/test_golden.py`` about the files.

Left out: the hopping count window of Quix, which *begins* every so many tuples. A trigger ends windows every so many.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import panes as pn
from panes.windowing import PUNCTUATION, Aggregate

GOLDEN = Path(__file__).parents[3] / "shared" / "golden"


def _cases():
    for path in sorted(GOLDEN.glob("*.json")):
        for case in json.loads(path.read_text())["cases"]:
            if case["mode"] == "batch" and case["window"]["type"] == "count_sliding":
                yield case


CASES = {case["id"]: case for case in _cases()}
FUNCTIONS = {
    "avg": lambda column: pn.mean(column),
    "sum": lambda column: pn.sum(column),
    "avg_int": lambda column: lambda rows: sum(row[column] for row in rows) // len(rows),
    "concat": lambda column: lambda rows: "".join(row[column] for row in rows),
}


def replay(case, how):
    window, keys = case["window"], tuple(case["key"])
    partitioned = keys or None
    size, every = pn.policy.count(window["n"]), pn.policy.count(window["every"])
    declared = pn.policy.sliding(size, every, partitioned=partitioned)
    if how == "tumbling":
        declared = pn.policy.tumbling(size, partitioned=partitioned)
    select = {f"agg{number}": FUNCTIONS[kind](column) for number, (kind, column) in enumerate(case["aggs"])}
    operator = Aggregate(declared, select, rewrite=how == "rewritten")
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


def test_ibm_streams_fires_from_the_first_tuples_on():
    """``last(10).trigger(2)`` of IBM Streams (streamsx.topology, test_BasicCountCountWindow): partial windows count."""
    window = pn.policy.sliding(pn.policy.count(10), pn.policy.count(2))
    found = Aggregate(window, {"mean": pn.mean("x")}).run({"x": x} for x in range(1, 16))
    assert [row["mean"] for row in found if row is not PUNCTUATION] == [1.5, 2.5, 3.5, 4.5, 5.5, 7.5, 9.5]
