"""The forest: the windows of a user, the factor windows that help them, and who reads whom."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from panes.planning.cost import RAW, Assignment, CostModel
from panes.planning.coverage import Semantics, Ticks
from panes.timeline import Edges, Geometry

FACTOR: Final = "factor window "
"""How the name of a window that no query declares begins."""


@dataclass(frozen=True, slots=True)
class Node:
    """A window of the forest; ``provider`` is None if it reads the raw stream."""

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
        What the user's windows cost if each reads the raw stream.
    trace
        What the planner tried, a line each.
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
        """The windows that no query declares, but others read."""
        return tuple(node.window for node in self.nodes if node.factor)

    @property
    def total(self) -> float:
        """The cost of all windows together."""
        return math.fsum(node.cost for node in self.nodes)

    @property
    def providers(self) -> dict[Geometry, Geometry | None]:
        """The provider of each window; None is the raw stream."""
        return {node.window: node.provider for node in self.nodes}

    def children(self) -> dict[Geometry | None, tuple[Geometry, ...]]:
        """Return the windows that read each provider; None is the raw stream."""
        found: dict[Geometry | None, list[Geometry]] = {}
        for node in self.nodes:
            found.setdefault(node.provider, []).append(node.window)
        return {provider: tuple(windows) for provider, windows in found.items()}

    def lines(self) -> Iterator[str]:
        """Yield the forest as indented text, factor windows in brackets."""
        children, nodes = self.children(), {node.window: node for node in self.nodes}

        stack = [(window, 0) for window in reversed(children.get(None, ()))]
        while stack:
            window, depth = stack.pop()
            node = nodes[window]
            name = f"[{label(window)}]" if node.factor else label(window)
            yield f"{'  ' * depth}{name}  cost {node.cost:.6g}"
            stack.extend((child, depth + 1) for child in reversed(children.get(window, ())))


def label(window: Geometry) -> str:
    """Return a window as the paper writes it, with its offset if it has one.

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


def piggyback(
    windows: tuple[Geometry, ...], optimized: Callable[[tuple[Geometry, ...]], Forest], *, overlapping: bool
) -> Forest:
    """Read windows from denser ones of the same range if that makes the forest cheaper.

    Every instance of ⟨60, 20⟩ is also one of ⟨60, 5⟩. The factor-window paper only considers shorter providers; the
    window manager of Patroumpas and Sellis (2011) calls this piggybacking. Reading the denser window costs one read
    per instance.

    Parameters
    ----------
    optimized
        Returns the forest of some windows.
    overlapping
        Whether a provider may have overlapping instances. A column of partials may not.

    Examples
    --------
    >>> from panes.planning.coverage import Semantics
    >>> from panes.planning.optimize import optimize
    >>> windows = (Geometry(60, 5), Geometry(60, 20))
    >>> forest = piggyback(windows, lambda some: optimize(some, Semantics.PARTITIONED_BY, eta=10), overlapping=True)
    >>> print(*forest.lines(), sep="\\n")
    [⟨5, 5⟩]  cost 10
      ⟨60, 5⟩  cost 2.4
        ⟨60, 20⟩  cost 0.2
    """
    together = optimized(windows)
    carriers = _carriers(windows, overlapping)
    if not carriers:
        return together
    rest = optimized(tuple(window for window in windows if window not in carriers))
    carried = tuple(Node(window, host, 1 / host.slide, factor=False) for window, host in carriers.items())
    note = f"piggyback: {len(carried)} windows read from denser ones of the same range"
    apart = replace(rest, nodes=(*rest.nodes, *carried), naive=together.naive, trace=(*rest.trace, note))
    return apart if apart.total < together.total else together


def _carriers(windows: tuple[Geometry, ...], overlapping: bool) -> dict[Geometry, Geometry]:
    """Return, for each window that has one, the sparsest other window of the same range with all its instances."""
    by_range: dict[int, list[Geometry]] = {}
    for window in windows:
        by_range.setdefault(window.range, []).append(window)
    found = {}
    for window in windows:
        hosts = [
            host
            for host in by_range[window.range]
            if (host.tumbling or (overlapping and host.slide < host.range)) and _carries(host, window)
        ]
        if hosts:
            found[window] = max(hosts, key=lambda host: host.slide)
    return found


def _carries(host: Geometry, window: Geometry) -> bool:
    starts, own = Edges(host.slide, host.offset), Edges(window.slide, window.offset)
    return host.slide < window.slide and own.within(starts)
