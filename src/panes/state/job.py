"""What a shard needs to know of its streaming job, and what it returns from a micro-batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from panes.aggregates.operations import Array
from panes.engine.answer import Answers
from panes.engine.program import Program, View
from panes.state.key_dictionary import KeyDictionary
from panes.state.registered_queries import Offer
from panes.timeline import Geometry


@dataclass(frozen=True)
class JobStore:
    """One store of a job: its program, its key columns, and which queries may be registered on it.

    Parameters
    ----------
    history
        How long panes stay as fine as they are for windows registered later, in µs.
    kept
        The condition that all its events fulfil, as SQL; recorded in the checkpoint.
    """

    program: Program
    keys: pa.Schema
    offer: Offer
    history: int = 0
    kept: str | None = None

    @cached_property
    def lifespans(self) -> tuple[Geometry, ...]:
        """The lifespan of each view's window: from the start of an instance to when it is answered."""
        return tuple(view.window.lifespan for view in self.program.views)

    @cached_property
    def window_names(self) -> tuple[str, ...]:
        """What a manifest calls the window of each view: its lifespan as text."""
        return tuple(map(str, self.lifespans))

    @cached_property
    def has_ticks(self) -> bool:
        """Whether a component needs granules of single ticks."""
        return any(component.ticks for component in self.program.components)


_HELD = ("keys", "granules", "bytes", "open_windows")


@dataclass
class ShardMetrics:
    """What a shard counted in one micro-batch, and what it holds afterwards.

    Parameters
    ----------
    late, lost
        Events that came too late for at least one instance that would hold them; those too late for all.
    answers
        Rows that came out.
    evicted
        Keys that were evicted although windows still needed them.
    keys, granules, bytes
        What is held. Windows of rows hold rows instead of granules.
    open_windows
        Instances that have begun and not ended, of any key.
    """

    late: int = 0
    lost: int = 0
    answers: int = 0
    evicted: int = 0
    keys: int = 0
    granules: int = 0
    bytes: int = 0
    open_windows: int = 0

    @classmethod
    def of_held(cls, manifest: Mapping[str, Any]) -> ShardMetrics:
        """Return what a shard holds according to its manifest: a micro-batch without news for it changes nothing."""
        return cls(**dict(zip(_HELD, manifest.get("held", ()), strict=False)))

    @property
    def held(self) -> list[int]:
        """What is held, for a manifest."""
        return [getattr(self, name) for name in _HELD]


@dataclass(frozen=True)
class ViewAnswers:
    """The answers of one view, with the labels of their rows.

    Parameters
    ----------
    view, number
        The view, and its number among the declared ones of its store, or None.
    name
        The name of a registered query; None for a declared one.
    coverage
        The part of each instance that was seen.
    """

    store: int
    view: View
    number: int | None
    name: str | None
    answers: Answers
    dictionary: KeyDictionary
    coverage: Array
