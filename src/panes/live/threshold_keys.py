"""Keys of any type, each with a number, found again by hashing: a batch costs what it holds, whatever is known."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import repeat

import numpy as np
import pyarrow as pa

from panes.engine.keys import key_ordinals, one_zero, plain_value
from panes.live.substreams import Integers

_NAN = "NaN"


class KeyNumbers:
    """Keys in the order of their first appearance. Null is a key of its own; NaN is one key, and so are both zeros.

    Examples
    --------
    >>> keys = KeyNumbers(pa.schema({"k": pa.string()}))
    >>> keys.numbers([pa.array(["a", None, "a"])], 3), keys.numbers([pa.array(["b", None])], 2)
    (array([0, 1, 0]), array([2, 1]))
    >>> keys.take(np.array([2, 1])).to_pydict()
    {'k': ['b', None]}
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._known: dict[Hashable, int] = {}
        self._parts: list[pa.Table] = []

    def __len__(self) -> int:
        return len(self._known)

    def numbers(self, columns: Sequence[pa.Array], length: int) -> Integers:
        """The number of each row's key; new keys get new ones."""
        columns = [one_zero(column) for column in columns]
        codes, firsts = _distinct(columns, length)
        chosen = [column.take(pa.array(firsts)) for column in columns]
        hashed = _hashable(chosen)
        found = np.fromiter(map(self._known.get, hashed, repeat(-1)), np.int64, len(hashed))
        new = np.flatnonzero(found < 0)
        if len(new):
            found[new] = len(self) + np.arange(len(new))
            self._known.update((hashed[i], int(found[i])) for i in new)
            self._append(pa.table([column.take(pa.array(new)) for column in chosen], schema=self.schema))
        return found[codes]

    def take(self, numbers: Integers) -> pa.Table:
        """The keys of some numbers."""
        return self.table().take(pa.array(numbers))

    def table(self) -> pa.Table:
        """All keys; a key's row is its number."""
        if len(self._parts) != 1:
            self._parts = [pa.concat_tables([self.schema.empty_table(), *self._parts]).combine_chunks()]
        return self._parts[0]

    def _append(self, keys: pa.Table) -> None:
        # Doubling, so that taking some keys does not walk through many parts.
        while self._parts and self._parts[-1].num_rows <= 2 * keys.num_rows:
            keys = pa.concat_tables([self._parts.pop(), keys]).combine_chunks()
        self._parts.append(keys)


def _distinct(columns: Sequence[pa.Array], length: int) -> tuple[Integers, Integers]:
    """A code for each row, equal for equal keys, and the first row of each code."""
    if len(columns) == 1 and not pa.types.is_nested(columns[0].type) and not pa.types.is_floating(columns[0].type):
        encoded = columns[0].dictionary_encode(null_encoding="encode")
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        # Codes come in the order of their first appearance.
        firsts = np.flatnonzero(np.diff(np.maximum.accumulate(codes), prepend=-1))
        return codes, firsts
    codes = key_ordinals(columns, length)
    return codes, np.unique(codes, return_index=True)[1]


def _hashable(columns: Sequence[pa.Array]) -> list[Hashable]:
    """One value for each row that is equal for equal keys only."""
    lists = [_values(column) for column in columns]
    return lists[0] if len(lists) == 1 else list(zip(*lists, strict=True))


def _values(column: pa.Array) -> list[Hashable]:
    # Python's calendar ends with the year 9999.
    if pa.types.is_timestamp(column.type):
        column = column.view(pa.int64())
    elif pa.types.is_date32(column.type):
        column = column.view(pa.int32())
    values = column.to_pylist()
    if pa.types.is_nested(column.type):
        return [repr(plain_value(value)) for value in values]
    if pa.types.is_floating(column.type):
        return [_NAN if value is not None and value != value else value for value in values]
    found: list[Hashable] = values
    return found
