"""The plan of a file of queries: as text, as a flowchart, as data, as a picture; and what a run of it does."""

from __future__ import annotations

import json as jsons
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import panes as pn
from panes.cli.reporting import working
from panes.dialect.statement import read_statements
from panes.errors import PanesError
from panes.timeline import parse_duration

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from panes.queries.windows import Bounds
    from panes.spark.files import Source


def explain_file(
    queries: Path,
    at: str | None,
    bounds: Bounds,
    *,
    rate: str | None,
    keys: int | None,
    mermaid: bool,
    json: bool,
    svg: Path | None,
) -> None:
    """Show the plan in one of its forms, and draw it where a file is given."""
    if mermaid and json:
        raise PanesError("--mermaid and --json both want to print: take one of them.")
    plan = _plan(queries, at, bounds, rate, keys)
    if svg is not None:
        svg.write_text(plan.to_svg(), encoding="utf-8")
        print(f"drawn into {svg}", file=sys.stderr)
    if mermaid:
        print(plan.to_mermaid())
    elif json:
        print(jsons.dumps(plan.to_dict(), indent=2))
    elif svg is None:
        print(plan.explain())


def explain_run(
    queries: Path,
    at: str | None,
    bounds: Bounds,
    source: Source,
    start: Callable[[], SparkSession],
    *,
    rate: str | None,
    keys: int | None,
    watermark: str | None,
) -> None:
    """Show what a run on some events would do.

    Parameters
    ----------
    watermark
        How late events of a stream may come; None for a batch.
    """
    from panes.spark.files import part_malformed

    plan = _plan(queries, at, bounds, rate, keys)
    with working("starting Spark") as step:
        spark = start()
        step("looking at the events", spark)
        _, events = part_malformed(source.read(spark) if watermark is None else source.stream(spark))
        if watermark is not None:
            events = events.withWatermark(plan.queries[0].at, watermark)
        told = plan.explain(events)
    print(told)


def _plan(queries: Path, at: str | None, bounds: Bounds, rate: str | None, keys: int | None) -> pn.Plan:
    found = [s.query for s in read_statements(queries.read_text(encoding="utf-8-sig"), at=at, bounds=bounds)]
    return pn.plan(found, rate=None if rate is None else per_second(rate), keys=keys)


def per_second(text: str) -> float:
    """A rate as people write it.

    Examples
    --------
    >>> per_second("100/s"), per_second("6000/min"), per_second("100")
    (100.0, 100.0, 100.0)
    """
    number, slash, unit = text.partition("/")
    try:
        length = parse_duration(f"1 {unit}") if slash else 1_000_000
        return float(number.replace(",", "").replace("_", "")) * 1e6 / length
    except ValueError as error:
        raise PanesError(f"--rate {text!r} is no rate: write 100/s, 5000/min, or a number per second.") from error
