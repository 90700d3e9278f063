"""What runs on one partition: stored columns, the tree of windows over them, and what is read out of each.

A *store* is what is kept: key columns, components, and the edges between panes. *Views* are what is asked of it: a
query over a window. Everything here is resolved before rows flow (types, components, kernels' algebra), and travels
to executors as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from panes.aggregates.aggregates import Aggregate, Bound
from panes.aggregates.component import Component
from panes.aggregates.sums import Count
from panes.expressions.evaluate import result_type
from panes.expressions.expression import Expression, column, expression, when
from panes.planning.blueprint import StorePlan
from panes.planning.forest import FACTOR, Forest
from panes.queries.query import Query
from panes.queries.windows import Window, geometry_name
from panes.timeline import Edges, Geometry, format_duration

TypeOf = Callable[[str], pa.DataType]
"""Gives the type of a scalar SQL expression over the events."""


def types_in(schema: pa.Schema) -> TypeOf:
    """Type expressions as they are evaluated in this process."""
    return lambda sql: result_type(expression(sql), schema)


@dataclass(frozen=True)
class Reading:
    """One output column: the stored columns it is read from, and how."""

    alias: str
    components: tuple[int, ...]
    bound: Bound


@dataclass(frozen=True)
class View:
    """A query over one window.

    Parameters
    ----------
    query, window
        Where it stands in the list of queries, and the window with its name.
    readings
        The output columns that are aggregates.
    exists
        The component that counts the query's events, or None when every stored partial has some. Never None where
        there is an answer per event.
    """

    query: int
    window: Window
    readings: tuple[Reading, ...]
    exists: int | None


@dataclass(frozen=True)
class Node:
    """A window to compute, for its views or because other windows read it.

    Parameters
    ----------
    provider
        The index of the node it reads, or None for the panes.
    needed
        The components that it or a window that reads it needs.
    """

    geometry: Geometry
    provider: int | None
    needed: tuple[int, ...]
    views: tuple[int, ...]


@dataclass(frozen=True)
class Program:
    """A store and its views, ready to run on partitions whose rows are sorted by key and time."""

    components: tuple[Component, ...]
    edges: tuple[Edges, ...]
    views: tuple[View, ...]
    nodes: tuple[Node, ...]
    emit_all: bool = False
    """Whether instances without events are answered too, between those with events or while a key is held."""

    def by_since(self, views: Iterable[int]) -> dict[int | None, tuple[int, ...]]:
        """Some views, by the instant since which events count for them."""
        found: dict[int | None, tuple[int, ...]] = {}
        for view in views:
            since = self.views[view].window.since
            found[since] = (*found.get(since, ()), view)
        return found

    def by_event(self) -> dict[tuple[int, int, int], tuple[int, ...]]:
        """The views that have an answer per event, by size, how long ago, and the component that counts events."""
        found: dict[tuple[int, int, int], tuple[int, ...]] = {}
        for number, view in enumerate(self.views):
            if view.window.per_event:
                assert view.exists is not None
                alike = view.window.geometry.range, view.window.ago, view.exists
                found[alike] = (*found.get(alike, ()), number)
        return found

    @property
    def arguments(self) -> tuple[str, ...]:
        """The distinct argument expressions, for runs that lift single events."""
        return tuple(dict.fromkeys(a for component in self.components for a in component.arguments))


def from_panes(views: Sequence[View], like: Program) -> Program:
    """A program that answers some views straight from the panes or granules of another one's store."""
    at: dict[Geometry, list[int]] = {}
    for number, view in enumerate(views):
        if not view.window.per_event:
            at.setdefault(view.window.geometry, []).append(number)
    nodes = tuple(
        Node(geometry, None, tuple(sorted(_components_of([views[v] for v in numbers]))), tuple(numbers))
        for geometry, numbers in at.items()
    )
    return replace(like, views=tuple(views), nodes=nodes)


def cut_into_ticks(program: Program) -> Program:
    """The same program with panes no longer than the ticks of its components, for events that come in any order."""
    ticks = {Edges(component.ticks) for component in program.components if component.ticks}
    new = [tick for tick in sorted(ticks) if not any(tick.within(edges) for edges in program.edges)]
    return replace(program, edges=(*program.edges, *new))


def emitting_all(program: Program) -> Program:
    """The same views, answered for instances without events too; what is answered with an event always has one.

    Every window is read from the panes: another window's instances begin before a key's first event and end after its
    last, so they do not tell where empty ones stop.
    """
    if all(view.window.per_event for view in program.views):
        return program
    return replace(from_panes(program.views, program), emit_all=True)


def bind_components(
    queries: Iterable[tuple[int, Query]], kept: Expression | None, type_of: TypeOf
) -> tuple[tuple[Component, ...], dict[int, tuple[tuple[Reading, ...], int | None]]]:
    """The shared components of some queries, and what each query reads out of them.

    Parameters
    ----------
    queries
        The queries with their numbers.
    kept
        The condition that all stored events fulfil already. A query with another condition gets
        conditional components.
    """
    found: dict[Component, int] = {}
    readings: dict[int, tuple[tuple[Reading, ...], int | None]] = {}
    for number, query in queries:
        condition = _own_condition(query, kept)
        columns = []
        for alias, aggregate in query.aggregates:
            arguments = _arguments(query, aggregate, condition)
            bound = aggregate.bind(arguments, tuple(type_of(argument) for argument in arguments))
            columns.append(Reading(alias, tuple(found.setdefault(c, len(found)) for c in bound.components), bound))
        exists = None
        if condition is not None or any(window.per_event for window in query.windows):
            exists = found.setdefault(Count((_masked(condition, "1"),), (pa.int32(),)), len(found))
        readings[number] = (tuple(columns), exists)
    return tuple(found), readings


def bind_store(store: StorePlan, type_of: TypeOf) -> Program:
    """Return the program of a store, whose columns were checked before."""
    components, readings = bind_components(store.queries, store.kept, type_of)
    return assemble(components, store.edges, store.forest, store.queries, readings)


def argument_expressions(queries: Iterable[tuple[int, Query]], kept: Expression | None) -> tuple[str, ...]:
    """The Spark SQL of every argument that ``bind_components`` will ask the type of."""
    found = [
        argument
        for _, query in queries
        for _, aggregate in query.aggregates
        for argument in _arguments(query, aggregate, _own_condition(query, kept))
    ]
    return tuple(dict.fromkeys(found))


def assemble(
    components: tuple[Component, ...],
    edges: tuple[Edges, ...],
    forest: Forest,
    queries: Iterable[tuple[int, Query]],
    readings: dict[int, tuple[tuple[Reading, ...], int | None]],
) -> Program:
    """The program of a forest: providers before the windows that read them."""
    views: list[View] = []
    at: dict[Geometry, list[int]] = {}
    for number, query in queries:
        columns, exists = readings[number]
        for window in query.windows:
            if not window.per_event:
                at.setdefault(window.geometry, []).append(len(views))
            views.append(View(number, window, columns, exists))
    own = {geometry: _components_of([views[v] for v in numbers]) for geometry, numbers in at.items()}
    children = forest.children()
    needed: dict[Geometry, set[int]] = {}
    order = _top_down(forest)
    for geometry in reversed(order):
        below = (needed[child] for child in children.get(geometry, ()))
        needed[geometry] = set().union(own.get(geometry, set()), *below)
    # What is answered per event is no level that anything is read from.
    order = [geometry for geometry in order if needed[geometry]]
    index = {geometry: i for i, geometry in enumerate(order)}
    providers = forest.providers
    nodes = tuple(
        Node(
            geometry,
            None if (provider := providers[geometry]) is None else index[provider],
            tuple(sorted(needed[geometry])),
            tuple(at.get(geometry, ())),
        )
        for geometry in order
    )
    return Program(components, edges, tuple(views), nodes)


def _components_of(views: list[View]) -> set[int]:
    found = {c for view in views for reading in view.readings for c in reading.components}
    return found | {view.exists for view in views if view.exists is not None}


def _top_down(forest: Forest) -> list[Geometry]:
    children, order = forest.children(), list[Geometry]()
    stack = list(reversed(children.get(None, ())))
    while stack:
        geometry = stack.pop()
        order.append(geometry)
        stack.extend(reversed(children.get(geometry, ())))
    return order


def _own_condition(query: Query, kept: Expression | None) -> Expression | None:
    return None if query.where == kept else query.where


def _arguments(query: Query, aggregate: Aggregate, condition: Expression | None) -> tuple[str, ...]:
    arguments = tuple(_masked(condition, argument) for argument in aggregate.arguments)
    order = (column(name).sql for name in (query.at, *query.ties))
    return (*order, *arguments) if aggregate.by_time else arguments


def _masked(condition: Expression | None, argument: str) -> str:
    return argument if condition is None else when(condition, expression(argument)).sql


def describe_windows(program: Program) -> tuple[str, ...]:
    """Every window that is computed, each with the window it is read from if it is not read from the rows themselves.

    Windows of one name that begin together and end one after another say which one they are.
    """
    named = Counter(name for node in program.nodes for name in {program.views[v].window.name for v in node.views})
    titles = []
    for node in program.nodes:
        own = dict.fromkeys(program.views[v].window.name for v in node.views)
        first = f", first {format_duration(node.geometry.range)}"
        names = (f"{name}{first if named[name] > 1 else ''}" for name in own)
        titles.append(", ".join(names) or f"{FACTOR}{geometry_name(node.geometry)}")
    providers = (node.provider for node in program.nodes)
    found = [
        title if provider is None else f"{title} ← {titles[provider]}"
        for title, provider in zip(titles, providers, strict=True)
    ]
    return (*found, *(view.window.name for view in program.views if view.window.per_event))
