"""How a manifest records the columns that a store keeps, and how they are found again after a restart.

A column is recorded with the SQL of its arguments, with their types, and with its own. After a restart it is found by
what it means, however its SQL is spelt by now (``expressions/stored.py``), and refused if a type has changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from panes.aggregates.component import Component
from panes.errors import StateError
from panes.expressions.coercion import INTEGERS, name_of
from panes.expressions.expression import Expression
from panes.expressions.stored import spelt_as_stored

Record: TypeAlias = dict[str, Any]

_WHOLE = frozenset(map(name_of, INTEGERS))


def record_of(component: Component) -> Record:
    """Record a component as it is called now."""
    return {
        "name": component.name,
        "arguments": list(component.arguments),
        "types": [name_of(type_) for type_ in component.types],
        "storage": name_of(component.storage),
    }


def find_record(component: Component, records: Sequence[Record]) -> Record | None:
    """Return the record of a component, by its name or else by what it means."""
    for record in records:
        if record["name"] == component.name:
            return record
    for record in records:
        spelt = spelt_as_stored(component, record["arguments"])
        if spelt is not None and spelt.name == record["name"]:
            return record
    return None


def check_types(component: Component, record: Record) -> None:
    """Reject a component whose stored partials would not be what it stores now."""
    now = record_of(component)
    if now == {**record, "name": now["name"], "arguments": now["arguments"]}:
        return
    changed = [
        (argument, was, is_)
        for argument, was, is_ in zip(component.arguments, record["types"], now["types"], strict=True)
        if was != is_
    ]
    same_storage = record["storage"] == now["storage"]
    # Sums and the like of any integers are the same. Sketches are not: they hash bytes.
    if same_storage and not _is_opaque(component.storage) and all({was, is_} <= _WHOLE for _, was, is_ in changed):
        return
    if changed:
        raise changed_type(*changed[0], f"{component.name} of both would be wrong")
    raise StateError(
        f"the checkpoint keeps {component.name} as {record['storage']}, and this version of Panes keeps "
        f"{now['storage']}. Start with a new checkpoint, or run the version that wrote it."
    )


def changed_type(sql: str, was: str, now: str, why: str) -> StateError:
    """Return the error for a column or expression of another type than when a checkpoint was written.

    Parameters
    ----------
    why
        Why it cannot go on.
    """
    given = Expression(sql)
    if given.is_column:
        (sql,) = given.columns
        write = f"events.withColumn({sql!r}, F.col({sql!r}).cast({was!r}))"
    else:
        write = f"events.withColumn(name, F.col(name).cast(type)) for what has changed of {', '.join(given.columns)}"
    return StateError(
        f"{sql} was of type {was} when the checkpoint was written, and is of type {now} now: {why}. Write {write} "
        "before the stream, or start with a new checkpoint."
    )


def _is_opaque(type_: pa.DataType) -> bool:
    """Return whether values of a type may hold bytes, which say nothing about what is in them."""
    if pa.types.is_binary(type_) or pa.types.is_large_binary(type_):
        return True
    return any(_is_opaque(type_.field(i).type) for i in range(type_.num_fields))
