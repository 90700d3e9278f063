"""Sort events by key and time, and rows of one instant by value: one rule, so every verb has the same row last."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from panes.aggregates.operations import Array
from panes.aggregates.ordering import codes, is_ordered
from panes.engine.columns import column_of, counting, whole
from panes.engine.keys import key_ordinals, one_zero
from panes.engine.program import Program
from panes.engine.schema import field_of
from panes.errors import SchemaError
from panes.expressions.evaluate import evaluate
from panes.expressions.expression import expression
from panes.planning.physical_plan import StorePlan
from panes.suggestions import nearest


@dataclass(frozen=True)
class SortedEvents:
    """The events of a store, sorted by key and time."""

    instants: Array
    key_starts: Array
    keys: pa.Table
    arguments: dict[str, pa.Array]


def sorted_events(store: StorePlan, program: Program, table: pa.Table) -> SortedEvents:
    """The events that count for a store, those without a time left out."""
    table = counting(table, store.at, store.kept)
    instants = column_of(table, store.at).view(pa.int64()).to_numpy()
    keys = pa.table([one_zero(column_of(table, key)) for key in store.keys], names=list(store.keys))
    arguments = {sql: whole(evaluate(expression(sql), table)) for sql in program.arguments}
    ordinals = key_ordinals([column.combine_chunks() for column in keys.columns], len(instants))
    order = np.lexsort((instants, ordinals))
    sorted_ordinals = ordinals[order]
    firsts = np.flatnonzero(np.diff(sorted_ordinals, prepend=-1))
    return SortedEvents(
        instants[order],
        np.append(firsts, len(order)),
        keys.take(pa.array(order[firsts])) if store.keys else keys,
        {sql: array.take(pa.array(order)) for sql, array in arguments.items()},
    )


def tie_columns(
    schema: pa.Schema, ties: Collection[str], excluded: Iterable[str] = (), read: Iterable[str] = ()
) -> list[str]:
    """The columns whose values order rows of one instant.

    Those that ``ties`` names; without it all columns of the data, by the names of these, so that neither the order of
    columns nor what a query uses has a say. Columns without an order are passed over. Rows that ``ties`` leaves equal
    are in the order of what is read of them, so that every verb has the same order.

    Parameters
    ----------
    excluded
        Columns that all rows in question share: keys and time.
    read
        The columns that windows of rows read.

    Examples
    --------
    >>> schema = pa.schema([("ts", pa.timestamp("us")), ("price", pa.int64()), ("Id", pa.string())])
    >>> tie_columns(schema, (), ["ts"]), tie_columns(schema, ["price"])
    (['Id', 'price'], ['price'])
    """
    shared = {name.lower() for name in excluded}
    if not ties:
        named = sorted((field for field in schema if field.name.lower() not in shared), key=lambda f: f.name.lower())
        return [field.name for field in named if is_ordered(field.type)]
    found = []
    for name in ties:
        if name.lower() not in {known.lower() for known in schema.names}:
            raise SchemaError(f"ties={name!r} is not a column of the data ({nearest(name, schema.names)})")
        field = field_of(schema, name)
        if not is_ordered(field.type):
            raise SchemaError(f"ties={name!r} is of type {field.type}, which has no order. Take another column.")
        found.append(field.name)
    names = {name.lower() for name in read}
    return list(dict.fromkeys([*found, *(name for name in tie_columns(schema, (), shared) if name.lower() in names)]))


def key_ranks(keys: list[pa.Array], rows: int) -> Array:
    """The number of the partition of each row, in the order of keys where they have one; nulls first."""
    if len(keys) == 1 and is_ordered(keys[0].type) and not pa.types.is_floating(keys[0].type):
        # Most partitions are by one column: its dictionary numbers them, and only that has to be sorted.
        encoded = keys[0].dictionary_encode(null_encoding="encode")
        numbers: Array = value_ranks([encoded.dictionary]).take(encoded.indices.to_numpy(zero_copy_only=False))
        return numbers
    ordinals = key_ordinals(keys, rows)
    if not keys or not rows or not all(is_ordered(column.type) for column in keys):
        return ordinals
    _, first = np.unique(ordinals, return_index=True)
    return value_ranks([column.take(pa.array(first)) for column in keys])[ordinals]


def value_ranks(columns: list[pa.Array]) -> Array:
    """Which place each row has in the order of values."""
    rank = np.empty(len(columns[0]), np.int64)
    rank[_by_value(columns)] = np.arange(len(rank))
    return rank


def _by_value(columns: list[pa.Array], *within: Array) -> Array:
    """The order of rows by the values of columns, nulls first; within what is given, if anything is."""
    keys: list[Array] = []
    for column in reversed(columns):
        keys += [codes(column).values, column.is_valid().to_numpy(zero_copy_only=False)]
    return np.lexsort((*keys, *within))


def sort_rows(ordinals: Array, instants: Array, ties: list[pa.ChunkedArray]) -> Array:
    """Rows by partition and time; where both are equal by value, nulls first."""
    order = sort_by_time(ordinals, instants)
    if ties:
        own, at = ordinals[order], instants[order]
        sort_ties(order, (own[1:] == own[:-1]) & (at[1:] == at[:-1]), ties)
    return order


def sort_ties(order: Array, same: Array, ties: list[pa.ChunkedArray]) -> None:
    """Put rows that share their partition and time with others in the order of values: as a rule they are few.

    Parameters
    ----------
    order
        Rows by partition and time; changed in place.
    same
        Of each row but the first, whether both are those of the row before it.
    """
    if not ties or not same.any():
        return
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    rows = order[tied]
    run = np.cumsum(np.append(True, ~same))[tied]
    values = [column.take(pa.array(rows)).combine_chunks() for column in ties]
    order[tied] = rows[_by_value(values, run)]


def sort_by_time(ordinals: Array, instants: Array) -> Array:
    """Rows by partition and time, each step only where it is needed: most tables are in the order of time."""
    rising = bool((instants[1:] >= instants[:-1]).all())
    order = np.arange(len(instants)) if rising else np.argsort(instants, kind="stable")
    if not ordinals.any():
        return order
    # Small numbers are sorted digit by digit, of which the smallest have one.
    highest = int(ordinals.max())
    small = ordinals.astype(np.min_scalar_type(highest)) if highest < 1 << 16 else ordinals
    order_by_key: Array = np.argsort(small if rising else small[order], kind="stable")
    return order_by_key if rising else order[order_by_key]


def sort_tied_events(order: Array, instants: Array, key_starts: Array, columns: Sequence[Any]) -> None:
    """Put events of one key and instant in the order of some columns, of those that have one.

    Parameters
    ----------
    order
        Where each of the sorted events stands in the columns; changed in place.
    instants, key_starts
        Of the sorted events.
    """
    same = instants[1:] == instants[:-1]
    edges = key_starts[(key_starts > 0) & (key_starts < len(instants))]
    same[edges - 1] = False
    ordered = [column for column in columns if is_ordered(column.type)]
    sort_ties(order, same, [c if isinstance(c, pa.ChunkedArray) else pa.chunked_array([c]) for c in ordered])
