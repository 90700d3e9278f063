"""Compare answers as multisets of rows: doubles up to rounding, everything else exactly."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from panes.testing.reference import comparable

Row: TypeAlias = tuple[Any, ...]
_SHOWN = 5


def assert_same_answers(
    actual: Any,
    expected: Any,
    *,
    relative: float = 1e-9,
    absolute: float | Mapping[str, float] = 0.0,
) -> None:
    """Fail unless two results hold the same rows, in any order.

    Names and types must agree, except for nullability and the names of time zones. Integers, decimals, strings, times
    and keys must be equal; doubles may differ by rounding, since sums are taken in another order. NaN equals NaN, and
    -0.0 equals 0.0, as for Spark's ``=``.

    Parameters
    ----------
    actual, expected
        Arrow tables or Spark DataFrames.
    relative, absolute
        Doubles may differ by ``relative * |expected| + absolute``. If values of different signs are added, the error
        of a sum is bounded by ``n * epsilon * sum(|x|)`` and not by the sum: give that bound as ``absolute``,
        for all columns or per column.

    Examples
    --------
    >>> assert_same_answers(pa.table({"n": [1, 2]}), pa.table({"n": [2, 1]}))
    >>> assert_same_answers(pa.table({"k": ["a"], "x": [1.0]}), pa.table({"k": ["a"], "x": [1.5]}))
    Traceback (most recent call last):
    ...
    AssertionError: the answers differ:
      x is 1.0, expected 1.5, where k='a'
    """
    found, wanted = _Answers(actual), _Answers(expected)
    _compare_schemas(found, wanted)
    names = wanted.names
    exact = [i for i, inexact in enumerate(wanted.inexact) if not inexact]
    floats = [i for i, inexact in enumerate(wanted.inexact) if inexact]
    bound = absolute if isinstance(absolute, Mapping) else dict.fromkeys(names, absolute)
    left, right = _grouped(found.rows(), exact), _grouped(wanted.rows(), exact)
    differences: list[str] = []
    missing: list[Row] = []
    unexpected: list[Row] = []
    for at in {**right, **left}:
        ours = sorted(left.get(at, []), key=lambda row: _order(row, floats))
        theirs = sorted(right.get(at, []), key=lambda row: _order(row, floats))
        for a, b in zip(ours, theirs, strict=False):
            for i in floats:
                if not _near(a[i], b[i], relative, bound.get(names[i], 0.0)):
                    differences.append(f"{names[i]} is {a[i]}, expected {b[i]}, where {_shown(b, names, exact)}")
        unexpected += ours[len(theirs) :]
        missing += theirs[len(ours) :]
    every = list(range(len(names)))
    differences += _listed("expected, but missing", sorted(missing, key=str), names, every)
    differences += _listed("unexpected", sorted(unexpected, key=str), names, every)
    if differences:
        more = len(differences) - 4 * _SHOWN
        tail = [f"... and {more} more"] if more > 0 else []
        raise AssertionError("\n  ".join(["the answers differ:", *differences[: 4 * _SHOWN], *tail]))


class _Answers:
    """A result as Python rows, with the names and types of its columns."""

    def __init__(self, result: Any) -> None:
        spark = not isinstance(result, pa.Table)
        self.spark_types = [field.dataType.simpleString() for field in result.schema] if spark else None
        self.table: pa.Table = result.toArrow() if spark else result
        self.columns = dict(_parts(self.table))
        self.names = list(self.columns)
        self.inexact = [pa.types.is_floating(column.type) for column in self.columns.values()]

    @property
    def arrow_types(self) -> list[str]:
        return [_type_name(type_) for type_ in self.table.schema.types]

    def rows(self) -> list[Row]:
        columns = [_python(column) for column in self.columns.values()]
        return list(zip(*columns, strict=True)) if columns else []


def _parts(table: pa.Table) -> Iterator[tuple[str, pa.Array]]:
    """Yield the columns; structs with doubles field by field, since doubles may differ by rounding."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        array = column.combine_chunks()
        if pa.types.is_struct(array.type) and any(pa.types.is_floating(field.type) for field in array.type):
            yield name, array.is_valid()
            yield from ((f"{name}.{field.name}", pc.struct_field(array, [i])) for i, field in enumerate(array.type))
        else:
            yield name, array


def _compare_schemas(found: _Answers, wanted: _Answers) -> None:
    ours, theirs = found.table.column_names, wanted.table.column_names
    assert ours == theirs, f"the columns are {ours}, expected {theirs}"
    both_spark = found.spark_types is not None and wanted.spark_types is not None
    ours = found.spark_types if both_spark and found.spark_types else found.arrow_types
    theirs = wanted.spark_types if both_spark and wanted.spark_types else wanted.arrow_types
    pairs = zip(found.table.column_names, ours, theirs, strict=True)
    wrong = [f"{name} is of type {a}, expected {b}" for name, a, b in pairs if a != b]
    assert not wrong, "the types differ:\n  " + "\n  ".join(wrong)


def _type_name(type_: pa.DataType) -> str:
    """Return a type without time zone names, offset widths and nullability."""
    if pa.types.is_timestamp(type_):
        return f"timestamp[{type_.unit}]{'' if type_.tz is None else ' with zone'}"
    if pa.types.is_struct(type_):
        return f"struct<{', '.join(f'{field.name}: {_type_name(field.type)}' for field in type_)}>"
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return f"list<{_type_name(type_.value_type)}>"
    return str(type_).removeprefix("large_")


def _python(array: pa.Array) -> list[Any]:
    """Return Python values, with instants in µs: ``datetime`` has a smaller range and cannot compare across zones."""
    if pa.types.is_timestamp(array.type):
        return list(array.cast(pa.int64()).to_pylist())
    if pa.types.is_struct(array.type):
        parts = [_python(pc.struct_field(array, [i])) for i in range(array.type.num_fields)]
        valid = array.is_valid().to_pylist()
        return [row if ok else None for ok, row in zip(valid, zip(*parts, strict=True), strict=True)]
    return list(array.to_pylist())


def _grouped(rows: Iterable[Row], exact: list[int]) -> dict[Row, list[Row]]:
    groups: dict[Row, list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(comparable(row[i]) for i in exact)].append(row)
    return groups


def _order(row: Row, floats: list[int]) -> Row:
    return tuple((row[i] is not None, comparable(row[i])) for i in floats)


def _near(a: float | None, b: float | None, relative: float, absolute: float) -> bool:
    if a is None or b is None:
        return a is b
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    if math.isinf(a) or math.isinf(b):
        return a == b
    return abs(a - b) <= relative * abs(b) + absolute


def _listed(title: str, rows: list[Row], names: list[str], columns: list[int]) -> list[str]:
    lines = [f"{title}: {_shown(row, names, columns)}" for row in rows[:_SHOWN]]
    return lines + ([f"{title}: {len(rows) - _SHOWN} more rows"] if len(rows) > _SHOWN else [])


def _shown(row: Row, names: list[str], columns: list[int]) -> str:
    return ", ".join(f"{names[i]}={row[i]!r}" for i in columns) or "there is no other column"
