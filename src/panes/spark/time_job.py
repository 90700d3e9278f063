"""What the shards of windows over time do: panes arrive, answers leave with the columns of all queries.

Workers import this module, so it imports nothing that only the driver needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate

import pyarrow as pa
from pyspark.sql import Row

from panes.aggregates.operations import Array
from panes.engine.keys import END, INSTANT, START
from panes.expressions.expression import Expression
from panes.spark.batches import batch_of
from panes.spark.naming import VIEW, key
from panes.spark.packing import EVENT, EVENTS, READ, TALLY
from panes.spark.prefilter import Prefilter
from panes.state.blob_store import BlobStore, unpack
from panes.state.granules import DeliveredPanes, unpack_panes
from panes.state.job import JobStore, ViewAnswers
from panes.state.shard import Shard
from panes.state.stream_options import StreamOptions

KIND, NAME, WINDOW_NAME, COVERAGE, DETAIL = (
    f"__panes_{name}" for name in ("kind", "name", "window_name", "coverage", "detail")
)
_LABELS = {KIND: pa.string(), NAME: pa.string(), WINDOW_NAME: pa.string(), COVERAGE: pa.float64(), DETAIL: pa.string()}
"""The columns in which rows say what they are, where not all of them are answers of declared queries."""

ANSWER, REFUSED, LATE = "answer", "refused", "late"


@dataclass(frozen=True)
class TimeJob:
    """What the shards of windows over time do.

    Parameters
    ----------
    keys, columns
        The key columns and the aggregate columns of all answers, with their types.
    instant
        The type of the bounds of windows.
    prefilter
        Drops answers that ``having`` would drop.
    """

    stores: tuple[JobStore, ...]
    options: StreamOptions
    keys: Mapping[str, pa.DataType]
    columns: Mapping[str, pa.DataType]
    instant: pa.DataType
    prefilter: Prefilter

    def open(self, blob_store: BlobStore) -> Shard:
        """Open a shard."""
        return Shard(self.stores, blob_store, self.options, _filter_keys)

    def collect(self, rows: Iterator[Row]) -> ArrivedPanes:
        """Collect what a micro-batch brings to a shard."""
        arrived = ArrivedPanes()
        for row in rows:
            arrived.add(row, self.stores)
        return arrived

    def answer(
        self, shard: Shard, arrived: ArrivedPanes, watermark: int, *, first: bool
    ) -> Iterator[Iterable[pa.RecordBatch]]:
        """Return the answers of a shard, then what was refused or came late."""
        # Files of the catalogue apply in the order of their names, in whatever order they arrive.
        changes = [text for _, text in sorted(arrived.changes)]
        yield map(self._batch, shard.step(arrived.panes, watermark, changes, arrived.tallies))
        late = [text for events in arrived.events for text in _late_texts(events, shard)]
        # Every shard refuses the same changes.
        refused = [*(shard.refused if first else ()), *shard.failed]
        others = ((REFUSED, refused), (LATE, [(None, text) for text in late]))
        yield from ([self._other(kind, details)] for kind, details in others if details)

    @cached_property
    def types(self) -> dict[str, pa.DataType]:
        """The columns of packed answers."""
        numbered = {key(i): type_ for i, type_ in enumerate(self.keys.values())}
        named = {VIEW: pa.int32(), START: self.instant, END: self.instant, **numbered, **self.columns}
        return named | (_LABELS if self.options.labelled else {})

    @cached_property
    def _first_views(self) -> list[int]:
        """The number of the first view of each store among those of all stores."""
        return list(accumulate((len(store.program.views) for store in self.stores), initial=0))

    def _batch(self, answered: ViewAnswers) -> pa.RecordBatch:
        """Return the answers of one view with the columns of all."""
        keys, answers, coverage = self._keys(answered), answered.answers, answered.coverage
        wanted = self.prefilter.wanted(answered.view, answers, keys)
        if wanted is not None:
            answers, coverage = answers.where(wanted), coverage[wanted]
        number = -1 if answered.number is None else self._first_views[answered.store] + answered.number
        batch = batch_of(answered.view, number, answers, list(keys.values()), self.columns, self.instant)
        if not self.options.labelled:
            return batch
        texts = {KIND: ANSWER, NAME: answered.name, WINDOW_NAME: answered.view.window.name}
        labels = {name: pa.repeat(pa.scalar(text, pa.string()), len(batch)) for name, text in texts.items()}
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        return self._filled({**columns, **labels, COVERAGE: pa.array(coverage)}, len(batch))

    def _keys(self, answered: ViewAnswers) -> dict[str, pa.Array]:
        """Return the key columns of all answers as the store of these has them; null where it lacks one."""
        known = answered.dictionary.keys
        own = {name.lower(): known.column(i) for i, name in enumerate(known.schema.names)}
        return {
            name: own[name.lower()] if name.lower() in own else pa.nulls(len(known), type_)
            for name, type_ in self.keys.items()
        }

    def _other(self, kind: str, details: Sequence[tuple[str | None, str]]) -> pa.RecordBatch:
        """Return rows that are not answers: what was refused and why, or events that came too late.

        Each detail comes with the name of the query that it is about, if there is one.
        """
        rows = len(details)
        numbers, kinds = pa.array([-1] * rows, pa.int32()), pa.repeat(kind, rows)
        names, texts = (pa.array(column, pa.string()) for column in zip(*details, strict=True))
        return self._filled({VIEW: numbers, KIND: kinds, NAME: names, DETAIL: texts}, rows)

    def _filled(self, columns: Mapping[str, pa.Array], rows: int) -> pa.RecordBatch:
        arrays = [columns.get(name, pa.nulls(rows, type_)) for name, type_ in self.types.items()]
        return pa.RecordBatch.from_arrays(arrays, names=list(self.types))


@dataclass
class ArrivedPanes:
    """What a micro-batch brings to a shard: panes by store, changes of the catalogue, whole events, tallies, counts."""

    panes: list[tuple[int, DeliveredPanes]] = field(default_factory=list)
    changes: list[tuple[str, str]] = field(default_factory=list)
    events: list[pa.RecordBatch] = field(default_factory=list)
    tallies: list[pa.RecordBatch] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, row: Row, stores: Sequence[JobStore]) -> None:
        """Add a row."""
        if row.store == EVENTS:
            self.events.append(unpack(row.panes))
        elif row.store == TALLY:
            self.tallies.append(unpack(row.panes))
            self._count(row)
        elif row.panes is not None:
            program = stores[row.store].program
            self.panes.append((row.store, unpack_panes(row.keys, row.panes, program.components, program.edges)))
        elif row.change is not None:
            self.changes.append((row.place, row.change))
        else:
            self._count(row)

    def _count(self, row: Row) -> None:
        self.counts.update({name: row[name] for name in READ})

    @property
    def anything(self) -> bool:
        """Whether it brings anything but empty counts."""
        return bool(self.panes or self.changes or self.events or any(self.counts.values()))


def _late_texts(events: pa.RecordBatch, shard: Shard) -> list[str]:
    """Return the events that are too late for some window, as text."""
    late = shard.too_late(events, events.column(INSTANT).to_numpy())
    found: list[str] = events.column(EVENT).filter(pa.array(late)).to_pylist()
    return found


def _filter_keys(condition: Expression, keys: pa.RecordBatch) -> Array:
    # Imported where a condition is: it brings the SQL parser with it.
    from panes.expressions.evaluate import evaluate, require_boolean

    require_boolean(condition, keys.schema)
    fulfilled: Array = evaluate(condition, pa.Table.from_batches([keys])).fill_null(False).to_numpy()
    return fulfilled
