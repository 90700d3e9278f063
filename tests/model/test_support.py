"""What works where, run and compared with brute force; ``docs/support.md`` says nothing else."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import panes as pn
from panes.queries.windows import wide_names
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


# Values and no limits: what a stream warns of is all there is here.
@pytest.mark.filterwarnings("ignore::panes.errors.StateWarning")
def test_the_page_says_what_was_found(spark, tmp_path, one_partition):
    """One test: a page of a part of it would say too little."""
    known = Support()
    for in_process in (support.run_table, support.lookup_table, support.live_table, support.sorted_table):
        in_process(known)
    support.join_table(known)
    pq.write_table(events(), tmp_path / "events.parquet")
    stored = spark.read.parquet(str(tmp_path / "events.parquet"))
    run_over_a_dataframe(known, stored)
    lookup_over_dataframes(known, stored)
    record = recorded(spark, tmp_path)
    for mode in ("append", "update"):
        stream(known, record, mode, tmp_path / mode)
    table = events()
    support.applied(known, "apply, table", lambda over: applied_to(table, over), lambda found: found)
    support.applied(known, "apply, DataFrame", lambda over: applied_to(stored, over), lambda found: found.toArrow())
    support.applied(
        known,
        "apply, stream",
        lambda over: applied_to(record.stream(delay="0 seconds"), over, shards=1),
        lambda found: Collected(found, tmp_path / "applied").finish().rows,
        complete,
    )
    assert {verb for verb, _, _ in known.seen} == set(TITLES)
    found = support.page(known, TITLES)
    if not PAGE.exists() or PAGE.read_text() != found:
        PAGE.write_text(found)
        raise AssertionError("docs/support.md said something else. It is written anew: look at what has changed.")


def applied_to(data, over, **options):
    schema = pa.schema({"n": pa.int64()})
    return pn.apply(data, support.counting, by="k", at="ts", over=over, schema=schema, **options)


def recorded(spark, folder) -> Recorded:
    """The events in two micro-batches, the one that is far later last."""
    table = events()
    record = Recorded(spark, folder / "recorded", table.schema)
    record.add(table.slice(0, 25), table.slice(25))
    return record


def run_over_a_dataframe(known, stored):
    table = events()
    queries, found = together(known, "run, DataFrame", lambda plan: plan.run(stored), lambda df: df.toArrow())
    compare(queries, found, lambda query: brute_force(query, table))


def lookup_over_dataframes(known, stored):
    table = events()
    requests = table.select(["ts", "k"])
    asked = stored.select("ts", "k")
    queries, found = together(
        known, "lookup, DataFrame", lambda plan: plan.lookup(stored, asked, layout="long"), lambda df: df.toArrow()
    )
    compare(queries, found, lambda query: unpivoted(query, brute_force_lookup(query, table, requests)))


def stream(known, record, mode, checkpoint):
    table = events()

    def collect(rows) -> pa.Table:
        query = Collected(rows, checkpoint, mode).finish()
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
