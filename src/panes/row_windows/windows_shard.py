"""Windows by rows of one part while rows come, from micro-batch to micro-batch; sessions have a chapter of their own.

Rows wait until the watermark has passed them and arrive in the order of their time, so that however they came, the
windows are those of a table with the same rows. The state holds the rows that windows still hold, a line for each key,
and the rows that wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from panes.aggregates.operations import Array
from panes.aggregates.ordering import is_ordered
from panes.engine.keys import one_zero
from panes.engine.sorting import sort_rows, value_ranks
from panes.frames import Positions
from panes.frames.row_frame import Arrivals, Progress, RowFrame
from panes.operators.policies import SlidingPolicies, WindowPolicies
from panes.queries.measures import Delta
from panes.row_windows.arrival import delta_values, marks_of
from panes.row_windows.bound_rows import BoundRows
from panes.row_windows.framing import Framing, leaves_out, moments_on_the_clock
from panes.row_windows.framing_by_events import Recording
from panes.row_windows.key_set import KeySet, PartRows, Shape
from panes.row_windows.window_input import WindowInput
from panes.state.blob_store import BlobStore
from panes.state.held_rows import HELD, INSTANT, Column, KeyedRows, Waiting
from panes.state.job import ShardMetrics

_ONE = pa.schema([("everything", pa.int32())])
"""The key of a window that has none."""

_FIGURES = ("known", "opened", "received", "reference", "full")
_OWN, _NUMBERED = "own", "numbered"
"""How many rows of a key a window holds, and how many times it was answered."""

_AT_ONCE = 1 << 24
"""Windows on the clock that are answered together: their answers take about a gigabyte."""

MARK = "mark"
"""The column of waiting rows that says whether one is a mark of its key."""


def keys_schema(shape: Shape) -> pa.Schema:
    """The columns of keys; there is always one."""
    return pa.schema([(f"key{i}", type_) for i, type_ in enumerate(shape.keys)]) if shape.keys else _ONE


def keys_of(rows: pa.RecordBatch, shape: Shape) -> pa.RecordBatch:
    """The keys of rows."""
    schema = keys_schema(shape)
    if not shape.keys:
        return pa.RecordBatch.from_arrays([pa.array(np.zeros(len(rows), np.int32))], schema=schema)
    return pa.RecordBatch.from_arrays([one_zero(rows.column(name)) for name in schema.names], schema=schema)


def waiting_schema(keys: KeySet, part: int) -> pa.Schema:
    """The columns of rows of a part that wait: what travels, less what only others need."""
    own, schema = keys.own[part], keys.shape.schema
    arguments = {f"argument{i}" for i in own.arguments}
    groups = {f"group{i}" for i in own.groups}
    kept = [
        field
        for field in schema
        if not field.name.startswith(("argument", "group", "flag")) or field.name in arguments | groups
    ]
    return pa.schema([*kept, (MARK, pa.bool_())] if own.mark is not None else kept)


def waiting_rows(mine: PartRows, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Rows of a part, and its marks, as they wait."""
    for rows, is_mark in ((mine.rows, False), (mine.marks, True)):
        if rows is None or not len(rows):
            continue
        columns = [
            pa.array(np.full(len(rows), is_mark)) if field.name == MARK else rows.column(field.name) for field in schema
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


class WindowedShard:
    """The windows of some keys, as the last micro-batch left them.

    Parameters
    ----------
    part, chosen
        Which part of the key set it is, and which of its windows these are.
    state
        What ``state`` was.
    """

    def __init__(
        self, keys: KeySet, part: int, chosen: tuple[int, ...], blob_store: BlobStore, state: dict[str, Any]
    ) -> None:
        self._bound, self._shape, self._own = keys.bounds[part], keys.shape, keys.own[part]
        self._chosen = chosen
        self._streams = [self._bound.part.streams[i] for i in chosen]
        self.reach = 1, 1
        """A row that came so many µs behind the watermark is too late for some window, and for all."""
        self.metrics = ShardMetrics()
        self._schema = waiting_schema(keys, part)
        self._waiting = Waiting(self._schema, blob_store, state)
        held = [f for f in self._schema if not f.name.startswith(("key", "tie")) and f.name != MARK]
        figures: dict[str, pa.DataType] = {}
        for number, stream in enumerate(self._streams):
            kinds = dict.fromkeys((*_FIGURES, _OWN, _NUMBERED), pa.int64()) | {"known": pa.bool_(), "full": pa.bool_()}
            kinds["reference"] = self._reference(stream.window)
            figures |= {f"{name}{number}": kind for name, kind in kinds.items()}
        self._held = KeyedRows(keys_schema(self._shape), pa.schema(held), figures, blob_store, state)
        self._saved: dict[str, Any] | None = state.get("saved")

    @property
    def state(self) -> dict[str, Any]:
        """For a manifest."""
        return {**self._waiting.state, **self._held.state, "saved": self._saved}

    def _reference(self, window: WindowPolicies) -> pa.DataType:
        """The type of the values that triggers by delta go by."""
        if not isinstance(window, SlidingPolicies) or not isinstance(window.trigger, Delta):
            return pa.int64()
        type_ = self._shape.deltas[self._bound.part.deltas.index(str(window.trigger.column))]
        return pa.float64() if pa.types.is_floating(type_) else pa.int64()

    def steps(
        self, rows: Sequence[PartRows], punctuations: Array, watermark: int
    ) -> Iterator[list[tuple[int, pa.Table]]]:
        """Take in the rows of a micro-batch and let the watermark pass: answers piece by piece, all to be taken.

        A watermark may jump over more periods than there is room for answers, for every key there is.
        """
        until = self._waiting.watermark
        came = [some for mine in rows for some in waiting_rows(mine, self._schema)]
        arrived, marks = self._waiting.pass_by(came, punctuations, watermark)
        ended = None
        if self._own.mark is not None:
            is_mark = arrived.column(MARK)
            ended = arrived.filter(is_mark)
            arrived = arrived.filter(pa.array(~is_mark.to_numpy(zero_copy_only=False)))
        timed = any(stream.timed for stream in self._streams)
        metrics, held, waiting = self.metrics, self._held, self._waiting
        many = len(marks) or (ended is not None and len(ended))
        if len(arrived) or many or (timed and len(held.keys)):
            # The first rows of all may have come long after the clock began.
            since = until if len(held.keys) or not len(arrived) else int(arrived.column(INSTANT).to_numpy().min())
            if self._streams[0].together:
                yield self._together(arrived, marks, until)
            else:
                yield from self._apart(arrived, marks, ended, until, since, waiting.watermark)
        metrics.keys, metrics.granules = len(held.keys), len(held) + len(waiting)
        metrics.bytes = held.bytes + waiting.bytes

    def _apart(
        self, came: pa.RecordBatch, marks: Array, ended: pa.RecordBatch | None, until: int, since: int, end: int
    ) -> Iterator[list[tuple[int, pa.Table]]]:
        """Keys that know nothing of each other: all at once, or in halves of a time that is too long for that.

        Parameters
        ----------
        marks, ended
            Marks for all keys, and rows that are marks of their own.
        until, end
            How far the clock had run, and how far it runs.
        since
            Before this, nothing happens.
        """
        owner = self._held.keys.ordinals(keys_of(came, self._shape))
        marked = None if ended is None else self._held.keys.find(keys_of(ended, self._shape))
        # Without a clock, nothing happens to keys for which no row came.
        everyone = len(marks) > 0 or any(stream.timed for stream in self._streams)
        touched = owner if marked is None else np.append(owner, marked[marked >= 0])
        wanted = np.arange(len(self._held.keys)) if everyone else np.unique(touched)
        lines = self._held.lines()
        column = self._column(wanted, lines[HELD], came, owner)
        todo = list[tuple[WindowInput, dict[str, Array], Column, Arrivals, Progress]]()
        moments = 0.0
        for number, stream in enumerate(self._streams):
            own = {name: lines[f"{name}{number}"] for name in (*_FIGURES, _OWN, _NUMBERED)}
            mine = column.holding(own[_OWN][wanted])
            arrivals = self._arrivals(stream, mine, marks, end)
            if ended is not None and marked is not None:
                instants = ended.column(INSTANT).to_numpy()
                arrivals = replace(arrivals, marks=marks_of(marked, instants, wanted))
            begun = Progress(held=mine.held, until=until, **{name: own[name][wanted] for name in _FIGURES})
            todo.append((stream, own, mine, arrivals, begun))
            moments += moments_on_the_clock(stream.window, arrivals, begun)
        if moments > _AT_ONCE and end - since > 1 and ended is None:
            # Nothing has changed yet.
            middle = (since + end) // 2
            first = came.column(INSTANT).to_numpy() < middle
            yield from self._apart(came.filter(pa.array(first)), marks[marks < middle], None, until, since, middle)
            yield from self._apart(came.filter(pa.array(~first)), marks[marks >= middle], None, middle, middle, end)
            return
        tables, still = [], np.zeros(len(wanted), np.int64)
        for number, (stream, own, mine, arrivals, begun) in enumerate(todo):
            framing = Framing(stream.window, arrivals, begun)
            found = framing.frame if leaves_out(stream.window) else framing.frame.held()
            numbers = found.numbers() + own[_NUMBERED][wanted][found.key]
            tables.append((self._chosen[number], self._answers(number, mine, arrivals, found, numbers)))
            after = framing.progress_after()
            for name in _FIGURES:
                own[name][wanted] = getattr(after, name)
            own[_NUMBERED][wanted] += np.bincount(found.key, minlength=len(wanted))
            own[_OWN][wanted] = after.held
            still = np.maximum(still, after.held)
        self._held.keep(column, column.starts[1:] - still, lines)
        yield tables

    def _together(self, came: pa.RecordBatch, marks: Array, until: int) -> list[tuple[int, pa.Table]]:
        """Keys of which one goes because of others: one row after another."""
        (stream,), held = self._streams, self._held
        owner = held.keys.ordinals(keys_of(came, self._shape))
        # Of one instant, keys arrive in their order.
        known = held.keys.keys.columns
        ordered = all(is_ordered(column.type) for column in known)
        wanted = np.argsort(value_ranks(known)) if ordered else np.arange(len(held.keys))
        column = self._column(wanted, held.lines()[HELD], came, owner)
        arrivals = self._arrivals(stream, column, marks, self._waiting.watermark)
        recording = Recording(stream.window, start=None if self._saved is None else until)
        if self._saved is not None:
            recording.load(self._saved, arrivals, dict(zip(wanted.tolist(), range(len(wanted)), strict=True)))
        recording.run(arrivals, column.new)
        table = self._answers(0, column, arrivals, *recording.frame())
        # Keys that have no subwindow any more are forgotten; the others are numbered anew.
        state = recording.save()
        live = [saved["partition"] for saved in state["subwindows"]]
        number = {partition: i for i, partition in enumerate(live)}
        for saved in state["subwindows"]:
            saved["partition"] = number[saved["partition"]]
        self._saved = state | {"order": [number[partition] for partition in state["order"]]}
        held.keep_only(column, recording.held(), np.array(live, np.int64))
        return [(self._chosen[0], table)]

    def _column(self, wanted: Array, held: Array, came: pa.RecordBatch, owner: Array) -> Column:
        ties = [came.column(f"tie{i}") for i in range(len(self._shape.ties))]
        order = sort_rows(owner, came.column(INSTANT).to_numpy(), [pa.chunked_array([tie]) for tie in ties])
        return self._held.column(wanted, held, came.take(pa.array(order)), owner[order])

    def _arrivals(self, stream: WindowInput, column: Column, marks: Array, end: int) -> Arrivals:
        names = self._bound.part.deltas
        deltas = pa.table([column.rows.column(f"delta{i}") for i in range(len(names))], names=list(names))
        instants = column.rows.column(INSTANT).to_numpy()
        events = Positions.of_events(instants, column.starts)
        return Arrivals(events, end, delta_values(stream.window, deltas), marks)

    def _answers(self, number: int, column: Column, arrivals: Arrivals, found: RowFrame, numbers: Array) -> pa.Table:
        known = self._held.keys.keys.take(pa.array(column.keys))
        keys = known.columns if self._shape.keys else []
        return answers_of(self._bound, self._own, self._chosen[number], column.rows, arrivals, found, numbers, keys)


def answers_of(
    bound: BoundRows,
    own: Any,
    window: int,
    rows: pa.RecordBatch,
    arrivals: Arrivals,
    found: RowFrame,
    numbers: Array,
    keys: Sequence[pa.Array],
) -> pa.Table:
    """The answers of a window over rows that are held."""
    if not len(found):
        return bound.answers.empty_table()
    groups = [one_zero(rows.column(f"group{i}")) for i in own.groups]
    arguments = {sql: rows.column(f"argument{i}") for sql, i in zip(bound.arguments, own.arguments, strict=True)}
    return bound.answer(window, arrivals, found, numbers, keys, groups, arguments)
