"""A sliding window as a tumbling window that feeds a smaller sliding one.

==========  =====================================================================================================
requires    eviction and trigger by count, or both by time; output functions that can be merged (associative ones)
costs       as many summaries as a window has pieces, instead of all its tuples
paper       Gedik 2014, section 4.1.8
==========  =====================================================================================================

It is done where it gives the same answers at the same moments, and nowhere else. A piece is the greatest common divisor
of both extents, so that windows begin and end with pieces: the period of the trigger, where the window is several times
that, as in the paper. A window may be partitioned. By time the pieces of a partition follow each other from its first
tuple on, also empty ones (``TumblingWindow.stay``), as its triggers do. Where partitions are evicted it is left alone:
tuple counts would count pieces, and a window that is processed for the last time ends within one.
"""

from __future__ import annotations

from dataclasses import replace
from math import gcd
from typing import Final

from panes.operators.declarations import Count, Partitions, Sliding, Time, Tumbling

_PIECES: Final = 8
"""More pieces than that for each answer take longer than they save; by time, two extents may have 1 µs in common."""


def rewrite(window: Sliding) -> tuple[Tumbling, Sliding] | None:
    """The two windows that do the same; None where there are none, or nothing is gained.

    Examples
    --------
    >>> import panes as pn
    >>> from panes.operators.lowering import lowered
    >>> print(*rewrite(lowered(pn.hopping("1 hour", every="1 min"))), sep="; ")
    tumbling, time(1m) on the clock; sliding, count(60), count(1)
    >>> print(*rewrite(lowered(pn.hopping("10 s", every="4 s", origin="first"))), sep="; ")
    tumbling, time(2s); sliding, count(5), count(2)
    """
    evict, trigger, partitioned = window.evict, window.trigger, window.partitioned
    if partitioned is not None and partitioned.evict is not None:
        return None
    # The operator itself says to which partition a summary belongs: summaries have no attributes.
    second = None if partitioned is None else Partitions(())
    if isinstance(evict, Count) and isinstance(trigger, Count):
        piece = gcd(evict.n, trigger.n)
        # A piece of one tuple is no smaller than the tuple.
        if piece == 1 or not evict.n or trigger.n > _PIECES * piece:
            return None
        small = Sliding(Count(evict.n // piece), Count(trigger.n // piece), second, window.partial)
        return Tumbling(Count(piece), partitioned), small
    if isinstance(evict, Time) and isinstance(trigger, Time):
        piece = gcd(evict.period, trigger.period)
        # On the grid of the clock the first piece is cut short: pieces cannot be counted until a window is answered, or
        # until it is full.
        cut = trigger.origin == "epoch"
        if trigger.period > (1 if cut else _PIECES) * piece or (cut and not window.partial):
            return None
        small = Sliding(Count(evict.period // piece), Count(trigger.period // piece), second, window.partial)
        return Tumbling(replace(trigger, period=piece), partitioned), small
    return None
