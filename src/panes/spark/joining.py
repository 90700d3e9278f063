"""A windowed join on Spark: each match is found once, by one join of the widest window; the rest is projections.

Rows stay in the JVM. In a batch, time is cut into buckets as wide as the widest window, and one side is copied into the
buckets beside its own, so that Spark joins by key *and* bucket: a row meets those of three buckets and not all of its
key.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from panes.declare.joins import Join
from panes.errors import PlanError
from panes.spark.join_levels import LEVEL, each_once, every_window, with_levels
from panes.spark.join_sides import LEFT, RIGHT, JoinSides, examine
from panes.spark.joining_rows import join_rows, join_rows_of_streams
from panes.spark.stream_joining import join_streams

_BUCKET, _ROW, _NEAREST = "bucket", "row", "nearest"  # columns of a side: its name comes before


def join(declared: Join, left: DataFrame, right: DataFrame) -> DataFrame:
    """Join two DataFrames, batches or streams; nothing runs until the result is used."""
    if left.isStreaming != right.isStreaming:
        stream, batch = ("left", "right") if left.isStreaming else ("right", "left")
        raise PlanError(
            f"the {stream} side is a stream and the {batch} side is not, so it would never be known when its rows have "
            "no more matches to come. Read both as streams, or both as batches."
        )
    sides = examine(declared, left, right)
    found = []
    if declared.sizes:
        found.append(join_streams(sides) if left.isStreaming else _join_batches(sides))
    if declared.rows:
        found += join_rows_of_streams(sides) if left.isStreaming else [join_rows(sides)]
    return reduce(DataFrame.unionAll, found)


def _join_batches(sides: JoinSides) -> DataFrame:
    declared = sides.declared
    found = with_levels(sides, _matches(sides))
    if declared.how == "inner":
        return each_once(sides, found) if declared.layout == "matches" else every_window(sides, found)
    if declared.layout == "long":
        found = _with_nearest(_with_nearest(found, sides, LEFT), sides, RIGHT)
        return every_window(sides, found, (f"{LEFT}{_NEAREST}", f"{RIGHT}{_NEAREST}"))
    if declared.how == "full":
        # Copies of a row on the right, in other buckets than those of its matches, come out as rows without a match.
        copies = f"{LEVEL} = {len(declared.sizes)} AND {LEFT}{_ROW} IS NULL AND NOT {RIGHT}{_NEAREST}"
        found = _with_nearest(found, sides, RIGHT).where(f"NOT ({copies})")
    return each_once(sides, found)


def _matches(sides: JoinSides) -> DataFrame:
    """Every match of the widest window, once, and the rows without one that the join keeps."""
    declared, width = sides.declared, sides.declared.widest
    # A side whose rows come out without a match must not be copied, or be told apart afterwards.
    copied = LEFT if declared.how == "right" else RIGHT
    placed = []
    for (rows, name, _), instant in zip(sides.all, sides.micros, strict=True):
        if declared.how != "inner":
            rows = rows.withColumn(f"{name}{_ROW}", F.monotonically_increasing_id())
        own = f"{instant} - pmod({instant}, {width}L)"
        beside = f"explode(array({own} - {width}L, {own}, {own} + {width}L))"
        placed.append(rows.selectExpr("*", f"{beside if name == copied else own} AS {name}{_BUCKET}"))
    near = f"{LEFT}{_BUCKET} = {RIGHT}{_BUCKET} AND {sides.distance} < {width}L"
    return placed[0].join(placed[1], F.expr(f"{sides.alike} AND {near}"), declared.how)


def _with_nearest(matches: DataFrame, sides: JoinSides, name: str) -> DataFrame:
    """Whether a match is the nearest of its row of a side; false where the join does not keep rows of that side."""
    declared, nearest = sides.declared, f"{name}{_NEAREST}"
    if not (declared.keeps_left if name == LEFT else declared.keeps_right):
        return matches.withColumn(nearest, F.lit(False))
    row, other = f"{name}{_ROW}", f"{RIGHT if name == LEFT else LEFT}{_ROW}"
    # Rows of the other side without a match have no row here; apart, so that they do not all meet in one task.
    of_row = Window.partitionBy(row, F.expr(f"IF({row} IS NULL, {other}, NULL)")).orderBy(LEVEL)
    first = F.row_number().over(of_row) == 1
    return matches.withColumn(nearest, F.col(row).isNotNull() & first)
