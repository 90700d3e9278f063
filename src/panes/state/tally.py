"""Which events came, by what decides whether they are late: when, and which queries count them.

Stores with different keys get panes of the same event, and none of them can tell whether another one has counted it.
So each task tallies its events once, without their keys (:func:`tallied`), and one shard gets the tally. There
:func:`lateness_of` compares it with the windows of all queries. Where all queries share a store and a condition, the
panes themselves are a tally (:func:`panes_are_tally`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np
import pyarrow as pa

from panes.aggregates.operations import Array
from panes.engine.partials import floor_to_edges
from panes.expressions.expression import Expression
from panes.queries.windows import Window
from panes.state.job import JobStore
from panes.state.watermark import lateness
from panes.timeline import Edges

_START, _EVENTS = "start", "events"
_INSTANTS = (Edges(1),)


def conditions_of(stores: Iterable[JobStore]) -> tuple[Expression | None, ...]:
    """Return the distinct conditions of declared queries; None stands for all events."""
    return tuple(dict.fromkeys(query.where for store in stores for query, _, _ in store.offer.queries))


def panes_are_tally(stores: Sequence[JobStore]) -> bool:
    """Return whether every event is in one pane, which all queries count, so that nothing else has to travel."""
    return len(stores) == 1 and len(conditions_of(stores)) <= 1


def passing(number: int) -> str:
    """Return the name of the column that says which events pass a condition; without it, all do."""
    return f"passes{number}"


def tally_of(start: Array, events: Array, passed: Sequence[pa.Array | None] = ()) -> pa.RecordBatch:
    """Return a tally.

    Parameters
    ----------
    start, events
        An instant, and how many events are tallied there.
    passed
        For each condition whether these pass it; None if all events do.
    """
    flags = {passing(i): some for i, some in enumerate(passed) if some is not None}
    return pa.RecordBatch.from_pydict({_START: pa.array(start), **flags, _EVENTS: pa.array(events, pa.int64())})


def tallied(edges: tuple[Edges, ...], instants: Array, passed: Sequence[pa.Array | None]) -> pa.RecordBatch:
    """Count events by the last edge before them and by the conditions that they pass.

    Parameters
    ----------
    edges
        Those of all windows: events between two of them are in the same windows.

    Examples
    --------
    >>> tallied((Edges(10),), np.array([5, 12, 17, 19]), [None, pa.array([True, False, True, False])]).to_pydict()
    {'start': [0, 10, 10], 'passes1': [True, False, True], 'events': [1, 2, 1]}
    """
    return merged(edges, [tally_of(floor_to_edges(edges, instants), np.ones(len(instants), np.int64), passed)])


def merged(edges: tuple[Edges, ...], tallies: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return several tallies, at least one, as one."""
    tally = pa.Table.from_batches(tallies)
    if edges != _INSTANTS:  # of which there are about as many as events
        names = [name for name in tally.column_names if name != _EVENTS]
        added = tally.group_by(names, use_threads=False).aggregate([(_EVENTS, "sum")])
        tally = added.rename_columns([*names, _EVENTS])
    return tally.combine_chunks().to_batches()[0]


def count_late(windows: Sequence[Collection[Window]], tally: pa.RecordBatch, watermark: int) -> tuple[int, int]:
    """Return how many events of a tally are late and lost, as :func:`lateness_of` says.

    Examples
    --------
    >>> import panes as pn
    >>> came = tally_of(np.array([0, 50, 60]), np.array([1, 1, 1]))
    >>> windows = [[pn.tumbling("10us"), pn.tumbling("50us"), pn.tumbling("100us")]]
    >>> count_late(windows, came, watermark=60), count_late(windows, came, watermark=100)
    ((2, 0), (3, 3))
    """
    late, lost = lateness_of(windows, tally, tally.column(_START).to_numpy(), watermark)
    events = tally.column(_EVENTS).to_numpy()
    return int(events[late].sum()), int(events[lost].sum())


def lateness_of(
    windows: Sequence[Collection[Window]], events: pa.RecordBatch, instants: Array, watermark: int
) -> tuple[Array, Array]:
    """Return which events are late, and which are lost.

    Late ones came after the watermark had passed a window of some query that counts them, lost ones after it had
    passed all windows of all queries that do.

    Parameters
    ----------
    windows
        For each condition, the windows of the queries that have it.
    events
        Rows with the columns that :func:`passing` names.
    """
    late, in_time = np.zeros(len(events), np.bool_), np.zeros(len(events), np.bool_)
    for number, some in enumerate(windows):
        missed, joined = lateness(some, instants, watermark)
        if passing(number) in events.schema.names:
            passed = events.column(passing(number)).to_numpy(zero_copy_only=False)
            missed, joined = missed & passed, joined & passed
        late, in_time = late | missed, in_time | joined
    return late, late & ~in_time
