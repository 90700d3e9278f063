"""What the granules of a store can still tell: since when every event is seen, for a window that comes later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from panes.engine.partials import next_edge
from panes.planning.granularity import Tier
from panes.timeline import Edges, Geometry

ALWAYS = -(2**62)


@dataclass
class History:
    """How far the granules of a store have aged.

    Parameters
    ----------
    dropped
        GranuleRows that start before it may be gone.
    coarse
        By edges: granules that end no later than an instant may be no finer than these edges.
    """

    dropped: int = ALWAYS
    coarse: dict[tuple[Edges, ...], int] = field(default_factory=dict)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> History:
        """As a manifest has it."""
        return cls(data["dropped"], {tuple(Edges(*e) for e in edges): upto for edges, upto in data["coarse"]})

    def to_json(self) -> dict[str, Any]:
        """For a manifest."""
        coarse = [[[(e.period, e.offset) for e in edges], upto] for edges, upto in self.coarse.items()]
        return {"dropped": self.dropped, "coarse": coarse}

    def age(self, tiers: Sequence[Tier], watermark: int) -> None:
        """Note what a watermark has made coarse or dropped."""
        for younger, tier in pairwise(tiers):
            self.coarse[tier.edges] = max(self.coarse.get(tier.edges, ALWAYS), watermark - younger.reach)
        # Granules that start no later than this are gone, with all that they held.
        last = np.array([watermark - tiers[-1].reach])
        ends = [int(next_edge(tiers[0].edges, last)[0])]
        ends += [end for edges, upto in self.coarse.items() if (end := int(next_edge(edges, last)[0])) <= upto]
        self.dropped = max(self.dropped, *ends)
        # What is gone needs no note of how coarse it was.
        self.coarse = {edges: upto for edges, upto in self.coarse.items() if upto > self.dropped}

    def sees_from(self, geometry: Geometry, finest: tuple[Edges, ...]) -> int:
        """The instant from which on a window sees every event; no granule spans it.

        Examples
        --------
        >>> history = History(dropped=100, coarse={(Edges(60),): 500})
        >>> history.sees_from(Geometry(600, 60), (Edges(10),)), history.sees_from(Geometry(20, 20), (Edges(10),))
        (120, 500)
        """
        instants = [self.dropped]
        for edges, upto in self.coarse.items():
            if not all(any(e.within(other) for other in edges) for e in geometry.edges()):
                instants.append(upto)
        since = max(instants)
        return since if since == ALWAYS else self._on_an_edge(since, finest)

    def _on_an_edge(self, instant: int, finest: tuple[Edges, ...]) -> int:
        """The first instant from another one on that lies within no granule."""
        while True:
            found = _first_edge(finest, instant)
            for edges, upto in self.coarse.items():
                if (edge := _first_edge(edges, found)) <= upto:
                    found = edge
            if found == instant:
                return found
            instant = found


def _first_edge(edges: tuple[Edges, ...], instant: int) -> int:
    """The first edge at or after an instant."""
    return int(next_edge(edges, np.array([instant - 1]))[0])
