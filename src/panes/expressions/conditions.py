"""AND, OR, IN, CASE and COALESCE: three truth values, and no look at what is not needed."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panes.expressions import comparison
from panes.expressions.coercion import BOOLEAN
from panes.expressions.outcome import Bound, Failure, Values, truth


def logic(bounds: list[Bound], *, both: bool) -> Bound:
    """AND or OR of conditions from left to right; the next one is looked at while the answer is open."""

    def run(batch: pa.RecordBatch) -> Values:
        def joined(left: Values, right: Values) -> Values:
            settled = truth(pc.invert(left.array) if both else left.array)
            array = (pc.and_kleene if both else pc.or_kleene)(left.array, right.array)
            return Values(array, left.failures + right.only(~settled))

        return reduce(joined, (bound.run(batch) for bound in bounds))

    return Bound(BOOLEAN, run, (" AND " if both else " OR ").join(bound.sql for bound in bounds))


def member(bounds: list[Bound], sql: str) -> Bound:
    """Whether the first value is among the others: unknown when it is not and one of them is null."""

    def run(batch: pa.RecordBatch) -> Values:
        value, *others = (bound.run(batch) for bound in bounds)
        found, failures = np.zeros(batch.num_rows, dtype=np.bool_), value.failures
        unknown = ~value.valid
        for other in others:
            failures += other.only(value.valid & ~found)
            equal = comparison.compare("=", value.array, other.array)
            found |= truth(equal)
            unknown |= truth(equal.is_null())
        return Values(pa.array(found, BOOLEAN, mask=unknown & ~found), failures)

    return Bound(BOOLEAN, run, sql)


def choose(tests: list[Bound], values: list[Bound], sql: str) -> Bound:
    """The value of the first test that is true, or the last value."""
    kind = values[-1].type

    def run(batch: pa.RecordBatch) -> Values:
        open_rows, failures = np.ones(batch.num_rows, dtype=np.bool_), tuple[Failure, ...]()
        taken = []
        for test, value in zip(tests, values, strict=False):
            tested, chosen = test.run(batch), value.run(batch)
            failures += tested.only(open_rows)
            rows = open_rows & truth(tested.array)
            failures += chosen.only(rows)
            taken.append((rows, chosen.array))
            open_rows = open_rows & ~rows
        last = values[-1].run(batch)
        result = last.array
        for rows, array in reversed(taken):
            result = pc.if_else(pa.array(rows), array, result)
        return Values(result, failures + last.only(open_rows))

    return Bound(kind, run, sql)


def coalesce(values: list[Bound], sql: str) -> Bound:
    """The first value that is not null."""

    def run(batch: pa.RecordBatch) -> Values:
        first, *others = (value.run(batch) for value in values)
        result, failures = first.array, first.failures
        for other in others:
            missing = result.is_null()
            failures += other.only(truth(missing))
            result = pc.if_else(missing, other.array, result)
        return Values(result, failures)

    return Bound(values[0].type, run, sql)
