"""Ways to the same answers, timed side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame


def race(runs: Mapping[str, DataFrame], rounds: int, tell: Callable[[str], None]) -> dict[str, list[float]]:
    """The seconds that each takes in every round A B A B ...; a first round warms up and does not count."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(rounds + 1):
        for name, answers in runs.items():
            tell(f"{name}, {f'round {turn} of {rounds}' if turn else 'warm-up'}")
            began = time.perf_counter()
            answers.write.format("noop").mode("overwrite").save()
            if turn:
                seconds[name].append(time.perf_counter() - began)
    return seconds
