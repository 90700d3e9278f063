"""The promise that a plan is never slower than Spark's own windows, for few and many keys and windows."""

from __future__ import annotations

from benchmarks import CORES, data
from benchmarks.contenders import decided, in_duckdb, in_polars, panes, spark_own
from benchmarks.data import Dataset
from benchmarks.report import Timings
from benchmarks.runner import Bench
from benchmarks.workloads.price import WARM, lowest, sequential
from panes.planning.physical_plan import PhysicalPlan
from panes.planning.strategy import STRATEGIES

LIMIT = 1.10


def keys(bench: Bench) -> None:
    """Race the planner's choice, and with ``--all-strategies`` each strategy, against Spark's own."""
    spark, forced = bench.spark, STRATEGIES if bench.options.all_strategies else ()
    table = bench.report.table(
        "MIN by key over N tumbling windows (20 s, 30 s, ...): the planner's choice beside Spark's own; seconds",
        f"Panes × is times Spark's own; the promise is at most {LIMIT:.2f}.",
    )
    predicted = bench.report.table(
        "Predicted and measured seconds of each strategy",
        f"Predicted: the cost model's nanoseconds of one core, for all events, on {CORES} cores.",
    )
    for count in [bench.options.keys] if bench.options.keys else bench.few((1, 100, 1_000_000)):
        events = data.synthetic(bench.events(10_000_000), count)
        for windows in bench.few((1, 5, 20)):
            queries = lowest(sequential(windows))
            contenders = [
                spark_own(spark, queries),
                panes(spark, queries),
                *(panes(spark, queries, f"Panes {strategy}", strategy=strategy) for strategy in forced),
            ]
            in_memory = [in_duckdb(queries), in_polars(queries)]
            case = f"{count} keys, {windows} windows"
            bench.check(case, [*contenders, *in_memory], events)
            physical = decided(spark, queries, events)
            timings = bench.race(case, contenders, events, apart=in_memory, warm=WARM)
            ratio = timings.ratio("Panes", "Spark's own")
            row: dict[str, object] = {"keys": count, "windows": windows, "chosen": physical.stores[0].strategy}
            for contender in (*contenders, *in_memory):
                row[contender.name] = timings.median(contender.name)
            table.rows.append(row | {"Panes ×": ratio, "kept": ratio is not None and ratio <= LIMIT})
            predicted.rows.append(
                {"keys": count, "windows": windows, **_compared(physical, events, timings, bool(forced))}
            )


def _compared(physical: PhysicalPlan, events: Dataset, timings: Timings, forced: bool) -> dict[str, object]:
    store = physical.stores[0]
    row: dict[str, object] = {}
    for strategy, cost in store.costs.by_strategy.items():
        seconds = cost * events.seconds / 1e9 / CORES
        chosen = "Panes" if strategy == store.strategy else None
        measured = timings.median(f"Panes {strategy}") if forced else chosen and timings.median(chosen)
        row |= {f"{strategy} predicted": seconds, f"{strategy} measured": measured}
    return row
