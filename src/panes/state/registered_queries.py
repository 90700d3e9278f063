"""Queries registered in a catalogue while a job runs, answered from the stores that the job has.

The granules of the job must be able to answer a registered query: it has the keys, aggregates and conditions of a
declared query, and none of its windows begins or ends within a pane. Otherwise it is refused, with the reason.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from panes.aggregates.aggregate import Aggregate
from panes.aggregates.operations import Array
from panes.engine.program import Reading, View
from panes.errors import DeclarationError
from panes.expressions.expression import Expression, expression
from panes.expressions.stored import spelt_as_stored
from panes.queries.catalogue_entries import Entry, name_in, read_entry
from panes.queries.query import Query
from panes.suggestions import nearest
from panes.timeline import Edges, all_within

KeyFilter: TypeAlias = Callable[[Expression, pa.RecordBatch], Array]
"""Returns which keys fulfil a condition."""

_SHOWN = 200
REGISTERED = -1
"""The query number of views of registered queries."""


@dataclass(frozen=True)
class RegisteredQuery:
    """A registered query, bound to a store.

    Parameters
    ----------
    store
        The number of the store.
    views
        One per window.
    where, keys
        A condition on events, which a declared query has too; a condition on keys.
    """

    name: str
    store: int
    views: tuple[View, ...]
    where: Expression | None
    keys: Expression | None


@dataclass(frozen=True)
class Offer:
    """What a store can answer: its declared queries with their readings, keys, edges and event time.

    A store of sliding windows offers nothing: it keeps single events, and only as long as it needs them.
    """

    queries: Sequence[tuple[Query, tuple[Reading, ...], int | None]]
    keys: tuple[str, ...]
    edges: tuple[Edges, ...]
    at: str
    per_event: bool = False

    def has(self, keys: set[str]) -> bool:
        """Return whether it answers queries by these keys (in lower case)."""
        return not self.per_event and {key.lower() for key in self.keys} == keys


def bind_entry(entry: Entry, offers: Sequence[Offer]) -> RegisteredQuery:
    """Bind a registration to a store; an error says why none can answer it, and what to declare."""
    by = {key.lower() for key in entry.by}
    number = next((i for i, offer in enumerate(offers) if offer.has(by)), None)
    if number is None:
        key_sets = "; ".join(f"({', '.join(offer.keys)})" for offer in offers if not offer.per_event) or "no keys"
        raise DeclarationError(
            f"the job keeps nothing by ({', '.join(entry.by)}), only by {key_sets}. Declare a query with these keys at "
            "the next start."
        )
    offer = offers[number]
    if entry.at.lower() != offer.at.lower():
        raise DeclarationError(f"the job's event time is {offer.at}, and this query has at={entry.at!r}.")
    condition, filter_ = _condition(entry, offer)
    readings, exists = _readings(entry, offer, condition)
    for window in entry.over:
        if not all_within(window.geometry.edges(), offer.edges):
            raise DeclarationError(
                f"the window {window.name} begins or ends within a pane of the job, whose edges come every "
                f"{' or '.join(str(e.period / 1e6) for e in offer.edges)} s. Declare it at the next start, or give "
                "the job a finer resolution."
            )
    views = tuple(View(REGISTERED, window, readings, exists) for window in entry.over)
    return RegisteredQuery(entry.name, number, views, condition, filter_)


def _condition(entry: Entry, offer: Offer) -> tuple[Expression | None, Expression | None]:
    """Return the declared condition that an entry's events fulfil, and the entry's condition on keys."""
    if entry.where is None:
        return None, None
    where = expression(entry.where)
    if any(query.where == where for query, _, _ in offer.queries):
        return where, None
    keys = {key.lower() for key in offer.keys}
    if where.roots and all(root.lower() in keys for root in where.roots):
        return None, where
    known = f"keys: {', '.join(offer.keys)}" if offer.keys else "the job has no keys"
    raise DeclarationError(
        f"no declared query of the job counts the events with {where.sql}, and it is not a condition on keys alone "
        f"({known}). Declare a query with it at the next start."
    )


def _readings(entry: Entry, offer: Offer, condition: Expression | None) -> tuple[tuple[Reading, ...], int | None]:
    declared: dict[tuple[str, str], tuple[Aggregate, Reading]] = {}
    exists: int | None = None
    for query, readings, counted in offer.queries:
        if query.where == condition:
            exists = counted
            declared |= {
                (alias, aggregate.signature): (aggregate, reading)
                for (alias, aggregate), reading in zip(query.aggregates, readings, strict=True)
            }
    chosen = []
    for alias, signed in entry.select:
        key = _column(alias, signed, declared)
        if key is None:
            columns = [f"{a} = {s}" for a, s in declared]
            raise DeclarationError(
                f"the job keeps no column {alias} = {signed}"
                f"{'' if condition is None else f' for events with {condition.sql}'}"
                f" ({nearest(f'{alias} = {signed}', columns) if columns else 'it keeps none'}). Declare it at the next "
                "start."
            )
        aggregate, reading = declared[key]
        for window in entry.over:
            if (reason := aggregate.misfit(window.geometry)) is not None:
                raise DeclarationError(reason)
        chosen.append(reading)
    return tuple(chosen), exists


def _column(
    alias: str, signed: str, declared: Mapping[tuple[str, str], tuple[Aggregate, Reading]]
) -> tuple[str, str] | None:
    """Return the declared column that an entry names, whatever the SQL in its signature is spelt like."""
    if (alias, signed) in declared:
        return alias, signed
    arguments = _arguments_in(signed)
    for (name, signature), (aggregate, _) in declared.items():
        spelt = spelt_as_stored(aggregate, arguments) if name == alias else None
        if spelt is not None and spelt.signature == signed:
            return name, signature
    return None


def _arguments_in(signed: str) -> list[str]:
    """Return the arguments in a signature; none in other text.

    Examples
    --------
    >>> _arguments_in("var('temp * 2', root=True, ddof=1)"), _arguments_in("temp * 2")
    (['temp * 2'], [])
    """
    try:
        call = ast.parse(signed, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    arguments = call.args if isinstance(call, ast.Call) else []
    return [each.value for each in arguments if isinstance(each, ast.Constant) and isinstance(each.value, str)]


def evaluate_keys(evaluate: KeyFilter, condition: Expression, keys: pa.RecordBatch) -> tuple[Array, str | None]:
    """Return which keys fulfil a condition, and the error if it fails for some; those do not fulfil it."""
    try:
        return evaluate(condition, keys), None
    except Exception as error:
        reason = str(error)
    fulfilled = np.zeros(len(keys), dtype=bool)
    for i in range(len(keys)):
        with suppress(Exception):
            fulfilled[i] = evaluate(condition, keys.slice(i, 1))[0]
    return fulfilled, reason


class Refusal(NamedTuple):
    """What a job cannot do, and why; the name of its query is None where it cannot be read."""

    name: str | None
    reason: str


class RegistryEntry(NamedTuple):
    """A registered query in a manifest: its entry, whether it is active, and since when its windows see all."""

    entry: str
    active: bool
    since: dict[str, int]


class Registry:
    """The registered queries of a job, and since when each sees every event.

    Parameters
    ----------
    declared
        The names of the job's own queries.
    listed
        The queries in a manifest, by name.
    admit
        Returns the instant since which each window of a query sees every event; raises if the query cannot be
        answered.

    Attributes
    ----------
    active
        The queries to answer, and the instants since which their windows see every event.
    unserved
        Why listed queries are suspended from now on: the job was restarted with other queries.
    """

    def __init__(
        self,
        offers: Sequence[Offer],
        declared: frozenset[str],
        listed: Mapping[str, Sequence[Any]],
        admit: Callable[[RegisteredQuery], dict[str, int]],
    ) -> None:
        self._offers, self._declared, self._admit = offers, declared, admit
        self.listed = {name: RegistryEntry(*values) for name, values in listed.items()}
        self.active: dict[str, tuple[RegisteredQuery, dict[str, int]]] = {}
        self.unserved: list[Refusal] = []
        for name, query in [(name, query) for name, query in self.listed.items() if query.active]:
            try:
                if name in declared:
                    raise DeclarationError("the job declares a query of this name now")
                self.active[name] = bind_entry(read_entry(query.entry), offers), query.since
            except Exception as error:
                self.listed[name] = RegistryEntry(query.entry, False, {})
                self.unserved.append(Refusal(name, f"{name}: {error}"))

    def change(self, text: str) -> Refusal | None:
        """Apply an entry; return what is refused and why, if it is."""
        try:
            entry = read_entry(text)
            listed = self.listed.get(entry.name)
            if entry.action == "register":
                if entry.name in self._declared or listed is not None:
                    raise DeclarationError(f"a query {entry.name!r} exists already. Drop it, or rename this one.")
                self._activate(entry, text)
            elif listed is None:
                why = "is declared by the job, not registered" if entry.name in self._declared else "is not registered"
                raise DeclarationError(f"{entry.name!r} {why}, so there is nothing to {entry.action}.")
            elif entry.action == "resume":
                if not listed.active:
                    self._activate(read_entry(listed.entry), listed.entry)
            else:
                self.active.pop(entry.name, None)
                self.listed[entry.name] = RegistryEntry(listed.entry, False, {})
                if entry.action == "drop":
                    del self.listed[entry.name]
        except Exception as error:
            # Anybody may write such a file: whatever is in it, the job goes on.
            return Refusal(name_in(text), f"{text[:_SHOWN]}: {error}")
        return None

    def _activate(self, entry: Entry, text: str) -> None:
        query = bind_entry(entry, self._offers)
        since = self._admit(query)
        self.active[entry.name] = query, since
        self.listed[entry.name] = RegistryEntry(text, True, since)
