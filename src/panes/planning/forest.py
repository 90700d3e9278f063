"""The forest: the windows of a user, the factor windows that help them, and who reads whom."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from panes.timeline import Geometry

FACTOR: Final = "factor window "
"""How the name of a window that no query declares begins."""


@dataclass(frozen=True, slots=True)
class ForestNode:
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
    naive
        What the user's windows cost if each reads the raw stream.
    trace
        What the planner tried, a line each.
    """

    nodes: tuple[ForestNode, ...]
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
    >>> for window, provider in forest.providers.items():
    ...     print(window, "from", provider)
    ⟨60, 5⟩ from ⟨5, 5⟩
    ⟨5, 5⟩ from None
    ⟨60, 20⟩ from ⟨60, 5⟩
    """
    together = optimized(windows)
    carriers = _carriers(windows, overlapping)
    if not carriers:
        return together
    rest = optimized(tuple(window for window in windows if window not in carriers))
    carried = tuple(ForestNode(window, host, 1 / host.slide, factor=False) for window, host in carriers.items())
    note = f"piggyback: {len(carried)} windows read from denser ones of the same range"
    apart = replace(rest, nodes=(*rest.nodes, *carried), naive=together.naive, trace=(*rest.trace, note))
    return apart if apart.total < together.total else together


def _carriers(windows: tuple[Geometry, ...], overlapping: bool) -> dict[Geometry, Geometry]:
    """Return, for each window that has one, the sparsest denser window of the same range with all its instances."""
    by_range: dict[int, list[Geometry]] = {}
    for window in windows:
        if window.tumbling or (overlapping and window.slide < window.range):
            by_range.setdefault(window.range, []).append(window)
    carriers = {}
    for window in windows:
        denser = [host for host in by_range.get(window.range, ()) if host.slide < window.slide]
        hosts = [host for host in denser if window.starts.within(host.starts)]
        if hosts:
            carriers[window] = max(hosts, key=lambda host: host.slide)
    return carriers
