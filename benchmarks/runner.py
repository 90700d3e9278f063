"""The one runner: check that answers are equal, then time contenders in interleaved rounds."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from rich.console import Console

from benchmarks.contenders import Contender
from benchmarks.data import Dataset
from benchmarks.machine import machine
from benchmarks.report import Report, Timings
from panes.testing import assert_same_answers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

_CHECKED = 20_000  # events on which answers are compared


@dataclass(frozen=True)
class Options:
    """What the command line says; None leaves it to the workload.

    ``full`` also runs what takes very long; ``quick`` makes everything small, to see that it works.
    """

    events: int | None = None
    repeats: int | None = None
    sets: int | None = None
    keys: int | None = None
    full: bool = False
    all_strategies: bool = False
    quick: bool = False
    against: str = "HEAD"


@dataclass
class Bench:
    """What a workload is given: options, a Spark session once it asks for one, and the report to fill."""

    options: Options
    report: Report
    start_spark: Callable[[], SparkSession]
    console: Console = field(default_factory=Console)

    @cached_property
    def spark(self) -> SparkSession:
        """Spark, started when first asked for."""
        spark = self.start_spark()
        self.report.facts = machine(spark)
        return spark

    def events(self, default: int) -> int:
        """How many events to make."""
        return self.options.events or (50_000 if self.options.quick else default)

    @property
    def repeats(self) -> int:
        """Rounds that count."""
        return self.options.repeats or (1 if self.options.quick else 3)

    def sets(self, default: int = 3) -> int:
        """How many window sets to draw per row."""
        return self.options.sets or (1 if self.options.quick else default)

    def few(self, cases: Sequence[T], quick: int = 2) -> Sequence[T]:
        """The cases, or the first of them where everything is to be small."""
        return cases[:quick] if self.options.quick else cases

    def check(self, case: str, contenders: Sequence[Contender], data: Dataset) -> None:
        """Stop the benchmark unless everybody gives the answers of the first contender, on the first events."""
        small = data.prefix(_CHECKED)
        reference, *others = contenders
        self._say(f"{case}: checking answers")
        expected = reference.answers(small)
        if not expected.num_rows:
            raise AssertionError(f"{case}: {reference.name} has no answers to compare")
        for contender in others:
            try:
                assert_same_answers(contender.answers(small), expected)
            except AssertionError as wrong:
                raise AssertionError(f"{case}: {contender.name} is not {reference.name}: {wrong}") from wrong

    def race(
        self,
        case: str,
        contenders: Sequence[Contender],
        data: Dataset,
        *,
        apart: Sequence[Contender] = (),
        warm: float = 0.0,
        warm_on: Dataset | None = None,
        rounds: int | None = None,
        prepared: bool = False,
    ) -> Timings:
        """Time contenders in rounds A B C A B C ..., after runs of each that warm up and do not count.

        Parameters
        ----------
        warm
            For how many seconds each contender warms up, at least with one run. The JVM compiles what has run for a
            while: without it, a contender that is new to it is raced against those that are not.
        warm_on
            What they warm up on, where all events would take too long; the same events by default. Those that are
            done with all events as quickly as they should warm up run once on these, too.
        rounds
            How many count, instead of what was asked for.
        apart
            Contenders outside Spark, which have rounds of their own after the others. Where they take a minute, Spark
            stops its idle Python workers meanwhile, and whoever comes next would pay for new ones.
        prepared
            Whether each run that counts directly follows an untimed one of the same contender on few events.
        """
        count = self.repeats if rounds is None else rounds
        seconds = self._rounds(case, contenders, data, warm, warm_on or data, count, prepared)
        seconds |= self._rounds(case, apart, data, 0, data, count, prepared)
        timings = Timings(seconds)
        self.report.record(case, data.name, timings)
        return timings

    def _rounds(
        self,
        case: str,
        contenders: Sequence[Contender],
        data: Dataset,
        warm: float,
        warm_on: Dataset,
        rounds: int,
        prepared: bool,
    ) -> dict[str, list[float]]:
        def run(contender: Contender, events: Dataset, remark: str = "") -> float:
            if prepared and not remark:
                contender.run(data.prefix(_CHECKED))
            took, _ = timed(contender.run, events)
            self._say(f"{case}: {contender.name} {took:.2f} s{remark}")
            return took

        for contender in contenders:
            spent = took = run(contender, warm_on, " (warm-up)")
            while spent < warm and not self.options.quick:
                spent += (took := run(contender, warm_on, " (warm-up)"))
            if warm_on != data and took * data.events < warm * warm_on.events:
                run(contender, data, " (warm-up)")
        seconds: dict[str, list[float]] = {contender.name: [] for contender in contenders}
        for _ in range(rounds):
            for contender in contenders:
                seconds[contender.name].append(run(contender, data))
        return seconds

    def _say(self, line: str) -> None:
        self.console.print(f"[dim]{line}[/dim]", highlight=False)


def timed(work: Callable[..., T], *arguments: Any, **options: Any) -> tuple[float, T]:
    """Seconds that some work takes, without the garbage of the work before, and its result."""
    gc.collect()
    start = time.perf_counter()
    result = work(*arguments, **options)
    return time.perf_counter() - start, result
