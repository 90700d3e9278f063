"""``python -m benchmarks NAME``: run one workload, or all of them."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from benchmarks.data import cache
from benchmarks.machine import machine
from benchmarks.report import RESULTS, Report
from benchmarks.runner import Bench, Options
from benchmarks.session import session
from benchmarks.workloads import WORKLOADS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main(arguments: Sequence[str] | None = None, spark: SparkSession | None = None) -> int:
    """Run workloads; a session may be given, otherwise one is started where it is needed."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    parsed = _parser().parse_args(arguments)
    if parsed.name != "all" and parsed.name not in WORKLOADS:
        print(f"there is no benchmark {parsed.name!r}; the names are:\n{_names()}", file=sys.stderr)
        return 2
    options = Options(
        parsed.events,
        parsed.repeats,
        parsed.sets,
        parsed.keys,
        parsed.full,
        parsed.all_strategies,
        parsed.quick,
        parsed.against,
    )
    directory = parsed.results or (cache() / "quick" if parsed.quick else RESULTS)
    console = _console()
    for name in WORKLOADS if parsed.name == "all" else [parsed.name]:
        report = Report(name, _command(name, parsed, arguments), directory, machine(spark))
        bench = Bench(options, report, (lambda: spark) if spark is not None else session, console)
        WORKLOADS[name].run(bench)
        report.write()
        report.show(console)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", epilog=_names(), formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", help="a workload, or all")
    parser.add_argument("--events", type=int, help="how many synthetic events")
    parser.add_argument("--repeats", type=int, help="rounds that count (3)")
    parser.add_argument("--sets", type=int, help="window sets per row of a table (3; the paper: 10)")
    parser.add_argument("--keys", type=int, help="distinct keys, where a workload does not vary them (100)")
    parser.add_argument("--full", action="store_true", help="also what takes very long")
    parser.add_argument("--all-strategies", action="store_true", help="keys: also force each strategy")
    parser.add_argument("--quick", action="store_true", help="everything small; results go to the cache directory")
    parser.add_argument("--against", default="HEAD", help="guard: the commit to compare with (HEAD)")
    parser.add_argument("--results", type=Path, help="another directory for the JSON files")
    return parser


def _console() -> Console:
    """Wide enough for a table, also where nobody says how wide the screen is."""
    console = Console()
    return console if console.is_terminal else Console(width=200)


def _names() -> str:
    return "\n".join(f"  {name:12}  {workload.about}" for name, workload in WORKLOADS.items())


def _command(name: str, parsed: argparse.Namespace, arguments: Sequence[str]) -> str:
    """What to type to get this file again; directories are nobody's business."""
    own = [name if argument == parsed.name else argument for argument in arguments]
    if parsed.results is not None:
        own = [a for a in own if a not in ("--results", str(parsed.results)) and not a.startswith("--results=")]
    return shlex.join(["python", "-m", "benchmarks", *own])


if __name__ == "__main__":
    sys.exit(main())
