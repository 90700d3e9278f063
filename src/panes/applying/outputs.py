"""Make tables of what a user's functions and operators return."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from panes.aggregates.operations import Array
from panes.errors import SchemaError
from panes.inputs import is_arrow
from panes.suggestions import nearest

FUNCTION, OPERATOR = "the function returned", "the operator submitted"


def table_of(rows: Iterable[Any], schema: pa.Schema | None, who: str) -> pa.Table:
    """Return rows as a table.

    Parameters
    ----------
    schema
        The columns; None to infer them.
    who
        The beginning of error messages.
    """
    rows, names = list(rows), dict[str, None]()
    for row in rows:
        if not isinstance(row, Mapping):
            raise SchemaError(f"{who} {row!r}, and rows must be dicts, as {{'n': 1}}.")
        names |= dict.fromkeys(row)
    _check_names(names, schema, who)
    try:
        if schema is None:
            return pa.table({name: [row.get(name) for row in rows] for name in names})
        return pa.Table.from_pylist(rows, schema=schema)
    except (pa.ArrowException, TypeError) as error:
        raise _no_table(error, who) from error


def shaped(found: pa.Table, schema: pa.Schema | None, who: str) -> pa.Table:
    """Return a table with the columns of a schema; missing columns are null."""
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


class CollectedResults:
    """Collects what a function returns, call by call.

    Parameters
    ----------
    schema
        The columns; None to infer them.
    taken
        Columns that results already have.
    """

    def __init__(self, schema: pa.Schema | None, taken: Iterable[str] = ()) -> None:
        self._schema, self._taken = schema, {name.lower() for name in taken}
        self._rows: list[Any] = []
        self._tables: list[pa.Table] = []
        self._owners: list[int] = []
        self._counts: list[int] = []

    def add(self, owner: int, result: Any) -> None:
        """Add what the call with a number returned."""
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
        """Return the number of the call of each row, and the rows."""
        self._flush()
        owners = np.repeat(np.array(self._owners, np.int64), np.array(self._counts, np.int64))
        try:
            # Integers from one call and floats from another become floats.
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
                    f"{FUNCTION} a column {name!r}, which results already have: the window and its key are added to "
                    "them. Leave it out, or give it another name."
                )
        return table


def _check_names(names: Iterable[str], schema: pa.Schema | None, who: str) -> None:
    if schema is None:
        return
    for name in names:
        if name not in schema.names:
            raise SchemaError(
                f"{who} a column {name!r}, which schema= does not have ({nearest(str(name), schema.names)}). "
                "Add it there."
            )


def _no_table(error: Exception, who: str) -> SchemaError:
    return SchemaError(f"what {who} does not make a table: {error}. Write schema= with its columns.")
