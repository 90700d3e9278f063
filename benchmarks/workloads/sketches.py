"""Approximate distinct counts and quantiles of real trades: one sketch per pane, beside one per window instance.

Spark's own sketches are others (HyperLogLog++ with 5 % of error, percentiles by Greenwald and Khanna), so that answers
are not compared with each other, but each with the exact one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

import panes as pn
from benchmarks import data
from benchmarks.contenders import Contender, events, on_spark, panes
from benchmarks.data import Dataset
from benchmarks.runner import Bench
from panes.queries.windows import Window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WINDOWS = [pn.hopping(f"{5 * n} min", every="5 min") for n in range(2, 52)]
FEW = [WINDOWS[24], WINDOWS[0], WINDOWS[49]]
"""As many instances per event, on average, as all of them."""

SELECT = {
    "sizes": pn.approx_count_distinct("qty"),
    "median": pn.approx_quantile("price", 0.5),
    "large": pn.approx_quantile("qty", 0.99),
}
OWN = {
    "sizes": "approx_count_distinct(qty)",
    "median": "percentile_approx(price, 0.5)",
    "large": "percentile_approx(qty, 0.99)",
}


def sketches(bench: Bench) -> None:
    """Fifty windows at once, a few windows of Spark's own, and how far each is off."""
    found = data.trades()
    if found is None:
        bench.report.table("Sketches", "Skipped: the data are not beside the checkout.")
        return
    trades = found.prefix(bench.events(found.events))
    few = bench.few(FEW)
    one, some, all_ = (_query(windows) for windows in (FEW[:1], few, WINDOWS))
    contenders = [
        panes(bench.spark, [one], "Panes, 1 window"),
        panes(bench.spark, [some], f"Panes, {len(few)} windows"),
        panes(bench.spark, [all_], "Panes, 50 windows"),
        _spark_own(bench.spark, few, f"Spark's own, {len(few)} windows"),
    ]
    timings = bench.race("sketches", contenders, trades, prepared=True)
    own = timings.median(contenders[-1].name)
    table = bench.report.table(
        f"approx_count_distinct and two quantiles by symbol, windows of 10 to 255 min every 5 min, "
        f"{trades.events:,} trades; seconds",
        f"Spark's own for 50 windows is extrapolated from {len(few)} with as many instances per event.",
    )
    for contender in contenders:
        table.rows.append({"contender": contender.name, "seconds": timings.median(contender.name)})
    table.rows.append({"contender": "Spark's own, 50 windows (extrapolated)", "seconds": own * len(WINDOWS) / len(few)})
    _errors(bench, trades)


def _query(windows: Sequence[Window]) -> pn.Query:
    return pn.query("sketches", at="ts", by="symbol", select=SELECT, over=windows)


def _spark_own(spark: SparkSession, windows: Sequence[Window], name: str) -> Contender:
    def frame(trades: Dataset) -> DataFrame:
        answers = [_of_window(events(spark, trades), window, OWN) for window in windows]
        united = answers[0]
        for other in answers[1:]:
            united = united.unionByName(other)
        return united

    return on_spark(name, frame)


def _of_window(trades: DataFrame, window: Window, select: dict[str, str]) -> DataFrame:
    geometry = window.geometry
    instances = F.window("ts", f"{geometry.range} microseconds", f"{geometry.slide} microseconds")
    answers = trades.groupBy(instances, "symbol").agg(*(F.expr(sql).alias(alias) for alias, sql in select.items()))
    return answers.withColumn("window_name", F.lit(window.name))


def _errors(bench: Bench, trades: Dataset) -> None:
    """How far distinct counts are off, in windows of an hour that have at least a hundred."""
    hour = pn.tumbling("1 hour")
    frame = events(bench.spark, trades)
    exact = _of_window(frame, hour, {"exact": "count(DISTINCT qty)", "Spark's own": OWN["sizes"]}).toArrow()
    ours = pn.plan(_query([hour])).run(frame).toArrow()
    joined = _flat(exact).join(_flat(ours), ["start", "symbol"], join_type="inner")
    true = joined["exact"].to_numpy()
    table = bench.report.table(
        "Distinct sizes by symbol and hour: relative error in % where there are at least 100",
        f"{int((true >= 100).sum())} windows.",
    )
    for name, column in (("Panes", "sizes"), ("Spark's own", "Spark's own")):
        off = np.abs(joined[column].to_numpy() / true - 1)[true >= 100] * 100
        if len(off):
            table.rows.append({"contender": name, "mean": float(off.mean()), "worst": float(off.max())})


def _flat(answers: pa.Table) -> pa.Table:
    start = answers["window"].combine_chunks().field("start").cast(pa.int64())
    columns = [name for name in answers.column_names if name in ("exact", "Spark's own", "sizes")]
    return pa.table({"start": start, "symbol": answers["symbol"]} | {name: answers[name] for name in columns})
