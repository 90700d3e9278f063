"""The rows of a table as tuples that arrive: by time, then by value, partition after partition."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from panes.aggregates.operations import Array
from panes.aggregates.ordering import is_ordered
from panes.engine.columns import column_of, instants_of, whole
from panes.engine.schema import field_of
from panes.engine.sorting import key_ranks, sort_by_time, sort_ties, tie_columns
from panes.errors import SchemaError, nearest
from panes.expressions.evaluate import evaluate, require_boolean
from panes.frames import Positions
from panes.frames.distances import Values
from panes.frames.row_frame import Arrivals
from panes.operators.policies import Attribute, WindowPolicies, policy_text
from panes.queries.measures import Delta
from panes.row_windows.window_input import WindowInput


@dataclass(frozen=True, eq=False)
class Arrived:
    """Tuples in the order of partitions and arrival, and what windows go by."""

    table: pa.Table
    arrivals: Arrivals


def check_stream(stream: WindowInput, schema: pa.Schema) -> None:
    """Refuse columns that are not there, or not of a type that can serve."""
    for what, name in (*(("by", key) for key in stream.by), *(("delta", name) for name in stream.deltas)):
        _check_name(what, name, schema)
    if stream.at is not None:
        _check_name("at", stream.at, schema)
        type_ = field_of(schema, stream.at).type
        if not pa.types.is_timestamp(type_):
            raise SchemaError(f"at={stream.at!r} is of type {type_}, and time has to be a timestamp. Convert it first.")
    if stream.mark is not None:
        _check_name("punctuation", stream.mark.column, schema)
        type_ = field_of(schema, stream.mark.column).type
        if not pa.types.is_boolean(type_):
            raise SchemaError(
                f"punctuation({stream.mark.column!r}) is of type {type_}, and has to say true or false. Compare it "
                "with something first."
            )
    if stream.port is not None:
        _check_name("port", stream.port, schema)
        type_ = field_of(schema, stream.port).type
        if not pa.types.is_integer(type_):
            raise SchemaError(f"port={stream.port!r} is of type {type_}, and ports are numbers from 0. Cast it first.")
    for policy in stream.window.deltas:
        check_delta(policy, field_of(schema, str(policy.column)).type)
    if stream.where is not None:
        require_boolean(stream.where, schema)


def check_tuples(stream: WindowInput, schema: pa.Schema, order: Iterable[str] = ()) -> None:
    """Check the columns of an operator, which is given rows as dicts: there, names are as the data spell them.

    Parameters
    ----------
    order
        The columns that a sort goes by.
    """
    check_stream(stream, schema)
    check_order(order, schema)
    for name in (*stream.by, *stream.deltas, *(() if stream.port is None else (stream.port,))):
        if name not in schema.names:
            raise SchemaError(
                f"{name!r} is spelt {field_of(schema, name).name!r} in the data, and upper and lower case count in the "
                "dicts that an operator is given. Spell it as the data do."
            )


def check_order(order: Iterable[str], schema: pa.Schema) -> None:
    """Refuse to sort by columns that are not there, or have no order."""
    for name in order:
        if name not in schema.names:
            raise SchemaError(f"order={name!r} is not a column of the data ({nearest(name, schema.names)})")
        if not is_ordered(schema.field(name).type):
            raise SchemaError(f"order={name!r} is of type {schema.field(name).type}, which has no order to sort by.")


def arrive(stream: WindowInput, table: pa.Table) -> Arrived:
    """The rows that arrive, sorted."""
    instants = np.arange(len(table), dtype=np.int64)
    known = np.ones(len(table), dtype=bool)
    if stream.at is not None:
        times = column_of(table, stream.at)
        instants = instants_of(times)
        if times.null_count:
            known = times.is_valid().to_numpy(zero_copy_only=False)
    ordinals = key_ranks([column_of(table, key) for key in stream.by], len(table))
    keep, marked = known, np.zeros(len(table), bool)
    if stream.mark is not None:
        marked = known & column_of(table, stream.mark.column).fill_null(False).to_numpy(zero_copy_only=False)
        keep = known & ~marked
    if stream.where is not None:
        # A condition need not make sense for a row without a time, or for a mark.
        rows = np.flatnonzero(keep)
        passes = whole(evaluate(stream.where, table.take(pa.array(rows)))).fill_null(False)
        keep = np.zeros(len(table), bool)
        keep[rows] = passes.to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(keep)
    present = np.unique(ordinals[rows]) if stream.by else np.zeros(1, np.int64)
    order = rows[sort_by_time(ordinals[rows], instants[rows])]
    own, when = ordinals[order], instants[order]
    if stream.at is not None:
        same = (own[1:] == own[:-1]) & (when[1:] == when[:-1])
        sort_ties(order, same, [table.column(name) for name in tie_order(stream, table.schema)])
    # Otherwise rows come as they stand.
    if len(order) < len(table) or (order[1:] < order[:-1]).any():
        table = table.take(pa.array(order))
    starts = np.append(np.searchsorted(own, present), len(own))
    # As far as all rows go, those that do not pass and marks included: so does the watermark of a stream.
    end = int(instants[known].max()) + 1 if known.any() else 0
    arrivals = arrivals_of(stream, table, when, starts, end, np.zeros(0, np.int64))
    if stream.mark is not None and stream.mark.scope == "key":
        arrivals = replace(arrivals, marks=marks_of(ordinals[marked], instants[marked], present))
    elif stream.mark is not None:
        arrivals = replace(arrivals, punctuations=np.sort(instants[marked]))
    return Arrived(table, arrivals)


def marks_of(ordinals: Array, instants: Array, present: Array) -> Positions:
    """The marks of some keys, in the order of these; those of other keys have nothing to end."""
    at = np.searchsorted(present, ordinals)
    # A key that was never seen is -1, and is not what stands behind the last one.
    known = np.append(present, -2)[at] == ordinals
    key, instants = at[known], instants[known]
    order = np.lexsort((instants, key))
    starts = np.searchsorted(key[order], np.arange(len(present) + 1))
    return Positions.of_events(instants[order], starts)


def arrivals_of(
    stream: WindowInput, table: pa.Table, instants: Array, key_starts: Array, end: int, punctuations: Array
) -> Arrivals:
    """What windows go by, of rows that are sorted already."""
    attributes = delta_values(stream.window, table)
    return Arrivals(Positions.of_events(instants, key_starts), end, attributes, punctuations)


def delta_values(window: WindowPolicies, table: pa.Table) -> dict[Attribute, Values]:
    """The values of the attributes that the delta policies of a window go by."""
    values: dict[Attribute, Values] = {}
    for policy in window.deltas:
        if policy.column not in values:
            values[policy.column] = _values(policy, column_of(table, str(policy.column)))
    return values


def tie_order(stream: WindowInput, schema: pa.Schema) -> list[str]:
    """The columns that order rows of one instant: those that never decrease, then by the one rule of all verbs."""
    # Those of an operator's other windows may be attributes of tuples that it makes itself.
    others = [policy.column for window in stream.others for policy in window.deltas]
    first = [field_of(schema, name).name for name in stream.deltas] + [n for n in schema.names if n in others]
    shared = {name.lower() for name in (*stream.by, stream.at or "")}
    named = tie_columns(schema, stream.ties, shared)
    # What ties= leaves equal is ordered by the others: an operator sees all columns.
    return list(dict.fromkeys((*first, *named, *tie_columns(schema, (), shared))))


def _check_name(what: str, name: str, schema: pa.Schema) -> None:
    if name.lower() not in {known.lower() for known in schema.names}:
        raise SchemaError(f"{what}={name!r} is not a column of the data ({nearest(name, schema.names)})")


def check_delta(policy: Delta, type_: pa.DataType) -> None:
    """Refuse to go by a column that has no distances."""
    if pa.types.is_timestamp(type_):
        if not policy.temporal:
            raise SchemaError(
                f"{policy_text(policy)} goes by a number, and the column is of type {type_}. Write a duration, as "
                f"delta({policy.column!r}, '10 s')."
            )
    elif policy.temporal:
        raise SchemaError(
            f"{policy_text(policy)} goes by a duration, and the column is of type {type_}. Write a number, as "
            f"delta({policy.column!r}, 10), or convert it to a timestamp."
        )
    elif not (pa.types.is_integer(type_) or pa.types.is_floating(type_)):
        raise SchemaError(
            f"{policy_text(policy)} goes by a column of type {type_}, and needs a number or a timestamp. Cast it, "
            "for example to double."
        )


def _values(policy: Delta, column: pa.Array) -> Values:
    if pa.types.is_floating(column.type):
        values: Values = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
        missing = np.isnan(values)
    else:
        integers = column.view(pa.int64()) if pa.types.is_timestamp(column.type) else column.cast(pa.int64())
        missing = column.is_null().to_numpy(zero_copy_only=False)
        values = (integers.fill_null(0) if column.null_count else integers).to_numpy(zero_copy_only=False)
    if missing.any():
        raise SchemaError(
            f"{int(missing.sum())} rows have no value for {policy.column!r}, and {policy_text(policy)} goes by it. "
            f'Leave such rows out with where="{policy.column} IS NOT NULL" (NaN is no value either), or give them one.'
        )
    return values
