"""Windows of rows in a stream, one part in one shard. Sessions are in ``sessions_shard``.

Rows wait for the watermark and then arrive in the order of their time, so that the windows are those of a table with
the same rows, in whatever order they came. The state holds the waiting rows, the rows that windows still hold, and
the progress of each key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from panes.aggregates.operations import Array
from panes.aggregates.ordering import is_ordered
from panes.engine.keys import INSTANT
from panes.engine.sorting import sort_rows, value_ranks
from panes.frames import Positions
from panes.frames.row_frame import Arrivals, KeyProgress
from panes.operators.policies import SlidingPolicies, WindowPolicies
from panes.queries.measures import Delta
from panes.row_windows.arrival import delta_values, marks_of
from panes.row_windows.bound_rows import RowInstances
from panes.row_windows.framing import Framing, leaves_out, moments_on_the_clock
from panes.row_windows.framing_by_operator import Recording
from panes.row_windows.key_set import MARK, KeySet, PartRows
from panes.row_windows.part_shard import PartShard
from panes.row_windows.window_input import WindowInput
from panes.state.blob_store import BlobStore
from panes.state.held_rows import HELD, KeyedColumn, KeyedRows, Waiting

_FIGURES = ("known", "opened", "received", "reference", "full")
_OWN, _NUMBERED = "own", "numbered"
"""For each key, the rows that a window holds, and the number of its answers so far."""

_AT_ONCE = 1 << 24
"""The largest number of windows on the clock that are answered together: their answers take about a gigabyte."""


class WindowShard(PartShard):
    """The windows of a part that are not sessions.

    Parameters
    ----------
    state
        The ``state`` after the last micro-batch.
    """

    reach = 1, 1

    def __init__(
        self, keys: KeySet, part: int, chosen: tuple[int, ...], blob_store: BlobStore, state: dict[str, Any]
    ) -> None:
        super().__init__(keys, part, chosen)
        self._waiting = Waiting(self._schema, blob_store, state)
        held = [f for f in self._schema if not f.name.startswith(("key", "tie")) and f.name != MARK]
        figures: dict[str, pa.DataType] = {}
        for number, input in enumerate(self._inputs):
            kinds = dict.fromkeys((*_FIGURES, _OWN, _NUMBERED), pa.int64()) | {"known": pa.bool_(), "full": pa.bool_()}
            kinds["reference"] = self._reference(input.window)
            figures |= {f"{name}{number}": kind for name, kind in kinds.items()}
        self._held = KeyedRows(self._sent.key_schema, pa.schema(held), figures, blob_store, state)
        self._saved: dict[str, Any] | None = state.get("saved")

    @property
    def state(self) -> dict[str, Any]:
        """What a manifest records."""
        return {**self._waiting.state, **self._held.state, "saved": self._saved}

    def _reference(self, window: WindowPolicies) -> pa.DataType:
        """Return the type of the values that a trigger by delta is measured in."""
        if not isinstance(window, SlidingPolicies) or not isinstance(window.trigger, Delta):
            return pa.int64()
        type_ = self._sent.deltas[self._bound.part.deltas.index(str(window.trigger.column))]
        return pa.float64() if pa.types.is_floating(type_) else pa.int64()

    def steps(
        self, rows: Sequence[PartRows], punctuations: Array, watermark: int
    ) -> Iterator[list[tuple[int, pa.Table]]]:
        """Insert the rows of a micro-batch, advance the watermark, and yield answers by window.

        In several steps if the watermark jumps over so many periods that their answers would not fit in memory.
        """
        until = self._waiting.watermark
        came = [some for mine in rows for some in mine.waiting(self._schema)]
        arrived, marks = self._waiting.pass_by(came, punctuations, watermark)
        ended = None
        if self._own.mark is not None:
            is_mark = arrived.column(MARK)
            ended = arrived.filter(is_mark)
            arrived = arrived.filter(pa.array(~is_mark.to_numpy(zero_copy_only=False)))
        timed = any(input.timed for input in self._inputs)
        metrics, held, waiting = self.metrics, self._held, self._waiting
        marked = len(marks) or (ended is not None and len(ended))
        if len(arrived) or marked or (timed and len(held.keys)):
            # The first rows may come long after the clock began.
            since = until if len(held.keys) or not len(arrived) else int(arrived.column(INSTANT).to_numpy().min())
            if self._inputs[0].together:
                yield self._together(arrived, marks, until)
            else:
                yield from self._apart(arrived, marks, ended, until, since, waiting.watermark)
        metrics.keys, metrics.granules = len(held.keys), len(held) + len(waiting)
        metrics.bytes = held.bytes + waiting.bytes

    def _apart(
        self, came: pa.RecordBatch, marks: Array, ended: pa.RecordBatch | None, until: int, since: int, end: int
    ) -> Iterator[list[tuple[int, pa.Table]]]:
        """Answer the windows of independent keys: all at once, or halving the time if there are too many answers.

        Parameters
        ----------
        marks, ended
            Marks for all keys, and rows that are marks of their own keys.
        until, end
            The clock runs from one to the other.
        since
            Nothing happens before this instant.
        """
        owner = self._held.keys.ordinals(self._sent.keys_of(came))
        marked = None if ended is None else self._held.keys.find(self._sent.keys_of(ended))
        # Without a clock, nothing happens to keys without new rows.
        everyone = len(marks) > 0 or any(input.timed for input in self._inputs)
        touched = owner if marked is None else np.append(owner, marked[marked >= 0])
        wanted = np.arange(len(self._held.keys)) if everyone else np.unique(touched)
        lines = self._held.lines()
        column = self._column(wanted, lines[HELD], came, owner)
        todo = list[tuple[WindowInput, dict[str, Array], KeyedColumn, Arrivals, KeyProgress]]()
        moments = 0.0
        for number, input in enumerate(self._inputs):
            own = {name: lines[f"{name}{number}"] for name in (*_FIGURES, _OWN, _NUMBERED)}
            mine = column.holding(own[_OWN][wanted])
            arrivals = self._arrivals(input, mine, marks, end)
            if ended is not None and marked is not None:
                instants = ended.column(INSTANT).to_numpy()
                arrivals = replace(arrivals, marks=marks_of(marked, instants, wanted))
            begun = KeyProgress(held=mine.held, until=until, **{name: own[name][wanted] for name in _FIGURES})
            todo.append((input, own, mine, arrivals, begun))
            moments += moments_on_the_clock(input.window, arrivals, begun)
        if moments > _AT_ONCE and end - since > 1 and ended is None:
            # Nothing has been changed so far.
            middle = (since + end) // 2
            first = came.column(INSTANT).to_numpy() < middle
            yield from self._apart(came.filter(pa.array(first)), marks[marks < middle], None, until, since, middle)
            yield from self._apart(came.filter(pa.array(~first)), marks[marks >= middle], None, middle, middle, end)
            return
        tables, still = [], np.zeros(len(wanted), np.int64)
        for number, (input, own, mine, arrivals, begun) in enumerate(todo):
            framing = Framing(input.window, arrivals, begun)
            found = framing.frame if leaves_out(input.window) else framing.frame.held()
            numbers = found.numbers() + own[_NUMBERED][wanted][found.key]
            tables.append(self._answers(number, mine.rows, RowInstances(arrivals, found, numbers, self._keys_of(mine))))
            after = framing.progress_after()
            for name in _FIGURES:
                own[name][wanted] = getattr(after, name)
            own[_NUMBERED][wanted] += np.bincount(found.key, minlength=len(wanted))
            own[_OWN][wanted] = after.held
            still = np.maximum(still, after.held)
        self._held.keep(column, column.starts[1:] - still, lines)
        yield tables

    def _together(self, came: pa.RecordBatch, marks: Array, until: int) -> list[tuple[int, pa.Table]]:
        """Answer the window of keys that evict each other, one row after another."""
        (input,), held = self._inputs, self._held
        owner = held.keys.ordinals(self._sent.keys_of(came))
        # Rows of one instant arrive in the order of their keys.
        known = held.keys.keys.columns
        ordered = all(is_ordered(column.type) for column in known)
        wanted = np.argsort(value_ranks(known)) if ordered else np.arange(len(held.keys))
        column = self._column(wanted, held.lines()[HELD], came, owner)
        arrivals = self._arrivals(input, column, marks, self._waiting.watermark)
        recording = Recording(input.window, start=None if self._saved is None else until)
        if self._saved is not None:
            recording.load(self._saved, arrivals, dict(zip(wanted.tolist(), range(len(wanted)), strict=True)))
        recording.run(arrivals, column.new)
        found = self._answers(0, column.rows, RowInstances(arrivals, *recording.frame(), self._keys_of(column)))
        # Keys without a subwindow are dropped; the others are renumbered.
        state = recording.save()
        live = [saved["partition"] for saved in state["subwindows"]]
        number = {partition: i for i, partition in enumerate(live)}
        for saved in state["subwindows"]:
            saved["partition"] = number[saved["partition"]]
        self._saved = state | {"order": [number[partition] for partition in state["order"]]}
        held.keep_only(column, recording.held(), np.array(live, np.int64))
        return [found]

    def _column(self, wanted: Array, held: Array, came: pa.RecordBatch, owner: Array) -> KeyedColumn:
        order = sort_rows(owner, came.column(INSTANT).to_numpy(), self._sent.ties_of(came))
        return self._held.column(wanted, held, came.take(pa.array(order)), owner[order])

    def _arrivals(self, input: WindowInput, column: KeyedColumn, marks: Array, end: int) -> Arrivals:
        rows = self._rows(column.rows)
        events = Positions.of_events(rows.instants, column.starts)
        return Arrivals(events, end, delta_values(input.window, rows.attributes), marks)

    def _keys_of(self, column: KeyedColumn) -> list[pa.Array]:
        known = self._held.keys.keys.take(pa.array(column.keys))
        return known.columns if self._sent.keys else []
