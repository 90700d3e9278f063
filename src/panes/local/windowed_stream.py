"""Aggregates over windows by policy while rows come: one shard of a stream, from micro-batch to micro-batch.

Rows wait until the watermark has passed them and arrive in the order of their time, so that however they came, the
windows are those of a table with the same rows. State are the rows that windows still hold, a line for each key, and
the rows that wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from panes.algebra.operations import Array
from panes.algebra.ordering import is_ordered
from panes.engine.cabinet import Cabinet
from panes.engine.keys import one_zero
from panes.frames.begun import Begun
from panes.frames.processed import Processed
from panes.local.arriving import arrivals_of, in_order, ranks
from panes.local.keyed_rows import HELD, Column, KeyedRows
from panes.local.waiting import INSTANT, Counted, Waiting, read_state, write_state
from panes.local.windowed_aggregates import BoundAggregates, answer
from panes.operators.continued import continued
from panes.operators.declarations import Delta, Sliding, WindowDeclaration
from panes.operators.recorded import Recording
from panes.operators.vectorised import Arrivals, moments_on_the_clock

_ONE = pa.schema([("everything", pa.int32())])
"""The key of a window that is not partitioned."""

_FIGURES = ("known", "opened", "received", "reference", "full")
_OWN, _NUMBERED = "own", "numbered"
"""How many rows of a key a window holds, and how many times it was processed."""

_AT_ONCE = 1 << 24
"""Windows on the clock that are processed together: their answers take about a gigabyte."""


@dataclass(frozen=True)
class Shape:
    """The columns in which rows travel and wait, in this order.

    Parameters
    ----------
    keys, arguments, deltas, groups, ties
        The types of keys, of arguments of aggregates, of the attributes of delta policies, of groups, and of what
        orders rows of one instant.
    """

    keys: tuple[pa.DataType, ...]
    arguments: tuple[pa.DataType, ...]
    deltas: tuple[pa.DataType, ...]
    groups: tuple[pa.DataType, ...]
    ties: tuple[pa.DataType, ...]

    @property
    def schema(self) -> pa.Schema:
        """Of rows that wait."""
        return pa.schema([*self._named("key", self.keys), *self.held, *self._named("tie", self.ties)])

    @property
    def held(self) -> pa.Schema:
        """Of what windows have to know of rows."""
        parts = {"argument": self.arguments, "delta": self.deltas, "group": self.groups}
        return pa.schema(
            [(INSTANT, pa.int64()), *(f for name, types in parts.items() for f in self._named(name, types))]
        )

    @property
    def partitions(self) -> pa.Schema:
        """Of keys; there is always one."""
        return pa.schema(self._named("key", self.keys)) if self.keys else _ONE

    @staticmethod
    def _named(name: str, types: Sequence[pa.DataType]) -> list[tuple[str, pa.DataType]]:
        return [(f"{name}{i}", type_) for i, type_ in enumerate(types)]


def partitions_of(rows: pa.RecordBatch, shape: Shape) -> pa.RecordBatch:
    """The keys of rows."""
    schema = shape.partitions
    if not shape.keys:
        return pa.RecordBatch.from_arrays([pa.array(np.zeros(len(rows), np.int32))], schema=schema)
    return pa.RecordBatch.from_arrays([one_zero(rows.column(name)) for name in schema.names], schema=schema)


class WindowedShard:
    """The windows of some partitions, as the last micro-batch left them.

    Parameters
    ----------
    bounds
        What is computed over each of several windows; all have the same keys, arguments and groups.
    declared
        What a checkpoint has to have been written with.
    """

    def __init__(
        self, bounds: Sequence[BoundAggregates], shape: Shape, declared: dict[str, Any], cabinet: Cabinet
    ) -> None:
        self._bounds, self._shape, self._declared, self._cabinet = bounds, shape, declared, cabinet
        self._stream = bounds[0].declared.stream
        state = read_state(cabinet, declared)
        self.opened = bool(state)
        self.counted = Counted()
        self._waiting = Waiting(shape.schema, cabinet, state)
        figures: dict[str, pa.DataType] = {}
        for number, bound in enumerate(bounds):
            kinds = dict.fromkeys((*_FIGURES, _OWN, _NUMBERED), pa.int64()) | {"known": pa.bool_(), "full": pa.bool_()}
            kinds["reference"] = self._reference(bound.declared.stream.window)
            figures |= {f"{name}{number}": kind for name, kind in kinds.items()}
        self._held = KeyedRows(shape.partitions, shape.held, figures, cabinet, state)
        self._saved: dict[str, Any] | None = state.get("saved")

    @property
    def watermark(self) -> int:
        """How far everything has happened."""
        return self._waiting.watermark

    def _reference(self, window: WindowDeclaration) -> pa.DataType:
        """The type of the values that triggers by delta go by."""
        if not isinstance(window, Sliding) or not isinstance(window.trigger, Delta):
            return pa.int64()
        type_ = self._shape.deltas[self._stream.deltas.index(str(window.trigger.attribute))]
        return pa.float64() if pa.types.is_floating(type_) else pa.int64()

    def step(self, rows: Sequence[pa.RecordBatch], punctuations: Array, watermark: int) -> list[pa.Table]:
        """Take in the rows of a micro-batch, let the watermark pass, and give what each window was processed for."""
        pieces = list(self.steps(rows, punctuations, watermark))
        nothing = [bound.schema.empty_table() for bound in self._bounds]
        return [pa.concat_tables(tables) for tables in zip(nothing, *pieces, strict=True)]

    def steps(self, rows: Sequence[pa.RecordBatch], punctuations: Array, watermark: int) -> Iterator[list[pa.Table]]:
        """The same piece by piece, for whoever can pass answers on: all pieces have to be taken.

        A watermark may jump over more periods than there is room for answers, for every key there is.
        """
        until = self.watermark
        came, marks = self._waiting.pass_by(rows, punctuations, watermark)
        timed = any(bound.declared.stream.timed for bound in self._bounds)
        counted, held, waiting = self.counted, self._held, self._waiting
        counted.answers = 0
        if len(came) or len(marks) or (timed and len(held.keys)):
            # The first rows of all may have come long after the clock began.
            since = until if len(held.keys) or not len(came) else int(came.column(INSTANT).to_numpy().min())
            for tables in (
                iter([self._together(came, marks, until)])
                if self._stream.together
                else self._apart(came, marks, until, since, self.watermark)
            ):
                counted.answers += sum(table.num_rows for table in tables)
                yield tables
        counted.late = waiting.late
        counted.keys, counted.rows, counted.bytes = len(held.keys), len(held) + len(waiting), held.bytes + waiting.bytes
        write_state(self._cabinet, self._declared, **waiting.state, **held.state, saved=self._saved)

    def _apart(self, came: pa.RecordBatch, marks: Array, until: int, since: int, end: int) -> Iterator[list[pa.Table]]:
        """Partitions that know nothing of each other: all at once, or in halves of a time that is too long for that.

        Parameters
        ----------
        until, end
            How far the clock had run, and how far it runs.
        since
            Before this, nothing happens.
        """
        owner = self._held.keys.ordinals(partitions_of(came, self._shape))
        # Without a clock, nothing happens to partitions for which no row came.
        everyone = len(marks) > 0 or any(bound.declared.stream.timed for bound in self._bounds)
        wanted = np.arange(len(self._held.keys)) if everyone else np.unique(owner)
        lines = self._held.lines()
        column = self._column(wanted, lines[HELD], came, owner)
        todo = list[tuple[BoundAggregates, dict[str, Array], Column, Arrivals, Begun]]()
        moments = 0.0
        for number, bound in enumerate(self._bounds):
            own = {name: lines[f"{name}{number}"] for name in (*_FIGURES, _OWN, _NUMBERED)}
            mine = column.holding(own[_OWN][wanted])
            arrivals = self._arrivals(bound, mine, marks, end)
            begun = Begun(held=mine.held, until=until, **{name: own[name][wanted] for name in _FIGURES})
            todo.append((bound, own, mine, arrivals, begun))
            moments += moments_on_the_clock(bound.declared.stream.window, arrivals, begun)
        if moments > _AT_ONCE and end - since > 1:
            # Nothing has changed yet.
            middle = (since + end) // 2
            first = came.column(INSTANT).to_numpy() < middle
            yield from self._apart(came.filter(pa.array(first)), marks[marks < middle], until, since, middle)
            yield from self._apart(came.filter(pa.array(~first)), marks[marks >= middle], middle, middle, end)
            return
        tables, still = [], np.zeros(len(wanted), np.int64)
        for bound, own, mine, arrivals, begun in todo:
            declared = bound.declared
            after = continued(declared.stream.window, arrivals, begun, partial=declared.partial)
            found = after.found.held()
            numbers = found.numbers() + own[_NUMBERED][wanted][found.key]
            tables.append(self._answers(bound, mine, arrivals, found, numbers))
            for name in _FIGURES:
                own[name][wanted] = getattr(after.begun, name)
            own[_NUMBERED][wanted] += np.bincount(found.key, minlength=len(wanted))
            own[_OWN][wanted] = after.begun.held
            still = np.maximum(still, after.begun.held)
        self._held.keep(column, column.starts[1:] - still, lines)
        yield tables

    def _together(self, came: pa.RecordBatch, marks: Array, until: int) -> list[pa.Table]:
        """Partitions of which one goes because of others: one row after another."""
        (bound,) = self._bounds
        held = self._held
        owner = held.keys.ordinals(partitions_of(came, self._shape))
        # Of one instant, partitions arrive in the order of their keys.
        known = held.keys.keys.columns
        ordered = all(is_ordered(column.type) for column in known)
        wanted = np.argsort(ranks(known)) if ordered else np.arange(len(held.keys))
        column = self._column(wanted, held.lines()[HELD], came, owner)
        arrivals = self._arrivals(bound, column, marks, self.watermark)
        start = None if self._saved is None else until
        recording = Recording(self._stream.window, partial=bound.declared.partial, start=start)
        if self._saved is not None:
            recording.load(self._saved, arrivals, dict(zip(wanted.tolist(), range(len(wanted)), strict=True)))
        recording.run(arrivals, column.new)
        table = self._answers(bound, column, arrivals, *recording.found())
        # Keys that have no subwindow any more are forgotten; the others are numbered anew.
        state = recording.save()
        live = [saved["partition"] for saved in state["subwindows"]]
        number = {partition: i for i, partition in enumerate(live)}
        for saved in state["subwindows"]:
            saved["partition"] = number[saved["partition"]]
        self._saved = state | {"order": [number[partition] for partition in state["order"]]}
        held.keep_only(column, recording.held(), np.array(live, np.int64))
        return [table]

    def _column(self, wanted: Array, held: Array, came: pa.RecordBatch, owner: Array) -> Column:
        ties = [came.column(f"tie{i}") for i in range(len(self._shape.ties))]
        order = in_order(owner, came.column(INSTANT).to_numpy(), [pa.chunked_array([tie]) for tie in ties])
        return self._held.column(wanted, held, came.take(pa.array(order)), owner[order])

    def _arrivals(self, bound: BoundAggregates, column: Column, marks: Array, end: int) -> Arrivals:
        deltas = [column.rows.column(f"delta{i}") for i in range(len(self._shape.deltas))]
        attributes = pa.table(deltas, names=list(self._stream.deltas))
        instants = column.rows.column(INSTANT).to_numpy()
        return arrivals_of(bound.declared.stream, attributes, instants, column.starts, end, marks)

    def _answers(
        self, bound: BoundAggregates, column: Column, arrivals: Arrivals, found: Processed, numbers: Array
    ) -> pa.Table:
        if not len(found):
            return bound.schema.empty_table()
        rows, known = column.rows, self._held.keys.keys.take(pa.array(column.keys))
        keys = known.columns if self._shape.keys else []
        groups = [one_zero(rows.column(f"group{i}")) for i in range(len(self._shape.groups))]
        arguments = {sql: rows.column(f"argument{i}") for i, sql in enumerate(bound.arguments)}
        return answer(bound, arrivals, found, numbers, keys, groups, arguments)
