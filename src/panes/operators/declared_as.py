"""What an operator was declared with, as a short text: a state is continued by the same declaration, and no other.

Functions have no text that would be the same in another process, so of them only it is said that they are there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from panes.errors import StateError
from panes.operators.declarations import Count, Delta, Gap, Policy, Time, Tumbling, WindowDeclaration
from panes.timeline import format_duration


def window_text(window: WindowDeclaration) -> str:
    """A window, with its partitions and how they are evicted.

    Examples
    --------
    >>> import panes as pn
    >>> from panes.operators.lowering import lowered
    >>> window_text(lowered(pn.tumbling(pn.rows(3)), ["state"], pn.evict(keys=9)))
    'tumbling, partitioned, count(3) by state, PartitionCount(limit=9), least recently updated'
    """
    partitioned = window.partitioned
    if partitioned is None:
        return str(window)
    parts = [f"{window} by {', '.join(map(str, partitioned.by))}".removesuffix(" by ")]
    if partitioned.evict is not None:
        parts += [str(partitioned.evict), value_text(partitioned.select)]
    return ", ".join(parts)


def written(window: WindowDeclaration) -> str:
    """A window as users write it, without its keys.

    Examples
    --------
    >>> import panes as pn
    >>> from panes.operators.lowering import lowered
    >>> print(written(lowered(pn.hopping(pn.rows(100), every=pn.rows(10), partial=False))))
    pn.hopping(pn.rows(100), every=pn.rows(10), partial=False)
    >>> print(written(lowered(pn.tumbling("1 min"))), written(lowered(pn.sliding("10 s"))))
    pn.tumbling('1m') pn.sliding('10s')
    """
    if isinstance(window, Tumbling):
        return f"pn.tumbling({_measure(window.evict)}{_grid(window.evict)})"
    evict, trigger = window.evict, window.trigger
    full = "" if window.partial else ", partial=False"
    size, bounds = _measure(evict), ""
    if isinstance(evict, Time) and isinstance(trigger, Count):
        # Without its start a window is a µs shorter; round sizes are of such windows.
        open_start = evict.period % 1000 == 999
        size = _measure(replace(evict, period=evict.period + open_start))
        bounds = "" if open_start else ", bounds='[]'"
    if trigger == Count(1) and not bounds and not (full and isinstance(evict, Time)):
        return f"pn.sliding({size}{full})"
    if isinstance(evict, Time) and isinstance(trigger, Time):
        # On the clock windows are counted from where they begin.
        trigger = replace(trigger, phase=(trigger.phase - evict.period) % trigger.period)
    return f"pn.hopping({size}, every={_measure(trigger)}{bounds}{_grid(trigger)}{full})"


def _measure(policy: Policy | Gap) -> str:
    if isinstance(policy, Count):
        return f"pn.rows({policy.n})"
    if isinstance(policy, Delta):
        return f"pn.delta({policy.attribute!r}, {format_duration(policy.by) if policy.temporal else policy.by!r})"
    if isinstance(policy, (Time, Gap)):
        return repr(format_duration(policy.period if isinstance(policy, Time) else policy.gap))
    return f"pn.{policy}"


def _grid(policy: Policy | Gap) -> str:
    if not isinstance(policy, Time):
        return ""
    if policy.origin == "epoch":
        return f", offset={format_duration(policy.phase)!r}" if policy.phase else ""
    return f", origin={policy.origin!r}"


def windows_text(windows: Iterable[WindowDeclaration]) -> str:
    """Some windows."""
    return "; ".join(map(window_text, windows))


def value_text(value: Any) -> str:
    """Something that a user wrote.

    Examples
    --------
    >>> import panes as pn
    >>> value_text(pn.sum("x")), value_text(len), value_text(None)
    ('sum(x)', 'a function', 'None')
    """
    return "a function" if callable(value) else str(value)


def check_same(operator: str, was: str | None, now: str) -> None:
    """Refuse a state of another declaration."""
    if was != now:
        raise StateError(
            f"the state of {operator} was saved by one that was declared with [{was}], and this one is declared with "
            f"[{now}]. Declare it as before, or begin without the state."
        )
