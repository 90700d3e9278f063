"""What an operator was declared with, as a short text: a state is continued by the same declaration, and no other.

Functions have no text that would be the same in another process, so of them only it is said that they are there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from panes.errors import StateError
from panes.operators.declarations import WindowDeclaration


def window_text(window: WindowDeclaration) -> str:
    """A window, with its partitions and how they are evicted.

    Examples
    --------
    >>> import panes as pn
    >>> few = pn.policy.partitions("state", count=9)
    >>> window_text(pn.policy.tumbling(pn.policy.count(3), partitioned=few))
    'tumbling, partitioned, count(3) by state, PartitionCount(limit=9), least recently updated'
    """
    partitioned = window.partitioned
    if partitioned is None:
        return str(window)
    parts = [f"{window} by {', '.join(map(str, partitioned.by))}".removesuffix(" by ")]
    if partitioned.evict is not None:
        parts += [str(partitioned.evict), value_text(partitioned.select)]
    return ", ".join(parts)


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
