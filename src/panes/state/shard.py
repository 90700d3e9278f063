"""One shard of a stream of windows over time: what it does in a micro-batch.

Start with :meth:`Shard.step`, which applies changes of the catalogue and counts late events, and
:meth:`Shard._step_store`, which answers, lets granules age and evicts keys. All windows of all queries are answered
from the granules of the shard. Spark shows an operator only the watermark of the present micro-batch, while its own
windows judge late rows by the previous one. So a shard remembers the last watermark it saw, and is called in every
micro-batch.

Configuration (``JobStore`` and ``StreamOptions``), logic (here) and state (``StoreState``, in
``store_state.py``) are types of their own; only the state is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
import pyarrow as pa

from panes.aggregates.operations import Array
from panes.engine.answer import Answers
from panes.engine.partials import SortedColumn
from panes.engine.program import Program, View, from_panes
from panes.expressions.expression import Expression
from panes.planning.granularity import Tier, worthwhile
from panes.queries.windows import Window
from panes.state.blob_store import BlobStore
from panes.state.granules import DeliveredPanes, GranuleRows, column_of, settle
from panes.state.job import JobStore, ShardMetrics, ViewAnswers
from panes.state.key_eviction import keys_to_evict
from panes.state.manifest import encode_manifest, entries_of, identity, read_manifest
from panes.state.registered_queries import KeyFilter, Refusal, RegisteredQuery, Registry, evaluate_keys
from panes.state.runs import ALWAYS
from panes.state.store_state import StoreState, blobs_of
from panes.state.stream_options import StreamOptions
from panes.state.tally import conditions_of, count_late, lateness_of, panes_are_tally, tally_of
from panes.state.watermark import (
    EPOCH,
    NEVER,
    answer_due,
    answer_touched,
    due_from,
    open_from,
    open_instances,
)
from panes.timeline import Edges, Geometry

_LEAST = 1e-12
"""An instance with less coverage than this was not seen at all."""


@dataclass(frozen=True)
class _Label:
    """The number of a declared view, or the name of a registered query and its condition on keys."""

    number: int | None = None
    name: str | None = None
    keys: Expression | None = None


@dataclass(frozen=True)
class _Group:
    """Views that see everything since one instant, as one program, with a label each."""

    program: Program
    since: int
    labels: tuple[_Label, ...]

    def visible(self, rows: GranuleRows) -> GranuleRows:
        """Return the rows that the views see completely."""
        return rows if self.since == ALWAYS else rows.where(rows.start >= self.since)


@dataclass(frozen=True)
class _StoreStep:
    """One store in one micro-batch.

    Parameters
    ----------
    groups
        All views to answer.
    after, upto
        The previous watermark, and this one.
    """

    number: int
    state: StoreState
    groups: Sequence[_Group]
    after: int
    upto: int

    @cached_property
    def windows(self) -> frozenset[Geometry]:
        """The lifespans of all windows."""
        declared = self.state.store.lifespans
        registered = (
            group.program.views[i].window.lifespan
            for group in self.groups
            for i, label in enumerate(group.labels)
            if label.number is None
        )
        return frozenset((*declared, *registered))

    @cached_property
    def tiers(self) -> tuple[Tier, ...]:
        """The tiers along which granules age."""
        store = self.state.store
        return _tiers(self.windows, store.program.edges, store.history, store.has_ticks)

    @cached_property
    def cuts(self) -> list[int]:
        """Instants that no granule may span: what a window sees must not be merged with what it does not see."""
        return sorted({group.since for group in self.groups} - {ALWAYS})

    def settled(self, parts: Sequence[GranuleRows]) -> GranuleRows:
        """Return rows as they are held under the previous watermark."""
        components = self.state.store.program.components
        return settle(GranuleRows.concat(parts, components), components, self.tiers, self.after, self.cuts)

    def column(self, rows: GranuleRows) -> SortedColumn:
        """Return settled rows as a column that windows can be answered from."""
        return column_of(self.state.store.program.components, rows, len(self.state.dictionary))

    def due(self, news: GranuleRows) -> Iterator[tuple[_Group, Answers]]:
        """Answer the instances that the watermark completes."""
        first = due_from(self.windows, self.after, self.upto)
        if first == NEVER:
            return
        # Where empty instances are answered, every key that is held has some.
        first = ALWAYS if self.state.store.program.emit_all else first
        rows = self.settled([self.state.runs.starting_from(first), news])
        for group in self.groups:
            for answers in answer_due(group.program, self.column(group.visible(rows)), self.after, self.upto):
                yield group, answers

    def changed(self, news: GranuleRows) -> Iterator[tuple[_Group, Answers]]:
        """Answer the open instances that the new rows change."""
        first = open_from(self.windows, news.start, self.after)
        if first == NEVER:
            return
        rows, touched = self.settled([self.state.runs.starting_from(first), news]), self.column(news)
        for group in self.groups:
            for answers in answer_touched(group.program, self.column(group.visible(rows)), touched, self.after):
                yield group, answers

    def unfinished(self, evicted: Array) -> Iterator[tuple[_Group, Answers]]:
        """Answer the open instances of keys that are being evicted."""
        held = self.state.runs.starting_from(ALWAYS)
        rows = settle(held.where(evicted[held.key]), self.state.store.program.components, (), None)
        for group in self.groups:
            program = replace(group.program, emit_all=False)
            for answers in answer_due(program, self.column(group.visible(rows)), self.upto, NEVER // 2):
                yield group, answers


class Shard:
    """The stores of one shard, as the last micro-batch left them.

    Parameters
    ----------
    filter_keys
        Evaluates conditions of registered queries on keys.

    Attributes
    ----------
    refused
        Changes that no shard accepts, with the reasons.
    failed
        Conditions that failed on keys of this shard.
    """

    def __init__(
        self, stores: Sequence[JobStore], blob_store: BlobStore, options: StreamOptions, filter_keys: KeyFilter
    ) -> None:
        self._blob_store, self._options, self._filter_keys = blob_store, options, filter_keys
        manifest = read_manifest(blob_store.manifest(), stores, options)
        self.opened = bool(manifest)
        self.watermark: int = manifest.get("watermark", EPOCH)
        self._before = self.watermark
        entries = entries_of(manifest)
        self._states = [StoreState.read(store, blob_store, entries.pop(identity(store), {})) for store in stores]
        self._unused_entries = list(entries.values())
        declared = frozenset(query.name for store in stores for query, _, _ in store.offer.queries)
        offers = [store.offer for store in stores]
        self._registry = Registry(offers, declared, manifest.get("views", {}), self._admit)
        self.refused: list[Refusal] = self._registry.unserved
        self.failed: list[Refusal] = []
        self.metrics = ShardMetrics()
        self._count_held()

    def has_work(self, watermark: int) -> bool:
        """Return whether a micro-batch that brings nothing but a watermark changes anything.

        State of queries that this run does not have goes at once: a later run must not take it for complete.
        """
        return watermark > self.watermark or bool(self._unused_entries)

    def step(
        self,
        delivered: Sequence[tuple[int, DeliveredPanes]],
        watermark: int,
        changes: Sequence[str] = (),
        tallies: Sequence[pa.RecordBatch] = (),
    ) -> Iterator[ViewAnswers]:
        """Take in what a micro-batch brings, and answer what is due or changed.

        Parameters
        ----------
        delivered
            Panes, each with the number of its store.
        changes
            Entries of the catalogue.
        tallies
            The events of all shards, which one of the shards gets and counts as late and lost; not where panes
            are counted.
        """
        self.metrics = ShardMetrics()
        self.refused += [refusal for text in changes if (refusal := self._registry.change(text)) is not None]
        self._before = self.watermark
        if panes_are_tally([state.store for state in self._states]):
            tallies = [tally_of(some.panes.start, some.events) for _, some in delivered if some.events is not None]
        for tally in tallies:
            late, lost = count_late(self._windows(), tally, self._before)
            self.metrics.late, self.metrics.lost = self.metrics.late + late, self.metrics.lost + lost
        for number, state in enumerate(self._states):
            step = _StoreStep(number, state, self._groups(number, state), self.watermark, watermark)
            for answers in self._step_store(step, [panes for store, panes in delivered if store == number]):
                self.metrics.answers += len(answers.answers.start)
                yield answers
        self.watermark = watermark
        self._count_held()
        self._remove_unused_stores()
        self._write()

    def too_late(self, events: pa.RecordBatch, instants: Array) -> Array:
        """Return which events of the last micro-batch were late, as its metrics count them.

        Parameters
        ----------
        events
            Rows with the columns that say which conditions they pass.
        """
        return lateness_of(self._windows(), events, instants, self._before)[0]

    def _windows(self) -> list[set[Window]]:
        """Return for each declared condition the windows of all queries that have it, registered ones too."""
        conditions = conditions_of([state.store for state in self._states])
        windows = {condition: set[Window]() for condition in conditions}
        for state in self._states:
            for query, _, _ in state.store.offer.queries:
                windows[query.where] |= set(query.windows)
        for registered, _ in self._registry.active.values():
            # Conditions on keys are not asked: the tally has no keys.
            windows[registered.where] |= {view.window for view in registered.views}
        return list(windows.values())

    def _admit(self, query: RegisteredQuery) -> dict[str, int]:
        """Return the instant since which each window of a query that is registered now sees everything."""
        state = self._states[query.store]
        if query.keys is not None:
            self._filter_keys(query.keys, state.dictionary.keys.slice(0, 0))
        return {str(view.window.lifespan): state.sees_from(view.window.lifespan) for view in query.views}

    def _groups(self, number: int, state: StoreState) -> list[_Group]:
        """Group all views of a store by the instant since which they see everything."""
        program, declared = state.store.program, state.declared_since()
        groups: dict[int, list[tuple[View, _Label]]] = {}

        def add(view: View, lifespan: Geometry, since: int, label: _Label) -> None:
            # What was missed does not matter once all open instances start later.
            matters = since > self.watermark - lifespan.range
            groups.setdefault(since if matters else ALWAYS, []).append((view, label))

        for i, view in enumerate(program.views):
            add(view, state.store.lifespans[i], declared[i], _Label(i))
        for query, instants in self._registry.active.values():
            for view in query.views if query.store == number else ():
                lifespan = view.window.lifespan
                add(view, lifespan, instants[str(lifespan)], _Label(name=query.name, keys=query.keys))
        return [
            _Group(from_panes([view for view, _ in views], program), since, tuple(label for _, label in views))
            for since, views in groups.items()
        ]

    def _step_store(self, step: _StoreStep, delivered: list[DeliveredPanes]) -> Iterator[ViewAnswers]:
        """Answer, let the granules age, and evict."""
        state = step.state
        news = step.settled(state.receive(delivered, step.after - step.tiers[-1].reach))
        found = step.changed(news) if self._options.mode == "update" else step.due(news)
        for group, answers in found:
            yield from self._labelled(step, group, answers)
        state.add(news, step.tiers, step.upto, step.cuts)
        yield from self._evict(step)
        state.remove_unused_keys()

    def _evict(self, step: _StoreStep) -> Iterator[ViewAnswers]:
        """Evict keys beyond the limits; their open instances come out with what was seen of them."""
        state, limits = step.state, self._options.limits
        if limits is None:
            return
        limits = limits.shared_by(self._options.shards)
        evicted = keys_to_evict(state.runs, len(state.dictionary), limits, state.evictions, step.upto)
        if evicted is None:
            return
        if self._options.partial and self._options.mode == "append":
            for group, answers in step.unfinished(evicted):
                yield from self._labelled(step, group, answers, seen_until=step.upto)
        state.evict(evicted)
        self.metrics.evicted += int(evicted.sum())

    def _labelled(
        self, step: _StoreStep, group: _Group, answers: Answers, seen_until: int = NEVER
    ) -> Iterator[ViewAnswers]:
        """Label answers, and leave out those that must not come out."""
        state, view, label = step.state, group.program.views[answers.view], group.labels[answers.view]
        coverage = _coverage(view, answers, np.maximum(state.evictions.since(answers.key), group.since), seen_until)
        # What is evicted comes out however little of it was seen: it will not come again.
        keep = coverage >= (0 if seen_until < NEVER else _LEAST) if self._options.partial else coverage >= 1
        if label.keys is not None:
            fulfilled, failure = evaluate_keys(self._filter_keys, label.keys, state.dictionary.keys)
            keep = keep & fulfilled[answers.key]
            self.failed += [] if failure is None else [Refusal(label.name, f"{label.name}: {failure}")]
        if keep.any():
            kept, dictionary = answers.where(keep), state.dictionary
            yield ViewAnswers(step.number, view, label.number, label.name, kept, dictionary, coverage[keep])

    def _count_held(self) -> None:
        """Count what is held, also for a shard that has nothing to do in a micro-batch."""
        metrics, states = self.metrics, self._states
        metrics.keys = sum(len(state.dictionary) for state in states)
        metrics.granules = sum(state.runs.rows for state in states)
        metrics.bytes = sum(state.runs.size for state in states)
        metrics.open_windows = sum(self._open_windows(number, state) for number, state in enumerate(states))

    def _open_windows(self, number: int, state: StoreState) -> int:
        runs = state.runs.listed
        if not runs:
            return 0
        first, last = min(run.first for run in runs), max(run.last for run in runs)
        views = list(state.store.program.views)
        for query, _ in self._registry.active.values():
            views += query.views if query.store == number else ()
        # A window with an answer per event has open events, not open instances.
        geometries = {view.window.geometry for view in views if not view.window.per_event}
        return open_instances(geometries, last, max(self.watermark, first))

    def _remove_unused_stores(self) -> None:
        """Remove the state of queries that this run does not have."""
        for entry in self._unused_entries:
            for name in blobs_of(entry):
                self._blob_store.remove(name)
        self._unused_entries = []

    def _write(self) -> None:
        manifest = {
            "mode": self._options.mode,
            "shards": self._options.shards,
            "watermark": self.watermark,
            "stores": [state.to_json() for state in self._states],
            "views": self._registry.listed,
        }
        self._blob_store.write_manifest(encode_manifest(manifest))


def _coverage(view: View, answers: Answers, since: Array, seen_until: int) -> Array:
    """Return which part of each instance was seen."""
    end = answers.start + view.window.geometry.range
    begin = view.window.begins(answers.start)
    coverage: Array = np.maximum(np.minimum(end, seen_until) - np.maximum(begin, since), 0) / (end - begin)
    return coverage


@lru_cache(maxsize=64)
def _tiers(windows: frozenset[Geometry], edges: tuple[Edges, ...], history: int, ticks: bool) -> tuple[Tier, ...]:
    """Return the tiers along which granules age under some windows.

    Parameters
    ----------
    history
        How long granules stay as fine as they are, in µs.
    ticks
        Whether a component needs them as fine as they are for ever.
    """
    tiers = worthwhile(windows, edges)
    if ticks:
        return (Tier(edges, max(history, tiers[-1].reach)),)
    if not history:
        return tiers
    older = tuple(tier for tier in tiers if tier.reach > history)
    return older if older and older[0].edges == edges else (Tier(edges, history), *older)
