"""One shard of a stream: what it does in a micro-batch.

All windows of all queries are answered here, from granules that the shard keeps in a cabinet. Spark shows an operator
the watermark of this micro-batch only, while its own windows tell late rows by the watermark of the one before; so a
shard remembers the last watermark it saw, and is called in every micro-batch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from panes.algebra.component import Component
from panes.algebra.operations import Array
from panes.declare.expressions import Expression
from panes.engine.blobs import FORMAT
from panes.engine.cabinet import Cabinet
from panes.engine.dictionary import Dictionary
from panes.engine.eviction import Bounds, Doubts, overdue
from panes.engine.held import Held, answer_due, answer_touched, level_of, settled
from panes.engine.history import ALWAYS, History
from panes.engine.intake import Delivered
from panes.engine.program import Program, View
from panes.engine.run import Answers
from panes.engine.runs import Runs
from panes.engine.views import Offer, Roll, Served, program_of
from panes.errors import StateError
from panes.plan.manager import WindowManager
from panes.plan.stairs import Stair, worthwhile
from panes.timeline import Edges, Geometry

Mode: TypeAlias = Literal["append", "update"]

KeyFilter: TypeAlias = Callable[[Expression, pa.RecordBatch], Array]
"""Which of some keys fulfil a condition."""

EPOCH = 0
"""Spark's watermark before any event has been seen; rows before it are late from the start."""


@dataclass(frozen=True)
class Store:
    """What a shard has to know of one store: its program, its key columns, what may be registered, how long to keep.

    Parameters
    ----------
    history
        For how long panes are kept as they are, in µs, whatever the windows need: for those that come later.
    kept
        The condition that all its events fulfil, as SQL; a checkpoint keeps it.
    """

    program: Program
    keys: pa.Schema
    offer: Offer
    history: int = 0
    kept: str | None = None


@dataclass(frozen=True)
class Terms:
    """What a job was asked for, beside its stores.

    Parameters
    ----------
    shards
        How many there are; a checkpoint keeps its number.
    partial
        Whether instances come out that miss events from before their window was known, with the part that was seen.
    remarks
        Whether rows say what kind they are: answers, refusals, late events.
    bounds
        What a shard may keep at most.
    """

    mode: Mode
    shards: int = 1
    partial: bool = False
    remarks: bool = False
    bounds: Bounds | None = None


@dataclass
class Figures:
    """What a shard counted in one micro-batch, and what it holds after it.

    Parameters
    ----------
    events, late, lost
        Events that came; those too late for at least one instance that would hold them; those too late for all.
    answers
        Rows that went out.
    evicted
        Keys that went although windows still needed them.
    keys, granules, bytes
        What is held.
    """

    events: int = 0
    late: int = 0
    lost: int = 0
    answers: int = 0
    evicted: int = 0
    keys: int = 0
    granules: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class Answered:
    """Answers of one view, with what a row needs to be told.

    Parameters
    ----------
    view
        The view that is answered, and its number among the declared ones of its store, or None.
    name
        What a registered query is called; None for a declared one.
    coverage
        The part of each instance that was seen.
    """

    store: int
    view: View
    number: int | None
    name: str | None
    answers: Answers
    dictionary: Dictionary
    coverage: Array


@dataclass
class _Held:
    """One store of a shard, as its manifest describes it."""

    dictionary: Dictionary
    runs: Runs
    history: History
    since: dict[str, int]
    """Since when each declared window sees everything."""
    doubts: Doubts
    checked: int = 0
    """How many keys there were when the dictionary was last looked through for keys without granules."""


@dataclass(frozen=True)
class _Asked:
    """Views that see everything since one instant, as one program."""

    program: Program
    since: int
    names: tuple[str | None, ...]
    filters: tuple[Expression | None, ...]


class Shard:
    """The stores of one shard, as its last micro-batch left them.

    Parameters
    ----------
    filter_keys
        Evaluates conditions of registered queries on keys.
    """

    def __init__(
        self, stores: Sequence[Store], cabinet: Cabinet, terms: Terms, filter_keys: KeyFilter | None = None
    ) -> None:
        self.figures = Figures()
        self.refused: list[str] = []
        """Changes that no shard accepts, with the reasons."""
        self.failed: list[str] = []
        """What went wrong with keys of this shard."""
        self._stores, self._cabinet, self._terms, self._filter_keys = stores, cabinet, terms, filter_keys
        self._numbers = [{id(view): i for i, view in enumerate(store.program.views)} for store in stores]
        data = cabinet.manifest()
        manifest: dict[str, Any] = {} if data is None else json.loads(data)
        _check(manifest, terms)
        self.opened = bool(manifest)
        self.watermark: int = manifest.get("watermark", EPOCH)
        self._declared = frozenset(query.name for store in stores for query, _, _ in store.offer.queries)
        self._roll = Roll([store.offer for store in stores], manifest.get("views", {}))
        known = {_identity(entry["by"]): entry for entry in manifest.get("stores", [])}
        self._held = [self._open(store, known.pop(_identity(store.keys.names), None)) for store in stores]
        self._left_out = list(known.values())

    def step(
        self, news: Sequence[tuple[int, Delivered]], watermark: int, changes: Sequence[str] = ()
    ) -> Iterator[Answered]:
        """Take in the panes and changes of a micro-batch, and answer what it makes due or changes."""
        self.refused = [reason for text in changes if (reason := self._change(text)) is not None]
        registered, unserved = self._roll.active(self._declared)
        self.refused += unserved
        for number, store in enumerate(self._stores):
            held = self._held[number]
            delivered = [delivery for i, delivery in news if i == number]
            asked = self._asked(store, held, [(s, since) for s, since in registered if s.store == number])
            for answered in self._answer(number, store, held, asked, delivered, watermark):
                self.figures.answers += len(answered.answers.start)
                yield answered
        self.watermark = watermark
        self._forget_stores()
        self._write()

    def too_late(self, instants: Array) -> Array:
        """Which events of this micro-batch are too late for at least one window that would hold them."""
        windows = {view.window.geometry for store in self._stores for view in store.program.views}
        registered, _ = self._roll.active(self._declared)
        windows |= {view.window.geometry for served, _ in registered for view in served.views}
        late, _ = _lateness(windows, instants, self.watermark)
        return late

    def _open(self, store: Store, entry: dict[str, Any] | None) -> _Held:
        if entry is None:
            if self.opened:
                raise StateError(
                    f"the checkpoint keeps nothing by ({', '.join(store.offer.keys)}): it was written by other "
                    "queries. Start with a new checkpoint, or leave out the queries with these keys."
                )
            entry = {"keys": [], "runs": [], "checked": 0, "since": {}, "doubts": [[], ALWAYS], "kept": store.kept}
            entry |= {"history": {"dropped": ALWAYS, "coarse": []}, "edges": _edges(store)}
        if entry["kept"] != store.kept:
            raise StateError(
                f"the checkpoint keeps {_events_with(entry['kept'])}, and the queries of this run ask for "
                f"{_events_with(store.kept)}. Start with a new checkpoint, or with the conditions of before."
            )
        history = History.from_json(entry["history"])
        if entry["edges"] != _edges(store):
            # What is held has the panes of before, whatever the panes are from now on.
            before = tuple(Edges(period, offset) for period, offset in entry["edges"])
            upto = max((run["last"] for run in entry["runs"]), default=ALWAYS)
            history.coarse[before] = max(upto + max(e.period for e in before), history.coarse.get(before, ALWAYS))
        since = {
            _text(view.window.geometry): entry["since"].get(
                _text(view.window.geometry), history.sees_from(view.window.geometry, store.program.edges)
            )
            for view in store.program.views
        }
        dictionary = Dictionary(store.keys, self._cabinet, entry["keys"])
        runs = Runs.from_json(store.program.components, self._cabinet, entry["runs"])
        doubts = Doubts([(ordinal, instant) for ordinal, instant in entry["doubts"][0]], entry["doubts"][1])
        return _Held(dictionary, runs, history, since, doubts, entry["checked"])

    def _change(self, text: str) -> str | None:
        """Apply a change of the catalogue; the reason why not, where it is refused."""
        served, refused = self._roll.change(text, self._declared)
        if served is not None and served.keys is not None:
            try:
                self._filter(served.keys, self._held[served.store].dictionary.keys.slice(0, 0))
            except Exception as error:
                return f"{served.name}: {error}"
        if served is not None:
            history = self._held[served.store].history
            edges = self._stores[served.store].program.edges
            since = {view.window.name: history.sees_from(view.window.geometry, edges) for view in served.views}
            entry = self._roll.listed.get(served.name, (text,))[0]
            self._roll.listed[served.name] = (entry, True, since)
        return refused

    def _asked(self, store: Store, held: _Held, registered: Sequence[tuple[Served, dict[str, int]]]) -> list[_Asked]:
        """All views of a store, by the instant since which they see everything."""
        groups: dict[int, list[tuple[View, str | None, Expression | None]]] = {}
        for view in store.program.views:
            instant = self._matters(held.since[_text(view.window.geometry)], view)
            groups.setdefault(instant, []).append((view, None, None))
        if len(groups) == 1 and ALWAYS in groups and not registered:
            nothing = (None,) * len(store.program.views)
            return [_Asked(store.program, ALWAYS, nothing, nothing)]
        for served, since in registered:
            for view in served.views:
                instant = self._matters(since[view.window.name], view)
                groups.setdefault(instant, []).append((view, served.name, served.keys))
        found = []
        for instant, listed in groups.items():
            views, names, filters = zip(*listed, strict=True)
            found.append(_Asked(program_of(views, store.program), instant, names, filters))
        return found

    def _matters(self, since: int, view: View) -> int:
        """Since when a view sees everything, unless all its open instances start later anyway."""
        return since if since > self.watermark - view.window.geometry.range else ALWAYS

    def _answer(
        self,
        number: int,
        store: Store,
        held: _Held,
        asked: Sequence[_Asked],
        delivered: list[Delivered],
        watermark: int,
    ) -> Iterator[Answered]:
        components = store.program.components
        windows = {view.window.geometry for some in asked for view in some.program.views}
        stairs = _stairs(frozenset(windows), store.program.edges, store.history)
        # What a window has not seen all of must not be merged with what it has.
        cuts = sorted({some.since for some in asked} - {ALWAYS})
        news = self._taken_in(windows, held, delivered, components, stairs, cuts)
        update, keys = self._terms.mode == "update", len(held.dictionary)
        from_ = self._touched_from(windows, news) if update else self._due_from(windows, watermark)
        if store.program.emit_all and from_ < _NEVER:
            from_ = ALWAYS  # Every key that is held is answered.
        if from_ < _NEVER:
            rows = settled(held.runs.starting_from(from_).and_(news), components, stairs, self.watermark, cuts)
            touched = level_of(components, news, keys)
            for some in asked:
                seen = rows if some.since == ALWAYS else rows.where(rows.start >= some.since)
                level = level_of(components, seen, keys)
                found = (
                    answer_touched(some.program, level, touched, self.watermark)
                    if update
                    else answer_due(some.program, level, self.watermark, watermark)
                )
                for answers in found:
                    yield from self._told(number, some, answers, held)
        held.runs.add(settled(news, components, stairs, watermark, cuts))
        held.runs.age(stairs, watermark, cuts)
        held.history.age(stairs, watermark)
        held.doubts.settle(watermark - stairs[-1].reach)
        if self._terms.bounds is not None:
            yield from self._evict(number, store, held, asked, self._terms.bounds, watermark)
        self._forget_keys(held)

    def _evict(
        self,
        number: int,
        store: Store,
        held: _Held,
        asked: Sequence[_Asked],
        bounds: Bounds,
        watermark: int,
    ) -> Iterator[Answered]:
        """Forget keys that are beyond the bounds; their open instances come out as far as they were seen."""
        keys = len(held.dictionary)
        gone = overdue(held.runs, keys, bounds, held.doubts, watermark)
        if gone is None:
            return
        rows = held.runs.starting_from(ALWAYS)
        rows = settled(rows.where(gone[rows.key]), store.program.components, [Stair(store.program.edges, _NEVER)], None)
        if self._terms.partial and self._terms.mode == "append":
            level = level_of(store.program.components, rows, keys)
            for some in asked:
                for answers in answer_due(replace(some.program, emit_all=False), level, watermark, _NEVER // 2):
                    yield from self._told(number, some, answers, held, seen_until=watermark)
        new = held.dictionary.keep(np.flatnonzero(~gone))
        held.runs.renumber(new)
        held.doubts.renumber(new)
        held.doubts.listed.append((len(held.dictionary), int(rows.end.max())))
        self.figures.evicted += int(gone.sum())

    def _told(
        self,
        number: int,
        asked: _Asked,
        answers: Answers,
        held: _Held,
        seen_until: int = 2**62,
    ) -> Iterator[Answered]:
        """Answers with what their rows need to be told; those that must not come out are left out."""
        view = asked.program.views[answers.view]
        end = answers.start + view.window.geometry.range
        since = np.maximum(held.doubts.since(answers.key), asked.since)
        seen = np.minimum(end, seen_until) - np.maximum(answers.start, since)
        coverage = np.maximum(seen, 0) / view.window.geometry.range
        # What is evicted comes out however little of it was seen: it will not come again.
        keep = coverage >= (0 if seen_until < _NEVER else _LEAST) if self._terms.partial else coverage >= 1
        kept, coverage = self._kept(asked, answers, held.dictionary, keep, coverage)
        if len(kept.start):
            of = self._numbers[number].get(id(view))
            yield Answered(number, view, of, asked.names[answers.view], kept, held.dictionary, coverage)

    def _kept(
        self, asked: _Asked, answers: Answers, dictionary: Dictionary, keep: Array, seen: Array
    ) -> tuple[Answers, Array]:
        """The answers to give, and the part of each instance that was seen."""
        condition = asked.filters[answers.view]
        if condition is not None:
            keep = keep & self._fulfilled(condition, asked.names[answers.view], dictionary)[answers.key]
        if keep.all():
            return answers, seen
        chosen = pa.array(keep)
        columns = tuple(column.filter(chosen) for column in answers.columns)
        return Answers(answers.view, answers.key[keep], answers.start[keep], columns), seen[keep]

    def _fulfilled(self, condition: Expression, name: str | None, dictionary: Dictionary) -> Array:
        """Which keys fulfil the condition of a registered query; a key that it fails for does not."""
        keys = dictionary.keys
        try:
            return self._filter(condition, keys)
        except Exception as error:
            self.failed.append(f"{name}: {error}")
        found = np.zeros(len(keys), dtype=bool)
        for i in range(len(keys)):
            with suppress(Exception):
                found[i] = self._filter(condition, keys.slice(i, 1))[0]
        return found

    def _filter(self, condition: Expression, keys: pa.RecordBatch) -> Array:
        return np.ones(len(keys), dtype=bool) if self._filter_keys is None else self._filter_keys(condition, keys)

    def _taken_in(
        self,
        windows: set[Geometry],
        held: _Held,
        delivered: list[Delivered],
        components: Sequence[Component],
        stairs: Sequence[Stair],
        cuts: Sequence[int],
    ) -> Held:
        """The panes of a micro-batch under the ordinals of the dictionary, without those that no window waits for."""
        parts = []
        for delivery in delivered:
            panes = delivery.panes
            self._count(windows, panes.start, delivery.events)
            useful = panes.start + stairs[-1].reach > self.watermark
            if useful.any():
                kept = panes.where(useful)
                used, local = np.unique(kept.key, return_inverse=True)
                ordinals = held.dictionary.ordinals(delivery.keys.take(pa.array(used)))
                parts.append(Held(ordinals[local], kept.start, kept.end, kept.stored))
        if not parts:
            return Held.nothing(components)
        return settled(reduce(Held.and_, parts), components, stairs, self.watermark, cuts)

    def _count(self, windows: set[Geometry], start: Array, events: Array) -> None:
        self.figures.events += int(events.sum())
        late, lost = _lateness(windows, start, self.watermark)
        self.figures.late += int(events[late].sum())
        self.figures.lost += int(events[lost].sum())

    def _due_from(self, windows: set[Geometry], watermark: int) -> int:
        """Where the first instance starts that this micro-batch makes due."""
        starts = [_NEVER]
        for g in windows:
            # The first instance that ends after the last watermark.
            start = g.offset + ((self.watermark - g.offset - g.range) // g.slide + 1) * g.slide
            if start + g.range <= watermark:
                starts.append(start)
        return min(starts)

    def _touched_from(self, windows: set[Geometry], news: Held) -> int:
        """Where the first open instance starts that holds a row of this micro-batch."""
        if not len(news):
            return _NEVER
        first = max(int(news.start.min()), self.watermark)
        return first - max(g.range for g in windows)

    def _forget_keys(self, held: _Held) -> None:
        """Forget keys without granules, looking only when their number has doubled."""
        if len(held.dictionary) <= 2 * held.checked + _FEW_KEYS:
            return
        used = held.runs.used_keys()
        if len(used) <= len(held.dictionary) // 2:
            new = held.dictionary.keep(used)
            held.runs.renumber(new)
            held.doubts.renumber(new)
        held.checked = len(held.dictionary)

    def _forget_stores(self) -> None:
        """Drop what belongs to queries that this run does not have."""
        for entry in self._left_out:
            for name in (*(name for name, _ in entry["keys"]), *(run["name"] for run in entry["runs"])):
                self._cabinet.remove(name)
        self._left_out = []

    def _write(self) -> None:
        stores = [
            {
                "by": store.keys.names,
                "kept": store.kept,
                "edges": _edges(store),
                "keys": held.dictionary.listed,
                "runs": held.runs.to_json(),
                "checked": held.checked,
                "doubts": [held.doubts.listed, held.doubts.looked],
                "since": held.since,
                "history": held.history.to_json(),
            }
            for store, held in zip(self._stores, self._held, strict=True)
        ]
        terms = {"mode": self._terms.mode, "shards": self._terms.shards}
        manifest = {"format": FORMAT, **terms, "watermark": self.watermark, "stores": stores}
        self._cabinet.write_manifest(json.dumps({**manifest, "views": self._roll.listed}).encode())
        self.figures.keys = sum(len(held.dictionary) for held in self._held)
        self.figures.granules = sum(held.runs.rows for held in self._held)
        self.figures.bytes = sum(held.runs.size for held in self._held)


_NEVER = 2**62
_LEAST = 1e-12
_FEW_KEYS = 1024


def _check(manifest: dict[str, Any], terms: Terms) -> None:
    """Refuse a checkpoint that was written by another version, or for other terms."""
    if not manifest:
        return
    if manifest["format"] > FORMAT:
        raise StateError(
            f"the checkpoint was written in format {manifest['format']}, and this version of Panes reads up to "
            f"{FORMAT}. Upgrade Panes."
        )
    for name, now in (("shards", terms.shards), ("mode", terms.mode)):
        if manifest[name] != now:
            raise StateError(
                f"the checkpoint was written with {name}={manifest[name]!r}, and this run has {name}={now!r}. Give it "
                f"{name}={manifest[name]!r}, or a new checkpoint."
            )


@lru_cache(maxsize=64)
def _stairs(windows: frozenset[Geometry], edges: tuple[Edges, ...], history: int) -> tuple[Stair, ...]:
    """How granules age under some windows, kept as they are for a while."""
    steps = worthwhile(WindowManager(sorted(windows)).groups, edges)
    if not history:
        return steps
    older = tuple(stair for stair in steps if stair.reach > history)
    return older if older and older[0].edges == edges else (Stair(edges, history), *older)


def _edges(store: Store) -> list[list[int]]:
    return [[e.period, e.offset] for e in store.program.edges]


def _events_with(condition: str | None) -> str:
    return "all events" if condition is None else f"events with {condition}"


def _identity(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name.lower() for name in names)


def _text(geometry: Geometry) -> str:
    return f"{geometry.range}/{geometry.slide}+{geometry.offset}"


def _lateness(windows: set[Geometry], instants: Array, watermark: int) -> tuple[Array, Array]:
    """Which instants are too late for at least one instance that holds them, and which for all."""
    late, open_ = np.zeros(len(instants), dtype=bool), np.zeros(len(instants), dtype=bool)
    old = np.flatnonzero(instants < watermark)
    for geometry in windows if len(old) else ():
        # The first and the last instance that hold each instant; between instances there is none.
        last = (instants[old] - geometry.offset) // geometry.slide
        first = (instants[old] - geometry.offset - geometry.range) // geometry.slide + 1
        base = geometry.offset + geometry.range
        late[old] |= (first <= last) & (base + first * geometry.slide <= watermark)
        open_[old] |= (first <= last) & (base + last * geometry.slide > watermark)
    return late, late & ~open_
