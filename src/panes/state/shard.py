"""One shard of a stream: what it does in a micro-batch.

All windows of all queries are answered here, from granules that the shard keeps in a blob store. Spark shows an
operator the watermark of this micro-batch only, while its own windows tell late rows by the watermark of the one
before; so a shard remembers the last watermark it saw, and is called in every micro-batch.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from panes.aggregates.operations import Array
from panes.engine.answer import Answers
from panes.engine.program import Program, View, from_panes
from panes.expressions.expression import Expression
from panes.planning.granularity import Tier, worthwhile
from panes.planning.window_classes import WindowManager
from panes.state.blob_store import BlobStore
from panes.state.blobs import FORMAT
from panes.state.granules import GranuleRows, answer_due, answer_touched, level_of, settled
from panes.state.history import ALWAYS
from panes.state.job import Figures, JobOptions, Store, ViewAnswers
from panes.state.limits import Bounds, overdue
from panes.state.manifest import Manifest, entries_of, identity, read_manifest
from panes.state.packing import Delivered
from panes.state.store import StoreState, blobs_of
from panes.state.views import KeyFilter, RegisteredQuery, Registry, fulfilled
from panes.state.watermark import NEVER, due_from, lateness, open_from, open_instances
from panes.timeline import Edges, Geometry

EPOCH = 0
"""Spark's watermark before any event has been seen; rows before it are late from the start."""

_LEAST = 1e-12
"""Less of an instance than this has not been seen at all."""


@dataclass(frozen=True)
class _Label:
    """What is known of a view beside the view: its number if it is declared, or a name and a condition on keys."""

    number: int | None = None
    name: str | None = None
    keys: Expression | None = None


@dataclass(frozen=True)
class _Asked:
    """Views that see everything since one instant, as one program, and a label for each."""

    program: Program
    since: int
    labels: tuple[_Label, ...]


class Shard:
    """The stores of one shard, as its last micro-batch left them.

    Parameters
    ----------
    filter_keys
        Evaluates conditions of registered queries on keys.
    """

    def __init__(
        self, stores: Sequence[Store], blob_store: BlobStore, options: JobOptions, filter_keys: KeyFilter
    ) -> None:
        self.figures = Figures()
        self._blob_store, self._options, self._filter_keys = blob_store, options, filter_keys
        manifest = read_manifest(blob_store.manifest(), stores, options)
        self.opened = bool(manifest)
        self.watermark: int = manifest.get("watermark", EPOCH)
        entries = entries_of(manifest)
        self._states = [self._open(store, entries.pop(identity(store), None)) for store in stores]
        self._left_out = list(entries.values())
        declared = frozenset(query.name for store in stores for query, _, _ in store.offer.queries)
        self._registry = Registry([store.offer for store in stores], declared, manifest.get("views", {}), self._admit)
        self.refused: list[str] = self._registry.unserved
        """Changes that no shard accepts, with the reasons."""
        self.failed: list[str] = []
        """What went wrong with keys of this shard."""

    def step(
        self, news: Sequence[tuple[int, Delivered]], watermark: int, changes: Sequence[str] = ()
    ) -> Iterator[ViewAnswers]:
        """Take in the panes and changes of a micro-batch, and answer what it makes due or changes."""
        self.refused += [reason for text in changes if (reason := self._registry.change(text)) is not None]
        for number, state in enumerate(self._states):
            delivered = [delivery for i, delivery in news if i == number]
            asked = self._asked(
                state, [active for active in self._registry.active.values() if active[0].store == number]
            )
            for answered in self._answer(number, state, asked, delivered, watermark):
                self.figures.answers += len(answered.answers.start)
                yield answered
        self.watermark = watermark
        self._forget_stores()
        self._write()

    def too_late(self, instants: Array) -> Array:
        """Which events of this micro-batch are too late for at least one window that would hold them."""
        views = [view for state in self._states for view in state.store.program.views]
        views += [view for served, _ in self._registry.active.values() for view in served.views]
        return lateness({view.window.lifespan for view in views}, instants, self.watermark)[0]

    def _open(self, store: Store, entry: Manifest | None) -> StoreState:
        return (
            StoreState.new(store, self._blob_store)
            if entry is None
            else StoreState.from_json(store, self._blob_store, entry)
        )

    def _admit(self, served: RegisteredQuery) -> dict[str, int]:
        """Since when each window of a query that is registered now sees everything."""
        state = self._states[served.store]
        if served.keys is not None:
            self._filter_keys(served.keys, state.dictionary.keys.slice(0, 0))
        return {str(view.window.lifespan): state.sees_from(view.window.lifespan) for view in served.views}

    def _asked(self, state: StoreState, registered: Sequence[tuple[RegisteredQuery, dict[str, int]]]) -> list[_Asked]:
        """All views of a store, by the instant since which they see everything."""
        program = state.store.program
        groups: dict[int, list[tuple[View, _Label]]] = {}
        for number, view in enumerate(program.views):
            since = self._matters(state.declared_since(view.window.lifespan), view)
            groups.setdefault(since, []).append((view, _Label(number)))
        if groups.keys() == {ALWAYS} and not registered:
            return [_Asked(program, ALWAYS, tuple(label for _, label in groups[ALWAYS]))]
        for served, instants in registered:
            for view in served.views:
                since = self._matters(instants[str(view.window.lifespan)], view)
                groups.setdefault(since, []).append((view, _Label(name=served.name, keys=served.keys)))
        return [
            _Asked(from_panes([view for view, _ in some], program), since, tuple(label for _, label in some))
            for since, some in groups.items()
        ]

    def _matters(self, since: int, view: View) -> int:
        """Since when a view sees everything, unless all its open instances start later anyway."""
        return since if since > self.watermark - view.window.lifespan.range else ALWAYS

    def _answer(
        self, number: int, state: StoreState, asked: Sequence[_Asked], delivered: list[Delivered], watermark: int
    ) -> Iterator[ViewAnswers]:
        components, edges = state.store.program.components, state.store.program.edges
        windows = frozenset(view.window.lifespan for some in asked for view in some.program.views)
        tiers = _tiers(windows, edges, state.store.history, any(component.ticks for component in components))
        # What a window has not seen all of must not be merged with what it has.
        cuts = sorted({some.since for some in asked} - {ALWAYS})
        self._count(windows, delivered)
        news = state.taken_in(delivered, self.watermark - tiers[-1].reach)
        news = settled(news, components, tiers, self.watermark, cuts)
        update = self._options.mode == "update"
        from_ = (
            open_from(windows, news.start, self.watermark) if update else due_from(windows, self.watermark, watermark)
        )
        if from_ < NEVER:
            # Where empty instances are answered, every key that is held is.
            held = state.runs.starting_from(ALWAYS if state.store.program.emit_all else from_)
            rows = settled(held.and_(news), components, tiers, self.watermark, cuts)
            touched = level_of(components, news, len(state.dictionary))
            for some in asked:
                level = level_of(components, _seen(rows, some), len(state.dictionary))
                found = (
                    answer_touched(some.program, level, touched, self.watermark)
                    if update
                    else answer_due(some.program, level, self.watermark, watermark)
                )
                for answers in found:
                    yield from self._told(number, some, answers)
        state.runs.add(settled(news, components, tiers, watermark, cuts))
        state.runs.age(tiers, watermark, cuts)
        state.history.age(tiers, watermark)
        state.evictions.settle(watermark - tiers[-1].reach)
        if self._options.bounds is not None:
            yield from self._evict(number, asked, self._options.bounds, watermark)
        state.forget_unused_keys()
        if state.runs.listed:
            first, last = min(run.first for run in state.runs.listed), max(run.last for run in state.runs.listed)
            # Where there is an answer per event, what is open are events and not instances.
            asking = {view.window for some in asked for view in some.program.views}
            counted = {window.geometry for window in asking if not window.per_event}
            self.figures.open_windows += open_instances(counted, last, max(watermark, first))

    def _evict(self, number: int, asked: Sequence[_Asked], bounds: Bounds, watermark: int) -> Iterator[ViewAnswers]:
        """Forget keys that are beyond the bounds; their open instances come out as far as they were seen."""
        state = self._states[number]
        components, keys = state.store.program.components, len(state.dictionary)
        gone = overdue(state.runs, keys, bounds, state.evictions, watermark)
        if gone is None:
            return
        rows = state.runs.starting_from(ALWAYS)
        rows = settled(rows.where(gone[rows.key]), components, (), None)
        if self._options.partial and self._options.mode == "append":
            for some in asked:
                level = level_of(components, _seen(rows, some), keys)
                for answers in answer_due(replace(some.program, emit_all=False), level, watermark, NEVER // 2):
                    yield from self._told(number, some, answers, seen_until=watermark)
        state.keep_keys(np.flatnonzero(~gone))
        state.evictions.listed.append((len(state.dictionary), int(rows.end.max())))
        self.figures.evicted += int(gone.sum())

    def _told(self, number: int, asked: _Asked, answers: Answers, seen_until: int = NEVER) -> Iterator[ViewAnswers]:
        """Answers with what their rows need to be told; those that must not come out are left out."""
        state, view, label = self._states[number], asked.program.views[answers.view], asked.labels[answers.view]
        end = answers.start + view.window.geometry.range
        since = np.maximum(state.evictions.since(answers.key), asked.since)
        begin = view.window.begins(answers.start)
        seen = np.minimum(end, seen_until) - np.maximum(begin, since)
        coverage = np.maximum(seen, 0) / (end - begin)
        # What is evicted comes out however little of it was seen: it will not come again.
        keep = coverage >= (0 if seen_until < NEVER else _LEAST) if self._options.partial else coverage >= 1
        if label.keys is not None:
            chosen, failure = fulfilled(self._filter_keys, label.keys, state.dictionary.keys)
            keep = keep & chosen[answers.key]
            self.failed += [] if failure is None else [f"{label.name}: {failure}"]
        if keep.any():
            kept = answers.where(keep)
            yield ViewAnswers(number, view, label.number, label.name, kept, state.dictionary, coverage[keep])

    def _count(self, windows: frozenset[Geometry], delivered: Sequence[Delivered]) -> None:
        for delivery in delivered:
            late, lost = lateness(windows, delivery.panes.start, self.watermark)
            self.figures.late += int(delivery.events[late].sum())
            self.figures.lost += int(delivery.events[lost].sum())

    def _forget_stores(self) -> None:
        """Drop what belongs to queries that this run does not have."""
        for entry in self._left_out:
            for name in blobs_of(entry):
                self._blob_store.remove(name)
        self._left_out = []

    def _write(self) -> None:
        manifest = {
            "format": FORMAT,
            "mode": self._options.mode,
            "shards": self._options.shards,
            "watermark": self.watermark,
            "stores": [state.to_json() for state in self._states],
            "views": self._registry.listed,
        }
        self._blob_store.write_manifest(json.dumps(manifest).encode())
        self.figures.keys = sum(len(state.dictionary) for state in self._states)
        self.figures.granules = sum(state.runs.rows for state in self._states)
        self.figures.bytes = sum(state.runs.size for state in self._states)


def _seen(rows: GranuleRows, asked: _Asked) -> GranuleRows:
    """The rows that some views have seen all of."""
    return rows if asked.since == ALWAYS else rows.where(rows.start >= asked.since)


@lru_cache(maxsize=64)
def _tiers(windows: frozenset[Geometry], edges: tuple[Edges, ...], history: int, always: bool) -> tuple[Tier, ...]:
    """How granules age under some windows, kept as they are for a while, or always."""
    steps = worthwhile(WindowManager(sorted(windows)).groups, edges)
    if always:
        return (Tier(edges, max(history, steps[-1].reach)),)
    if not history:
        return steps
    older = tuple(tier for tier in steps if tier.reach > history)
    return older if older and older[0].edges == edges else (Tier(edges, history), *older)
