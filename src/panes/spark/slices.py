"""Keys with very many events, cut into slices of time so that several tasks share one.

A window reaches back a known time, so a slice needs its own events and, of the slice before, those that are no further
back than that: they are copied. Other keys stay whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from panes.declare.lookups import LookupPart
from panes.planning.picture import counted
from panes.spark.binding import Input
from panes.spark.naming import quoted
from panes.timeline import format_duration

SLICE = "__panes_slice"

_SAMPLE = 4_000
_LEAST = 0.05
"""A key with a smaller share of the events does not hold up the other tasks for long."""

_WIDTH = 2
"""How many times as long as the widest window a slice is: one event in so many is copied."""


@dataclass(frozen=True)
class Slices:
    """How to cut.

    Parameters
    ----------
    reach
        How far back windows look, in µs.
    heavy
        The hashes of the keys to cut; None for all.
    """

    reach: int
    heavy: tuple[int, ...] | None

    def __str__(self) -> str:
        cut = "" if self.heavy is None else f", of {counted(len(self.heavy), 'frequent key')}"
        return f"slices of {format_duration(_WIDTH * self.reach)}{cut}"

    def of_events(self, rows: DataFrame, keys: Sequence[str], instant: str) -> DataFrame:
        """Events in their slices, and copied into the next one where that one's windows reach them."""
        width = _WIDTH * self.reach
        own = f"({instant} - pmod({instant}, {width}L))"
        copied = f"IF(pmod({instant}, {width}L) >= {width - self.reach}L, array({own}, {own} + {width}L), array({own}))"
        return self._placed(rows, keys, f"explode({self._or_whole(keys, copied, 'array(0L)')})")

    def of_requests(self, rows: DataFrame, keys: Sequence[str], instant: str) -> DataFrame:
        """Each request in its slice."""
        width = _WIDTH * self.reach
        own = f"coalesce({instant} - pmod({instant}, {width}L), 0L)"
        return self._placed(rows, keys, self._or_whole(keys, own, "0L"))

    def _or_whole(self, keys: Sequence[str], cut: str, whole: str) -> str:
        if self.heavy is None:
            return cut
        return f"IF({_hash(keys)} IN ({', '.join(f'{number}L' for number in self.heavy)}), {cut}, {whole})"

    def _placed(self, rows: DataFrame, keys: Sequence[str], sql: str) -> DataFrame:
        names = [quoted(name) for name in rows.columns]
        return rows.selectExpr(*names[: len(keys)], f"{sql} AS {SLICE}", *names[len(keys) :])


def slices_for(part: LookupPart, source: Input) -> Slices | None:
    """Whether to cut, judged by the first events; without keys, all events are of one.

    Windows that count events reach back any time, so that nothing can be cut.
    """
    if part.rows or not part.reach:
        return None
    if not part.by:
        return Slices(part.reach, None)
    hashes = source.events.selectExpr(f"{_hash(part.by)} AS hash").limit(_SAMPLE).toArrow().column(0)
    partitions = int(source.events.sparkSession.conf.get("spark.sql.shuffle.partitions") or 200)
    share = max(1 / partitions, _LEAST) * len(hashes)
    heavy = tuple(number for number, count in Counter(hashes.to_pylist()).items() if count > share)
    return Slices(part.reach, heavy) if heavy else None


def _hash(keys: Sequence[str]) -> str:
    return f"xxhash64({', '.join(map(quoted, keys))})"
