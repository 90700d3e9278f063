"""The report of a benchmark: printed as tables, written as a JSON summary with one record per line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable

RESULTS = Path(__file__).resolve().parent / "results"


@dataclass(frozen=True)
class Timings:
    """The seconds of every counted round, by contender."""

    seconds: dict[str, list[float]]

    def median(self, name: str) -> float | None:
        """Return the median of a contender, or None if it did not take part."""
        return median(self.seconds[name]) if name in self.seconds else None

    def ratio(self, name: str, unit: str) -> float | None:
        """Return the median of one contender divided by that of another."""
        own, other = self.median(name), self.median(unit)
        return None if own is None or other is None else own / other


@dataclass
class Table:
    """Rows under a title; a row is a mapping from column to value."""

    title: str
    notes: tuple[str, ...] = ()
    rows: list[dict[str, Any]] = field(default_factory=list)

    def columns(self) -> list[str]:
        """Return all columns in the order of their first appearance."""
        return list(dict.fromkeys(name for row in self.rows for name in row))


@dataclass
class Report:
    """All tables of one workload, and the timings of those whose tables do not show them all."""

    name: str
    command: str
    directory: Path = RESULTS
    facts: dict[str, Any] = field(default_factory=dict)
    tables: list[Table] = field(default_factory=list)
    timings: list[dict[str, Any]] = field(default_factory=list)
    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    def table(self, title: str, *notes: str) -> Table:
        """Add a table."""
        self.tables.append(Table(title, notes))
        return self.tables[-1]

    def record(self, case: str, data: str, timings: Timings) -> None:
        """Keep the median of each contender, and write the report so far: a long run may be cut short."""
        record = next((r for r in self.timings if (r["case"], r["data"]) == (case, data)), None)
        if record is None:
            record = {"case": case, "data": data, "rounds": 0, "seconds": {}}
            self.timings.append(record)
        record["rounds"] = max(record["rounds"], *map(len, timings.seconds.values()))
        record["seconds"] |= {name: _short(median(seconds)) for name, seconds in timings.seconds.items()}
        self.write()

    def write(self) -> None:
        """Write the JSON file."""
        self.directory.mkdir(parents=True, exist_ok=True)
        content = {
            "name": self.name,
            "command": self.command,
            "date": self.started,
            "machine": self.facts,
            "tables": [
                {"title": t.title, "notes": list(t.notes), "rows": [_short(row) for row in t.rows]} for t in self.tables
            ],
            **({"timings": self.timings} if self.timings else {}),
        }
        (self.directory / f"{self.name}.json").write_text(as_json(content), encoding="utf-8")

    def show(self, console: Console) -> None:
        """Print the tables."""
        for table in self.tables:
            shown = RichTable(title=table.title, title_justify="left", caption="\n".join(table.notes) or None)
            shown.caption_justify = "left"
            columns = table.columns()
            for column in columns:
                numbers = any(isinstance(row.get(column), int | float) for row in table.rows)
                shown.add_column(column, justify="right" if numbers else "left")
            for row in table.rows:
                shown.add_row(*(_text(row.get(column)) for column in columns))
            console.print(shown)


def as_json(content: dict[str, Any]) -> str:
    """Return a report as JSON: a line per fact, note, row and timing.

    Examples
    --------
    >>> print(as_json({"name": "price", "timings": [{"case": "1 window"}, {"case": "5 windows"}]}), end="")
    {
     "name": "price",
     "timings": [
      {"case": "1 window"},
      {"case": "5 windows"}
     ]
    }
    """
    return _nested(content, 0) + "\n"


def _nested(value: Any, depth: int) -> str:
    """Break lists of records, and what holds them, into lines; leave everything else on one line."""
    records = isinstance(value, list) and any(isinstance(each, dict) for each in value)
    holder = isinstance(value, dict) and any(isinstance(each, list) for each in value.values())
    if not (records or holder):
        return json.dumps(value, ensure_ascii=False)
    pad, opening, closing = " " * (depth + 1), *("[]" if records else "{}")
    if records:
        lines = [_nested(each, depth + 1) for each in value]
    else:
        lines = [f"{json.dumps(name)}: {_nested(each, depth + 1)}" for name, each in value.items()]
    return f"{opening}\n{pad}" + f",\n{pad}".join(lines) + f"\n{' ' * depth}{closing}"


def mean_and_max(values: Sequence[float]) -> tuple[float, float]:
    """Return mean and maximum, as the paper summarises boosts."""
    return sum(values) / len(values), max(values)


def _short(value: Any) -> Any:
    """Round floats to four significant digits; more is noise."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {name: _short(each) for name, each in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [_short(each) for each in value]
    return value


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.2f}" if 0.1 <= abs(value) < 1000 or value == 0 else f"{value:.3g}"
    return str(value)
