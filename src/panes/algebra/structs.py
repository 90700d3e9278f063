"""Components that store several numbers: structs as states and back, and the Spark SQL that makes and folds them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from panes.algebra.component import numbers
from panes.algebra.operations import Array, State


def parts_of(stored: pa.Array, valid: Array | None, identity: tuple[Any, ...]) -> State:
    """The fields of stored structs as a state, the identity where a struct is null."""
    parts = tuple(numbers(stored.field(i), none) for i, none in enumerate(identity))
    if valid is None:
        return parts
    return tuple(
        np.where(valid, part, none).astype(part.dtype, copy=False) for part, none in zip(parts, identity, strict=True)
    )


def as_struct(state: State, nulls: Array | None, type_: pa.DataType) -> pa.Array:
    """A state as one struct per element, null where the mask says so."""
    mask = None if nulls is None else pa.array(nulls)
    arrays = [pa.array(part, field.type) for part, field in zip(state, type_, strict=True)]
    return pa.StructArray.from_arrays(arrays, fields=list(type_), mask=mask)


def struct_sql(fields: Mapping[str, str]) -> str:
    """SQL for a struct of named values.

    Examples
    --------
    >>> struct_sql({"n": "count(x)", "top": "max(x)"})
    "named_struct('n', count(x), 'top', max(x))"
    """
    return f"named_struct({', '.join(f'{name!r}, {value}' for name, value in fields.items())})"


def fold_sql(stored: str, together: str) -> str:
    """SQL for an aggregate that folds partials by an expression over two of them, ``a`` and ``b``.

    Spark has no aggregate that merges such structs; folding the collected partials keeps it in the JVM.
    """
    partials = f"collect_list({stored})"  # leaves nulls out
    folded = f"aggregate(slice({partials}, 2, size({partials})), {partials}[0], (a, b) -> {together})"
    return f"CASE WHEN count({stored}) > 0 THEN {folded} END"
