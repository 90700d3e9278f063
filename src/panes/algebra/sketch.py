"""A component whose partials are sketches: bytes where they are stored, opened where they are combined.

The sketches are those of Apache DataSketches, in its own serial format, which newer versions of the library (and the
ones in other languages) read. A sketch is never changed once it was handed out, since kernels keep and combine partials
as they like: combining makes a new one.

A combine takes microseconds, not nanoseconds. So a sketch is made per pane out of all its events (``gather``), not per
event; many are combined at once where they lie side by side (``fold``); and one that is only passed on is not opened.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from panes.algebra.component import Component, Decoded
from panes.algebra.operations import Array, Operations, State
from panes.errors import DeclarationError


def library() -> Any:
    """The package ``datasketches``, or an error that says how to get it."""
    try:
        import datasketches
    except ImportError as error:
        raise DeclarationError(
            "approx_count_distinct, approx_quantile and top need the package 'datasketches', which is not installed "
            "here. Run: pip install panes[sketches]"
        ) from error
    return datasketches


class Sketch:
    """A sketch in the form in which it came, and in the other one once somebody asked for it."""

    __slots__ = ("_data", "_kind", "_opened")

    def __init__(self, kind: Sketched, *, data: bytes | None = None, opened: Any = None) -> None:
        self._kind, self._data, self._opened = kind, data, opened

    @property
    def opened(self) -> Any:
        """The library's object; not to be changed."""
        if self._opened is None:
            self._opened = self._kind.open(self._data)
        return self._opened

    @property
    def data(self) -> bytes:
        """What is stored."""
        if self._data is None:
            self._data = self._kind.close(self._opened)
        return self._data

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sketch) and self.data == other.data

    def __hash__(self) -> int:
        return hash(self.data)


@dataclass(frozen=True)
class Sketched(Component):
    """Partials that are sketches of the values of one argument; null where there were none."""

    in_jvm: ClassVar[bool] = False

    @property
    def storage(self) -> pa.DataType:  # noqa: D102
        # Offsets of 32 bits would end at two gigabytes.
        return pa.large_binary()

    @abstractmethod
    def open(self, data: Any) -> Any:
        """The library's object out of what is stored."""

    def close(self, opened: Any) -> bytes:
        """What is stored of the library's object."""
        data: bytes = opened.serialize()
        return data

    def together(self, opened: Sequence[Any]) -> Any:
        """One new object for all that one or several have seen; they stay as they are."""
        first, *others = opened
        merged = copy(first)
        for sketch in others:
            merged.merge(sketch)
        return merged

    @abstractmethod
    def of_spans(self, lo: Array, hi: Array, values: pa.Array) -> Iterable[Any | None]:
        """The object of each span of values; None for a span without any."""

    def lift(self, *values: pa.Array) -> pa.Array:  # noqa: D102
        # Events with the same value have the same sketch.
        encoded = values[0].dictionary_encode()
        at = np.arange(len(encoded.dictionary))
        state = self.gather(at, at + 1, encoded.dictionary).state
        return self.restore(state, None).take(encoded.indices)

    def gather(self, lo: Array, hi: Array, *values: pa.Array) -> Decoded:  # noqa: D102
        return self._decoded(
            None if opened is None else Sketch(self, opened=opened) for opened in self.of_spans(lo, hi, values[0])
        )

    def decode(self, stored: pa.Array) -> Decoded:  # noqa: D102
        return self._decoded(None if data is None else Sketch(self, data=data) for data in stored.to_pylist())

    def restore(self, state: State, nulls: Array | None) -> pa.Array:
        """A state in the storage type; null where it is the identity."""
        return pa.array([None if sketch is None else sketch.data for sketch in state[0]], self.storage)

    @property
    def operations(self) -> Operations:
        """The algebra of arrays of sketches, with None as its identity."""
        return Operations((None,), self._combine, idempotent=self.idempotent, fold=self._fold)

    def _decoded(self, sketches: Iterable[Sketch | None]) -> Decoded:
        state = objects(sketches)
        valid = np.array([sketch is not None for sketch in state], dtype=np.bool_)
        return Decoded(self.operations, (state,), None if valid.all() else valid, self.restore)

    def _combine(self, a: State, b: State) -> State:
        return (objects(self._both(x, y) for x, y in zip(a[0], b[0], strict=True)),)

    def _both(self, x: Sketch | None, y: Sketch | None) -> Sketch | None:
        if x is None or y is None:
            return y if x is None else x
        if x is y and self.idempotent:
            return x
        return Sketch(self, opened=self.together((x.opened, y.opened)))

    def _fold(self, state: State, lo: Array, hi: Array) -> State:
        return (objects(self._all(state[0][i:j]) for i, j in zip(lo.tolist(), hi.tolist(), strict=True)),)

    def _all(self, sketches: Array) -> Sketch | None:
        some = [sketch for sketch in sketches if sketch is not None]
        if len(some) < 2:
            return some[0] if some else None
        return Sketch(self, opened=self.together([sketch.opened for sketch in some]))


def objects(values: Iterable[Any]) -> Array:
    """An array of objects, whatever they are."""
    listed = list(values)
    array = np.empty(len(listed), dtype=object)
    array[:] = listed
    return array


def opened(state: State) -> list[Any | None]:
    """The library's objects of a state."""
    return [None if sketch is None else sketch.opened for sketch in state[0]]
