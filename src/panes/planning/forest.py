"""What the planner hands over: each window and factor window, whom it reads, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from panes.planning.cost import CostModel
from panes.planning.coverage import Semantics
from panes.planning.min_cost import RAW, Assignment
from panes.planning.numbers import Ticks
from panes.timeline import Geometry

FACTOR: Final = "factor window "
"""How the name of a window begins that nobody asked for."""


@dataclass(frozen=True, slots=True)
class Node:
    """A window of the forest; ``provider`` is ``None`` where it reads the raw stream."""

    window: Geometry
    provider: Geometry | None
    cost: float
    factor: bool


@dataclass(frozen=True, slots=True)
class Forest:
    """The windows of a user, the factor windows that help them, and who reads whom.

    Attributes
    ----------
    nodes
        The user's distinct windows in the order given, then the factor windows, shortest first.
    semantics
        The relation between a window and its provider.
    naive
        What the user's windows cost when each is computed alone.
    trace
        What the planner tried, one line each.
    """

    nodes: tuple[Node, ...]
    semantics: Semantics
    naive: float
    trace: tuple[str, ...] = ()

    @property
    def windows(self) -> tuple[Geometry, ...]:
        """The user's windows."""
        return tuple(node.window for node in self.nodes if not node.factor)

    @property
    def factors(self) -> tuple[Geometry, ...]:
        """The windows that nobody asked for, but others read."""
        return tuple(node.window for node in self.nodes if node.factor)

    @property
    def total(self) -> float:
        """The cost of all windows together."""
        return math.fsum(node.cost for node in self.nodes)

    @property
    def providers(self) -> dict[Geometry, Geometry | None]:
        """The provider of each window, ``None`` standing for the raw stream."""
        return {node.window: node.provider for node in self.nodes}

    def children(self) -> dict[Geometry | None, tuple[Geometry, ...]]:
        """The windows that read each provider, ``None`` standing for the raw stream."""
        found: dict[Geometry | None, list[Geometry]] = {}
        for node in self.nodes:
            found.setdefault(node.provider, []).append(node.window)
        return {provider: tuple(windows) for provider, windows in found.items()}

    def lines(self) -> Iterator[str]:
        """The forest drawn as indented text, factor windows in brackets."""
        children, nodes = self.children(), {node.window: node for node in self.nodes}

        stack = [(window, 0) for window in reversed(children.get(None, ()))]
        while stack:
            window, depth = stack.pop()
            node = nodes[window]
            name = f"[{label(window)}]" if node.factor else label(window)
            yield f"{'  ' * depth}{name}  cost {node.cost:.6g}"
            stack.extend((child, depth + 1) for child in reversed(children.get(window, ())))


def label(window: Geometry) -> str:
    """A window as the paper writes it, with its offset if it has one.

    Examples
    --------
    >>> label(Geometry(20, 20)), label(Geometry(20, 10, 5))
    ('⟨20, 20⟩', '⟨20, 10⟩+5')
    """
    return f"⟨{window.range}, {window.slide}⟩" + (f"+{window.offset}" if window.offset else "")


def forest_of(assignment: Assignment, users: int, ticks: Ticks, model: CostModel, trace: tuple[str, ...]) -> Forest:
    """Turn an assignment in ticks, whose first ``users`` vertices are the user's, into a forest in given units."""
    restored = [ticks.restore(window) for window in assignment.graph.windows]
    nodes = []
    for at, (window, source) in enumerate(zip(restored, assignment.providers.tolist(), strict=True)):
        provider = None if source == RAW else restored[source]
        nodes.append(Node(window, provider, model.cost(window, provider), factor=at >= users))
    factors = sorted(nodes[users:], key=lambda node: node.window)
    return Forest(
        nodes=(*nodes[:users], *factors),
        semantics=assignment.graph.semantics,
        naive=model.naive(restored[:users]),
        trace=trace,
    )
