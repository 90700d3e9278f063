"""What functions and operators of a user return, as tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from panes.aggregates.operations import Array
from panes.errors import SchemaError, nearest
from panes.inputs import is_arrow

FUNCTION, OPERATOR = "the function returned", "the operator submitted"


def table_of(rows: Iterable[Any], schema: pa.Schema | None, who: str) -> pa.Table:
    """Rows as a table.

    Parameters
    ----------
    schema
        The columns; None to see from the values.
    who
        How messages begin.
    """
    rows, names = list(rows), dict[str, None]()
    for row in rows:
        if not isinstance(row, Mapping):
            raise SchemaError(f"{who} {row!r}, and a table is made of rows. Make them dicts, as {{'n': 1}}.")
        names |= dict.fromkeys(row)
    _check_names(names, schema, who)
    try:
        if schema is None:
            return pa.table({name: [row.get(name) for row in rows] for name in names})
        return pa.Table.from_pylist(rows, schema=schema)
    except (pa.ArrowException, TypeError) as error:
        raise _no_table(error, who) from error


def shaped(found: pa.Table, schema: pa.Schema | None, who: str) -> pa.Table:
    """Columns as they were asked for; those that are not there are null."""
    if schema is None:
        return found
    _check_names(found.column_names, schema, who)
    try:
        columns = [
            found.column(field.name).cast(field.type)
            if field.name in found.column_names
            else pa.nulls(len(found), field.type)
            for field in schema
        ]
        return pa.table(columns, schema=schema)
    except pa.ArrowException as error:
        raise _no_table(error, who) from error


class Collected:
    """What a function returned, call after call.

    Parameters
    ----------
    schema
        The columns; None to see from the values.
    taken
        Columns that results have already.
    """

    def __init__(self, schema: pa.Schema | None, taken: Iterable[str] = ()) -> None:
        self._schema, self._taken = schema, {name.lower() for name in taken}
        self._rows: list[Any] = []
        self._tables: list[pa.Table] = []
        self._owners: list[int] = []
        self._counts: list[int] = []

    def add(self, owner: int, result: Any) -> None:
        """Take what the call with some number returned."""
        if result is None:
            return
        count = 1
        if isinstance(result, Mapping):
            self._rows.append(result)
        elif is_arrow(result):
            self._flush()
            table = result if isinstance(result, pa.Table) else pa.table(result)
            self._tables.append(self._checked(shaped(table, self._schema, FUNCTION)))
            count = len(table)
        elif isinstance(result, (list, tuple)):
            self._rows += result
            count = len(result)
        else:
            raise SchemaError(
                f"{FUNCTION} {result!r}. Return None for no row, a dict for one, as {{'n': 1}}, a list of dicts, or an "
                "Arrow table."
            )
        self._owners.append(owner)
        self._counts.append(count)

    def found(self) -> tuple[Array, pa.Table]:
        """Of each row which call it is of, and the rows."""
        self._flush()
        owners = np.repeat(np.array(self._owners, np.int64), np.array(self._counts, np.int64))
        try:
            # Integers of one call and floats of another are floats.
            tables = [table for table in self._tables if table.num_columns or len(table)]
            empty = pa.table({}) if self._schema is None else self._schema.empty_table()
            return owners, pa.concat_tables(tables, promote_options="permissive") if tables else empty
        except pa.ArrowException as error:
            raise _no_table(error, FUNCTION) from error

    def _flush(self) -> None:
        rows, self._rows = self._rows, []
        if rows:
            self._tables.append(self._checked(table_of(rows, self._schema, FUNCTION)))

    def _checked(self, table: pa.Table) -> pa.Table:
        for name in table.column_names:
            if str(name).lower() in self._taken:
                raise SchemaError(
                    f"{FUNCTION} a column {name!r}, which results have already: the window and its key come by "
                    "themselves. Leave it out, or give it another name."
                )
        return table


def _check_names(names: Iterable[str], schema: pa.Schema | None, who: str) -> None:
    if schema is None:
        return
    for name in names:
        if name not in schema.names:
            raise SchemaError(
                f"{who} a column {name!r}, and schema= has none of that name ({nearest(str(name), schema.names)}). "
                "Write all columns there."
            )


def _no_table(error: Exception, who: str) -> SchemaError:
    return SchemaError(f"what {who} is no table: {error}. Write schema= with its columns.")
