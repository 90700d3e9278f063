"""Window cases of other systems, replayed: what users of Spark, Flink, Bytewax and Azure already rely on.

The cases lie beside the checkout (``../shared/golden``, see its README) and are skipped where it is absent. Replayed
are tumbling and hopping batches; where a system differs from Spark, the case says how it is brought over.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import panes as pn

GOLDEN = Path(__file__).parents[2] / "shared" / "golden"
UNIT = 1000  # cases count in milliseconds (or in abstract ticks), Panes in microseconds


def _cases():
    for path in sorted(GOLDEN.glob("*.json")):
        for case in json.loads(path.read_text())["cases"]:
            if case["mode"] == "batch" and case["window"]["type"] in ("tumbling", "hopping"):
                yield case


CASES = {case["id"]: case for case in _cases()}
pytestmark = pytest.mark.skipif(not CASES, reason="../shared/golden is not there")


def _collect(column):
    """A list of values in the order of time, as an aggregate of the user's own: text with commas."""
    return pn.aggregate(
        column,
        name="collect",
        state={"text": pa.string()},
        identity=("",),
        lift=lambda x: (np.array([f"{v}," for v in x], dtype=object),),
        combine=lambda a, b: (a[0] + b[0],),
        lower=lambda text: text,
        output=pa.string(),
    )


AGGREGATES = {
    "sum": pn.sum,
    "max": pn.max,
    "min": pn.min,
    "last": pn.last,
    "collect": _collect,
    "collect_by_ts": _collect,
    "count_distinct": pn.count_distinct,
}


@dataclass(frozen=True)
class Replay:
    """A case as a table, a query, and the rows expected of it."""

    table: pa.Table
    query: pn.Query
    rows: list
    columns: list
    match: str


def bring_over(name):
    case = CASES[name]
    window, time = case["window"], case["time_col"]
    rows = _on_time(case) if "watermark" in case else case["input"]
    columns = dict(zip(case["columns"], zip(*rows, strict=True), strict=True))
    arrays = {key: _array(key, values) for key, values in columns.items() if key != time}
    instants = [None if t is None else round(t * UNIT) for t in columns[time]]
    arrays["ts"] = pa.array(instants, pa.timestamp("us", "UTC"))
    select, kept = {}, []
    for kind, column in case["aggs"]:
        alias = f"agg{len(kept)}"
        select[alias] = pn.count() if column == "*" else AGGREGATES[kind](f"`{column}`")
        kept.append(alias)
    size = f"{window['size'] * UNIT}us"
    slide, offset = (
        f"{window.get(name, other) * UNIT}us" for name, other in (("slide", window["size"]), ("offset", 0))
    )
    over = pn.hopping(size, every=slide, offset=offset, bounds=window.get("bounds", "[)"))
    query = pn.query(name, at="ts", by=tuple(case["key"]), select=select, over=over)
    bounds = [c for c in case["expected_columns"] if c in ("start", "end", "window_id")]
    wanted = [*case["key"], *bounds]
    positions = [case["expected_columns"].index(c) for c in wanted]
    answers = [i for i, c in enumerate(case["expected_columns"]) if c not in wanted]
    expected = [tuple(_plain(row[i]) for i in (*positions, *answers)) for row in case["expected"]]
    return Replay(pa.table(arrays), query, expected, [*wanted, *kept], case["match"])


def _on_time(case):
    """Batches know no late rows: take away those that the case's own watermark drops from every window."""
    delay, seen, kept = case["watermark"]["delay"], -(10**18), []
    size = case["window"]["size"]
    slide, offset = case["window"].get("slide", size), case["window"].get("offset", 0)
    at = case["columns"].index(case["time_col"])
    for row in case["input"]:
        t = row[at]
        last_end = (t - offset) // slide * slide + offset + size
        behind = last_end - 1 <= seen - delay if "window_end" in case["watermark"]["policy"] else t < seen - delay
        if not behind:
            kept.append(row)
        seen = max(seen, t)
    return kept


def _array(name, values):
    if name == "bigdec":
        return pa.array([None if v is None else Decimal(str(v)) for v in values], pa.decimal128(10, 2))
    if name == "float":
        return pa.array(values, pa.float32())
    return pa.array(values)


def _plain(value):
    if isinstance(value, list):
        return "".join(f"{v}," for v in value)
    return Decimal(str(value)) if isinstance(value, float) else value


def found(replay, answers):
    """The rows of an answer in the columns of the case: times in its unit, numbers as exact decimals."""
    geometry = replay.query.over[0].geometry
    rows = []
    starts = pa.compute.struct_field(answers["window"], "start").cast(pa.int64()).to_pylist()
    for row, start in zip(answers.to_pylist(), starts, strict=True):
        bounds = {
            "start": start // UNIT,
            "end": (start + geometry.range) // UNIT,
            "window_id": (start - geometry.offset) // geometry.slide,
        }
        rows.append(tuple(_plain((bounds | row)[c] if c not in bounds else bounds[c]) for c in replay.columns))
    return rows


def agree(replay, rows):
    if replay.match == "prefix":
        # The first answers by time; the case shows no more.
        rows = sorted(rows)[: len(replay.rows)]
    assert sorted(rows, key=repr) == sorted(replay.rows, key=repr)


@pytest.mark.parametrize("name", CASES)
def test_in_this_process(name):
    replay = bring_over(name)
    agree(replay, found(replay, pn.plan(replay.query).run(replay.table)))


def test_on_spark(spark):
    """Every case in one DataFrame, told apart by a column, and one plan per strategy."""
    replays = {}
    for name in CASES:
        try:
            replays[name] = bring_over(name)
        except pytest.skip.Exception:
            continue
    tables, queries = [], []
    for number, (name, replay) in enumerate(replays.items()):
        # Columns of one name have other types in other cases.
        own = {c: f"c{number} {c}" for c in replay.table.column_names if c != "ts"}
        table = replay.table.rename_columns([own.get(c, c) for c in replay.table.column_names])
        tables.append(table.append_column("case", pa.array([name] * len(table))))
        query = replay.query
        select = {f"a{number}_{alias}": _renamed(aggregate, own) for alias, aggregate in query.aggregates}
        queries.append(
            pn.query(
                name, at="ts", by=[own[k] for k in query.by], select=select, over=query.over, where=f"`case` = '{name}'"
            )
        )
    data = spark.createDataFrame(pa.concat_tables(tables, promote_options="default"))
    in_jvm = [q for q in queries if all(a.in_jvm for _, a in q.aggregates)]
    for strategy, chosen in (("columnar", queries), ("rewrite", in_jvm[::4])):
        answers = pn.plan(chosen).run(data, strategy=strategy).toArrow()
        for number, (name, replay) in enumerate(replays.items()):
            if name not in {q.name for q in chosen}:
                continue
            mine = answers.filter(pa.compute.equal(answers["query"], name))
            back = {f"c{number} {c}": c for c in replay.table.column_names}
            back |= {f"a{number}_{alias}": alias for alias, _ in replay.query.aggregates}
            mine = mine.select(["window", *(c for c in mine.column_names if c in back)])
            agree(replay, found(replay, mine.rename_columns([back.get(c, c) for c in mine.column_names])))


def _renamed(aggregate, names):
    return aggregate.with_arguments(
        tuple(f"`{names[a.strip('`')]}`" if a.strip("`") in names else a for a in aggregate.arguments)
    )
