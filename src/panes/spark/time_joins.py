"""Joins over windows in time, in the JVM: each match is found once, by one join of the widest window.

Its *level*, the narrowest window that holds it, follows from how far apart the two rows are; a row of the result per
window is a projection. The state of a stream is that of Spark's stream-stream join: rows of both sides, each for as
long as the widest window may still need it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as t

from panes.applying.joined_rows import left_name, right_name
from panes.engine.input_columns import JoinColumns, SideColumns, join_columns
from panes.expressions.evaluate import require_boolean
from panes.queries.join_declarations import JoinDeclaration
from panes.spark.binding import arrow_field, check_substitution, check_watermark
from panes.spark.naming import instant, micros, quoted, text
from panes.timeline import SECOND

LEFT, RIGHT = left_name(""), right_name("")
"""What the columns of each side are called between the steps of a job, followed by their positions."""


@dataclass(frozen=True)
class JoinSides:
    """A join and two DataFrames that fit it; their columns are called by side and position."""

    declared: JoinDeclaration
    columns: JoinColumns
    left: DataFrame
    right: DataFrame
    time: t.DataType
    schemas: tuple[pa.Schema, pa.Schema]

    @property
    def all(self) -> tuple[tuple[DataFrame, str, SideColumns], tuple[DataFrame, str, SideColumns]]:
        """The rows of each side, what its columns are called, and which they are."""
        return (self.left, LEFT, self.columns.left), (self.right, RIGHT, self.columns.right)

    @property
    def micros(self) -> tuple[str, str]:
        """SQL for the time of each side in µs."""
        one, other = (micros(f"{name}{side.at}", self.time) for _, name, side in self.all)
        return one, other

    @property
    def distance(self) -> str:
        """SQL for how far apart two rows are, in µs; null where one is missing."""
        one, other = self.micros
        return f"abs({one} - {other})"

    @property
    def alike(self) -> str:
        """SQL for equal keys and for what else a match has to fulfil, times aside."""
        keys = zip(self.columns.left.keys, self.columns.right.keys, strict=True)
        equal = " AND ".join(f"{LEFT}{i} = {RIGHT}{j}" for i, j in keys)
        if self.declared.where is None:
            return equal
        names = dict(zip(self.declared.on, (f"{LEFT}{i}" for i in self.columns.left.keys), strict=True))
        names |= {name: f"{side}{i}" for _, side, columns in self.all for i, name in columns.others}
        return f"{equal} AND ({self.declared.where.rename(names).sql})"

    def result(
        self,
        rows: DataFrame,
        window_name: str,
        size: str,
        *,
        level: str | None = None,
        shows: tuple[str, str] | None = None,
    ) -> DataFrame:
        """The columns of the result.

        Parameters
        ----------
        window_name, size, level
            SQL for the labels of a row.
        shows
            SQL for whether a row shows its left side and its right side, where it may have both and show one.
        """
        keys = zip(self.declared.on, self.columns.left.keys, self.columns.right.keys, strict=True)
        shown = [f"coalesce({LEFT}{i}, {RIGHT}{j}) AS {quoted(key)}" for key, i, j in keys]
        for number, (_, side, columns) in enumerate(self.all):
            for i, name in columns.others:
                sql = f"{side}{i}" if shows is None else f"IF({shows[number]}, {side}{i}, NULL)"
                shown.append(f"{sql} AS {quoted(name)}")
        both = "TRUE" if shows is None else " AND ".join(shows)
        earlier = "least({}, {})".format(*self.micros)
        expires = f"IF({both} AND {self.distance} IS NOT NULL, {instant(f'{earlier} + {size}', self.time)}, NULL)"
        labels = [f"{window_name} AS window_name", *([] if level is None else [f"{level} AS level"])]
        return rows.selectExpr(*labels, *shown, f"{expires} AS expires")


def examine(declared: JoinDeclaration, left: DataFrame, right: DataFrame) -> JoinSides:
    """Check that both sides have what the join needs; no job runs."""
    texts = [*left.columns, *right.columns, *declared.names, *(window.name for window in declared.rows)]
    check_substitution(left.sparkSession, [*texts, *([] if declared.where is None else [declared.where.sql])])
    found = join_columns(declared, *(_arrow_schema(side) for side in (left, right)))
    # Again, now that it is known what is used: a column that merely comes out may be of a type that Arrow lacks.
    roots = set() if declared.where is None else {root.lower() for root in declared.where.roots}
    used = [
        {side.at, *side.keys, *(i for i, name in side.others if declared.rows or name.lower() in roots)}
        for side in (found.left, found.right)
    ]
    schemas = _arrow_schema(left, used[0]), _arrow_schema(right, used[1])
    columns = join_columns(declared, *schemas)
    if declared.where is not None:
        require_boolean(declared.where, columns.match)
    # Names of their own: no two columns of the sides are called alike, even where both are one DataFrame.
    renamed = [
        side.toDF(*(f"{name}{i}" for i in range(len(side.columns)))) for side, name in ((left, LEFT), (right, RIGHT))
    ]
    return JoinSides(declared, columns, renamed[0], renamed[1], left.schema[columns.left.at].dataType, schemas)


def _arrow_schema(side: DataFrame, used: Collection[int] = ()) -> pa.Schema:
    return pa.schema([arrow_field(field, i in used) for i, field in enumerate(side.schema)])


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


# Batches


_BUCKET, _ROW, _NEAREST = "bucket", "row", "nearest"  # columns of a side: its name comes before


def join_batches(sides: JoinSides) -> DataFrame:
    """Join two batches over all windows in time.

    Time is cut into buckets as wide as the widest window, and one side is copied into the buckets beside its own. So
    Spark joins by key *and* bucket: a row meets the rows of three buckets, and not all of its key.
    """
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
    # A side whose rows come out without a match must not be copied, or its copies must be identified afterwards.
    copied = LEFT if declared.how == "right" else RIGHT
    placed = []
    for (rows, name, _), time in zip(sides.all, sides.micros, strict=True):
        if declared.how != "inner":
            rows = rows.withColumn(f"{name}{_ROW}", F.monotonically_increasing_id())
        own = f"{time} - pmod({time}, {width}L)"
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


# Streams


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
    """Refuse streams without a watermark."""
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
    # No watermark ever passes a row without a time, so Spark would keep it forever.
    left, right = (
        rows.where(f"{name}{side.at} IS NOT NULL")
        for rows, (_, name, side) in zip((left, right), sides.all, strict=True)
    )
    # Spark reads from a condition on seconds for how long it has to keep rows. Intervals would say the same, but a day
    # has not always 24 hours where the session's time zone changes its clocks. ``near`` is exact, and seconds are not.
    one, other = (f"CAST({name}{side.at} AS DOUBLE)" for _, name, side in sides.all)
    width = sides.declared.widest / SECOND + _SLACK
    bounds = f"{one} < {other} + {width!r}D AND {other} < {one} + {width!r}D"
    # In its full outer join of streams, Spark lets null keys match each other, unless a condition says otherwise.
    known = " AND ".join(f"{LEFT}{i} IS NOT NULL" for i in sides.columns.left.keys)
    return left.join(right, F.expr(f"{sides.alike} AND {known} AND {near} AND {bounds}"), sides.declared.how)
