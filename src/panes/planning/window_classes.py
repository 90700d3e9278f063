"""The window manager: windows in, groups of nested windows out, updated as windows come and go.

Paper: Patroumpas and Sellis, Subsuming Multiple Sliding Windows for Shared Stream Computation (2011), section 3 and
Algorithm 1. Windows are gathered in groups; a group is a chain in which every window is subsumable under the next, so
that its windows share one state whose older parts are ever coarser (see ``panes.planning.granularity``).

The printed function ``embedWindow`` has errors: it never checks the window before the position it finds, its line 38
would add a window that is there already, and its line 40 asks a narrower window to subsume a wider one. This follows
the text of the paper: find the position by range, and check both neighbours. There are two more rules for windows of
equal range, of which the printed algorithm keeps whichever came first: the denser one takes the position and carries
the other; and when a window is withdrawn, those that it carried and that do not fit its position are embedded again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from panes.errors import PlanError
from panes.timeline import Edges, Geometry


class Role(Enum):
    """The role of a window in its group."""

    SEED = "seed"
    ENCLOSING = "enclosing"
    PIGGYBACKED = "piggybacked"


def subsumable(inner: Geometry, outer: Geometry) -> bool:
    """Definition 1: the outer window is no narrower, and slides only when the inner one does.

    The paper's windows all start at one instant; with offsets, they also have to be congruent.

    Examples
    --------
    >>> subsumable(Geometry(8, 2), Geometry(24, 8)), subsumable(Geometry(24, 8), Geometry(32, 4))
    (True, False)
    """
    return outer.range >= inner.range and _in_step(inner, outer)


@dataclass
class Link:
    """A window of a chain, and its riders: windows of equal range, whose states are every q-th of its own."""

    window: Geometry
    riders: list[Geometry] = field(default_factory=list)


@dataclass
class Group:
    """Windows that share one state: a chain by increasing range."""

    links: list[Link]

    @property
    def seed(self) -> Geometry:
        """The narrowest window, whose slide is the base slide of the group."""
        return self.links[0].window

    @property
    def windows(self) -> list[Geometry]:
        """All windows, including riders."""
        return [window for link in self.links for window in (link.window, *link.riders)]


class WindowManager:
    """The groups of a pool of windows.

    Parameters
    ----------
    windows
        The initial pool, grouped by Algorithm 1. It may contain a window several times.

    Examples
    --------
    >>> manager = WindowManager([Geometry(8, 2), Geometry(8, 4), Geometry(24, 8), Geometry(32, 4)])
    >>> [[(w.range, w.slide) for w in group.windows] for group in manager.groups]
    [[(8, 2), (8, 4), (24, 8)], [(32, 4)]]
    >>> manager.suspend(Geometry(8, 2))
    >>> manager.groups[0].seed
    Geometry(range=8, slide=4, offset=0)
    """

    def __init__(self, windows: Iterable[Geometry] = ()) -> None:
        self.groups: list[Group] = []
        self._pool: Counter[Geometry] = Counter(windows)
        for window in sorted(self._pool, key=lambda w: (w.range, w.slide, w.offset)):
            self._append(window)

    @property
    def windows(self) -> list[Geometry]:
        """The distinct windows of the pool."""
        return list(self._pool)

    def register(self, window: Geometry) -> Role:
        """Embed a window while others are served (the function ``embedWindow``), and return its role."""
        self._pool[window] += 1
        if self._pool[window] == 1:
            self._embed(window)
        return self.role(window)

    def suspend(self, window: Geometry) -> None:
        """Withdraw a window; its riders take its position or are embedded again."""
        if not self._pool[window]:
            raise PlanError(
                f"the window ⟨{window.range}, {window.slide}⟩ is not registered, so it cannot be withdrawn."
            )
        self._pool[window] -= 1
        if self._pool[window]:
            return
        del self._pool[window]
        group, link = self._where(window)
        if link.window != window:
            link.riders.remove(window)
            return
        self._withdraw(group, link)

    def role(self, window: Geometry) -> Role:
        """The role of a window in its group."""
        group, link = self._where(window)
        if link.window != window:
            return Role.PIGGYBACKED
        return Role.SEED if group.seed == window else Role.ENCLOSING

    def _append(self, window: Geometry) -> None:
        """Follow lines 5 to 15 of Algorithm 1: windows come by range, so only the end of a chain can take one."""
        for group in self._by_base_slide():
            last = group.links[-1]
            if not subsumable(last.window, window):
                continue
            if last.window.range == window.range:
                last.riders.append(window)
            else:
                group.links.append(Link(window))
            return
        self.groups.append(Group([Link(window)]))

    def _embed(self, window: Geometry) -> None:
        if not any(_embed_in(group, window) for group in self._by_base_slide()):
            self.groups.append(Group([Link(window)]))

    def _withdraw(self, group: Group, link: Link) -> None:
        at = group.links.index(link)
        orphans = sorted(link.riders, key=lambda rider: rider.slide)
        after = group.links[at + 1].window if at + 1 < len(group.links) else None
        if orphans and (after is None or subsumable(orphans[0], after)):
            # The densest rider takes over, with the riders that are in step with it.
            heir = Link(orphans[0], [other for other in orphans[1:] if _in_step(orphans[0], other)])
            group.links[at] = heir
            orphans = [other for other in orphans[1:] if other not in heir.riders]
        else:
            del group.links[at]
            if not group.links:
                self.groups.remove(group)
        for orphan in orphans:
            self._embed(orphan)

    def _where(self, window: Geometry) -> tuple[Group, Link]:
        for group in self.groups:
            at = bisect_right(group.links, window.range, key=lambda link: link.window.range) - 1
            if at >= 0 and (group.links[at].window == window or window in group.links[at].riders):
                return group, group.links[at]
        raise PlanError(f"the window ⟨{window.range}, {window.slide}⟩ is not registered.")

    def _by_base_slide(self) -> list[Group]:
        return sorted(self.groups, key=lambda group: group.seed.slide, reverse=True)


def _embed_in(group: Group, window: Geometry) -> bool:
    """Embed a window in a chain if there is a position for it, and return whether there was."""
    links = group.links
    at = bisect_right(links, window.range, key=lambda link: link.window.range)
    before = links[at - 1] if at else None
    after = links[at].window if at < len(links) else None
    if before is not None and before.window.range == window.range:
        if _in_step(before.window, window):
            before.riders.append(window)
            return True
        if not _in_step(window, before.window) or (at > 1 and not subsumable(links[at - 2].window, window)):
            return False
        # Denser than the one of its range: it takes the position and carries the other, which fits what comes after.
        links[at - 1] = Link(window, [before.window, *before.riders])
        return True
    if before is not None and not subsumable(before.window, window):
        return False
    if after is not None and not subsumable(window, after):
        return False
    links.insert(at, Link(window))
    return True


def _in_step(dense: Geometry, sparse: Geometry) -> bool:
    """Whether one window slides only when another does."""
    return Edges(sparse.slide, sparse.offset).within(Edges(dense.slide, dense.offset))
