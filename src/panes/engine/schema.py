"""The shape of results, and the checks of queries against data that come before any job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from panes.declare.kinds import wide_names
from panes.declare.query import RESERVED, Query
from panes.engine.sides import convert
from panes.errors import PlanError, SchemaError, nearest


@dataclass(frozen=True)
class ResultSchema:
    """The columns of results: keys, then output columns, each once over all queries.

    Parameters
    ----------
    keys, columns
        Names and types, in order of first appearance.
    instant
        The type of the bounds of ``window``: that of the event time.
    """

    keys: Mapping[str, pa.DataType]
    columns: Mapping[str, pa.DataType]
    instant: pa.DataType

    @property
    def long(self) -> pa.Schema:
        """One row per answer."""
        window = pa.struct([("start", self.instant), ("end", self.instant)])
        head = zip(RESERVED, (pa.string(), pa.string(), window), strict=True)
        return pa.schema([*head, *self.keys.items(), *self.columns.items()])


def check_columns(queries: Iterable[Query], schema: pa.Schema) -> None:
    """Refuse queries whose time, key or argument columns are not in the data, or not of a type that can serve."""
    names = {name.lower(): name for name in schema.names}
    for query in queries:
        for what, column in (("at", query.at), *(("by", key) for key in query.by)):
            if column.lower() not in names:
                raise SchemaError(
                    f"query {query.name!r}: {what}={column!r} is not a column of the data "
                    f"({nearest(column, schema.names)})"
                )
        type_ = schema.field(names[query.at.lower()]).type
        if not pa.types.is_timestamp(type_):
            raise SchemaError(
                f"query {query.name!r}: at={query.at!r} is of type {type_}, but event time has to be a timestamp. "
                f"{convert(query.at)}"
            )
        for key in query.by:
            _check_key(query, key, schema.field(names[key.lower()]).type)
        for column in query.ties:
            if column.lower() not in names:
                raise SchemaError(f"ties={column!r} is not a column of the data ({nearest(column, schema.names)})")


def _check_key(query: Query, key: str, type_: pa.DataType) -> None:
    if pa.types.is_struct(type_):
        for field in type_:
            _check_key(query, key, field.type)
    elif pa.types.is_list(type_) or pa.types.is_large_list(type_):
        _check_key(query, key, type_.value_type)
    elif pa.types.is_map(type_) or pa.types.is_interval(type_):
        raise SchemaError(
            f"query {query.name!r}: by={key!r} holds {type_}, which has no order and so cannot be a key here. "
            "Group by a field of it, or by its text."
        )


def field_of(schema: pa.Schema, name: str) -> pa.Field:
    """The column of a name, whatever its case."""
    found = next((field for field in schema if field.name.lower() == name.lower()), None)
    if found is None:
        raise SchemaError(f"the data have no column {name!r}: {nearest(name, schema.names)}")
    return found


def check_same_types(batch: pa.Schema, earlier: pa.Schema) -> None:
    """Refuse a batch whose columns are of other types than those of earlier batches."""
    before = {field.name.lower(): field.type for field in earlier}
    other = [
        f"{field.name!r} is {field.type} ({before.get(field.name.lower(), 'not there')} in earlier ones)"
        for field in batch
        if before.get(field.name.lower()) != field.type
    ]
    other += [f"{name!r} is missing" for name in before if name not in map(str.lower, batch.names)]
    if other:
        raise PlanError(f"the first batch fixes the types of all, and in this one {', '.join(other)}. Cast it first.")


def result_schema(
    queries: Sequence[Query],
    key_types: Mapping[str, pa.DataType],
    column_types: Sequence[Mapping[str, pa.DataType]],
    instants: Iterable[pa.DataType],
) -> ResultSchema:
    """One schema for the answers of all queries.

    Parameters
    ----------
    key_types
        The type of every key column.
    column_types
        For each query, the type of each of its output columns.
    instants
        The types of the event times.
    """
    keys: dict[str, pa.DataType] = {}
    columns: dict[str, pa.DataType] = {}
    owners: dict[str, str] = {}
    for query in queries:
        for key in query.by:
            keys.setdefault(key, key_types[key])
    every: dict[str, pa.DataType] = {}
    for query, types in zip(queries, column_types, strict=True):
        # Hidden columns too: on their way through Spark, the answers of all queries share one schema.
        for alias, type_ in types.items():
            if every.setdefault(alias, type_) != type_:
                raise PlanError(
                    f"the column {alias!r} is {every[alias]} in query {owners[alias]!r} but {type_} in {query.name!r}; "
                    "results share one schema. Rename one of them, or cast its argument."
                )
            owners.setdefault(alias, query.name)
        columns |= {alias: types[alias] for alias in query.columns}
    kinds = set(instants)
    if len(kinds) > 1:
        raise PlanError(
            "the queries' event times are of different types "
            f"({', '.join(sorted(map(str, kinds)))}); results share one schema. Cast one of them."
        )
    return ResultSchema(keys, columns, kinds.pop())


def one_type_each(columns: Iterable[tuple[str, object]]) -> None:
    """Refuse a name that has two types among the answers of all parts of a plan."""
    types: dict[str, object] = {}
    for name, type_ in columns:
        if types.setdefault(name, type_) != type_:
            raise PlanError(
                f"the column {name!r} is {types[name]} in one query but {type_} in another; results share one schema. "
                "Rename one of them, or cast its argument."
            )


def wide_columns(queries: Sequence[Query]) -> dict[tuple[int, str, str], str]:
    """The name of every column of the wide form, by number of query, window name and output column.

    The wide form has one row per key and window end, so all queries need the same keys and no two the same column.
    """
    first = queries[0]
    if any(key.lower() == "window_end" for key in first.by):
        raise PlanError("layout='wide' has a column window_end, which is also a key here. Rename the key.")
    names: dict[tuple[int, str, str], str] = {}
    owners = {"window_end": "the end of windows", **{key.lower(): f"the key {key!r}" for key in first.by}}
    for number, query in enumerate(queries):
        if set(query.by) != set(first.by):
            raise PlanError(
                f"layout='wide' has one row per key, but {first.name!r} is by ({', '.join(first.by)}) and "
                f"{query.name!r} by ({', '.join(query.by)}). Plan them apart, or take layout='long'."
            )
        for window_name, alias, name in wide_names(query.over, query.columns):
            owner = f"{alias!r} over {window_name!r}" + (f" of query {query.name!r}" if len(queries) > 1 else "")
            if name.lower() in owners:
                raise PlanError(
                    f"layout='wide' would have two columns called {name!r} ({owners[name.lower()]}, and {owner}). "
                    "Rename an output column, or give a window a name=."
                )
            owners[name.lower()] = owner
            names[number, window_name, alias] = name
    return names
