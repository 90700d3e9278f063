"""Run an operator over sorted rows, one tuple after another: each partition gets its own operator.

Operators treat partitions separately (multiplexed processing, Gedik 2014, section 3.2.1), so one operator for all of
them and one for each give the same results. If partitions evict each other, one operator gets all of them in the order
of time.

A punctuation reaches the operators of partitions with earlier rows: a stream does not know the others yet. A single
operator of all tuples gets every punctuation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import pairwise
from reprlib import repr as shortened
from typing import Any

import numpy as np
import pyarrow as pa

from panes.applying.operators_in_columns import in_columns
from panes.applying.outputs import OPERATOR, shaped, table_of
from panes.applying.user_operators import WindowedOperator, made
from panes.errors import SchemaError, StateError
from panes.frames.positions import Integers
from panes.frames.row_frame import Arrivals
from panes.operators.clocks import EventClock
from panes.operators.operator import Operator
from panes.operators.operator_model import PUNCTUATION
from panes.operators.unsaved_state import unsaved_attributes
from panes.row_windows.arrival import rows_before

PORT = "port"
"""The column of the output port of a tuple, for operators with several."""

_AT_ONCE = 1 << 16


def answered(declared: WindowedOperator, table: pa.Table, arrivals: Arrivals) -> pa.Table:
    """Return what an operator submits: computed in columns if possible, otherwise one tuple after another."""
    found = in_columns(declared, table, arrivals)
    if isinstance(found, pa.Table):
        return shaped(found, declared.schema, OPERATOR)
    return rows_of(declared, submitted(declared, table, arrivals) if found is None else found)


def rows_of(declared: WindowedOperator, rows: Iterable[Any]) -> pa.Table:
    """Return submitted tuples as a table."""
    return table_of(rows, declared.schema, OPERATOR)


def submitted(declared: WindowedOperator, table: pa.Table, arrivals: Arrivals) -> Iterator[Any]:
    """Yield the tuples that operators submit, partition after partition, without window punctuations."""
    starts, instants, marks = arrivals.events.key_starts, arrivals.events.start, arrivals.punctuations
    if declared.input.alone:
        if declared.input.together:
            order = np.argsort(instants, kind="stable")
            table, instants = table.take(pa.array(order)), instants[order]
        if len(table) or len(marks):
            yield from RunningOperator(declared).take_in(table, instants, marks, arrivals.end)
        return
    for key, (lo, hi) in enumerate(pairwise(starts.tolist())):
        own = instants[lo:hi]
        if arrivals.marks is not None:
            marks = arrivals.marks.start[slice(*arrivals.marks.key_starts[key : key + 2])]
        yield from RunningOperator(declared).take_in(table.slice(lo, hi - lo), own, since(marks, own), arrivals.end)


def since(punctuations: Integers, instants: Integers) -> Integers:
    """Return the punctuations since the first of some tuples."""
    return punctuations[rows_before(punctuations, instants[:1]) > 0]


class RunningOperator:
    """An operator on an event clock.

    Parameters
    ----------
    saved, at
        The saved state of an operator with the same declaration, and the instant of its clock.
    """

    def __init__(self, declared: WindowedOperator, saved: Any = None, at: int | None = None) -> None:
        self._clock = EventClock(at)
        self._operator = made(declared, self._clock)
        self._port = declared.input.port
        self._out: list[Any] = []
        for port in range(self._operator.outputs):
            self._operator.connect(partial(self._keep, port), port)
        if saved is not None:
            self._operator.load(saved)

    def take_in(self, table: pa.Table, instants: Integers, punctuations: Integers, end: int) -> Iterator[Any]:
        """Process tuples and punctuations, advance the clock to the end, and yield what the operator submits."""
        clock, operator, port_of = self._clock, self._operator, self._port
        marks = zip(rows_before(punctuations, instants).tolist(), punctuations.tolist(), strict=True)
        due = next(marks, None)
        row, port = 0, 0
        for batch in table.to_batches(max_chunksize=_AT_ONCE):
            for item in batch.to_pylist():
                now = int(instants[row])
                while due is not None and due[0] <= row:
                    clock.advance(due[1])
                    operator.punctuate()
                    due = next(marks, None)
                clock.advance(now)
                row += 1
                if port_of is not None:
                    port = _port(operator, item.pop(port_of))
                operator.process(item, port)
            yield from self._taken()
        while due is not None:
            clock.advance(due[1])
            operator.punctuate()
            due = next(marks, None)
        clock.advance(max([end, *punctuations[-1:].tolist()]))
        yield from self._taken()

    def save(self) -> Any:
        """Return the state of the operator as plain values."""
        return self._operator.save()

    def check_kept(self, new: RunningOperator) -> None:
        """Reject an operator with attributes that ``save`` leaves out.

        Parameters
        ----------
        new
            The same operator before its first tuple.
        """
        operator = self._operator
        for name, value in unsaved_attributes(operator, new._operator):
            raise StateError(
                f"{type(operator).__name__} keeps {name}={shortened(value)} beside its windows, and a stream would "
                "lose it after every micro-batch. Write methods save and load that keep it, as plain values."
            )

    @property
    def due(self) -> int | None:
        """When something is due on the clock, or None."""
        return self._clock.deadlines.next_due()

    def _keep(self, port: int, item: Any) -> None:
        if item is not PUNCTUATION:
            several = self._operator.outputs > 1 and isinstance(item, dict)
            self._out.append({**item, PORT: port} if several else item)

    def _taken(self) -> list[Any]:
        """Return what was submitted since the last call."""
        found, self._out = self._out, []
        return found


def _port(operator: Operator, tag: Any) -> int:
    ports = len(operator.model.inputs)
    if isinstance(tag, int) and 0 <= tag < ports:
        return int(tag)
    raise SchemaError(
        f"a row is for the port {tag!r}, and {type(operator).__name__} has {ports} input ports, from 0. Write port= "
        "with a column of such numbers."
    )
