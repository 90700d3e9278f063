"""Twenty sliding windows, an answer per event each, beside Spark's own window functions, all in one select."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import panes as pn
from benchmarks.contenders import Contender, drain, events, on_spark
from benchmarks.contenders import panes as with_panes
from benchmarks.data import START, Dataset, kept
from benchmarks.report import Timings
from benchmarks.runner import Bench, timed
from panes.queries.windows import Sliding

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

SIZES = ["1m", "2m", "3m", "5m", "10m", "15m", "20m", "30m", "45m", "1h"]
SIZES += ["90m", "2h", "3h", "4h", "6h", "8h", "10h", "12h", "18h", "1d"]
DAYS = 2
"""What the events span."""

OWN, PANES, LONG = "Spark's own", "Panes", "Panes, long form"


def sliding(bench: Bench) -> None:
    """Race both, for many keys with few events each and for few with many."""
    table = bench.report.table(
        f"Sum, count and maximum over {len(SIZES)} sliding windows from {SIZES[0]} to {SIZES[-1]}, events over {DAYS} "
        "days; seconds",
        f"× is times {PANES}. Spark's own: a window function per window, all in one select; of few keys once, since it "
        "goes through all events of every window again for every event. The wide form is what that gives, a row per "
        "event; the long form has a row per event and window.",
    )
    query = pn.query(
        "q",
        at="ts",
        by="key",
        select={"n": pn.count(), "total": pn.sum("value"), "top": pn.max("value")},
        over=[pn.sliding(size) for size in SIZES],
    )
    own, long = _window_functions(bench.spark, query), with_panes(bench.spark, [query], LONG)
    # Answers are compared in the long form, which says more.
    wide = Contender(PANES, lambda data: drain(_wide(bench.spark, query, data)), long.answers)
    for keys in bench.few((10_000, 100), 1):
        data = _spread(bench.events(2_000_000), keys)
        case = f"{keys:,} keys"
        bench.check(case, [own, long], data)
        few = keys < 1000
        timings = bench.race(case, [wide, long] if few else [own, wide, long], data)
        took = _once(bench, case, own, data) if few else timings.median(OWN)
        seconds = timings.median(PANES)
        assert took is not None
        assert seconds is not None
        table.rows.append(
            {
                "keys": keys,
                "events": data.events,
                PANES: seconds,
                LONG: timings.median(LONG),
                OWN: took,
                f"{OWN} ×": took / seconds,
            }
        )


def _wide(spark: SparkSession, query: pn.Query, data: Dataset) -> DataFrame:
    return pn.plan(query).run(events(spark, data), layout="wide")


def _once(bench: Bench, case: str, contender: Contender, data: Dataset) -> float:
    took, _ = timed(contender.run, data)
    bench.report.record(case, data.name, Timings({contender.name: [took]}))
    return took


def _spread(events_: int, keys: int) -> Dataset:
    """Events at a constant pace over some days: ``ts``, ``key``, ``value``."""
    pace = DAYS * 86_400_000_000 // events_

    def parts() -> Iterator[pa.Table]:
        rng = np.random.default_rng(keys)
        for ids in np.array_split(np.arange(events_), 8):
            yield pa.table(
                {
                    "ts": pa.array(START + ids * pace).cast(pa.timestamp("us", "UTC")),
                    "key": rng.integers(0, keys, len(ids), dtype=np.int32),
                    "value": rng.integers(0, 100_000, len(ids)) / 1000.0,
                }
            )

    return kept(f"spread-{events_}-keys-{keys}", {("key",): keys}, parts)


def _window_functions(spark: SparkSession, query: pn.Query) -> Contender:
    def wide(data: Dataset) -> DataFrame:
        columns = [column.alias(f"{name}_{size.name}") for size in query.over for name, column in _over(size).items()]
        return events(spark, data).select("ts", "key", *columns)

    def long(data: Dataset) -> DataFrame:
        return reduce(lambda a, b: a.unionAll(b), (_labelled(events(spark, data), size) for size in query.over))

    def _labelled(rows: DataFrame, size: Sliding) -> DataFrame:
        from pyspark.sql import functions as F

        start = F.col("ts") - F.expr(f"INTERVAL '{size.size}' MICROSECOND")
        window = F.struct(start.alias("start"), F.col("ts").alias("end")).alias("window")
        names = F.lit(query.name).alias("query"), F.lit(size.name).alias("window_name")
        return rows.select(*names, window, "key", *(column.alias(name) for name, column in _over(size).items()))

    return Contender(OWN, lambda data: drain(wide(data)), on_spark(OWN, long).answers)


def _over(window: Sliding) -> dict[str, Column]:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    # Open to the left: one µs less.
    near = Window.partitionBy("key").orderBy(F.expr("unix_micros(ts)")).rangeBetween(1 - window.size, 0)
    functions = {"n": F.count(F.lit(1)), "total": F.sum("value"), "top": F.max("value")}
    return {name: function.over(near) for name, function in functions.items()}
