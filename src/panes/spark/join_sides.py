"""The two sides of a join on Spark: checked before any job, under names of their own; and what SQL says of them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as t

from panes.declare.joins import Join
from panes.engine.join_columns import JoinColumns, Side, join_columns
from panes.local.evaluate import require_boolean
from panes.operators.over_joins import left_name, right_name
from panes.spark.binding import arrow_field
from panes.spark.naming import instant, micros, quoted

LEFT, RIGHT = left_name(""), right_name("")
"""What the columns of each side are called between the steps of a job, followed by their positions."""


@dataclass(frozen=True)
class JoinSides:
    """A join and two DataFrames that fit it; their columns are called by side and position."""

    declared: Join
    columns: JoinColumns
    left: DataFrame
    right: DataFrame
    time: t.DataType
    schemas: tuple[pa.Schema, pa.Schema]

    @property
    def all(self) -> tuple[tuple[DataFrame, str, Side], tuple[DataFrame, str, Side]]:
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


def examine(declared: Join, left: DataFrame, right: DataFrame) -> JoinSides:
    """Check that both sides have what the join needs; no job runs."""
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
