"""Matches of the widest window as rows of the result: the level of each, then a row for it, or one per window."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from panes.spark.join_sides import JoinSides
from panes.spark.naming import text

LEVEL = "__panes_level"
"""The number of the narrowest window that holds a match; the number of windows where a row has no match."""

_DISTANCE, _NAME, _SIZE, _LEFT, _RIGHT = (
    f"__panes_{name}" for name in ("distance", "name", "size", "of_left", "of_right")
)


def with_levels(sides: JoinSides, matches: DataFrame) -> DataFrame:
    """Matches with their levels."""
    sizes = sides.declared.sizes
    apart = matches.withColumn(_DISTANCE, F.expr(sides.distance))
    level = _choice(sizes, 0, len(sizes) - 1)
    return apart.withColumn(LEVEL, F.expr(f"IF({_DISTANCE} IS NULL, {len(sizes)}, {level})"))


def each_once(sides: JoinSides, matches: DataFrame) -> DataFrame:
    """A row per match."""
    declared = sides.declared
    return sides.result(
        matches,
        f"get(array({', '.join(map(text, declared.names))}), {LEVEL})",
        f"get(array({', '.join(f'{size}L' for size in declared.sizes)}), {LEVEL})",
        level=LEVEL,
    )


def every_window(sides: JoinSides, matches: DataFrame, lonely: tuple[str, str] | None = None) -> DataFrame:
    """A row per match and window that holds it.

    Parameters
    ----------
    lonely
        For joins that keep rows without a match: SQL that is true for one match of a left row (of a right row), the
        nearest. In narrower windows than that match's, the row has none.
    """
    held = f"slice({_entries(sides, 'TRUE', 'TRUE')}, {LEVEL} + 1, {len(sides.declared.sizes)})"
    if lonely is None:
        exploded = matches.selectExpr("*", f"inline({held}) AS ({_NAME}, {_SIZE}, {_LEFT}, {_RIGHT})")
        return sides.result(exploded, _NAME, _SIZE)
    one_sided = zip(lonely, (("TRUE", "FALSE"), ("FALSE", "TRUE")), strict=True)
    alone = [f"slice({_entries(sides, *shows)}, 1, IF({first}, {LEVEL}, 0))" for first, shows in one_sided]
    rows = f"inline(concat({', '.join([held, *alone])})) AS ({_NAME}, {_SIZE}, {_LEFT}, {_RIGHT})"
    return sides.result(matches.selectExpr("*", rows), _NAME, _SIZE, shows=(_LEFT, _RIGHT))


def _entries(sides: JoinSides, left: str, right: str) -> str:
    """All windows, from the narrowest, as an array that Spark folds into a constant; and what rows of them show."""
    windows = zip(sides.declared.names, sides.declared.sizes, strict=True)
    return f"array({', '.join(f'struct({text(name)}, {size}L, {left}, {right})' for name, size in windows)})"


def _choice(sizes: Sequence[int], low: int, high: int) -> str:
    """SQL for the first window that is wider than a distance, by halves: thousands of windows take a dozen steps."""
    if low == high:
        return str(low)
    middle = (low + high) // 2
    narrower, wider = _choice(sizes, low, middle), _choice(sizes, middle + 1, high)
    return f"IF({_DISTANCE} < {sizes[middle]}L, {narrower}, {wider})"
