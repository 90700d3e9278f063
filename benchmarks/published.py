"""The page ``docs/performance.md`` and the figures of the README, written from ``benchmarks/results``.

``python -m benchmarks.published`` writes both; a test compares them with what the results say.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from benchmarks.report import RESULTS
from benchmarks.workloads import WORKLOADS

ROOT: Final = RESULTS.parents[1]
PAGE: Final = ROOT / "docs" / "performance.md"
README: Final = ROOT / "README.md"
COMMAND: Final = "python -m benchmarks.published"


_MAXIMA: Final = ("w/o FW max", "paper w/o max", "w/ FW max", "paper w/ max", "columnar max")


@dataclass(frozen=True)
class Shown:
    """What the page shows of a workload: some of its tables (all by default), and how to read them."""

    name: str
    remark: str = ""
    tables: tuple[int, ...] | None = None
    without: tuple[str, ...] = ()


CHAPTERS: Final[Mapping[str, Sequence[Shown]]] = {
    "Tables and DataFrames": (
        Shown("price", "With one tumbling window there is nothing to share, and the planner runs Spark's own."),
        Shown("slides"),
        Shown("keys", tables=(0,)),
        Shown("trades"),
        Shown("values"),
        Shown("sketches"),
        Shown("sliding"),
        Shown("by_events"),
    ),
    "Streams": (
        Shown(
            "streaming",
            "With few keys a single window is cheaper in Spark's own stream: starting Python costs more than it saves. "
            "With many keys it is not, since Panes does not store a row per key.",
        ),
        Shown("state", "The state grows with the widest window, not with the number of windows."),
        Shown("day", "A micro-batch writes only what it touched, and reads the whole day."),
        Shown(
            "granular",
            "Events are folded once for all levels, which is most of the time. The state shrinks at first: older "
            "granules may be coarser once a wider level is the only one that looks at them.",
            tables=(1, 3),
        ),
    ),
    "Lookups and joins": (
        Shown(
            "lookups",
            "DuckDB and Polars answer the first with as-of joins on running totals, which works for counts and integer "
            "sums but not for maxima or distinct values. Spark's window functions go through a window again for every "
            "event.",
        ),
        Shown(
            "join",
            "*Spark's own* are ten joins written as in its documentation, with equal keys and times less than an "
            "interval apart: Spark compares all rows of a key. *In buckets* cuts time by hand, once per window. The "
            "machine had other work, so the ratios say more than the seconds.",
        ),
    ),
    "Live": (
        Shown(
            "asw",
            "R-INT is ahead, as in the paper, until nearly all inputs are updates. Two things differ, since inputs "
            "come in batches: a window of some hundred rows is folded sooner than a tree is climbed, so materialising "
            "nothing does well; and keeping all answers up to date is paid for once per batch of updates.",
            tables=(1, 2, 3, 4, 5),
        ),
        Shown(
            "thresholds",
            "*Every key* is the paper's naive approach, vectorised; *long keys* passes over keys with too few events "
            "altogether; *every event* counts the events of the window by key. An index pays off with many keys, few "
            "of which qualify.",
            tables=(1, 2, 3, 4),
        ),
    ),
    "Operators, event by event": (
        Shown(
            "windowing",
            "Above 1, Panes is faster. With single tuples, the separation of windows and operators costs a few calls "
            "per tuple, which soon disappear behind the work of the operator itself.",
        ),
        Shown("windowed"),
    ),
    "Factor Windows": (
        Shown(
            "table1",
            "A tree of group-bys, which serves the paper's engine well, is a shuffle for every window on Spark. "
            "Columns come near the limit, or go beyond it, since their scan is cheaper than that of a Spark window.",
            without=_MAXIMA,
        ),
        Shown("table3", without=_MAXIMA),
        Shown(
            "table2",
            "A scan of so few events takes less than a second, and starting Python counts.",
            without=_MAXIMA,
        ),
        Shown("planning"),
    ),
}

CASES: Final = (
    ("One window of an hour every minute, 10 M events", "slides", -1, ("Spark's own", "DuckDB", "Polars")),
    (
        "Twenty windows, 1,000,000 keys: nearly every event is its own answer",
        "keys",
        -1,
        ("Spark's own", "DuckDB", "Polars"),
    ),
    ("Fifty hopping windows of distinct prices, 2.8 M trades", "values", 0, ("Spark's own",)),
    ("A join over ten windows", "join", 0, ("Spark's own", "Spark's own in buckets")),
    ("200,000 lookups among 2 M events, twenty windows", "lookups", 0, ("Spark's joins", "DuckDB", "Polars")),
)
"""Cases for the README: what it is, the workload, the row of its first table, and who else took part."""


@cache
def result(name: str) -> dict[str, Any]:
    """The published report of a workload."""
    report: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return report


def page() -> str:
    """The text of ``docs/performance.md``."""
    parts = [
        "# Performance",
        f"<!-- Written by `{COMMAND}`. -->",
        "What the benchmarks measured, from their results in `benchmarks/results/`. Seconds are medians of interleaved "
        "rounds on one machine with two cores; each section names its command and its day. Compare within a table: "
        "another machine has other seconds.",
    ]
    for title, chapter in CHAPTERS.items():
        parts.append(f"## {title}")
        for shown in chapter:
            parts += _section(shown)
    return "\n\n".join(parts) + "\n"


def readme() -> str:
    """The README with the figures of today's results between its markers."""
    text = README.read_text(encoding="utf-8")
    for name, figures in {"price": _price(), "cases": _cases(), "streaming": _streaming()}.items():
        text = re.sub(rf"(<!-- {name} -->\n).*?(<!-- / -->)", rf"\g<1>{figures}\g<2>", text, flags=re.DOTALL)
    return text


def _section(shown: Shown) -> Iterable[str]:
    report = result(shown.name)
    about = WORKLOADS[shown.name].about
    yield f"### {about[0].upper()}{about[1:]}"
    command = report["command"].removeprefix("python -m benchmarks ")
    yield f"`python -m benchmarks {command}`, {report['date'][:10]}. {shown.remark}".rstrip()
    for number, table in enumerate(report["tables"]):
        if shown.tables is None or number in shown.tables:
            yield f"**{table['title']}**"
            yield markdown([{k: v for k, v in row.items() if k not in shown.without} for row in table["rows"]]).rstrip()
            if table["notes"]:
                yield " ".join(table["notes"])


def markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as a Markdown table.

    Examples
    --------
    >>> print(markdown([{"windows": 1000, "seconds": 1.778}, {"windows": 5, "Polars": 0.8935}]), end="")
    | windows | seconds | Polars |
    |---|---|---|
    | 1,000 | 1.78 |  |
    | 5 |  | 0.89 |
    """
    columns = list(dict.fromkeys(name for row in rows for name in row))
    cells = [columns, *([figure(row.get(name)) for name in columns] for row in rows)]
    heading, *lines = (f"| {' | '.join(line)} |\n" for line in cells)
    return heading + "|---" * len(columns) + "|\n" + "".join(lines)


def figure(value: Any) -> str:
    """A value as the page shows it: about three digits.

    Examples
    --------
    >>> [figure(value) for value in (0.01294, 1.1, 16.12, 129.9, 36_900.0, 200_000, None, True, "5 min")]
    ['0.013', '1.10', '16.1', '130', '36,900', '200,000', '', 'yes', '5 min']
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        size = abs(value)
        return f"{value:.2g}" if size < 0.1 else f"{value:,.{2 if size < 10 else 1 if size < 100 else 0}f}"
    return str(value)


def _rows(name: str, table: int = 0) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = result(name)["tables"][table]["rows"]
    return rows


def _price() -> str:
    alike = {name: name for name in ("Panes", "Spark's own", "DuckDB", "Polars")}
    return _beside("price", alike | {"one Spark window": "one Spark window, same rounds"})


def _streaming() -> str:
    contenders = {
        "Panes": "Panes, one query",
        "a native query per window": "native queries, all at once",
        "one after another": "native queries, one after another",
        "one native query": "one native query, same rounds",
    }
    return _beside("streaming", contenders)


def _beside(name: str, contenders: Mapping[str, str]) -> str:
    """Windows, and the seconds of each contender; a dash where it did not run."""
    rows = []
    for row in _rows(name):
        seconds = {heading: figure(row.get(contender)) or "–" for contender, heading in contenders.items()}
        rows.append({"windows": row["windows"]} | seconds)
    return markdown(rows)


def _cases() -> str:
    """A row per case: what it is, Panes, and the others."""
    rows = []
    for about, name, number, others in CASES:
        seconds = {contender: f"{figure(value)} s" for contender, value in _rows(name)[number].items()}
        beside = ", ".join(f"{contender} {seconds[contender]}" for contender in others)
        rows.append({"case": about, "Panes": seconds["Panes"], "others": beside})
    return markdown(rows)


def main() -> None:
    """Write the page and the README."""
    PAGE.write_text(page(), encoding="utf-8")
    README.write_text(readme(), encoding="utf-8")


if __name__ == "__main__":
    main()
