"""What a benchmark found: printed as tables, written as JSON with every raw timing."""

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
        """The median of a contender; None if it did not take part."""
        return median(self.seconds[name]) if name in self.seconds else None

    def ratio(self, name: str, unit: str) -> float | None:
        """How many times as long as another contender one took, median by median."""
        own, other = self.median(name), self.median(unit)
        return None if own is None or other is None else own / other


@dataclass
class Table:
    """Rows under a title; a row is a mapping from column to value."""

    title: str
    notes: tuple[str, ...] = ()
    rows: list[dict[str, Any]] = field(default_factory=list)

    def columns(self) -> list[str]:
        """All columns, in the order in which they first occur."""
        return list(dict.fromkeys(name for row in self.rows for name in row))


@dataclass
class Report:
    """All tables and timings of one workload."""

    name: str
    command: str
    directory: Path = RESULTS
    facts: dict[str, Any] = field(default_factory=dict)
    tables: list[Table] = field(default_factory=list)
    sections: dict[str, Any] = field(default_factory=dict)
    timings: list[dict[str, Any]] = field(default_factory=list)
    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    def table(self, title: str, *notes: str) -> Table:
        """Begin a table."""
        self.tables.append(Table(title, notes))
        return self.tables[-1]

    def record(self, case: str, data: str, timings: Timings) -> None:
        """Keep raw timings, and write what there is so far: a long run may be cut short."""
        self.timings += [
            {
                "case": case,
                "data": data,
                "contender": name,
                "seconds": _short(seconds),
                "median": _short(median(seconds)),
            }
            for name, seconds in timings.seconds.items()
        ]
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
            **self.sections,
            "timings": self.timings,
        }
        text = json.dumps(content, indent=1, ensure_ascii=False)
        (self.directory / f"{self.name}.json").write_text(text + "\n", encoding="utf-8")

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


def mean_and_max(values: Sequence[float]) -> tuple[float, float]:
    """As the paper summarises boosts."""
    return sum(values) / len(values), max(values)


def _short(value: Any) -> Any:
    """Four significant digits: more is noise."""
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
