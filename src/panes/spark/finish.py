"""The last steps of answers on Spark: names, derived columns, ``having``, one schema for all queries; long or wide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as t

from panes.engine.keys import END, START
from panes.engine.program import View
from panes.engine.results import widen_table
from panes.engine.schema import ResultSchema, one_type_each, wide_columns
from panes.queries.query import EXPIRES, NUMBER, Query
from panes.queries.windows import Window
from panes.spark.batches import large_batches
from panes.spark.binding import Input
from panes.spark.naming import VIEW, key, quoted, text
from panes.spark.versions import to_spark_type
from panes.spark.workers import map_in_python

_QUERY, _EXPIRES, _NUMBER = "__panes_query", "__panes_expires", "__panes_numbered"


@dataclass(frozen=True)
class Shape:
    """The key columns and output columns of all queries, with their Spark types."""

    keys: dict[str, t.DataType]
    columns: dict[str, t.DataType]

    @classmethod
    def of(cls, schema: ResultSchema, source: Input) -> Shape:
        """The Spark types of a result: of keys as the events have them, of output columns as Arrow types them."""
        keys = {name: source.spark_type(name) for name in schema.keys}
        return cls(keys, {name: to_spark_type(type_) for name, type_ in schema.columns.items()})


@dataclass(frozen=True)
class WindowRows:
    """The answers of one query over one window: ``window``, its keys, its aggregates."""

    query: int
    window: Window
    rows: DataFrame


def finish_one(answered: WindowRows, query: Query, shape: Shape) -> DataFrame:
    """The answers of one view in the schema of all."""
    rows = answered.rows.withColumn("window_name", F.lit(answered.window.name))
    if query.uses_expires:
        slide = answered.window.geometry.slide
        rows = rows.withColumn(EXPIRES, F.expr(f"window.end + INTERVAL '{slide}' MICROSECOND"))
    for alias, value in query.derived:
        rows = rows.withColumn(alias, F.expr(value.sql))
    if query.having is not None:
        rows = rows.where(F.expr(query.having.sql))
    own = {name: quoted(name) for name in (*query.by, *query.columns)}
    columns = (*shape.keys.items(), *shape.columns.items())
    labels = [f"{text(query.name)} AS query", "window_name", "window"]
    return _select(rows, [*labels, *(_column(name, type_, own.get(name)) for name, type_ in columns)])


@dataclass(frozen=True)
class Remarks:
    """Columns of rows that have more to say than the number of their view.

    Parameters
    ----------
    name, window_name
        Of the query and the window, where the view has no number.
    shown
        What else comes out, by name.
    """

    name: str
    window_name: str
    shown: dict[str, str]


def finish_many(
    rows: DataFrame,
    views: Sequence[View],
    keys: Sequence[str],
    queries: Sequence[Query],
    shape: Shape,
    remarks: Remarks | None = None,
    number: str | None = None,
) -> DataFrame:
    """The answers of all views of a store, in the schema of all queries; the first column has the number of the view.

    Parameters
    ----------
    number
        The column that says which window of its key an answer is, where windows have numbers.
    """
    aggregates = list(dict.fromkeys(r.alias for v in views for r in v.readings))
    numbered = [(i, _apart(query)) for i, query in enumerate(queries) if i in {view.query for view in views}]
    derived = {alias for _, query in numbered for alias, _ in query.derived}
    known = {name: key(i) for i, name in enumerate(keys)} | {alias: quoted(alias) for alias in aggregates}
    columns = (*shape.keys.items(), *shape.columns.items())
    query_name = _looked_up([text(queries[v.query].name) for v in views])
    window_name = _looked_up([text(v.window.name) for v in views])
    query_number = _looked_up([str(v.query) for v in views])
    window, shown = f"struct({START} AS start, {END} AS end)", {}
    if remarks is not None:
        query_name, window_name, query_number = (
            f"CASE WHEN {VIEW} < 0 THEN {own} ELSE {declared} END"
            for own, declared in ((remarks.name, query_name), (remarks.window_name, window_name), ("-1", query_number))
        )
        window, shown = f"CASE WHEN {START} IS NOT NULL THEN {window} END", remarks.shown
    first = [
        f"{query_name} AS query",
        f"{window_name} AS window_name",
        f"{window} AS window",
        *(_column(name, type_, known.get(name)) for name, type_ in columns if name in known or name not in derived),
        *(f"{column} AS {name}" for name, column in shown.items()),
    ]
    hidden = [f"{quoted(alias)}" for alias in aggregates if alias not in shape.columns]
    if not derived and all(query.having is None for _, query in numbered):
        return _select(rows, first)
    if any(queries[number].uses_expires for number, _ in numbered):
        hidden.append(f"{_expires(views)} AS {_EXPIRES}")
    if number is not None:
        hidden.append(f"{number} AS {_NUMBER}")
    rows, every = _select(rows, [*first, *hidden, f"{query_number} AS {_QUERY}"]), remarks is None
    rows = _having(_derived(rows, numbered, set(aggregates), every=every), numbered, every=every)
    return rows.select("query", "window_name", "window", *(quoted(name) for name, _ in columns), *shown)


def union(parts: Sequence[DataFrame]) -> DataFrame:
    """All answers, one after another."""
    return reduce(lambda one, other: one.unionAll(other), parts)


def union_by_name(*parts: DataFrame) -> DataFrame:
    """The answers of all parts of a plan; a column that one of them lacks is null there."""
    one_type_each((field.name, field.dataType.simpleString()) for part in parts for field in part.schema)
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)


def widen(answers: DataFrame, queries: Sequence[Query]) -> DataFrame:
    """One row per key and window end, a column per output column and window."""
    names = wide_columns(queries)
    spread = []
    for (number, window_name, alias), name in names.items():
        chosen = (F.col("query") == queries[number].name) & (F.col("window_name") == window_name)
        # Exactly one answer has this name, so whichever is not null is it.
        spread.append(F.max(F.when(chosen, F.struct(F.col(quoted(alias)).alias("v")))).getField("v").alias(name))
    keys = [F.col(quoted(name)) for name in queries[0].by]
    return answers.groupBy(*keys, F.col("window.end").alias("window_end")).agg(*spread)


def _derived(rows: DataFrame, queries: list[tuple[int, Query]], known: set[str], *, every: bool = True) -> DataFrame:
    """Each derived column by the expression of the row's own query."""
    depth = max((len(query.derived) for _, query in queries), default=0)
    for step in range(depth):
        by_alias: dict[str, list[tuple[int, str]]] = {}
        for number, query in queries:
            if step < len(query.derived):
                alias, value = query.derived[step]
                by_alias.setdefault(alias, []).append((number, value.sql))
        for alias, branches in by_alias.items():
            rows = rows.withColumn(
                alias, _by_query(branches, queries, quoted(alias) if alias in known else None, every=every)
            )
            known = known | {alias}
    return rows


def _having(rows: DataFrame, queries: list[tuple[int, Query]], *, every: bool = True) -> DataFrame:
    """Apply each query's ``having``; ``every`` says whether each row belongs to one of the queries."""
    branches = [(number, query.having.sql) for number, query in queries if query.having is not None]
    return rows.where(_by_query(branches, queries, "TRUE", every=every)) if branches else rows


def _by_query(
    branches: list[tuple[int, str]], queries: list[tuple[int, Query]], otherwise: str | None, *, every: bool = True
) -> Column:
    distinct = {sql for _, sql in branches}
    if len(distinct) == 1 and len(branches) == len(queries) and every:
        return F.expr(distinct.pop())
    cases = " ".join(f"WHEN {number} THEN ({sql})" for number, sql in branches)
    return F.expr(f"CASE {_QUERY} {cases} {f'ELSE {otherwise} ' if otherwise else ''}END")


def _apart(query: Query) -> Query:
    """The query with private names for ``expires`` and ``number``: another query may have a column of that name."""
    names = {name: own for name, own in ((EXPIRES, _EXPIRES), (NUMBER, _NUMBER)) if query.refers_to(name)}
    if not names:
        return query
    derived = []
    for alias, value in query.derived:
        derived.append((alias, value.rename(names)))
        names.pop(alias.lower(), None)  # From here on it is the column.
    having = None if query.having is None else query.having.rename(names)
    return replace(query, derived=tuple(derived), having=having)


def _expires(views: Sequence[View]) -> str:
    """When the next instance of a row's window ends."""
    seconds = _looked_up([f"{v.window.geometry.slide // 10**6}.{v.window.geometry.slide % 10**6:06}BD" for v in views])
    return f"CASE WHEN {VIEW} >= 0 THEN {END} + make_dt_interval(0, 0, 0, {seconds}) END"


def _looked_up(values: list[str]) -> str:
    """One SQL literal per view: an array that Spark folds into a constant, and the view of the row in it."""
    return values[0] if len(set(values)) == 1 else f"element_at(array({', '.join(values)}), {VIEW} + 1)"


def _column(name: str, type_: t.DataType, own: str | None) -> Column | str:
    return F.lit(None).cast(type_).alias(name) if own is None else f"{own} AS {quoted(name)}"


def _select(rows: DataFrame, columns: Sequence[Column | str]) -> DataFrame:
    # As text where all of it is text: every Column is several calls to the JVM.
    texts = [column for column in columns if isinstance(column, str)]
    if len(texts) == len(columns):
        return rows.selectExpr(*texts)
    return rows.select(*(F.expr(column) if isinstance(column, str) else column for column in columns))


_ROWS = 1 << 16


def widened(answers: DataFrame, queries: Sequence[Query], shape: Shape) -> DataFrame:
    """The answers of each micro-batch in the wide layout.

    Windows that end together are complete together: one shard answers them in one micro-batch, and its answers are in
    one partition. So no state and no shuffle is needed to bring them together.
    """
    keys, names = tuple(queries[0].by), wide_columns(queries)
    window = answers.schema["window"].dataType
    assert isinstance(window, t.StructType)
    schema = t.StructType(
        [
            *(t.StructField(name, shape.keys[name]) for name in keys),
            t.StructField("window_end", window["end"].dataType),
            *(t.StructField(name, shape.columns[alias]) for (_, _, alias), name in names.items()),
        ]
    )

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        listed = list(batches)
        if listed:
            yield from large_batches(widen_table(pa.Table.from_batches(listed), queries, keys).to_batches(), _ROWS)

    return map_in_python(answers, run, schema).select(*(quoted(name) for name in schema.names))
