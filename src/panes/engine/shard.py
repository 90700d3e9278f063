"""One shard of a stream: what it does in a micro-batch.

All windows of all queries are answered here, from granules that the shard keeps in a cabinet. Spark shows an operator
the watermark of this micro-batch only, while its own windows tell late rows by the watermark of the one before; so a
shard remembers the last watermark it saw, and is called in every micro-batch.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from panes.engine.blobs import FORMAT
from panes.engine.cabinet import Cabinet
from panes.engine.dictionary import Dictionary
from panes.engine.held import Held, answer_due, answer_touched, settled
from panes.engine.intake import Delivered
from panes.engine.program import Program
from panes.engine.run import Answers
from panes.engine.runs import Runs
from panes.errors import StateError
from panes.plan.stairs import Stair
from panes.timeline import Geometry

Mode: TypeAlias = Literal["append", "update"]

EPOCH = 0
"""Spark's watermark before any event has been seen; rows before it are late from the start."""


@dataclass(frozen=True)
class Store:
    """What a shard has to know of one store: its program, its key columns, and how its granules age."""

    program: Program
    keys: pa.Schema
    stairs: tuple[Stair, ...]


@dataclass
class Figures:
    """What a shard counted in one micro-batch, and what it holds after it.

    Parameters
    ----------
    events, late, lost
        Events that came; those too late for at least one instance that would hold them; those too late for all.
    answers
        Rows that went out.
    keys, granules, bytes
        What is held.
    """

    events: int = 0
    late: int = 0
    lost: int = 0
    answers: int = 0
    keys: int = 0
    granules: int = 0
    bytes: int = 0


@dataclass
class _Held:
    """One store of a shard, as its manifest describes it."""

    dictionary: Dictionary
    runs: Runs
    checked: int = 0
    """How many keys there were when the dictionary was last looked through for keys without granules."""


@dataclass
class Shard:
    """The stores of one shard, read from a cabinet."""

    stores: Sequence[Store]
    cabinet: Cabinet
    mode: Mode
    watermark: int = EPOCH
    opened: bool = False
    """Whether an earlier micro-batch has left anything."""
    figures: Figures = field(default_factory=Figures)
    _held: list[_Held] = field(default_factory=list)

    @classmethod
    def open(cls, stores: Sequence[Store], cabinet: Cabinet, mode: Mode) -> Shard:
        """A shard as its last micro-batch left it."""
        shard = cls(stores, cabinet, mode)
        data = cabinet.manifest()
        manifest: dict[str, Any] = {} if data is None else json.loads(data)
        if manifest and manifest["format"] > FORMAT:
            raise StateError(
                f"the checkpoint was written in format {manifest['format']}, and this version of Panes reads up to "
                f"{FORMAT}. Upgrade Panes."
            )
        shard.watermark, shard.opened = manifest.get("watermark", EPOCH), bool(manifest)
        known = {_identity(entry["by"]): entry for entry in manifest.get("stores", [])}
        for store in stores:
            entry = known.pop(_identity(store.keys.names), {"keys": [], "runs": [], "checked": 0})
            dictionary = Dictionary(store.keys, cabinet, entry["keys"])
            runs = Runs.from_json(store.program.components, cabinet, entry["runs"])
            shard._held.append(_Held(dictionary, runs, entry["checked"]))
        return shard

    def step(self, news: Sequence[tuple[int, Delivered]], watermark: int) -> Iterator[tuple[int, Answers, Dictionary]]:
        """Take in the panes of a micro-batch and answer what it makes due or changes, store by store."""
        for number, store in enumerate(self.stores):
            delivered = [delivery for i, delivery in news if i == number]
            for answers in self._answer(store, self._held[number], delivered, watermark):
                self.figures.answers += len(answers.start)
                yield number, answers, self._held[number].dictionary
        self.watermark = watermark
        self._write()

    def _answer(self, store: Store, held: _Held, delivered: list[Delivered], watermark: int) -> Iterator[Answers]:
        program, components = store.program, store.program.components
        news = self._taken_in(store, held, delivered)
        update, keys = self.mode == "update", len(held.dictionary)
        from_ = self._touched_from(program, news) if update else self._due_from(program, watermark)
        if from_ < _NEVER:
            rows = settled(held.runs.starting_from(from_).and_(news), components, store.stairs, self.watermark)
            if update:
                yield from answer_touched(program, rows, news, keys, self.watermark)
            else:
                yield from answer_due(program, rows, keys, self.watermark, watermark)
        held.runs.add(settled(news, components, store.stairs, watermark))
        held.runs.age(store.stairs, watermark)
        self._forget_keys(held)

    def _taken_in(self, store: Store, held: _Held, delivered: list[Delivered]) -> Held:
        """The panes of a micro-batch under the ordinals of the dictionary, without those that no window waits for."""
        components = store.program.components
        parts = []
        for delivery in delivered:
            panes = delivery.panes
            self._count(store.program, panes.start, delivery.events)
            useful = panes.start + store.stairs[-1].reach > self.watermark
            if useful.any():
                kept = panes.where(useful)
                used, local = np.unique(kept.key, return_inverse=True)
                ordinals = held.dictionary.ordinals(delivery.keys.take(pa.array(used)))
                parts.append(Held(ordinals[local], kept.start, kept.end, kept.stored))
        if not parts:
            return Held.nothing(components)
        return settled(reduce(Held.and_, parts), components, store.stairs, self.watermark)

    def _count(self, program: Program, start: np.ndarray[Any, Any], events: np.ndarray[Any, Any]) -> None:
        self.figures.events += int(events.sum())
        old = start < self.watermark
        if not old.any():
            return
        start, events = start[old], events[old]
        late, lost = np.zeros(len(start), dtype=bool), np.ones(len(start), dtype=bool)
        for geometry in {view.window.geometry for view in program.views}:
            first, last, inside = _ends(geometry, start)
            late |= inside & (first <= self.watermark)
            lost &= ~inside | (last <= self.watermark)
        self.figures.late += int(events[late].sum())
        self.figures.lost += int(events[late & lost].sum())

    def _due_from(self, program: Program, watermark: int) -> int:
        """Where the first instance starts that this micro-batch makes due."""
        starts = [_NEVER]
        for node in program.nodes:
            g = node.geometry
            # The first instance that ends after the last watermark.
            start = g.offset + ((self.watermark - g.offset - g.range) // g.slide + 1) * g.slide
            if start + g.range <= watermark:
                starts.append(start)
        return min(starts)

    def _touched_from(self, program: Program, news: Held) -> int:
        """Where the first open instance starts that holds a row of this micro-batch."""
        if not len(news):
            return _NEVER
        first = int(news.start.min())
        return min(max(first, self.watermark) - node.geometry.range for node in program.nodes)

    def _forget_keys(self, held: _Held) -> None:
        """Forget keys without granules, looking only when their number has doubled."""
        if len(held.dictionary) <= 2 * held.checked + _FEW_KEYS:
            return
        used = held.runs.used_keys()
        if len(used) <= len(held.dictionary) // 2:
            held.runs.renumber(held.dictionary.keep(used))
        held.checked = len(held.dictionary)

    def _write(self) -> None:
        stores = [
            {"by": s.keys.names, "keys": h.dictionary.listed, "runs": h.runs.to_json(), "checked": h.checked}
            for s, h in zip(self.stores, self._held, strict=True)
        ]
        manifest = {"format": FORMAT, "watermark": self.watermark, "stores": stores}
        self.cabinet.write_manifest(json.dumps(manifest).encode())
        self.figures.keys = sum(len(held.dictionary) for held in self._held)
        self.figures.granules = sum(held.runs.rows for held in self._held)
        self.figures.bytes = sum(held.runs.size for held in self._held)


_NEVER = 2**62
_FEW_KEYS = 1024


def _identity(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name.lower() for name in names)


def _ends(geometry: Geometry, instants: np.ndarray[Any, Any]) -> tuple[Any, Any, Any]:
    """Where the first and the last instance end that hold some instants, and whether any does."""
    last = (instants - geometry.offset) // geometry.slide
    first = (instants - geometry.offset - geometry.range) // geometry.slide + 1
    base = geometry.offset + geometry.range
    return base + first * geometry.slide, base + last * geometry.slide, first <= last
