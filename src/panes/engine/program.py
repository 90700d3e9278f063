"""What runs on one partition: stored columns, the tree of windows over them, and what is read out of each.

A *store* is what is kept: key columns, components, and the edges between panes. A *view* is a query over one of its
windows. Everything here is resolved before rows flow (types, components, kernels' algebra), and travels
to executors as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from panes.aggregates.aggregate import Bound
from panes.aggregates.component import Component
from panes.queries.windows import Window
from panes.timeline import Edges, Geometry


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
        Node(geometry, None, tuple(sorted(components_of([views[v] for v in numbers]))), tuple(numbers))
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


def components_of(views: Sequence[View]) -> set[int]:
    """The components that some views are read out of."""
    found = {c for view in views for reading in view.readings for c in reading.components}
    return found | {view.exists for view in views if view.exists is not None}
