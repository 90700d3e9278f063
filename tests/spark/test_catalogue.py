"""Queries that are registered with a running stream, and taken back, without a restart."""

from __future__ import annotations

import pyarrow as pa
import pytest

import panes as pn
from panes.errors import DeclarationError
from panes.testing import assert_same_answers
from tests.spark.streams import Collected, Recorded

SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.string()), ("x", pa.int64())])
BASE = 1_700_000_000
SELECT = {"n": pn.count(), "total": pn.sum("x")}


pytestmark = pytest.mark.usefixtures("one_partition")


def seconds(first: int, last: int) -> pa.Table:
    """An event per second for each of two keys."""
    at = [t for t in range(first, last) for _ in "ab"]
    instants = pa.array([(BASE + t) * 10**6 for t in at], pa.timestamp("us", "UTC"))
    return pa.table([instants, ["a", "b"] * (last - first), at], schema=SCHEMA)


def answers(found: Collected, name: str) -> list[tuple[int, str, int, float]]:
    rows = [row for row in found.rows.to_pylist() if row["query"] == name and row["kind"] == "answer"]
    return sorted((int(row["window"]["start"].timestamp()) - BASE, row["k"], row["n"], row["coverage"]) for row in rows)


def test_a_query_comes_goes_and_returns_while_the_stream_runs(spark, tmp_path):
    record = Recorded(spark, tmp_path, SCHEMA)
    catalogue = pn.Catalogue(str(tmp_path / "catalogue"), history="1 min")
    declared = pn.query("declared", by="k", at="ts", select=SELECT, over=pn.tumbling("10s"), having="n > 0")
    record.add(seconds(0, 40))
    stream = pn.plan(declared).stream(record.stream(delay="0 seconds"), catalogue=catalogue, shards=2)
    lines: list[str] = []
    listener = pn.show_progress(spark, lines.append)
    found = Collected(stream, tmp_path / "checkpoint", live=True)
    found.query.processAllAvailable()
    assert "10s: [2023-11-14 22:13:50, 2023-11-14 22:14:00) is next" in pn.plan(declared).status(found.query)
    # A window that nobody thought of answers at once, from what has been seen already.
    catalogue.register(pn.query("later", by="k", at="ts", select=SELECT, over=pn.hopping("40s", every="20s")))
    catalogue.register(pn.query("finer", by="k", at="ts", select=SELECT, over=pn.tumbling("3s")))
    found.query.processAllAvailable()
    record.add(seconds(40, 60), seconds(60, 61))
    found.query.processAllAvailable()
    catalogue.suspend("later")
    found.query.processAllAvailable()
    record.add(seconds(61, 80), seconds(80, 100), seconds(100, 101))
    found.query.processAllAvailable()
    catalogue.resume("later")
    folder = tmp_path / "catalogue"
    (folder / "91-foreign.json").write_text("rm -rf /")
    (folder / "92-latin.json").write_bytes('{"format": 1, "action": "drop", "name": "café"}'.encode("latin-1"))
    (folder / "93-long.json").write_text("[" * 3_000_000)
    (folder / "94-named.json").write_text('{"format": 1, "action": "register", "name": "odd\\nname"}')
    found.query.processAllAvailable()
    record.add(seconds(101, 120), seconds(120, 121))
    found.query.processAllAvailable()
    found.query.stop()
    spark.streams.removeListener(listener)
    assert any("#0: 80 events" in line and "holding 2 keys" in line for line in lines), lines
    every = {(start, key): n for start, key, n, _ in answers(found, "declared")}
    assert every == {(start, key): 10 for start in range(0, 120, 10) for key in "ab"}
    # Suspended from 60 to 100; what ended meanwhile does not come later.
    assert answers(found, "later") == [(start, key, 40, 1.0) for start in (0, 20, 80) for key in "ab"]
    refused = [(row["query"], row["detail"]) for row in found.rows.to_pylist() if row["kind"] == "refused"]
    assert [name for name, _ in refused] == ["finer", None, "caf\ufffd", None, "odd\nname"]
    assert "begins or ends within a pane" in refused[0][1]
    assert "not a catalogue entry" in refused[1][1]
    assert "more than 1,000,000 characters" in refused[3][1]
    assert all(len(detail) < 1_000 for _, detail in refused)


def test_a_restart_with_other_windows_answers_what_it_has_seen_all_of(spark, tmp_path):
    record = Recorded(spark, tmp_path, SCHEMA)
    first = pn.query("q", by="k", at="ts", select=SELECT, over=pn.tumbling("10s"))
    record.add(seconds(0, 40))
    Collected(pn.plan(first).stream(record.stream(delay="0 seconds")), tmp_path / "checkpoint").finish()
    second = pn.query("q", by="k", at="ts", select=SELECT, over=[pn.tumbling("10s"), pn.tumbling("30s")])
    record.add(seconds(40, 91), seconds(91, 92))
    again = Collected(pn.plan(second).stream(record.stream(delay="0 seconds")), tmp_path / "checkpoint").finish()
    batch = pn.plan(second).run(spark.read.parquet(str(record.folder))).toArrow()
    start = pa.compute.struct_field(batch["window"], "start").cast(pa.int64()).to_numpy() // 10**6 - BASE
    size = pa.compute.struct_field(batch["window"], "end").cast(pa.int64()).to_numpy() // 10**6 - BASE - start
    # Not the half minute that had begun before anybody asked for it, nor what was answered before.
    due = (start + size > 39) & (start + size <= 90) & ((size == 10) | (start >= 30))
    assert_same_answers(again.rows, batch.filter(pa.array(due)))


def test_a_checkpoint_of_other_terms_is_refused_in_the_first_micro_batch(spark, tmp_path):
    record = Recorded(spark, tmp_path, SCHEMA)
    query = pn.query("q", by="k", at="ts", select=SELECT, over=pn.tumbling("10s"))
    record.add(seconds(0, 40))
    Collected(pn.plan(query).stream(record.stream(), shards=2), tmp_path / "checkpoint").finish()
    record.add(seconds(40, 50))
    with pytest.raises(Exception, match=r"shards=2, and this run has shards=3"):
        Collected(pn.plan(query).stream(record.stream(), shards=3), tmp_path / "checkpoint").finish()


def test_a_catalogue_says_what_is_wrong_at_once(tmp_path):
    catalogue = pn.Catalogue(str(tmp_path))
    query = pn.query("q", at="ts", select=SELECT, over=pn.tumbling("1h"))
    catalogue.register(query)
    with pytest.raises(DeclarationError, match="has a query 'q' already"):
        catalogue.register(query)
    with pytest.raises(DeclarationError, match="no query 'p' to drop; it has: q"):
        catalogue.drop("p")
    with pytest.raises(DeclarationError, match="is active, so there is nothing to resume"):
        catalogue.resume("q")
    catalogue.drop("q")
    assert catalogue.list() == []
