"""What N tumbling windows cost, in units of one Spark window of the finest size."""

from __future__ import annotations

import panes as pn
from benchmarks import data
from benchmarks.contenders import in_duckdb, in_polars, panes, spark_own
from benchmarks.runner import Bench
from panes.queries.windows import Window

COUNTS = (1, 5, 20, 100, 1000)
SPARK_UP_TO, MEMORY_UP_TO = 20, 100
ONE = "one Spark window"
WARM = 10.0


def lowest(windows: list[Window], by: str | tuple[str, ...] = "key", value: str = "value") -> list[pn.Query]:
    """The paper's query: the minimum of each window."""
    return [pn.query("lowest", at="ts", by=by, select={"low": pn.min(value)}, over=windows)]


def sequential(count: int) -> list[Window]:
    """20 s, 30 s, 40 s, ..."""
    return [pn.tumbling(f"{10 * (i + 2)} s") for i in range(count)]


def price(bench: Bench) -> None:
    """Race everybody for every number of windows, as far as each can reasonably go."""
    spark, options = bench.spark, bench.options
    events = data.synthetic(bench.events(10_000_000), options.keys or 100)
    table = bench.report.table(
        f"MIN by key over N tumbling windows (20 s, 30 s, ...), {events.events:,} events, "
        f"{events.keys['key',]:,} keys; seconds",
        f"× is times {ONE} (20 s), timed in the same rounds, after {WARM:.0f} seconds of warming up for each on Spark.",
        f"Blank: not run. Spark's own beyond {SPARK_UP_TO} windows and DuckDB and Polars beyond {MEMORY_UP_TO} need "
        "--full.",
    )
    for count in bench.few(COUNTS):
        queries = lowest(sequential(count))
        contenders = [
            panes(spark, queries),
            panes(spark, queries, "Panes columnar", strategy="columnar"),
            spark_own(spark, lowest(sequential(1)), ONE),
        ]
        if count <= SPARK_UP_TO or options.full:
            contenders.append(spark_own(spark, queries))
        timed = count <= MEMORY_UP_TO or options.full
        in_memory = [in_duckdb(queries), in_polars(queries)] if timed else []
        # DuckDB is the reference also where it is too slow to be timed: it knows nothing of Spark or Panes.
        checked = [c for c in (*contenders, *in_memory) if c.name not in (ONE, "DuckDB")]
        bench.check(f"{count} windows", [in_duckdb(queries), *checked], events)
        timings = bench.race(f"{count} windows", contenders, events, apart=in_memory, warm=WARM)
        row: dict[str, object] = {"windows": count}
        for name in (ONE, "Panes", "Panes columnar", "Spark's own", "DuckDB", "Polars"):
            row[name] = timings.median(name)
            if name != ONE:
                row[f"{name} ×"] = timings.ratio(name, ONE)
        table.rows.append(row)
