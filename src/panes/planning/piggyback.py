"""Equal ranges with several slides: every instance of the sparser window is an instance of the denser one.

The coverage of the factor-window paper asks for a shorter provider, so it leaves this case out; the window manager of
Patroumpas and Sellis (2011) calls it piggybacking. Reading the denser window costs a look at each of its instances.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from panes.planning.forest import Forest, Node
from panes.timeline import Edges, Geometry


def piggyback(
    windows: tuple[Geometry, ...], optimized: Callable[[tuple[Geometry, ...]], Forest], *, overlapping: bool
) -> Forest:
    """The cheaper of two forests: of all windows, or of some with the others read from denser ones of their range.

    Parameters
    ----------
    optimized
        The forest of some windows.
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
    noted = f"piggyback: {len(carried)} windows read from denser ones of the same range"
    apart = replace(rest, nodes=(*rest.nodes, *carried), naive=together.naive, trace=(*rest.trace, noted))
    return apart if apart.total < together.total else together


def _carriers(windows: tuple[Geometry, ...], overlapping: bool) -> dict[Geometry, Geometry]:
    """For each window that has one, the sparsest other window of the same range that has all its instances."""
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
