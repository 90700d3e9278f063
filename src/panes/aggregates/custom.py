"""``aggregate``: an aggregate of the user's own, by lift, combine and lower over NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panes.aggregates.aggregate import Aggregate, Bound
from panes.aggregates.component import StructComponent, numbers
from panes.aggregates.operations import Operations, State
from panes.aggregates.registry import arguments_of
from panes.errors import AlgebraError, DeclarationError
from panes.suggestions import helpful


@helpful(
    "pn.aggregate('factor', name='product', state={'log': float}, identity=(0.0,), lift=..., combine=..., lower=...)",
    **dict.fromkeys(("column", "value"), "columns come first, by position."),
    zero="identity",
    init="identity",
    merge="combine",
    finish="lower",
    evaluate="lower",
    add="lift",
)
def aggregate(
    *arguments: str,
    name: str,
    state: Mapping[str, Any],
    identity: tuple[Any, ...],
    lift: Callable[..., Any],
    combine: Callable[[State, State], Any],
    lower: Callable[..., Any],
    output: Any = np.float64,
    subtract: Callable[[State, State], Any] | None = None,
    idempotent: bool = False,
) -> Aggregate:
    """Define an aggregate of your own by lift, combine and lower over NumPy arrays.

    Parameters
    ----------
    *arguments
        Columns or expressions; rows where one is null are skipped.
    name
        What plans and errors call it.
    state
        The parts of its state with their NumPy or Arrow types.
    identity
        One scalar per part; combining with it changes nothing.
    lift
        From the arguments' arrays to a tuple of state arrays, one element per event.
    combine
        From two states to one, elementwise; associative, the left one earlier. Not in place.
    lower
        From the state arrays to the answers.
    output
        The NumPy or Arrow type of the answers.
    subtract
        Only if ``subtract(combine(a, b), a) == b`` exactly.
    idempotent
        Only if ``combine(a, a) == a`` and order does not matter.

    See Also
    --------
    panes.testing.check_aggregate : checks an aggregate against the laws that it claims.

    Examples
    --------
    >>> product = aggregate(
    ...     "factor", name="product", state={"log": np.float64}, identity=(0.0,),
    ...     lift=lambda x: (np.log(x),), combine=lambda a, b: (a[0] + b[0],), lower=np.exp,
    ... )
    >>> print(product)
    product(factor)
    """
    parts = state_types(state)
    if not arguments:
        raise DeclarationError(f"the aggregate {name!r} has no argument. Name at least one column.")
    if len(identity) != len(parts):
        raise DeclarationError(
            f"the aggregate {name!r} has {len(parts)} parts of state but {len(identity)} identities. "
            "Give one identity per part."
        )

    def checked(function: Callable[[State, State], Any]) -> Callable[[State, State], State]:
        return lambda a, b: as_state(function(a, b), name, len(parts), len(a[0]))

    operations = Operations(
        identity=tuple(identity),
        combine=checked(combine),
        subtract=None if subtract is None else checked(subtract),
        idempotent=idempotent,
    )
    type_ = output if isinstance(output, pa.DataType) else pa.from_numpy_dtype(np.dtype(output))
    return CustomOf(
        arguments_of(*arguments),
        label=name,
        state=parts,
        output=type_,
        lift=lift,
        operations=operations,
        lowered=lower,
    )


@dataclass(frozen=True, kw_only=True)
class CustomOf(Aggregate):
    """A user's own aggregate; see ``panes.aggregate``."""

    label: str
    state: tuple[tuple[str, pa.DataType], ...]
    output: pa.DataType
    lift: Callable[..., Any]
    operations: Operations
    lowered: Callable[..., Any]

    name: ClassVar[str] = "custom"
    by_order: ClassVar[bool] = True

    @property
    def idempotent(self) -> bool:
        return self.operations.idempotent

    @property
    def in_jvm(self) -> bool:
        return False

    def bind(self, arguments: tuple[str, ...], types: tuple[pa.DataType, ...]) -> Bound:
        component = Custom(
            arguments, types, label=self.label, state=self.state, lifted=self.lift, algebra=self.operations
        )
        return Bound((component,), self.output, self._lower)

    def native(self, arguments: tuple[str, ...]) -> None:
        return None

    def reference(self, rows: Sequence[Any], **window: Any) -> Any:
        if not rows:
            return None
        columns = [pa.array([row[i] for row in rows], type_) for i, type_ in enumerate(window["types"])]
        lifted = self.lift(*(column.to_numpy(zero_copy_only=False) for column in columns))
        parts = [np.asarray(part) for part in (lifted if isinstance(lifted, tuple) else (lifted,))]
        states = [tuple(part[i : i + 1] for part in parts) for i in range(len(rows))]
        answer = np.asarray(self.lowered(*reduce(self.operations.combine, states)))
        return pa.array(answer, from_pandas=True).cast(self.output)[0].as_py()

    def _lower(self, stored: pa.Array) -> pa.Array:
        missing = stored.is_null().to_numpy(zero_copy_only=False)
        parts = [
            numbers(pc.struct_field(stored, [i]).filter(pa.array(~missing)), identity)
            for i, identity in enumerate(self.operations.identity)
        ]
        answers = pa.array(np.asarray(self.lowered(*parts)), from_pandas=False).cast(self.output)
        return answers.take(pa.array(np.cumsum(~missing) - 1, mask=missing))

    def __str__(self) -> str:
        return f"{self.label}({', '.join(self.arguments)})"


@dataclass(frozen=True, kw_only=True)
class Custom(StructComponent):
    """Partials of a user-defined aggregate. Built in Python, since the JVM cannot run its ``lift``."""

    label: str
    state: tuple[tuple[str, pa.DataType], ...]
    lifted: Callable[..., Any]
    algebra: Operations

    kind: ClassVar[str] = "custom"
    in_jvm: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return f"{self.label}({', '.join(self.arguments)})"

    @property
    def storage(self) -> pa.DataType:
        return pa.struct(list(self.state))

    @property
    def operations(self) -> Operations:
        return self.algebra

    @property
    def idempotent(self) -> bool:
        return self.algebra.idempotent

    def lift(self, *values: pa.Array) -> pa.Array:
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
