"""A sliding window as a tumbling window that feeds a smaller sliding one.

==========  =====================================================================================================
requires    eviction and trigger by count, or both by time, where the first is several times the second;
            output functions that can be merged (associative ones)
costs       as many summaries as a window has periods of the trigger, instead of all its tuples
paper       Gedik 2014, section 4.1.8
==========  =====================================================================================================

It is done where it gives the same answers at the same moments, and nowhere else. By time a window must not be
partitioned: a subwindow of the tumbling one would be removed when it is flushed, and its periods begin anew with the
next tuple. By count it may be, unless partitions are evicted, which would go by other updates.
"""

from __future__ import annotations

from panes.windowing.declarations import Count, Partitions, Sliding, Time, Tumbling


def rewrite(window: Sliding) -> tuple[Tumbling, Sliding] | None:
    """The two windows that do the same; None where there are none, or nothing is gained.

    Examples
    --------
    >>> import panes as pn
    >>> hour = pn.policy.sliding(pn.policy.time("1 hour"), pn.policy.time("1 min"))
    >>> print(*rewrite(hour), sep="; ")
    tumbling, time(1m); sliding, count(60), count(1)
    """
    evict, trigger, partitioned = window.evict, window.trigger, window.partitioned
    if isinstance(evict, Count) and isinstance(trigger, Count):
        if trigger.n == 1 or evict.n % trigger.n or not evict.n:
            return None
        if partitioned is not None and partitioned.evict is not None:
            return None
        # The operator itself says to which partition a summary belongs: summaries have no attributes.
        second = None if partitioned is None else Partitions(())
        return Tumbling(trigger, partitioned), Sliding(Count(evict.n // trigger.n), Count(1), second)
    if isinstance(evict, Time) and isinstance(trigger, Time):
        if evict.period % trigger.period or partitioned is not None:
            return None
        return Tumbling(trigger), Sliding(Count(evict.period // trigger.period), Count(1))
    return None
