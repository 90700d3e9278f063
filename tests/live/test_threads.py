"""Threads that look up while another one updates see whole batches.

Each batch brings the same rows to every key at one instant, so that every whole state has the same counts for all keys,
and sums, extremes and medians that follow from the counts. Half a batch has not.
"""

from __future__ import annotations

import datetime as dt
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count

import pyarrow as pa
import pytest

import panes as pn

VALUES = (1, 3, 5, 7)
KEYS = 40
READERS = 3
START = dt.datetime(2026, 1, 1)
QUANTITIES = {
    "n": pn.count(),
    "total": pn.sum("v"),
    "low": pn.min("v"),
    "high": pn.max("v"),
    "middle": pn.quantile("v", 0.5),
}
OVER = [pn.sliding("10 min"), pn.tumbling("5 min")]
ALL_KEYS = pa.table({"k": [f"key {number}" for number in range(KEYS)]})
ONE_KEY = ALL_KEYS.slice(7, 1)


def batch(minute: int) -> pa.Table:
    """Every value once for every key, all in one minute."""
    rows = KEYS * len(VALUES)
    instants = [START + dt.timedelta(minutes=minute)] * rows
    return pa.table({"ts": instants, "k": ALL_KEYS["k"].to_pylist() * len(VALUES), "v": sorted(VALUES * KEYS)})


def check(answers: pa.Table, rows: int, suffix: str = "") -> None:
    """Refuse answers that no number of whole batches has."""
    assert answers.num_rows == rows
    [counted] = {*answers[f"n{suffix}"].to_pylist()}
    if counted == 0:
        return
    assert counted % len(VALUES) == 0
    expected = {"total": sum(VALUES) // len(VALUES) * counted, "low": min(VALUES), "high": max(VALUES), "middle": 4}
    for name, value in expected.items():
        if f"{name}{suffix}" in answers.column_names:
            assert {*answers[f"{name}{suffix}"].to_pylist()} == {value}


class Readers:
    """Calls that are made again and again, by several threads, until each has been made so many times."""

    def __init__(self, calls: list[Callable[[], list[tuple[pa.Table, int, str]]]], rounds: int) -> None:
        self._calls, self._rounds = calls, rounds
        self.lookups = 0
        self._counting = threading.Lock()
        self._kept: list[tuple[pa.Table, list[dict[str, object]]]] = []

    def read(self) -> None:
        lookups = 0
        for turn in range(self._rounds):
            for call in self._calls:
                for answers, rows, suffix in call():
                    check(answers, rows, suffix)
                    lookups += rows
                    if turn % 50 == 0:
                        self._kept.append((answers, answers.to_pylist()))
        with self._counting:
            self.lookups += lookups

    def check_kept(self) -> None:
        """Answers are values: what the writer did later is not in them."""
        assert self._kept
        for answers, was in self._kept:
            assert answers.to_pylist() == was


@contextmanager
def switching() -> Iterator[None]:
    """Threads take turns all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def played(readers: Readers, write: Callable[[int], None]) -> int:
    """Let some threads read while this one writes; the number of batches that were written meanwhile."""
    minutes, written = count(20), 0
    with switching(), ThreadPoolExecutor(READERS) as pool:
        reading: list[Future[None]] = [pool.submit(readers.read) for _ in range(READERS)]
        while not all(future.done() for future in reading):
            write(next(minutes))
            written += 1
            time.sleep(0)
        for future in reading:
            future.result()
    readers.check_kept()
    return written


def events_are_read(rounds: int, folder: object) -> tuple[int, int]:
    some = pn.query("some", by="k", at="ts", select={"fewer": pn.count()}, over=pn.sliding("10 min"), where="v > 1")
    every = pn.query("every", by="k", at="ts", select=QUANTITIES, over=OVER)
    plan = pn.plan([every, some])
    live = plan.live(keep="20 min")
    for minute in range(20):
        live.update(batch(minute))
    each = KEYS * (2 * len(VALUES) - 1)

    def wide(requests: pa.Table) -> list[tuple[pa.Table, int, str]]:
        answers = live.lookup(requests)
        # Both queries, which are of two parts, have seen the same batches.
        pairs = zip(answers["n_10m"].to_pylist(), answers["fewer_10m"].to_pylist(), strict=True)
        assert {n * 3 == fewer * 4 for n, fewer in pairs} == {True}
        return [(answers, len(requests), "_10m"), (answers, len(requests), "_5m")]

    def one(requests: pa.Table) -> list[tuple[pa.Table, int, str]]:
        return [(live.lookup(requests, over="7 min", query="every"), len(requests), "")]

    def found() -> list[tuple[pa.Table, int, str]]:
        answers = live.find("total > 10", over="5 min", query="every")
        return [(answers, KEYS, "")]

    def told() -> list[tuple[pa.Table, int, str]]:
        assert live.rows % each == 0
        assert "every: " in live.explain()
        assert "every: " in live.explain("total > 10", over="5 min", query="every")
        return []

    def write(minute: int) -> None:
        live.update(batch(minute))
        if minute == 30:
            live.add_index("total", query="every")
        if minute % 40 == 0:
            live.save(folder / "plan.live")
            saved = plan.live(load=folder / "plan.live")
            assert saved.lookup(ALL_KEYS).equals(live.lookup(ALL_KEYS))

    readers = Readers([lambda: wide(ALL_KEYS), lambda: wide(ONE_KEY), lambda: one(ALL_KEYS), found, told], rounds)
    return played(readers, write), readers.lookups


def rows_are_read(rounds: int, folder: object) -> tuple[int, int]:
    held = pn.rows(4 * len(VALUES))
    query = pn.query(by="k", at="ts", select=QUANTITIES, over=[pn.sliding(held), pn.sliding(pn.rows(8))], ties="v")
    live = pn.plan(query).live(keep=held)
    live.update(batch(0))

    def wide(requests: pa.Table) -> list[tuple[pa.Table, int, str]]:
        answers = live.lookup(requests)
        return [(answers, len(requests), "_16rows"), (answers, len(requests), "_8rows")]

    def found() -> list[tuple[pa.Table, int, str]]:
        assert live.rows % (KEYS * len(VALUES)) == 0
        return [(live.find(over=pn.rows(12)), KEYS, "")]

    readers = Readers([lambda: wide(ALL_KEYS), lambda: wide(ONE_KEY), found], rounds)
    return played(readers, lambda minute: live.update(batch(minute))), readers.lookups


def granules_are_read(rounds: int, folder: object) -> tuple[int, int]:
    select = {name: value for name, value in QUANTITIES.items() if name != "middle"}
    keep = pn.nested(["10 min", "1 hour"], ["1 min", "10 min"])
    live = pn.plan(pn.query(by="k", at="ts", select=select, over=keep)).live(keep)
    for minute in range(20):
        live.update(batch(minute))

    def found() -> list[tuple[pa.Table, int, str]]:
        assert live.rows % KEYS == 0
        return [(live.find(over=over), KEYS, "") for over in ("5 min", "40 min")]

    readers = Readers([found], rounds)
    return played(readers, lambda minute: live.update(batch(minute))), readers.lookups


STRUCTURES = {"events": events_are_read, "rows": rows_are_read, "granules": granules_are_read}


@pytest.mark.parametrize("structure", STRUCTURES)
def test_readers_see_whole_batches(structure, tmp_path):
    written, lookups = STRUCTURES[structure](3, tmp_path)
    assert written > 1
    assert lookups > 500


@pytest.mark.soak
@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_hundred_thousand_lookups_see_whole_batches(structure, tmp_path):
    written, lookups = STRUCTURES[structure](420, tmp_path)
    assert written > 50
    assert lookups > 100_000
