"""Restarts from a checkpoint: SQL that is spelt otherwise is the same, and other types are refused."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest

import panes as pn
from panes.engine.bind_program import bind_store, types_in
from panes.errors import StateError
from panes.expressions.expression import Expression
from panes.queries.catalogue_entries import Entry
from panes.state.job import JobStore
from panes.state.manifest import check_state, column_entries, decode_manifest, encode_manifest
from panes.state.registered_queries import Offer
from panes.state.shard import Shard
from panes.state.stream_options import StreamOptions
from tests.state import test_views
from tests.state.memory_blob_store import MemoryBlobStore
from tests.state.simulation import SCHEMA

WHERE = "x * 2 > 0"


def store_of(
    select: dict[str, Any], where: str | None = None, x: pa.DataType | None = None, key: pa.DataType | None = None
) -> JobStore:
    """A store of one query over columns of some types."""
    types = {"key": key or pa.int64(), "x": x or pa.int64()}
    schema = pa.schema([pa.field(field.name, types.get(field.name, field.type)) for field in SCHEMA])
    query = pn.query("all", at="ts", by="key", select=select, over=test_views.DECLARED, where=where)
    plan = pn.plan(query, strategy="columnar").physical_plan().stores[0]
    program = bind_store(plan, types_in(schema))
    read = {view.query: (view.readings, view.exists) for view in program.views}
    offer = Offer([(each, *read[i]) for i, each in plan.queries], ("key",), program.edges, "ts")
    kept = None if plan.kept is None else plan.kept.sql
    return JobStore(program, pa.schema([("key", types["key"])]), offer, kept=kept)


class Stream(test_views.Stream):
    """A shard of such a store."""

    def __init__(self, store: JobStore, blob_store: MemoryBlobStore | None = None) -> None:
        self.program, self.stores, self.options = store.program, [store], StreamOptions(catalogue="folder")
        self.blob_store, self.refused, self.names = blob_store or MemoryBlobStore(), [], []


def written(store: JobStore) -> MemoryBlobStore:
    """What a shard has written of a few events, all of which are kept."""
    before = Stream(store)
    before.step([(0, 1, 5), (1, 2, 3)], 0)
    before.step([(0, 3, 4)], 1)
    return before.blob_store


def respelt(manifest: Any) -> Any:
    """A manifest as it was when SQL was spelt without blanks, in lower case, in parentheses."""
    if isinstance(manifest, dict):
        return {name: respelt(value) for name, value in manifest.items()}
    if isinstance(manifest, list):
        return [respelt(value) for value in manifest]
    if not isinstance(manifest, str):
        return manifest
    for now, before in (("CASE WHEN", "case when"), ("THEN", "then"), ("x * 2 > 0", "((x*2)>0)"), ("x * 2", "(x*2)")):
        manifest = manifest.replace(now, before)
    return manifest


SELECT = {"total": pn.sum("x * 2"), "top": pn.max("CASE WHEN x * 2 > 0 THEN x END"), "spread": pn.std("x * 2")}


def test_sql_that_is_spelt_otherwise_is_the_same() -> None:
    """Blobs, too, have columns under the names that they had: what was kept is read, and goes on being kept."""
    with pytest.MonkeyPatch.context() as patch:
        # Written as the earlier version would have.
        from panes.state import store_state, stored_columns

        def record_of(component: Any) -> Any:
            return respelt(stored_columns.record_of(component))

        patch.setattr(store_state, "record_of", record_of)
        blob_store = written(store_of(SELECT, WHERE))
    old = respelt(decode_manifest(blob_store.manifest() or b""))
    names = [each["name"] for each in old["stores"][0]["components"]]
    assert "sum((x*2))" in names
    assert old["stores"][0]["kept"] == "((x*2)>0)"
    blob_store.write_manifest(encode_manifest(old))
    after = Stream(store_of(SELECT, WHERE), blob_store)
    after.step([(0, 4, 1)], 1)
    found = {(row["window"].name, row["key"]): row for row in after.step([], 40) if row["start"] == 0}
    assert [found["10us", key]["total"] for key in (0, 1)] == [20, 6]
    assert [found["10us", key]["top"] for key in (0, 1)] == [5, 3]
    assert [each["name"] for each in decode_manifest(blob_store.manifest() or b"")["stores"][0]["components"]] == names


@pytest.mark.parametrize(
    ("select", "where", "reason"),
    [
        (SELECT, "x * 3 > 0", "keeps events with ((x*2)>0), and the queries of this run need events with x * 3 > 0"),
        (SELECT, None, "keeps events with ((x*2)>0), and the queries of this run need all events"),
        ({"total": pn.sum("x * 3")}, WHERE, "the checkpoint has no sum(x * 3)"),
        ({"total": pn.sum("X * 2")}, WHERE, "the checkpoint has no sum(X * 2)"),
    ],
)
def test_other_sql_is_not(select: Any, where: Any, reason: str) -> None:
    blob_store = written(store_of(SELECT, WHERE))
    blob_store.write_manifest(encode_manifest(respelt(decode_manifest(blob_store.manifest() or b""))))
    with pytest.raises(StateError, match=re.escape(reason)):
        Stream(store_of(select, where), blob_store).step([], 5)


def test_workers_do_not_parse_what_is_spelt_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    store = store_of(SELECT, WHERE)
    blob_store = written(store)
    monkeypatch.setattr(Expression, "__post_init__", lambda self: pytest.fail(f"{self.sql} is parsed"))
    Shard([store], blob_store, StreamOptions(catalogue="folder"), lambda _, keys: pytest.fail("no query has some"))


def test_a_registered_query_that_is_spelt_otherwise_is_served() -> None:
    store = store_of(SELECT, WHERE)
    stream = Stream(store)
    over = pn.tumbling("20us").windows
    before = (("total", "sum('(x*2)')"), ("spread", "var('(x)*2', root=True, ddof=1)"))
    stream.step([(0, 1, 5)], 0, Entry("register", "new", "ts", ("key",), before, "((x*2)>0)", over))
    assert not stream.refused
    assert [row["total"] for row in stream.step([], 40) if row["query"] == "new"] == [10]
    others = ("sum('x * 3')", "var('x * 2', root=False, ddof=1)", "sum(", "__import__('os')", "(" * 1000, "sum(x * 2)")
    for other in others:
        entry = Entry("register", "other", "ts", ("key",), (("total", other),), "((x*2)>0)", over)
        Stream(store, stream.blob_store).step([], 40)
        after = Stream(store, stream.blob_store)
        after.step([], 40, entry)
        assert len(after.refused) == 1
        assert f"the job keeps no column total = {other}" in after.refused[0]


@pytest.mark.parametrize(
    ("before", "now", "says"),
    [
        ({"key": pa.int32()}, {"key": pa.int64()}, "key was of type INT when the checkpoint was written, and is of"),
        ({"key": pa.string()}, {"key": pa.int64()}, "F.col('key').cast('STRING')"),
        ({"key": pa.decimal128(9, 2)}, {"key": pa.decimal128(9, 4)}, "F.col('key').cast('DECIMAL(9, 2)')"),
        (
            {"x": pa.int64()},
            {"x": pa.float64()},
            "x was of type BIGINT when the checkpoint was written, and is of type",
        ),
        ({"x": pa.float64()}, {"x": pa.int64()}, "F.col('x').cast('DOUBLE')"),
        ({"x": pa.float32()}, {"x": pa.float64()}, "F.col('x').cast('FLOAT')"),
        ({"x": pa.decimal128(9, 2)}, {"x": pa.decimal128(9, 4)}, "F.col('x').cast('DECIMAL(9, 2)')"),
        ({"x": pa.decimal128(9, 2)}, {"x": pa.decimal128(11, 2)}, "F.col('x').cast('DECIMAL(9, 2)')"),
    ],
)
def test_another_type_is_refused(before: Any, now: Any, says: str) -> None:
    blob_store = MemoryBlobStore()
    select = {"total": pn.sum("x")}
    Stream(store_of(select, **before), blob_store).step([], 0)
    with pytest.raises(StateError, match=re.escape(says)):
        Stream(store_of(select, **now), blob_store).step([], 5)


def test_the_type_of_an_expression_is_that_of_its_columns() -> None:
    blob_store = MemoryBlobStore()
    Stream(store_of({"total": pn.sum("x * 2")}), blob_store).step([], 0)
    with pytest.raises(StateError, match=r"^x \* 2 was of type BIGINT .* of type DOUBLE now: .* what has changed of x"):
        Stream(store_of({"total": pn.sum("x * 2")}, x=pa.float64()), blob_store).step([], 5)


def test_sums_of_wider_integers_go_on() -> None:
    """Exact, since all integers are summed in 64 bits; what keeps single values is refused."""
    select = {"total": pn.sum("x"), "n": pn.count("x")}
    blob_store = written(store_of(select, x=pa.int32()))
    after = Stream(store_of(select, x=pa.int64()), blob_store)
    found = [row["total"] for row in after.step([], 40) if row["start"] == 0 and row["window"].name == "10us"]
    assert sorted(found) == [3, 9]
    for other in (pn.max("x"), pn.approx_count_distinct("x"), pn.quantile("x", 0.5)):
        blob_store = written(store_of({"other": other}, x=pa.int32()))
        with pytest.raises(StateError, match="x was of type INT"):
            Stream(store_of({"other": other}), blob_store).step([], 40)


DECLARED = {
    "windows": ["q: 3 rows"],
    "where": ["x > 0", None],
    "columns": column_entries([("`k`", pa.string()), ("x * 2", pa.int64())]),
}


def test_windows_of_rows_and_operators_are_declared_alike_in_other_words() -> None:
    data = encode_manifest({"declared": {**DECLARED, "where": ["(x>0)", None]}, "watermark": 5})
    assert check_state(data, DECLARED)["watermark"] == 5
    data = encode_manifest({"declared": {**DECLARED, "columns": [["k", "STRING"], ["(x*2)", "BIGINT"]]}})
    assert check_state(data, DECLARED)
    data = encode_manifest({"declared": {**DECLARED, "where": "(x>0)"}})
    assert check_state(data, {**DECLARED, "where": "x > 0"})


@pytest.mark.parametrize(
    ("name", "now", "says"),
    [
        ("where", ["x > 1", None], "the checkpoint was written with where=['x > 0', None]"),
        ("where", ["x > 0"], "the checkpoint was written with where="),
        ("where", None, "the checkpoint was written with where="),
        ("windows", ["q: (3 rows)"], "the checkpoint was written with windows="),
        ("columns", [["`k`", "STRING"], ["x * 2", "DOUBLE"]], "x * 2 was of type BIGINT when the checkpoint was"),
        (
            "columns",
            [["`k`", "BIGINT"], ["x * 2", "BIGINT"]],
            "Write events.withColumn('k', F.col('k').cast('STRING'))",
        ),
        ("columns", [["`k`", "STRING"], ["x * 3", "DOUBLE"]], "the checkpoint was written with columns="),
        ("columns", [["`k`", "STRING"]], "the checkpoint was written with columns="),
    ],
)
def test_windows_of_rows_and_operators_that_were_declared_otherwise(name: str, now: Any, says: str) -> None:
    data = encode_manifest({"declared": DECLARED, "watermark": 5})
    with pytest.raises(StateError, match=re.escape(says)):
        check_state(data, {**DECLARED, name: now})


def test_a_shard_of_windows_of_time_is_none_of_rows() -> None:
    blob_store = written(store_of(SELECT))
    with pytest.raises(StateError, match="the checkpoint was written with windows=None"):
        check_state(blob_store.manifest() or b"", DECLARED)
