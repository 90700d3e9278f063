"""What works where, run and compared with brute force; ``docs/support.md`` says nothing else."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import panes as pn
from panes.declare.kinds import wide_names
from panes.testing import brute_force
from panes.testing.lookup_reference import brute_force_lookup
from tests.model import support
from tests.model.support import Support, compare, complete, events, together
from tests.spark.streams import Collected, Recorded

PAGE = Path(__file__).parents[2] / "docs" / "support.md"
TITLES = {
    "run, table": "`run`, table",
    "run, DataFrame": "`run`, DataFrame",
    "stream, append": "`stream`, append",
    "stream, update": "`stream`, update",
    "lookup, table": "`lookup`, table",
    "lookup, DataFrame": "`lookup`, DataFrame",
    "live": "`live`",
    "apply, table": "`apply`, table",
    "apply, DataFrame": "`apply`, DataFrame",
    "apply, stream": "`apply`, stream",
    "sort": "`sort`, table",
    "join": "`join`, table",
}


@pytest.fixture(scope="module")
def known() -> Support:
    """What the tests of this file find out, one after another."""
    return Support()


@pytest.fixture(scope="module")
def stored(spark, tmp_path_factory):
    """The events as a file, which Spark reads."""
    path = tmp_path_factory.mktemp("support") / "events.parquet"
    pq.write_table(events(), path)
    return spark.read.parquet(str(path))


def test_run_over_a_table(known):
    support.run_table(known)


def test_lookup_over_tables(known):
    support.lookup_table(known)


def test_live(known):
    support.live_table(known)


def test_sort(known):
    support.sorted_table(known)


def test_join(known):
    support.join_table(known)


def test_apply_over_a_table(known):
    table = events()
    support.applied(known, "apply, table", lambda over: applied_to(table, over), lambda found: found)


def test_apply_over_a_dataframe(known, stored):
    support.applied(known, "apply, DataFrame", lambda over: applied_to(stored, over), lambda found: found.toArrow())


def test_apply_over_a_stream(known, spark, tmp_path, one_partition):
    record = recorded(spark, tmp_path)
    support.applied(
        known,
        "apply, stream",
        lambda over: applied_to(record.stream(delay="0 seconds"), over, shards=1),
        lambda found: Collected(found, tmp_path / "checkpoint").finish().rows,
        complete,
    )


def applied_to(data, over, **options):
    schema = pa.schema({"n": pa.int64()})
    return pn.apply(data, support.counting, by="k", at="ts", over=over, schema=schema, **options)


def recorded(spark, folder) -> Recorded:
    """The events in two micro-batches, the one that is far later last."""
    table = events()
    record = Recorded(spark, folder, table.schema)
    record.add(table.slice(0, 25), table.slice(25))
    return record


def test_run_over_a_dataframe(known, stored):
    table = events()
    queries, found = together(known, "run, DataFrame", lambda plan: plan.run(stored), lambda df: df.toArrow())
    compare(queries, found, lambda query: brute_force(query, table))


def test_lookup_over_dataframes(known, stored):
    table = events()
    requests = table.select(["ts", "k"])
    asked = stored.select("ts", "k")
    queries, found = together(
        known, "lookup, DataFrame", lambda plan: plan.lookup(stored, asked, layout="long"), lambda df: df.toArrow()
    )
    compare(queries, found, lambda query: unpivoted(query, brute_force_lookup(query, table, requests)))


# Values and no limits: what a stream warns of is all there is here.
@pytest.mark.filterwarnings("ignore::panes.errors.StateWarning")
@pytest.mark.parametrize("mode", ["append", "update"])
def test_stream(known, spark, tmp_path, one_partition, mode):
    table, record = events(), recorded(spark, tmp_path)

    def collect(rows) -> pa.Table:
        query = Collected(rows, tmp_path / "checkpoint", mode).finish()
        return latest(query.rows) if mode == "update" else query.rows

    queries, found = together(
        known,
        f"stream, {mode}",
        lambda plan: plan.stream(record.stream(delay="0 seconds"), mode=mode, shards=1),
        collect,
    )
    compare(queries, complete(found), lambda query: complete(brute_force(query, table)))


def unpivoted(query: pn.Query, wide: pa.Table) -> pa.Table:
    """A row per request and window."""
    windows = wide_names(query.over, query.columns)
    parts = []
    for name in dict.fromkeys(window for window, _, _ in windows):
        own = {column: wide[label] for window, column, label in windows if window == name}
        parts.append(pa.table({"ts": wide["ts"], "k": wide["k"], "window_name": [name] * len(wide), **own}))
    return pa.concat_tables(parts)


def latest(answers: pa.Table) -> pa.Table:
    """The last of the answers of each key and window: those before it were corrected."""
    names = ["query", "window_name", "start", "end", "k"]
    start, end = (pc.struct_field(answers["window"], name) for name in ("start", "end"))
    numbered = answers.append_column("start", start).append_column("end", end)
    numbered = numbered.append_column("row", pa.array(range(len(answers))))
    last = numbered.group_by(names).aggregate([("row", "max")])["row_max"]
    return answers.take(last)


def test_the_page_says_what_was_found(known):
    assert {verb for verb, _, _ in known.seen} == set(TITLES), "run the whole file: the tests before this one look"
    found = support.page(known, TITLES)
    if not PAGE.exists() or PAGE.read_text() != found:
        PAGE.write_text(found)
        raise AssertionError("docs/support.md said something else. It is written anew: look at what has changed.")
