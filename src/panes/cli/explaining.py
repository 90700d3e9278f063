"""The plan of a file of queries: as text, as a flowchart, as data, as a picture."""

from __future__ import annotations

import json as jsons
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import panes as pn
from panes.dialect.statement import read_statements
from panes.errors import PanesError
from panes.timeline import parse_duration

if TYPE_CHECKING:
    from panes.declare.windows import Bounds


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
    found = [s.query for s in read_statements(queries.read_text(encoding="utf-8-sig"), at=at, bounds=bounds)]
    plan = pn.plan(found, rate=None if rate is None else per_second(rate), keys=keys)
    if svg is not None:
        svg.write_text(plan.to_svg(), encoding="utf-8")
        print(f"drawn into {svg}", file=sys.stderr)
    if mermaid:
        print(plan.to_mermaid())
    elif json:
        print(jsons.dumps(plan.to_dict(), indent=2))
    elif svg is None:
        print(plan.explain())


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
