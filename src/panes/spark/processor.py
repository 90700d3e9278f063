"""What the stateful operator does: the steps of its shards, from rows to rows.

Executors import this module, so it imports nothing that only the driver needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import pyarrow as pa
from pyspark.sql import Row

from panes.aggregates.operations import Array
from panes.expressions.expression import Expression
from panes.spark.batches import batch_of, large_batches, parts_of
from panes.spark.naming import END, START, VIEW, key
from panes.spark.packing import EVENTS, READ, labels
from panes.spark.prefilter import Prefilter
from panes.state.blob_store import BlobStore, pack, unpack
from panes.state.granules import DeliveredPanes, unpack_panes
from panes.state.job import JobOptions, ShardMetrics, Store, ViewAnswers
from panes.state.shard import Shard

HIGHEST = ("open_windows", "watermark")
"""Metrics that are the highest of all shards, not the sum."""
FIGURES = (*READ, *(figure.name for figure in fields(ShardMetrics)), "watermark")
DATA = "data"
OUTPUT = ", ".join([f"{DATA} BINARY", *(f"{name} BIGINT" for name in FIGURES)])
"""Answers as packed batches, and a row of figures per shard."""

KIND, NAME, WINDOW_NAME, COVERAGE, DETAIL = (
    f"__panes_{name}" for name in ("kind", "name", "window_name", "coverage", "detail")
)
REMARKS = {KIND: pa.string(), NAME: pa.string(), WINDOW_NAME: pa.string(), COVERAGE: pa.float64(), DETAIL: pa.string()}
"""What answers carry beside, where a job has a catalogue."""

ANSWER, REFUSED, LATE = "answer", "refused", "late"

BLOB = 1 << 16
"""Bytes of packed answers in a row: Spark may put thousands of rows into one Arrow batch, whatever their size."""


@dataclass(frozen=True)
class Job:
    """What an operator runs.

    Parameters
    ----------
    keys, columns
        The key columns and the aggregate columns of all answers, with their types.
    instant
        The type of the bounds of windows.
    prefilter
        Which answers need not come out.
    """

    stores: tuple[Store, ...]
    options: JobOptions
    keys: Mapping[str, pa.DataType]
    columns: Mapping[str, pa.DataType]
    instant: pa.DataType
    prefilter: Prefilter

    def steps(self, blob_store: BlobStore) -> Steps:
        """The steps of the shards of one task."""
        return Steps(self, blob_store)

    @property
    def types(self) -> dict[str, pa.DataType]:
        """The columns of packed answers."""
        numbered = {key(i): type_ for i, type_ in enumerate(self.keys.values())}
        named = {VIEW: pa.int32(), START: self.instant, END: self.instant, **numbered, **self.columns}
        return named | (REMARKS if self.options.remarks else {})

    def batch(self, answered: ViewAnswers) -> pa.RecordBatch:
        """The answers of one view, with the columns of all."""
        names = {name.lower(): i for i, name in enumerate(self.stores[answered.store].keys.names)}
        known = answered.dictionary.keys
        keys = [
            known.column(names[name.lower()]) if name.lower() in names else pa.nulls(len(known), type_)
            for name, type_ in self.keys.items()
        ]
        number = -1
        if answered.number is not None:
            number = answered.number + sum(len(other.program.views) for other in self.stores[: answered.store])
        answers, coverage = answered.answers, answered.coverage
        wanted = self.prefilter.wanted(answered.view, answers, dict(zip(self.keys, keys, strict=True)))
        if wanted is not None:
            answers, coverage = answers.where(wanted), coverage[wanted]
        batch = batch_of(answered.view, number, answers, keys, self.columns, self.instant)
        if not self.options.remarks:
            return batch
        labelled = {KIND: ANSWER, NAME: answered.name, WINDOW_NAME: answered.view.window.name}
        remarks = {name: pa.repeat(pa.scalar(text, pa.string()), len(batch)) for name, text in labelled.items()}
        return self._filled({**_columns(batch), **remarks, COVERAGE: pa.array(coverage)}, len(batch))

    def remarks(self, kind: str, details: Sequence[str]) -> pa.RecordBatch:
        """Rows that are no answers: what was refused and why, or an event that came too late."""
        rows = len(details)
        numbers, kinds = pa.array([-1] * rows, pa.int32()), pa.repeat(kind, rows)
        return self._filled({VIEW: numbers, KIND: kinds, DETAIL: pa.array(details, pa.string())}, rows)

    def _filled(self, columns: Mapping[str, pa.Array], rows: int) -> pa.RecordBatch:
        arrays = [columns.get(name, pa.nulls(rows, type_)) for name, type_ in self.types.items()]
        return pa.RecordBatch.from_arrays(arrays, names=list(self.types))


@dataclass
class _Arrived:
    """What a micro-batch brings to a shard: panes by store, changes of the catalogue, events, and counts of events."""

    panes: list[tuple[int, DeliveredPanes]] = field(default_factory=list)
    changes: list[tuple[str, str]] = field(default_factory=list)
    events: list[pa.RecordBatch] = field(default_factory=list)
    read: Counter[str] = field(default_factory=Counter)

    def add(self, row: Row, stores: Sequence[Store]) -> None:
        if row.store == EVENTS:
            self.events.append(unpack(row.panes))
        elif row.panes is not None:
            program = stores[row.store].program
            self.panes.append((row.store, unpack_panes(row.keys, row.panes, program.components, program.edges)))
        elif row.change is not None:
            self.changes.append((row.place, row.change))
        else:
            self.read.update({name: row[name] for name in READ})

    @property
    def anything(self) -> bool:
        return bool(self.panes or self.changes or any(self.read.values()))


class Steps:
    """The steps of the shards of one task.

    Parameters
    ----------
    blob_store
        Where the shard that is called keeps its state.
    """

    def __init__(self, job: Job, blob_store: BlobStore) -> None:
        self._job, self._blob_store = job, blob_store
        self._stepped: set[Any] = set()
        self.began = False
        """Whether the last step was the first of its shard."""

    def with_rows(self, key: Any, rows: Iterator[Row], watermark: int) -> Iterator[Row]:
        """Panes came, changes of the catalogue, or a row that only says that there is a micro-batch."""
        arrived = _Arrived()
        for row in rows:
            arrived.add(row, self._job.stores)
        yield from self._step(key, arrived, watermark)

    def without(self, key: Any, watermark: int) -> Iterator[Row]:
        """The watermark has moved; rows may have come before, in the same micro-batch."""
        if tuple(key) not in self._stepped:
            yield from self._step(key, _Arrived(), watermark)

    def _step(self, key: Any, arrived: _Arrived, watermark: int) -> Iterator[Row]:
        self._stepped.add(tuple(key))
        job = self._job
        shard = Shard(job.stores, self._blob_store, job.options, _filter_keys)
        self.began = not shard.opened
        if shard.opened and not arrived.anything and watermark <= shard.watermark:
            return
        watermark = max(watermark, shard.watermark)
        late = [text for batch in arrived.events for text in _chosen(batch, shard.too_late(batch.column(0).to_numpy()))]
        # In the order of the catalogue, in whatever order they came.
        changes = [text for _, text in sorted(arrived.changes)]
        answers = (job.batch(answered) for answered in shard.step(arrived.panes, watermark, changes))
        for batch in large_batches(answers):
            for part in parts_of(batch, BLOB):
                yield row_of(data=pack(part))
        if shard.refused and key[0] == labels(1)[0]:
            # All shards refuse the same; the first one says so.
            yield row_of(data=pack(job.remarks(REFUSED, shard.refused)))
        if shard.failed:
            yield row_of(data=pack(job.remarks(REFUSED, shard.failed)))
        if late:
            yield row_of(data=pack(job.remarks(LATE, late)))
        yield row_of(watermark=watermark, **arrived.read, **asdict(shard.metrics))


def unpack_answers(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches of answers that shards have packed."""
    for batch in batches:
        packed = (unpack(data.as_py()).replace_schema_metadata(None) for data in batch.column(0))
        yield from large_batches(packed)


def _filter_keys(condition: Expression, keys: pa.RecordBatch) -> Array:
    # Loaded where a condition is: it brings the SQL parser with it.
    from panes.expressions.evaluate import evaluate, require_boolean

    require_boolean(condition, keys.schema)
    fulfilled: Array = evaluate(condition, pa.Table.from_batches([keys])).fill_null(False).to_numpy()
    return fulfilled


def _chosen(events: pa.RecordBatch, chosen: Array) -> list[str]:
    texts: list[str] = events.column(1).filter(pa.array(chosen)).to_pylist()
    return texts


def _columns(batch: pa.RecordBatch) -> dict[str, pa.Array]:
    return dict(zip(batch.schema.names, batch.columns, strict=True))


def row_of(**values: Any) -> Row:
    """A row that leaves the operator: packed answers, or figures."""
    return Row(**{name: values.get(name) for name in (DATA, *FIGURES)})
