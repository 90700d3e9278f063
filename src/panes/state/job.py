"""What a streaming job is, as its shards have to know it, and what they tell of a micro-batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import pyarrow as pa

from panes.aggregates.operations import Array
from panes.engine.answer import Answers
from panes.engine.program import Program, View
from panes.state.key_dictionary import KeyDictionary
from panes.state.limits import Bounds
from panes.state.views import Offer

Mode: TypeAlias = Literal["append", "update"]


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
class JobOptions:
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
    late, lost
        Events that came too late for at least one instance that would hold them; those too late for all.
    answers
        Rows that went out.
    evicted
        Keys that went although windows still needed them.
    keys, granules, bytes
        What is held.
    open_windows
        Instances that have begun and not ended, among those that may hold what is held, of whatever key.
    """

    late: int = 0
    lost: int = 0
    answers: int = 0
    evicted: int = 0
    keys: int = 0
    granules: int = 0
    bytes: int = 0
    open_windows: int = 0


@dataclass(frozen=True)
class ViewAnswers:
    """Answers of one view, with what a row needs to be told.

    Parameters
    ----------
    view, number
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
    dictionary: KeyDictionary
    coverage: Array
