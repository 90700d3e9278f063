"""Nested windows, ``pn.nested``: one query over several time frames at once.

Paper: Patroumpas and Sellis, Multi-granular Time-based Sliding Windows over Data Streams (2010), section III-A.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise

from panes.errors import DeclarationError
from panes.queries.limits import check_levels
from panes.queries.measures import positive
from panes.queries.window_constructors import check_bounds, check_name
from panes.queries.windows import Bounds, Nested
from panes.suggestions import helpful
from panes.timeline import DurationLike, InstantLike, format_duration, parse_duration, parse_instant


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
    """Several time frames in one query: level k looks back over its range and is answered anew at each of its slides.

    At an instant t, level k holds the events of ``[max(since, e - range), e)``, where e is the last multiple of its
    slide, counted from ``since``, at or before t.

    Parameters
    ----------
    ranges, slides
        One of each per level, narrowest level first or widest first. A wider level never slides more often, and every
        range is a multiple of its slide.
    since
        The initiation time: instances are aligned to it, and events before it do not count. In UTC unless it names a
        time zone. Without it, instances are aligned to the epoch and every event counts.
    symmetric
        Check that levels slide in step: every slide is a multiple of the next shorter one, so whenever a level slides,
        all narrower ones do.
    offset
        Shift all instances by this much; not together with ``since``.
    name
        The levels are named after it and their ranges: ``name="load"`` gives ``load 1m``, ``load 10m``, ``load 1h``.

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
    given_ranges, given_slides = _listed(ranges, "ranges"), _listed(slides, "slides")
    check_levels(len(given_ranges))
    widths = [positive(value, "a range") for value in given_ranges]
    steps = [positive(value, "a slide") for value in given_slides]
    if len(widths) != len(steps):
        raise DeclarationError(
            f"ranges has {len(widths)} members and slides has {len(steps)}. Give every range one slide, in the same "
            "place."
        )
    if len(widths) > 1 and widths[0] > widths[-1]:
        widths, steps = widths[::-1], steps[::-1]
    _check_order(widths, steps, given_ranges, given_slides)
    _check_multiples(widths, steps, symmetric=symmetric)
    shift, begin = parse_duration(offset), None if since is None else parse_instant(since)
    if begin is not None and shift:
        raise DeclarationError(
            f"offset={offset!r} beside since={since!r}: instances are aligned to since. Leave offset= out."
        )
    return Nested(
        tuple(widths),
        tuple(steps),
        # Equal windows have to be equal values; after this long all levels slide together again.
        (shift if begin is None else begin) % math.lcm(*steps),
        None if name is None else check_name(name),
        check_bounds(bounds),
        begin,
    )


def _listed(values: Iterable[DurationLike], parameter: str) -> list[DurationLike]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise DeclarationError(f"{parameter}={values!r} is not a list of durations. Write {parameter}=[{values!r}].")
    durations = list(values)
    if not durations:
        raise DeclarationError(f"{parameter} is empty. A nested window needs at least one level.")
    return durations


def _check_order(
    ranges: list[int], slides: list[int], given_ranges: list[DurationLike], given_slides: list[DurationLike]
) -> None:
    if any(finer >= coarser for finer, coarser in pairwise(ranges)):
        raise DeclarationError(
            f"ranges={given_ranges!r} are out of order. Write them from the narrowest to the widest or the other way "
            "round, all different, and the slides in the same order."
        )
    for level, (finer, coarser) in enumerate(pairwise(slides)):
        if finer > coarser:
            narrow, wide = (format_duration(range_) for range_ in ranges[level : level + 2])
            raise DeclarationError(
                f"slides={given_slides!r} are out of order: the range {wide} would slide every "
                f"{format_duration(coarser)}, more often than the narrower {narrow}, every {format_duration(finer)}. "
                "Write them in the order of the ranges; a wider level slides no more often."
            )


def _check_multiples(ranges: list[int], slides: list[int], *, symmetric: bool) -> None:
    for range_, slide in zip(ranges, slides, strict=True):
        if range_ % slide:
            raise DeclarationError(
                f"the range {format_duration(range_)} is not a multiple of its slide {format_duration(slide)}, so it "
                "cannot be composed of granules. Lengthen the range or shorten the slide."
            )
    for finer, coarser in pairwise(slides) if symmetric else ():
        if coarser % finer:
            raise DeclarationError(
                f"symmetric=True, but the slide {format_duration(coarser)} is not a multiple of "
                f"{format_duration(finer)}, so the levels would not slide in step. Take a multiple, or leave symmetric "
                "out."
            )
