"""Factor windows worth considering for every subset of the windows, not only for a whole downstream.

Paper: Factor Windows, footnote 3, names what Algorithm 3 leaves out: windows such as ⟨15, 15⟩ that help only some of
the downstream. A factor window with a given set of consumers is no worse when its slide is as large as they allow,
which is the gcd of their slides, of their differences of offsets and of their differences of ranges. So slides come
from the closure of the windows under that gcd. With disjoint instances the closure holds an optimum: a window of it
is tumbling, and lengthening it to the gcd of its consumers makes them cheaper and itself no dearer.

With overlapping instances a range remains free. Its cost is linear between the points where consumers or providers
change, so the candidates are those points: as short as possible, just below a consumer, just above a provider.
Where the ranges are no multiples of the slide, a smaller slide with a shorter range may win, so divisors count too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from panes.planning.coverage import Semantics
from panes.planning.graph import Integers
from panes.planning.numbers import divisors
from panes.timeline import Geometry


def closure(classes: Integers, limit: int) -> Integers:
    """Close rows (step, offset, range), the last two modulo the first, under the gcd of all differences.

    Stops after a round that leaves more rows than the limit, and keeps the smallest steps, which most windows share.

    Examples
    --------
    >>> closure(np.array([[20, 0, 0], [30, 0, 0], [45, 0, 0]]), limit=100)[:, 0].tolist()
    [5, 10, 15, 20, 30, 45]
    """
    given = found = fresh = _distinct(classes)
    while fresh.size and len(found) <= limit:
        step, offset, length = (fresh[:, None, i] for i in range(3))
        common = np.gcd(np.gcd(step, given[:, 0]), np.gcd(offset - given[:, 1], length - given[:, 2]))
        rows = np.stack([common, offset % common, length % common], axis=-1).reshape(-1, 3)
        merged = _distinct(np.concatenate([found, rows]))
        if len(merged) == len(found):
            break
        known = set(map(tuple, found.tolist()))
        fresh = np.array([row for row in merged.tolist() if tuple(row) not in known], dtype=np.int64).reshape(-1, 3)
        found = merged
    return found[:limit]


def _distinct(rows: Integers) -> Integers:
    """Rows in order, each once; several times as fast as ``np.unique``, which sorts them as structs."""
    ordered = rows[np.lexsort(rows.T[::-1])]
    new = np.ones(len(ordered), np.bool_)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return ordered[new]


def candidates(
    windows: Sequence[Geometry], semantics: Semantics, limit: int = 4096, ranges: int | None = None
) -> tuple[Geometry, ...]:
    """Factor windows for every subset of the given windows, those windows themselves left out.

    Parameters
    ----------
    windows
        Distinct windows, in ticks.
    semantics
        The relation a factor window has to have to its consumers.
    limit
        How many slides to consider at most, and how many candidates to return.
    ranges
        With overlapping instances, how many of the shortest consumers and providers of a slide to put a range
        beside; ``None`` for all.

    Examples
    --------
    >>> found = candidates([Geometry(r, r) for r in (20, 30, 45)], Semantics.PARTITIONED_BY)
    >>> [factor.range for factor in found]
    [5, 10, 15]
    """
    columns = np.array([(w.slide, w.offset, w.range) for w in windows], dtype=np.int64)
    if semantics is Semantics.PARTITIONED_BY:
        columns[:, 0] = np.gcd(columns[:, 0], columns[:, 2])
    columns[:, 1:] %= columns[:, :1]
    found = [(step, offset, length) for step, offset, length in closure(columns, limit).tolist()]
    if semantics is Semantics.PARTITIONED_BY:
        factors = [Geometry(step, step, offset) for step, offset, _ in found]
    else:
        shortest_first = np.array(sorted((w.range, w.slide, w.offset) for w in windows), dtype=np.int64)
        table = shortest_first[:, [1, 2, 0]].T
        factors = [factor for row in _with_divisors(found, limit) for factor in _lengths(row, table, ranges)]
    known = set(windows)
    return tuple(dict.fromkeys(factor for factor in factors if factor not in known))[:limit]


def _with_divisors(classes: list[tuple[int, int, int]], limit: int) -> list[tuple[int, int, int]]:
    found = dict.fromkeys(classes)
    for step, offset, length in classes:
        if len(found) >= limit:
            break
        # Where the range is a multiple of the slide, no divisor of the slide does better.
        for part in divisors(step) if length else ():
            found.setdefault((part, offset % part, length % part))
    return list(found)


def _lengths(row: tuple[int, int, int], columns: Integers, ranges: int | None) -> list[Geometry]:
    """The ranges to try for one slide; columns are slide, offset and range of the windows, shortest first."""
    step, offset, length = row
    slides, offsets, lengths = columns
    consumes = (slides % step == 0) & ((offsets - offset) % step == 0) & ((lengths - length) % step == 0)
    consumers = lengths[consumes & (lengths > step)].tolist()
    if not consumers:
        return []
    found = {step + length, *(consumer - step for consumer in consumers[:ranges])}
    provides = (step % slides == 0) & ((offsets - offset) % slides == 0) & ((lengths - length) % slides == 0)
    for above in lengths[provides & (lengths >= slides)][:ranges].tolist():
        found.add(above + 1 + (length - above - 1) % step)
    return [Geometry(r, step, offset) for r in sorted(found) if step <= r <= consumers[-1] - step]
