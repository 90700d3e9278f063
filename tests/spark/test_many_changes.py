"""Hundreds of queries come and go while events flow; each answers as a fresh run over what it covers."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass
from itertools import count

import pyarrow as pa
import pytest

import panes as pn
from tests.spark.streams import Collected, Recorded

pytestmark = pytest.mark.usefixtures("one_partition")

SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.string()), ("x", pa.int64())])
BASE, PANE, HISTORY, BATCH = 1_700_000_000, 10, 120, 30
"""Where events begin, and how many seconds a pane, the history and a micro-batch have."""


@dataclass(frozen=True)
class Asked:
    size: int
    slide: int


@pytest.mark.soak
def test_two_hundred_changes(spark, tmp_path):
    change_at_random(spark, tmp_path, changes=200, seed=2)


def change_at_random(spark, folder, *, changes: int, seed: int) -> None:
    rng = random.Random(seed)
    record = Recorded(spark, folder, SCHEMA)
    catalogue = pn.Catalogue(str(folder / "catalogue"), history=f"{HISTORY}s")
    declared = pn.query("declared", by="k", at="ts", select=select(), over=pn.tumbling(f"{PANE}s"))
    values: dict[str, dict[int, int]] = defaultdict(dict)
    record.add(more_events(rng, values, 0))
    stream = pn.plan(declared).stream(record.stream(delay="0 seconds"), catalogue=catalogue, shards=2)
    found = Collected(stream, folder / "checkpoint", live=True)
    found.query.processAllAvailable()
    status: dict[str, str] = {}
    asked: dict[str, Asked] = {}
    expected: set[tuple[str, int, str]] = set()
    allowed: set[tuple[str, int, str]] = set()
    since: dict[str, int] = {}
    names = (f"q{i}" for i in count())
    for number in range(1, changes + 1):
        watermark = last_event(number - 1)
        name, action = change(rng, status, names)
        if action == "register":
            slide = PANE * rng.randint(1, 6)
            asked[name] = Asked(PANE * rng.randint(1, 15), slide)
            size = f"{asked[name].size}s"
            catalogue.register(
                pn.query(name, by="k", at="ts", select=select(), over=pn.hopping(size, every=f"{slide}s"))
            )
        else:
            getattr(catalogue, action)(name)
        if action in ("register", "resume"):
            since[name] = watermark - HISTORY
        found.query.processAllAvailable()
        record.add(more_events(rng, values, number))
        found.query.processAllAvailable()
        # Spark's watermark moves between micro-batches; what this one made due came out at its end.
        for active, state in status.items():
            if state == "active":
                for end in ends(asked[active], watermark, last_event(number)):
                    start = end - asked[active].size
                    for key in values:
                        if any(start <= t < end for t in values[key]):
                            allowed.add((active, start, key))
                            if start >= since[active]:
                                expected.add((active, start, key))
    found.query.stop()
    rows = [row for row in found.rows.to_pylist() if row["query"] != "declared"]
    assert [row for row in rows if row["kind"] != "answer"] == []
    seen = set()
    for row in rows:
        start, end = (int(row["window"][edge].timestamp()) - BASE for edge in ("start", "end"))
        at = (row["query"], start, row["k"])
        assert at not in seen, f"{at} came twice"
        seen.add(at)
        # What it covers are the last seconds of the instance.
        covered = end - round(row["coverage"] * (end - start))
        inside = [x for t, x in values[row["k"]].items() if covered <= t < end]
        assert (row["n"], row["total"]) == (len(inside), sum(inside)), row
        assert row["coverage"] == 1 or start < since_any(at, expected), row
    assert len(rows) > changes
    assert expected <= seen <= allowed


def since_any(at: tuple[str, int, str], expected: set[tuple[str, int, str]]) -> float:
    """An instance that had to be complete has no business with a coverage below one."""
    return float("-inf") if at in expected else float("inf")


def select() -> dict[str, pn.Aggregate]:
    return {"n": pn.count(), "total": pn.sum("x")}


def last_event(number: int) -> int:
    """When the last event of a micro-batch happened, which is the watermark after it."""
    return (number + 1) * BATCH - 1


def more_events(rng: random.Random, values: dict[str, dict[int, int]], number: int) -> pa.Table:
    """Half a minute of events; one of the keys pauses now and then."""
    rows = [(t, k) for t in range(number * BATCH, (number + 1) * BATCH) for k in "ab" if k == "a" or number % 5]
    rows = [(t, k, rng.randint(-9, 9)) for t, k in rows]
    for t, k, x in rows:
        values[k][t] = x
    instants = pa.array([(BASE + t) * 10**6 for t, _, _ in rows], SCHEMA.field("ts").type)
    return pa.table([instants, [k for _, k, _ in rows], [x for _, _, x in rows]], schema=SCHEMA)


def change(rng: random.Random, status: dict[str, str], names) -> tuple[str, str]:
    """A change that the catalogue allows, and what it leaves behind."""
    active = [name for name, state in status.items() if state == "active"]
    suspended = [name for name, state in status.items() if state == "suspended"]
    possible = ["register"] * 3 + ["suspend"] * bool(active) + ["resume"] * bool(suspended) + ["drop"] * bool(status)
    action = rng.choice(possible)
    if action == "register":
        name = next(names)
        status[name] = "active"
        return name, action
    name = rng.choice({"suspend": active, "resume": suspended, "drop": list(status)}[action])
    if action == "drop":
        del status[name]
    else:
        status[name] = "suspended" if action == "suspend" else "active"
    return name, action


def ends(asked: Asked, after: int, upto: int) -> range:
    """The ends of instances between two watermarks; all begin at multiples of the slide from the epoch on."""
    first = (BASE + after - asked.size) // asked.slide + 1
    last = (BASE + upto - asked.size) // asked.slide
    return range(first * asked.slide + asked.size - BASE, last * asked.slide + asked.size - BASE + 1, asked.slide)
