"""The tree beside an earlier commit, side by side in one run: has anything become slower?

Each side is a process of its own with its own Spark, started on ``src`` of its tree; the script they run is the same,
so it uses only names that both know. One side works while the other waits, in rounds A B A B ..., so both see the same
machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

from benchmarks import data
from benchmarks.report import Timings
from benchmarks.runner import Bench
from benchmarks.workloads.guard_side import CASES, answer_of

ROOT = Path(__file__).resolve().parents[2]
SIDES = ("before", "now")


class Side:
    """A process that imports Panes from one tree and carries out cases as they are asked for."""

    def __init__(self, source: Path) -> None:
        folder = Path(__file__).parent
        environment = {**os.environ, "PYTHONPATH": str(source), "PANES_GUARD_SOURCE": str(source)}
        self._process = subprocess.Popen(
            [sys.executable, str(folder / "guard_side.py")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip

    def run(self, case: str, path: Path) -> tuple[float, str]:
        """Return how long a case took and a fingerprint of its answers."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{case}\t{path}\n")
        self._process.stdin.flush()
        return answer_of(self._process.stdout)

    def close(self) -> None:
        """Stop the process and its Spark."""
        self._process.communicate()


def guard(bench: Bench) -> None:
    """Race the tree against the commit of ``--against``, case by case."""
    against = bench.options.against
    bench.report.facts["against"] = _git("rev-parse", "--short", against)
    table = bench.report.table(
        f"This tree beside commit {bench.report.facts['against']}: median seconds, and the ratio now / before",
        "spread: the ratios of the single rounds, from the lowest to the highest.",
    )
    with ExitStack() as open_sides:
        before = open_sides.enter_context(_tree_of(against))
        sides = {}
        for name, source in zip(SIDES, (before, ROOT), strict=True):
            sides[name] = Side(source / "src")
            open_sides.callback(sides[name].close)
        for name, case in CASES.items():
            events = data.synthetic(bench.events(case.events), case.keys).path
            seconds: dict[str, list[float]] = {side: [] for side in SIDES}
            prints: dict[str, str] = {}
            for round_ in range(-1, bench.repeats):  # the first one warms up
                for side in SIDES if round_ % 2 else reversed(SIDES):
                    took, prints[side] = sides[side].run(name, events)
                    if round_ >= 0:
                        seconds[side].append(took)
            if prints["before"] != prints["now"]:
                raise AssertionError(f"{name}: the answers differ: {prints}")
            bench.report.record(name, events.name, Timings(seconds))
            ratios = [now / then for then, now in zip(seconds["before"], seconds["now"], strict=True)]
            table.rows.append(
                {
                    "case": name,
                    **{side: median(seconds[side]) for side in SIDES},
                    "ratio": median(ratios),
                    "spread": f"{min(ratios):.2f} to {max(ratios):.2f}",
                    "answers": prints["now"],
                }
            )
            bench.report.write()


@contextmanager
def _tree_of(commit: str) -> Iterator[Path]:
    """The files of a commit in a temporary work tree."""
    with tempfile.TemporaryDirectory(prefix="panes-guard-") as folder:
        tree = Path(folder) / "tree"
        _git("worktree", "add", "--detach", str(tree), commit)
        try:
            yield tree
        finally:
            _git("worktree", "remove", "--force", str(tree))


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()
