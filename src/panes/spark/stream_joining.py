"""A windowed join of streams: Spark's own stream-stream join of the widest window, which finds each match once.

Its state is Spark's: rows of both sides, each for as long as the widest window can still need it. Levels and windows
are projections without state after it.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from panes.spark.join_levels import each_once, every_window, with_levels
from panes.spark.join_sides import LEFT, RIGHT, JoinSides
from panes.spark.naming import text
from panes.spark.watermarks import check_watermark
from panes.timeline import SECOND

_NUMBER = "number"  # of the window of a row; the name of the side comes before
_SLACK = 0.001


def join_streams(sides: JoinSides) -> DataFrame:
    """Join two streams; nothing runs until the result is written somewhere."""
    declared = sides.declared
    check_watermarks(sides)
    if declared.how != "inner" and declared.layout == "long":
        return _window_by_window(sides)
    near = f"{sides.distance} < {declared.widest}L"
    found = with_levels(sides, _joined(sides, sides.left, sides.right, near))
    return each_once(sides, found) if declared.layout == "matches" else every_window(sides, found)


def check_watermarks(sides: JoinSides) -> None:
    """Refuse streams of which nobody knows when they are complete."""
    for (rows, _, side), which, called in zip(sides.all, ("left", "right"), sides.declared.at, strict=True):
        check_watermark(rows, rows.columns[side.at], which, called)


def _window_by_window(sides: JoinSides) -> DataFrame:
    """An outer join where a row may have a match in one window and none in a narrower one.

    Which rows have none is known when the watermark has passed, window by window; that is what Spark's outer join
    remembers of each row. So every row is kept once per window, and windows are joined like keys, by one operator.
    """
    declared, count = sides.declared, len(sides.declared.sizes)
    left, right = (
        rows.withColumn(f"{name}{_NUMBER}", F.explode(F.sequence(F.lit(0), F.lit(count - 1))))
        for rows, name, _ in sides.all
    )
    names = f"array({', '.join(map(text, declared.names))})"
    sizes = f"array({', '.join(f'{size}L' for size in declared.sizes)})"
    same = f"{LEFT}{_NUMBER} = {RIGHT}{_NUMBER} AND {sides.distance} < {sizes}[{LEFT}{_NUMBER}]"
    number = f"coalesce({LEFT}{_NUMBER}, {RIGHT}{_NUMBER})"
    return sides.result(_joined(sides, left, right, same), f"{names}[{number}]", f"{sizes}[{number}]")


def _joined(sides: JoinSides, left: DataFrame, right: DataFrame, near: str) -> DataFrame:
    # No watermark ever passes a row without a time: Spark would keep it for ever.
    left, right = (
        rows.where(f"{name}{side.at} IS NOT NULL")
        for rows, (_, name, side) in zip((left, right), sides.all, strict=True)
    )
    # Spark reads from a condition on seconds for how long it has to keep rows. Intervals would say the same, but a day
    # has not always 24 hours where the session's time zone changes its clocks. ``near`` is exact, and seconds are not.
    one, other = (f"CAST({name}{side.at} AS DOUBLE)" for _, name, side in sides.all)
    width = sides.declared.widest / SECOND + _SLACK
    bounds = f"{one} < {other} + {width!r}D AND {other} < {one} + {width!r}D"
    # In its full outer join of streams, Spark lets null keys match each other unless it is told.
    known = " AND ".join(f"{LEFT}{i} IS NOT NULL" for i in sides.columns.left.keys)
    return left.join(right, F.expr(f"{sides.alike} AND {known} AND {near} AND {bounds}"), sides.declared.how)
