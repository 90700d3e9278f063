"""The component of a user's own aggregate: a struct of the arrays that its ``lift`` makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from panes.aggregates.component import Component, Decoded, numbers, validity
from panes.aggregates.operations import Array, Operations, State
from panes.errors import AlgebraError


@dataclass(frozen=True, kw_only=True)
class Custom(Component):
    """Partials of a user-defined aggregate. Built in Python, since the JVM cannot run its ``lift``."""

    label: str
    state: tuple[tuple[str, pa.DataType], ...]
    lifted: Callable[..., Any]
    operations: Operations

    kind: ClassVar[str] = "custom"
    in_jvm: ClassVar[bool] = False

    @property
    def name(self) -> str:  # noqa: D102
        return f"{self.label}({', '.join(self.arguments)})"

    @property
    def storage(self) -> pa.DataType:  # noqa: D102
        return pa.struct(list(self.state))

    @property
    def idempotent(self) -> bool:  # noqa: D102
        return self.operations.idempotent

    def lift(self, *values: pa.Array) -> pa.Array:  # noqa: D102
        present = np.ones(len(values[0]), dtype=bool)
        for array in values:
            present &= array.is_valid().to_numpy(zero_copy_only=False)
        rows = [array.filter(pa.array(present)).to_numpy(zero_copy_only=False) for array in values]
        lifted = as_state(self.lifted(*rows), self.label, len(self.state), int(present.sum()))
        # Spread the lifted rows over all rows, nulls where an argument was null.
        where = np.cumsum(present) - 1
        fields = [pa.array(part, type=type_) for part, (_, type_) in zip(lifted, self.state, strict=True)]
        index = pa.array(where, mask=~present)
        return pa.StructArray.from_arrays(
            [part.take(index) for part in fields], fields=list(self.storage), mask=pa.array(~present)
        )

    def decode(self, stored: pa.Array) -> Decoded:  # noqa: D102
        valid = validity(stored)
        arrays = []
        for i, identity in enumerate(self.operations.identity):
            part = numbers(stored.field(i), identity)
            arrays.append(part if valid is None else np.where(valid, part, identity).astype(part.dtype))
        return Decoded(self.operations, tuple(arrays), valid, self._restore)

    def _restore(self, state: State, nulls: Array | None) -> pa.Array:
        mask = None if nulls is None else pa.array(nulls)
        arrays = [pa.array(part, type=type_) for part, (_, type_) in zip(state, self.state, strict=True)]
        return pa.StructArray.from_arrays(arrays, fields=list(self.storage), mask=mask)


def as_state(value: Any, label: str, width: int, length: int) -> State:
    """Whatever a user's function returned, as a tuple of arrays; a clear error when it cannot be one."""
    parts = value if isinstance(value, tuple) else (value,)
    arrays = tuple(np.asarray(part) for part in parts)
    if len(arrays) != width or any(array.shape != (length,) for array in arrays):
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise AlgebraError(
            f"the aggregate {label!r} returned arrays of shapes {shapes}, but its state has {width} parts "
            f"of {length} elements here. Return a tuple of {width} arrays as long as the input."
        )
    return arrays


def state_types(state: Mapping[str, Any]) -> tuple[tuple[str, pa.DataType], ...]:
    """The declared parts of a state, with NumPy or Arrow types, as Arrow types."""
    return tuple(
        (name, type_ if isinstance(type_, pa.DataType) else pa.from_numpy_dtype(np.dtype(type_)))
        for name, type_ in state.items()
    )
