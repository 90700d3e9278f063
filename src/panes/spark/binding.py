"""Queries bound to a Spark DataFrame: every check and every type, on the driver, before any job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as t

from panes.engine.bind_program import BoundQueries, argument_expressions, assemble, bind_components
from panes.engine.program import Program
from panes.engine.schema import check_columns
from panes.errors import ExpressionError, PlanError, SchemaError
from panes.expressions.evaluate import result_type
from panes.expressions.expression import Expression, expression
from panes.planning.physical_plan import Numbered, PhysicalPlan, StorePlan
from panes.queries.query import Query
from panes.spark.versions import to_arrow_type


@dataclass(frozen=True)
class Input:
    """The events, and the types of the columns that queries use."""

    events: DataFrame
    schema: pa.Schema
    spark_types: Mapping[str, t.DataType]
    _types: dict[str, pa.DataType] = field(default_factory=dict)
    _bound: dict[object, BoundQueries] = field(default_factory=dict)

    def spark_type(self, column: str) -> t.DataType:
        """The Spark type of a column, whatever the case of its name."""
        return self.spark_types[column.lower()]

    def types_of(self, expressions: Iterable[str]) -> Mapping[str, pa.DataType]:
        """The types of SQL expressions over the events; Spark analyses each once."""
        new = [sql for sql in expressions if sql not in self._types]
        if new:
            self._types.update(_types(self.events, new))
        return self._types

    def bind(self, queries: Numbered, kept: Expression | None) -> BoundQueries:
        """The components of queries, and what each query reads out of them; bound once, whatever plans follow."""
        if (queries, kept) not in self._bound:
            types = self.types_of(argument_expressions(queries, kept))
            self._bound[queries, kept] = bind_components(queries, kept, types.__getitem__)
        return self._bound[queries, kept]


def examine(queries: Sequence[Query], events: DataFrame) -> Input:
    """Check that the data have what the queries need, and read the types."""
    fields = {field.name.lower(): field for field in events.schema}
    names = {name for query in queries for name in query.used}
    used = {name.lower() for name in names}
    _check_names(events, names)
    check_substitution(events.sparkSession, [text for query in queries for text in _texts(query)])
    # Unknown names stay in: check_columns and result_type say which are meant.
    schema = pa.schema([arrow_field(field, name in used) for name, field in fields.items()])
    check_columns(queries, schema)
    for query in queries:
        for _, aggregate in query.aggregates:
            for argument in aggregate.arguments:
                result_type(expression(argument), schema)
    return Input(events, schema, {name: field.dataType for name, field in fields.items()})


def arrow_field(field: t.StructField, used: bool) -> pa.Field:
    """A column as Arrow types it; what Arrow cannot carry is an error where it is used, and null elsewhere."""
    if used:
        _check_collation(field.name, field.dataType)
    try:
        return pa.field(field.name, to_arrow_type(field.dataType))
    except PySparkException as error:
        if used:
            raise SchemaError(
                f"the column {field.name!r} is of type {field.dataType.simpleString()}, which Arrow cannot carry; "
                "cast it to another type first."
            ) from error
        return pa.field(field.name, pa.null())


def _check_names(events: DataFrame, used: set[str]) -> None:
    """Refuse names that Spark itself would find ambiguous or, where case counts, not find."""
    names = [field.name for field in events.schema]
    case_counts = events.sparkSession.conf.get("spark.sql.caseSensitive", "false") == "true"
    for name in used:
        found = [other for other in names if other.lower() == name.lower()]
        if len(found) > 1:
            raise SchemaError(f"the data have {len(found)} columns called {name!r}; drop or rename all but one.")
        if found and case_counts and name not in found:
            raise SchemaError(f"{name!r} is spelt {found[0]!r} in the data, and spark.sql.caseSensitive is on.")


_SUBSTITUTE = "spark.sql.variable.substitute"


def check_substitution(session: SparkSession, texts: Iterable[str]) -> None:
    """Refuse names and expressions into which Spark would put a setting, or a variable of the driver's environment.

    Spark replaces ``${env:HOME}`` and the like wherever SQL is parsed, within names and strings too.
    """
    found = next((text for text in texts if "${" in text), None)
    if found is not None and session.conf.get(_SUBSTITUTE, "true") == "true":
        raise PlanError(
            f"{found!r} has '${{', and in SQL Spark replaces ${{...}} by settings and variables of the environment. "
            f"Rename it, or set {_SUBSTITUTE} to false."
        )


def _texts(query: Query) -> Iterator[str]:
    """The names and expressions of a query that become SQL."""
    yield from (query.name, *query.used, *(window.name for window in query.over))
    for alias, aggregate in query.aggregates:
        yield from (alias, *aggregate.arguments)
    for alias, value in query.derived:
        yield from (alias, value.sql)
    yield from (value.sql for value in (query.where, query.having) if value is not None)


def _check_collation(name: str, type_: t.DataType) -> None:
    """Refuse strings that do not compare byte by byte: columns in Python would tell apart what Spark does not."""
    if isinstance(type_, t.StringType) and getattr(type_, "collation", "UTF8_BINARY") != "UTF8_BINARY":
        raise SchemaError(
            f"the column {name!r} has the collation {type_.collation}; Panes compares strings byte by byte. "
            f"Write lower({name}) or CAST({name} AS STRING COLLATE UTF8_BINARY) into a column first."
        )
    if isinstance(type_, t.StructType):
        for field in type_:
            _check_collation(f"{name}.{field.name}", field.dataType)
    if isinstance(type_, t.ArrayType):
        _check_collation(name, type_.elementType)


def bind_plan(physical: PhysicalPlan, source: Input) -> tuple[Program, ...]:
    """A program per store, with Spark's own types; a store and those it feeds share their components."""
    programs = []
    for number, store in enumerate(physical.stores):
        root = number if store.source is None else store.source
        family = [
            queries for i, other in enumerate(physical.stores) if root in (i, other.source) for queries in other.queries
        ]
        programs.append(bind(store, source, tuple(family)))
    return tuple(programs)


def bind(store: StorePlan, source: Input, family: Numbered | None = None) -> Program:
    """The program of a store; its components are those of a family of queries, by default of its own."""
    components, readings = source.bind(store.queries if family is None else family, store.kept)
    return assemble(components, store.edges, store.forest, store.queries, readings)


def _types(events: DataFrame, expressions: list[str]) -> dict[str, pa.DataType]:
    try:
        analysed = events.select(*(F.expr(sql).alias(f"e{i}") for i, sql in enumerate(expressions)))
        fields = analysed.schema.fields
    except AnalysisException as error:
        raise ExpressionError(f"Spark cannot evaluate an expression of the queries: {error}") from error
    return {sql: to_arrow_type(field.dataType) for sql, field in zip(expressions, fields, strict=True)}


_DELAY = "spark.watermarkDelayMs"
_ZONE = "spark.sql.session.timeZone"


def check_watermark(events: DataFrame, name: str, side: str = "events", called: str | None = None) -> None:
    """Refuse a stream without a watermark on its event time.

    A missing column, or one that is not a time, is reported elsewhere.

    Parameters
    ----------
    name
        The column of event time.
    side, called
        What messages call the stream and the column.
    """
    at = {field.name.lower(): field for field in events.schema}.get(name.lower())
    if at is None or _DELAY in at.metadata or not isinstance(at.dataType, (t.TimestampType, t.TimestampNTZType)):
        return
    what = "the stream" if side == "events" else f"the {side} side"
    own = at.name if called is None else called
    marked = f"withWatermark({own!r}, '10 minutes')"
    if isinstance(at.dataType, t.TimestampNTZType):
        zone = events.sparkSession.conf.get(_ZONE)
        raise PlanError(
            f"{own!r} of {what} is TIMESTAMP_NTZ, and Spark keeps watermarks on TIMESTAMP only. Write "
            f"{side}.withColumn({own!r}, F.col({own!r}).cast('timestamp')).{marked}. The cast reads times in "
            f"the time zone of the session, {zone}: set {_ZONE} to the one in which they were written."
        )
    raise PlanError(
        f"{what} has no watermark on {own!r}, so no row could ever be known to be the last of its time. Write "
        f"{side}.{marked} first, with the delay that late rows may have."
    )
