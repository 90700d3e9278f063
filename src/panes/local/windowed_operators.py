"""Operators over windows by policy, one tuple after another: every partition has an operator of its own.

Operators keep apart what belongs to different partitions (multiplexed processing, Gedik 2014, section 3.2.1), so that
it makes no difference whether one operator is given all partitions or each of them has one. Where partitions are
evicted because of others, one operator is given them all in the order of time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from panes.errors import SchemaError
from panes.frames.positions import Integers
from panes.local.arriving import arrive, check_stream
from panes.local.intake import as_table
from panes.windowing.clocks import EventClock
from panes.windowing.over_tables import WindowedOperator, made
from panes.windowing.punctuations import PUNCTUATION
from panes.windowing.vectorised import Arrivals

_AT_ONCE = 1 << 16


def operated(declared: WindowedOperator, data: Any) -> pa.Table:
    """What an operator submits when the rows of a table arrive.

    Parameters
    ----------
    data
        A pyarrow Table, or anything with the Arrow C interface.
    """
    table = as_table(data)
    check_stream(declared.stream, table.schema)
    arrived = arrive(declared.stream, table, table.column_names)
    return table_of(declared, submitted(declared, arrived.table, arrived.arrivals))


def submitted(declared: WindowedOperator, table: pa.Table, arrivals: Arrivals) -> Iterator[Any]:
    """The tuples that operators submit, partition after partition; window punctuations are left out."""
    starts, instants = arrivals.events.key_starts, arrivals.events.start
    if declared.stream.together:
        order = np.argsort(instants, kind="stable")
        yield from _run(declared, table.take(pa.array(order)), instants[order], arrivals)
        return
    for lo, hi in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        yield from _run(declared, table.slice(lo, hi - lo), instants[lo:hi], arrivals)


def table_of(declared: WindowedOperator, rows: Iterable[Any]) -> pa.Table:
    """Tuples as a table."""
    rows = list(rows)
    for row in rows:
        if not isinstance(row, dict):
            raise SchemaError(
                f"the operator submitted {row!r}, and a table is made of rows. Submit dicts, as {{'n': 1}}."
            )
    try:
        return pa.Table.from_pylist(rows, schema=declared.schema)
    except (pa.ArrowException, TypeError) as error:
        raise SchemaError(
            f"what the operator submitted is no table: {error}. Write schema= with the columns that it submits."
        ) from error


def _run(declared: WindowedOperator, table: pa.Table, instants: Integers, arrivals: Arrivals) -> Iterator[Any]:
    if not len(table):
        return
    clock = EventClock()
    operator = made(declared, clock)
    out: list[Any] = []
    operator.connect(out.append)
    punctuations = iter(arrivals.punctuations.tolist())
    due = next(punctuations, None)
    row = 0
    for batch in table.to_batches(max_chunksize=_AT_ONCE):
        for item in batch.to_pylist():
            now = int(instants[row])
            row += 1
            while due is not None and due < now:
                clock.advance(due)
                operator.punctuate()
                due = next(punctuations, None)
            clock.advance(now)
            operator.process(item)
        yield from _tuples(out)
    while due is not None:
        clock.advance(due)
        operator.punctuate()
        due = next(punctuations, None)
    clock.advance(max(arrivals.end, clock.now()))
    yield from _tuples(out)


def _tuples(out: list[Any]) -> list[Any]:
    """What was submitted since it was last asked for."""
    found = [item for item in out if item is not PUNCTUATION]
    out.clear()
    return found
