"""The figures of ``panes.planning.calibration``: a set of simple jobs, and the least squares that explain them.

Each job is one point: how many events, copies, groups, panes, lanes and answers it had, counted as the planner counts
them, and how long it took. Non-negative least squares of relative errors, so that short jobs count as much as long
ones; what a job costs before it touches an event is fitted too, since the planner's figures are per row.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

import panes as pn
from benchmarks import CORES, data
from benchmarks.contenders import Contender, on_spark, spark_own
from benchmarks.contenders import events as frame
from benchmarks.data import Dataset
from benchmarks.runner import Bench
from benchmarks.workloads.price import sequential
from panes.planning import calibration
from panes.planning.panes import PaneCost
from panes.planning.statistics import Statistics
from panes.queries.windows import Window
from panes.timeline import SECOND, Edges, Geometry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CONSTANTS = [
    "SCAN", "GROUP_EVENT", "GROUP_ROW", "PANE_EVENT", "EDGE", "PANE", "LANE", "STORED", "EVENT", "ANSWER", "TREE_ROW",
]  # fmt: skip
_JOB, _PYTHON, _TREE = "(job)", "(Python)", "(window of a tree)"
"""Fixed costs: of every window's job, of going to Python, of one more group-by in a tree."""

KEYS = ("key",)


@dataclass(frozen=True)
class Job:
    """Something to time on one dataset, and how often it does what each constant is the price of."""

    contender: Contender
    events: Dataset
    counts: dict[str, float]


def calibrate(bench: Bench) -> None:
    """Time the jobs, solve for the constants, and show both."""
    count = bench.events(4_000_000)
    jobs: list[Job] = []
    for size in (count, count // 8):  # two sizes tell what is paid per row from what is paid once
        few, many = data.synthetic(size, 100), data.synthetic(size, 1_000_000)
        jobs += [*_scans(bench, few), *_native(bench, few, many), *_columnar(bench, few, many), *_trees(bench, few)]
    seconds: dict[tuple[Dataset, str], float] = {}
    for events in dict.fromkeys(job.events for job in jobs):
        mine = [job.contender for job in jobs if job.events == events]
        timings = bench.race(f"jobs on {events.name}", mine, events)
        seconds |= {(events, contender.name): timings.median(contender.name) or math.inf for contender in mine}
    measured = np.array([seconds[job.events, job.contender.name] * CORES * 1e9 for job in jobs])
    names = [*CONSTANTS, _JOB, _PYTHON, _TREE]
    counts = np.array([[job.counts.get(name, 0.0) for name in names] for job in jobs])
    solved = _solve(counts, measured)
    _show(bench, jobs, names, solved, counts, measured)


def _solve(counts: np.ndarray, measured: np.ndarray) -> np.ndarray:
    from scipy.optimize import nnls

    relative = counts / measured[:, None]
    scale = np.maximum(relative.max(axis=0), 1e-300)
    solution, _ = nnls(relative / scale, np.ones(len(measured)))
    return solution / scale


def _show(
    bench: Bench, jobs: list[Job], names: list[str], solved: np.ndarray, counts: np.ndarray, measured: np.ndarray
) -> None:
    table = bench.report.table(
        "For panes/planning/calibration.py: nanoseconds of one core",
        "In brackets: fixed costs in milliseconds, which the planner does not have.",
    )
    for name, value in zip(names, solved, strict=True):
        if name in CONSTANTS:
            table.rows.append({"constant": name, "measured": float(value), "now": float(getattr(calibration, name))})
        else:
            table.rows.append({"constant": name, "measured": float(value) / 1e6})
    now = np.array([float(getattr(calibration, name, 0.0)) for name in names])
    fitted = bench.report.table(
        "How well that explains the jobs; seconds",
        "Now: with the constants as they are, which know no fixed costs.",
    )
    for job, row, took in zip(jobs, counts, measured, strict=True):
        scale = 1e9 * CORES
        fitted.rows.append(
            {
                "job": job.contender.name,
                "events": job.events.events,
                "measured": float(took / scale),
                "fitted": float(row @ solved / scale),
                "fitted ÷ measured": float(row @ solved / took),
                "now ÷ measured": float(row @ now / took),
            }
        )


def _query(windows: Iterable[Window], columns: int = 1) -> pn.Query:
    values = ("value", "units", "value + units", "value * units")
    select = {f"low{i}": pn.min(values[i]) for i in range(columns)}
    return pn.query("q", at="ts", by="key", select=select, over=windows)


def _statistics(events: Dataset) -> Statistics:
    return Statistics(rate=events.rate, keys={KEYS: events.keys[KEYS]}, origin="given")


def _groups(window: Geometry, events: Dataset) -> float:
    return events.seconds * _statistics(events).rows(KEYS, window.range, SECOND / window.slide)


def _scans(bench: Bench, events: Dataset) -> list[Job]:
    def scan(data: Dataset) -> DataFrame:
        return frame(bench.spark, data).selectExpr("max(ts)", "max(key)", "min(value)")

    return [Job(on_spark("scan", scan), events, {"SCAN": events.events, _JOB: 1})]


def _native_counts(window: Geometry, events: Dataset) -> Counter[str]:
    copies = -(-window.range // window.slide)
    counts = {"SCAN": events.events, "GROUP_EVENT": copies * events.events, "GROUP_ROW": _groups(window, events)}
    return Counter(counts)


def _native(bench: Bench, few: Dataset, many: Dataset) -> Iterable[Job]:
    cases = [(few, pn.tumbling(size)) for size in ("5 s", "20 s", "2 min", "1 hour")]
    cases += [(few, pn.hopping("2 min", every=slide)) for slide in ("60 s", "30 s", "15 s")]
    cases += [(many, pn.tumbling(size)) for size in ("20 s", "1 hour")]
    for events, window in cases:
        name = f"native {window}, {events.keys[KEYS]:,} keys"
        counts = _native_counts(window.geometry, events) + Counter({_JOB: 1})
        yield Job(spark_own(bench.spark, [_query([window])], name), events, dict(counts))


def _columnar(bench: Bench, few: Dataset, many: Dataset) -> Iterable[Job]:
    sizes = [pn.tumbling(size) for size in ("5 s", "20 s", "2 min", "1 hour")]
    for window in sizes:
        yield _columnar_job(bench, few, [window])
    for window in sizes[1::2]:
        yield _columnar_job(bench, many, [window])
    # Without panes.
    for events in (few, many):
        yield _columnar_job(bench, events, sizes[1:2], from_events=True)
    # Panes side by side, with one stored column and with several.
    for lanes, columns in ((2, 1), (4, 1), (8, 1), (16, 1), (1, 4), (4, 4)):
        yield _columnar_job(bench, few, [pn.tumbling("10 s")], lanes=lanes, columns=columns)
    # Several progressions of edges.
    for count in (2, 6, 12):
        awkward = [pn.tumbling(f"{size} s") for size in (61, 67, 71, 73, 79, 83, 89, 97, 101, 103, 107, 109)[:count]]
        edges = tuple(e for w in awkward for e in w.geometry.edges())
        for lanes in (1, 8):
            yield _columnar_job(bench, few, awkward, edges=edges, lanes=lanes)
    # Many answers from few panes.
    yield _columnar_job(bench, few, sequential(20))
    yield _columnar_job(bench, few, sequential(200))
    yield _columnar_job(bench, few, [pn.hopping("1 hour", every="10 s")])


def _columnar_job(
    bench: Bench,
    events: Dataset,
    windows: list[Window],
    *,
    lanes: int = 1,
    columns: int = 1,
    edges: tuple[Edges, ...] | None = None,
    from_events: bool = False,
) -> Job:
    """A columnar plan with edges and lanes as given, or without panes, whatever the planner would take."""
    from panes.spark.run import run_steps

    statistics = _statistics(events)
    physical = pn.plan(_query(windows, columns), strategy="columnar").physical_plan(statistics)
    store = physical.stores[0]
    edges = edges or store.edges
    physical = replace(physical, stores=(replace(store, edges=edges, lanes=lanes, from_events=from_events),))
    answers = sum(_groups(w.geometry, events) for w in windows)
    counts = {"SCAN": events.events, "ANSWER": answers, _JOB: 1, _PYTHON: 1}
    if from_events:
        counts |= {"EVENT": events.events, "STORED": events.events * columns}
        shape = f"{len(windows)} windows from {windows[0]}, events sorted"
    else:
        rows = events.seconds * PaneCost(statistics, KEYS).rows(edges, lanes)
        counts |= {
            "PANE_EVENT": events.events,
            "EDGE": events.events * len(edges),
            "PANE": rows,
            "LANE": events.events * lanes * columns if lanes > 1 else 0,
            "STORED": rows * lanes * columns,
        }
        shape = f"{len(windows)} windows from {windows[0]}, {len(edges)} edges, {lanes} lanes of {columns} columns"
    contender = on_spark(
        f"columnar {shape}, {events.keys[KEYS]:,} keys",
        lambda data: run_steps(physical, frame(bench.spark, data)).carry_out(),
    )
    return Job(contender, events, counts)


def _trees(bench: Bench, few: Dataset) -> Iterable[Job]:
    for sizes in (("5 s", "10 s"), ("5 s", "10 s", "20 s", "40 s"), ("1 min", "2 min", "4 min", "8 min")):
        over = [pn.tumbling(size) for size in sizes]
        plan = pn.plan(_query(over), strategy="rewrite", rate=few.rate, keys={"key": few.keys[KEYS]})
        counts: Counter[str] = Counter()
        for node in plan.physical_plan().stores[0].forest.nodes:
            if node.provider is None:
                counts += _native_counts(node.window, few)
                continue
            copies = -(-node.window.range // node.window.slide)
            counts["TREE_ROW"] += _groups(node.provider, few) * copies
            counts["GROUP_ROW"] += _groups(node.window, few)
            counts[_TREE] += 1
        counts[_JOB] += 1
        name = f"rewrite {', '.join(sizes)}"
        contender = on_spark(name, lambda data, plan=plan: plan.run(frame(bench.spark, data)))
        yield Job(contender, few, dict(counts))
