"""Nested windows: one query over several time frames at once.

Paper: Patroumpas and Sellis, Multi-granular Time-based Sliding Windows over Data Streams (2010), section III-A.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from panes.errors import DeclarationError
from panes.queries.measures import positive
from panes.queries.windows import TICK, Bounds, Window, checked_bounds, checked_name, default_name
from panes.suggestions import helpful
from panes.timeline import DurationLike, Geometry, InstantLike, format_duration, parse_duration, parse_instant


@dataclass(frozen=True, slots=True)
class Nested:
    """Time frames that all end now, each with a slide of its own. Made by :func:`nested`, which checks it.

    Parameters
    ----------
    ranges, slides
        Of each level in µs, from the narrowest on: the paper's ω and β.
    offset
        Instances end at ``offset + m * slide``, in µs.
    given_name
        What the user calls it.
    since
        The initiation time in µs, the paper's τ0.
    """

    ranges: tuple[int, ...]
    slides: tuple[int, ...]
    offset: int = 0
    given_name: str | None = None
    bounds: Bounds = "[)"
    since: int | None = None

    def __str__(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        """All levels, from the widest on, or the name that was given."""
        return ", ".join(reversed(self.names)) if self.given_name is None else self.given_name

    @property
    def names(self) -> tuple[str, ...]:
        """What results call each level, from the narrowest on."""
        if self.given_name is not None:
            return tuple(f"{self.given_name} {format_duration(range_)}" for range_ in self.ranges)
        offset = 0 if self.since is not None else self.offset
        shapes = zip(self.ranges, self.slides, strict=True)
        return tuple(default_name(Geometry(range_, slide, offset)) for range_, slide in shapes)

    @property
    def suffixes(self) -> tuple[str, ...]:
        """What the columns of each level end with in the wide layout, from the narrowest on."""
        return tuple(window.suffix for window in self.windows)

    @property
    def windows(self) -> tuple[Window, ...]:
        """The windows that are computed: one per level, from the narrowest on."""
        tick = TICK if self.bounds == "(]" else 0
        since = None if self.since is None else self.since + tick
        return tuple(
            Window(Geometry(range_, slide, self.offset + tick), name, self.bounds, self.ranges[:level], since)
            for level, (range_, slide, name) in enumerate(zip(self.ranges, self.slides, self.names, strict=True))
        )


@helpful("pn.nested(['1 hour', '10 min'], ['5 min', '1 min'])", sizes="ranges", every="slides")
def nested(
    ranges: Iterable[DurationLike],
    slides: Iterable[DurationLike],
    *,
    since: InstantLike | None = None,
    symmetric: bool = False,
    offset: DurationLike = "0s",
    bounds: Bounds = "[)",
    name: str | None = None,
) -> Nested:
    """Several time frames of one query: level k looks back over a range and is answered anew at every slide of its own.

    At an instant t, level k holds the events of ``[max(since, e - range), e)``, where e is the last multiple of its
    slide, counted from ``since``, at or before t.

    Parameters
    ----------
    ranges, slides
        One of each per level, from the narrowest level to the widest or the other way round. A wider level never
        slides in shorter steps, and every range is a multiple of its slide.
    since
        The initiation time: instances are aligned to it, and events before it do not count. In UTC where it names no
        time zone. Without it, instances are aligned to the epoch and every event counts.
    symmetric
        Check that levels slide in step: every slide is a multiple of the next shorter one, so that whenever a level
        slides, all narrower ones do.
    offset
        Move all instances by so much; not beside ``since``.
    name
        Levels are called by it and by their ranges: ``name="load"`` gives ``load 1m``, ``load 10m``, ``load 1h``.

    Examples
    --------
    >>> load = nested(["1 hour", "10 min", "1 min"], ["5 min", "1 min", "1 s"])
    >>> str(load), [str(window) for window in load.windows]
    ('1h/5m, 10m/1m, 1m/1s', ['1m/1s', '10m/1m', '1h/5m'])
    >>> nested(ranges=["1 min", "1 hour", "10 min"], slides=["1 s", "1 min", "5 min"])
    Traceback (most recent call last):
    ...
    panes.errors.DeclarationError: ranges=['1 min', '1 hour', '10 min'] are out of order. Write them ...
    """
    listed = _listed(ranges, "ranges"), _listed(slides, "slides")
    wide, steps = (
        [positive(value, what) for value in some] for some, what in zip(listed, ("a range", "a slide"), strict=True)
    )
    if len(wide) != len(steps):
        raise DeclarationError(
            f"ranges has {len(wide)} members and slides {len(steps)}; every range needs one slide, in the same place."
        )
    if len(wide) > 1 and wide[0] > wide[-1]:
        wide, steps = wide[::-1], steps[::-1]
    _check_order(wide, steps, *listed)
    _check_granules(wide, steps, symmetric=symmetric)
    moved, begun = parse_duration(offset), None if since is None else parse_instant(since)
    if begun is not None and moved:
        raise DeclarationError(f"offset={offset!r} beside since={since!r}: instances are aligned to since. Drop one.")
    return Nested(
        tuple(wide),
        tuple(steps),
        # So that equal windows are equal values; after this long all levels slide together again.
        (moved if begun is None else begun) % math.lcm(*steps),
        None if name is None else checked_name(name),
        checked_bounds(bounds),
        begun,
    )


def _listed(values: Iterable[DurationLike], what: str) -> list[DurationLike]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise DeclarationError(f"{what}={values!r} is not a list of durations. Write {what}=[{values!r}].")
    found = list(values)
    if not found:
        raise DeclarationError(f"{what} is empty. A nested window needs at least one level.")
    return found


def _check_order(
    ranges: list[int], slides: list[int], as_given: list[DurationLike], slides_as_given: list[DurationLike]
) -> None:
    if any(finer >= coarser for finer, coarser in pairwise(ranges)):
        raise DeclarationError(
            f"ranges={as_given!r} are out of order. Write them from the narrowest to the widest or the other way "
            "round, no two alike, and each slide in the place of its range."
        )
    for level, (finer, coarser) in enumerate(pairwise(slides)):
        if finer > coarser:
            narrow, wide = (format_duration(range_) for range_ in ranges[level : level + 2])
            raise DeclarationError(
                f"slides={slides_as_given!r} are out of order: the range {wide} would slide every "
                f"{format_duration(coarser)}, more often than the narrower {narrow}, every {format_duration(finer)}. "
                "Write them in the order of the ranges; a wider level slides no more often."
            )


def _check_granules(ranges: list[int], slides: list[int], *, symmetric: bool) -> None:
    for range_, slide in zip(ranges, slides, strict=True):
        if range_ % slide:
            raise DeclarationError(
                f"the range {format_duration(range_)} is no multiple of its slide {format_duration(slide)}, so it "
                "cannot be composed of granules. Lengthen the range or shorten the slide."
            )
    for finer, coarser in pairwise(slides) if symmetric else ():
        if coarser % finer:
            raise DeclarationError(
                f"symmetric=True, but the slide {format_duration(coarser)} is no multiple of {format_duration(finer)}, "
                "so the levels would not slide in step. Take a multiple, or leave symmetric out."
            )
