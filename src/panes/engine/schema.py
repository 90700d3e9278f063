"""The schema of all answers: aggregates as they were bound, derived columns and ``having`` as Arrow types them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from panes.engine.program import Program
from panes.errors import PlanError, SchemaError
from panes.expressions.evaluate import require_boolean, result_type
from panes.queries.query import EXPIRES, NUMBER, RESERVED, Query
from panes.queries.windows import wide_names
from panes.suggestions import nearest

# Columns that two inputs have to agree on: keys and times, checked before any job.


def position(what: str, column: str, side: str, schema: pa.Schema) -> int:
    """The position of a column, whatever the case of its name.

    Parameters
    ----------
    what, side
        How messages name the option, as ``by='card'``, and the input, as ``the requests``.
    """
    found = [i for i, name in enumerate(schema.names) if name.lower() == column.lower()]
    if not found:
        write = f" Rename the column that holds it to {column!r}." if what.startswith("by=") else ""
        if what.startswith("at="):
            write = " Write at= with the name that it has there."
        raise SchemaError(f"{what} is not a column of {side} ({nearest(column, schema.names)}).{write}")
    if len(found) > 1:
        raise SchemaError(f"{side} has {len(found)} columns called {column!r}; drop or rename all but one.")
    return found[0]


def time_position(what: str, column: str, side: str, schema: pa.Schema) -> int:
    """The position of a column of times."""
    found = position(what, column, side, schema)
    type_ = schema.field(found).type
    if not pa.types.is_timestamp(type_):
        raise SchemaError(f"{what} is of type {type_} in {side}, but event time must be a timestamp. {convert(column)}")
    return found


def convert(column: str) -> str:
    """What to write for a column that is not of times yet."""
    return (
        f"Convert it first: in Spark with to_timestamp({column}) or timestamp_millis({column}), in pyarrow with "
        f"table[{column!r}].cast(pa.timestamp('ms')), or the unit that it is in."
    )


def check_key(what: str, sides: tuple[str, str], types: tuple[pa.DataType, pa.DataType]) -> None:
    """Refuse a key of two types, or of one that cannot be a key."""
    (one, other), (first, second) = sides, types
    if plain(first) != plain(second):
        raise SchemaError(
            f"{what} is {shown(first)} in {one} and {shown(second)} in {other}, so whether "
            "keys are equal would depend on conversion. Cast one of them to the type of the other."
        )
    if not _has_order(first):
        raise SchemaError(
            f"{what} holds {first}, which has no order and so cannot be a key here. Take a field of it, or its text."
        )


def check_times(what: tuple[str, str], sides: tuple[str, str], types: tuple[pa.DataType, pa.DataType]) -> None:
    """Refuse times of which one has a zone and the other has none."""
    if plain(types[0]) != plain(types[1]):
        one, other = (f"{w} is {shown(type_)} in {side}" for w, side, type_ in zip(what, sides, types, strict=True))
        raise SchemaError(
            f"{one} and {other}: a time in a zone and one without cannot be compared. Cast the one without: "
            "F.col('ts').cast('timestamp') in Spark, which reads it in the time zone of the session, or "
            "pyarrow.compute.assume_timezone(table['ts'], 'UTC')."
        )


def plain(type_: pa.DataType) -> str:
    """A type without what does not matter to equality: the zone in which times are shown, and what is never null."""
    if pa.types.is_timestamp(type_):
        return "timestamp" if type_.tz else "timestamp_ntz"
    if pa.types.is_struct(type_):
        return f"struct<{', '.join(f'{field.name}: {plain(field.type)}' for field in type_)}>"
    if pa.types.is_list(type_):
        return f"list<{plain(type_.value_type)}>"
    return str(type_)


def shown(type_: pa.DataType) -> str:
    """A type as messages say it."""
    return plain(type_).upper() if pa.types.is_timestamp(type_) else str(type_)


def _has_order(type_: pa.DataType) -> bool:
    if pa.types.is_struct(type_):
        return all(_has_order(field.type) for field in type_)
    if pa.types.is_list(type_):
        return _has_order(type_.value_type)
    return not (pa.types.is_map(type_) or pa.types.is_interval(type_))


# The shape of results, and the checks of queries against data that come before any job.


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
                f"query {query.name!r}: at={query.at!r} is of type {type_}, but event time must be a timestamp. "
                f"{convert(query.at)}"
            )
        for key in query.by:
            _check_key(query, key, schema.field(names[key.lower()]).type)
        for column in query.ties:
            if column.lower() not in names:
                raise SchemaError(f"ties={column!r} is not a column of the data ({nearest(column, schema.names)})")
        if query.where is not None:
            require_boolean(query.where, schema)


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


def answer_schema(queries: Sequence[Query], programs: Iterable[Program], events: pa.Schema) -> ResultSchema:
    """The types of all key and output columns; a derived column or ``having`` that cannot be evaluated is an error."""
    columns: list[dict[str, pa.DataType]] = [{} for _ in queries]
    for program in programs:
        for view in program.views:
            columns[view.query].update({r.alias: r.bound.type for r in view.readings})
    keys = {key: field_of(events, key).type for query in queries for key in query.by}
    columns = [output_types(query, known, events) for query, known in zip(queries, columns, strict=True)]
    return result_schema(queries, keys, columns, [field_of(events, query.at).type for query in queries])


def output_types(query: Query, aggregates: Mapping[str, pa.DataType], events: pa.Schema) -> dict[str, pa.DataType]:
    """The types of a query's aggregates and derived columns; expressions over them that cannot work are errors."""
    known, instant = dict(aggregates), field_of(events, query.at).type
    labels = {"window": pa.struct([("start", instant), ("end", instant)]), "window_name": pa.string()}
    keys = [pa.field(key, field_of(events, key).type) for key in query.by]
    own = pa.schema([*keys, *(pa.field(*column) for column in (*known.items(), *labels.items()))])
    lent = {name: type_ for name, type_ in ((EXPIRES, instant), (NUMBER, pa.int64())) if query.refers_to(name)}
    for name, type_ in lent.items():
        own = own.append(pa.field(name, type_))
    for alias, value in query.derived:
        known[alias] = result_type(value, own)
        if lent.pop(alias.lower(), None) is not None:
            own = own.remove(own.get_field_index(alias.lower()))
        own = own.append(pa.field(alias, known[alias]))
    if query.having is not None:
        require_boolean(query.having, own)
    return known
