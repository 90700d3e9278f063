"""Views that come and go while a job runs, over stores that stay as they are.

A registered query has to be one that the job's granules can answer: its keys, its aggregates and the events that they
count are those of a declared query, and no window of it cuts a pane. Otherwise it is refused, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from panes.aggregates.aggregates import Aggregate
from panes.aggregates.operations import Array
from panes.engine.program import Reading, View
from panes.errors import DeclarationError, nearest
from panes.expressions.expression import Expression, expression
from panes.queries.catalogue_entries import Entry, read_entry, signature
from panes.queries.query import Query
from panes.timeline import Edges

KeyFilter: TypeAlias = Callable[[Expression, pa.RecordBatch], Array]
"""Which of some keys fulfil a condition."""

_SHOWN = 200
REGISTERED = -1
"""The number of the query of a view that no declared query has."""


@dataclass(frozen=True)
class RegisteredQuery:
    """A registered query as its job answers it.

    Parameters
    ----------
    store
        The number of the store.
    views
        One per window.
    keys
        A condition on keys.
    """

    name: str
    store: int
    views: tuple[View, ...]
    keys: Expression | None


@dataclass(frozen=True)
class Offer:
    """What a store can answer: declared queries, what is read for each, where panes begin and end, the event time.

    A store of sliding windows offers nothing: it keeps single events, and those no longer than it needs them.
    """

    queries: Sequence[tuple[Query, tuple[Reading, ...], int | None]]
    keys: tuple[str, ...]
    edges: tuple[Edges, ...]
    at: str
    per_event: bool = False

    def has(self, keys: set[str]) -> bool:
        """Whether it answers queries by some keys, in lower case."""
        return not self.per_event and {key.lower() for key in self.keys} == keys


def serve(entry: Entry, offers: Sequence[Offer]) -> RegisteredQuery:
    """A registration as views; an error says why it cannot be served, and what to declare."""
    by = {key.lower() for key in entry.by}
    number = next((i for i, offer in enumerate(offers) if offer.has(by)), None)
    if number is None:
        known = "; ".join(f"({', '.join(offer.keys)})" for offer in offers if not offer.per_event) or "no keys at all"
        raise DeclarationError(
            f"the job keeps nothing by ({', '.join(entry.by)}), only by {known}. Declare a query with these keys at "
            "the next start."
        )
    offer = offers[number]
    if entry.at.lower() != offer.at.lower():
        raise DeclarationError(f"the job's event time is {offer.at}, and this query has at={entry.at!r}.")
    condition, filter_ = _condition(entry, offer)
    readings, exists = _readings(entry, offer, condition)
    for window in entry.over:
        for edge in window.geometry.edges():
            if not any(edge.within(pane) for pane in offer.edges):
                raise DeclarationError(
                    f"the window {window.name} begins or ends within a pane of the job, whose edges come every "
                    f"{' or '.join(str(e.period / 1e6) for e in offer.edges)} s. Declare it at the next start, or give "
                    "the job a finer resolution."
                )
    views = tuple(View(REGISTERED, window, readings, exists) for window in entry.over)
    return RegisteredQuery(entry.name, number, views, filter_)


def _condition(entry: Entry, offer: Offer) -> tuple[Expression | None, Expression | None]:
    """The declared condition that an entry's events fulfil, and its own condition on keys."""
    if entry.where is None:
        return None, None
    where = expression(entry.where)
    if any(query.where == where for query, _, _ in offer.queries):
        return where, None
    keys = {key.lower() for key in offer.keys}
    if where.roots and all(root.lower() in keys for root in where.roots):
        return None, where
    raise DeclarationError(
        f"no declared query of the job counts the events with {where.sql}, and it is not a condition on keys alone "
        f"({', '.join(offer.keys) or 'there are none'}). Declare a query with it at the next start."
    )


def _readings(entry: Entry, offer: Offer, condition: Expression | None) -> tuple[tuple[Reading, ...], int | None]:
    known: dict[tuple[str, str], tuple[Aggregate, Reading]] = {}
    exists: int | None = None
    for query, readings, counted in offer.queries:
        if query.where == condition:
            exists = counted
            known |= {
                (alias, signature(aggregate)): (aggregate, reading)
                for (alias, aggregate), reading in zip(query.aggregates, readings, strict=True)
            }
    found = []
    for alias, what in entry.select:
        if (alias, what) not in known:
            columns = [f"{a} = {s}" for a, s in known]
            raise DeclarationError(
                f"the job keeps no column {alias} = {what}"
                f"{'' if condition is None else f' for events with {condition.sql}'}"
                f" ({nearest(f'{alias} = {what}', columns) if columns else 'it keeps none'}). Declare it at the next "
                "start."
            )
        aggregate, reading = known[alias, what]
        for window in entry.over:
            if (reason := aggregate.misfit(window.geometry)) is not None:
                raise DeclarationError(reason)
        found.append(reading)
    return tuple(found), exists


def fulfilled(evaluate: KeyFilter, condition: Expression, keys: pa.RecordBatch) -> tuple[Array, str | None]:
    """Which keys fulfil a condition, and what went wrong; a key that it fails for does not fulfil it."""
    try:
        return evaluate(condition, keys), None
    except Exception as error:
        reason = str(error)
    found = np.zeros(len(keys), dtype=bool)
    for i in range(len(keys)):
        with suppress(Exception):
            found[i] = evaluate(condition, keys.slice(i, 1))[0]
    return found, reason


class Registry:
    """Which registered queries a job has, and since when each sees everything.

    Parameters
    ----------
    declared
        The names of the job's own queries.
    listed
        By name: the entry as text, whether it is active, and since which instant its windows see all events, as a
        manifest has it.
    admit
        Looks at a query that is to be served: raises where it cannot be, and says since when each window sees
        everything.

    Attributes
    ----------
    active
        The queries to answer, and since when each of their windows sees everything.
    unserved
        Why queries of the list are suspended from now on: the job was started again with other queries.
    """

    def __init__(
        self,
        offers: Sequence[Offer],
        declared: frozenset[str],
        listed: Mapping[str, tuple[str, bool, dict[str, int]]],
        admit: Callable[[RegisteredQuery], dict[str, int]],
    ) -> None:
        self._offers, self._declared, self._admit = offers, declared, admit
        self.listed = dict(listed)
        self.active: dict[str, tuple[RegisteredQuery, dict[str, int]]] = {}
        self.unserved: list[str] = []
        for name, (text, on, since) in listed.items():
            try:
                if on and name in declared:
                    raise DeclarationError("the job declares a query of this name now")
                if on:
                    self.active[name] = serve(read_entry(text), offers), since
            except Exception as error:
                self.listed[name] = (text, False, {})
                self.unserved.append(f"{name}: {error}")

    def change(self, text: str) -> str | None:
        """Apply an entry; the reason, where it is refused."""
        try:
            entry = read_entry(text)
            known = self.listed.get(entry.name)
            if entry.action == "register":
                if entry.name in self._declared or known is not None:
                    raise DeclarationError(f"there is a query {entry.name!r} already. Drop it, or rename this one.")
                self._activate(entry, text)
            elif known is None:
                what = "is declared by the job, not registered" if entry.name in self._declared else "is not registered"
                raise DeclarationError(f"{entry.name!r} {what}, so there is nothing to {entry.action}.")
            elif entry.action == "resume":
                if not known[1]:
                    self._activate(read_entry(known[0]), known[0])
            else:
                self.active.pop(entry.name, None)
                self.listed[entry.name] = (known[0], False, {})
                if entry.action == "drop":
                    del self.listed[entry.name]
        except Exception as error:
            # Whatever is in a file that anybody may have written, the job goes on.
            return f"{text[:_SHOWN]}: {error}"
        return None

    def _activate(self, entry: Entry, text: str) -> None:
        served = serve(entry, self._offers)
        since = self._admit(served)
        self.active[entry.name], self.listed[entry.name] = (served, since), (text, True, since)
