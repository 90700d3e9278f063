"""Bind a store to the types of its data: its components, what each query reads out of them, the tree of windows.

Everything here happens before rows flow. What comes out, a ``Program``, has a module of its own, since workers import
it: binding brings the SQL parser and the planner along.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TypeAlias

import pyarrow as pa

from panes.aggregates.aggregate import Aggregate
from panes.aggregates.component import Component
from panes.aggregates.sums import Count
from panes.engine.program import Node, Program, Reading, View, components_of
from panes.engine.schema import ResultSchema, answer_schema, check_columns
from panes.expressions.evaluate import result_type
from panes.expressions.expression import Expression, column, expression, when
from panes.planning.forest import FACTOR, Forest
from panes.planning.physical_plan import PhysicalPlan, StorePlan
from panes.queries.query import Query
from panes.queries.windows import geometry_name
from panes.timeline import Edges, Geometry, format_duration

TypeOf = Callable[[str], pa.DataType]
"""Gives the type of a scalar SQL expression over the events."""

BoundQueries: TypeAlias = tuple[tuple[Component, ...], dict[int, tuple[tuple[Reading, ...], int | None]]]
"""The components that queries share, and by number of query its output columns and what counts its events."""


def types_in(schema: pa.Schema) -> TypeOf:
    """Type expressions as they are evaluated in this process."""
    return lambda sql: result_type(expression(sql), schema)


def bind_plan(physical: PhysicalPlan, events: pa.Schema) -> tuple[list[Program], ResultSchema]:
    """Bind a plan to the columns of a table, after every check: a program per store, and the schema of all answers."""
    check_columns(physical.queries, events)
    programs = [bind_store(store, types_in(events)) for store in physical.stores]
    return programs, answer_schema(physical.queries, programs, events)


def bind_components(queries: Iterable[tuple[int, Query]], kept: Expression | None, type_of: TypeOf) -> BoundQueries:
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
    own = {geometry: components_of([views[v] for v in numbers]) for geometry, numbers in at.items()}
    children = forest.children()
    needed: dict[Geometry, set[int]] = {}
    order = _top_down(forest)
    for geometry in reversed(order):
        below = (needed[child] for child in children.get(geometry, ()))
        needed[geometry] = set().union(own.get(geometry, set()), *below)
    # What is answered per event is no column that anything is read from.
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
