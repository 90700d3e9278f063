"""One rule for the order of rows within an instant, so that every verb has the same row last."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pyarrow as pa

from panes.algebra.ordering import is_ordered
from panes.engine.schema import field_of
from panes.errors import SchemaError, nearest


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
        The columns that windows by rows read.

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
