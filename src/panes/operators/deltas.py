"""Reading the attribute of a delta policy, which must have a value and never decrease.

Paper: Gedik 2014, section 3.3.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any

from panes.errors import OrderError, SchemaError
from panes.operators.declarations import Delta
from panes.operators.lists import in_order
from panes.operators.subwindow import Subwindow
from panes.timeline import parse_instant


class DeltaReader:
    """Reads the value of the tuple that is coming in, once, and compares it with the one before.

    Parameters
    ----------
    latest
        The field of a subwindow that keeps the last value: eviction and trigger may go by different attributes.
    """

    def __init__(self, policy: Delta, latest: str) -> None:
        self.policy = policy
        self.value: Any = None
        attribute: Callable[[Any], Any] = itemgetter(policy.attribute)
        self.read: Callable[[Any], Any] = attribute
        if policy.temporal:
            self.read = lambda item: _instant(attribute(item))
        self._latest = latest

    def look(self, item: Any, subwindow: Subwindow[Any] | None) -> None:
        """Keep the value of a tuple in ``value``, or raise before anything has changed."""
        value = self.read(item)
        if value is None or value != value:
            raise SchemaError(
                f"a tuple has no value for {self.policy.attribute!r} (it is {value!r}), and {self.policy} goes by "
                "it. Leave such tuples out, or give them a value."
            )
        latest = None if subwindow is None else getattr(subwindow, self._latest)
        if latest is not None and value < latest:
            raise OrderError(
                f"{self.policy.attribute!r} fell from {latest!r} to {value!r}, and {self.policy} goes by an "
                "attribute that never decreases within a partition. Sort the tuples first, as the progressive Sort "
                "does."
            )
        self.value = value

    def check(self, values: Sequence[Any]) -> None:
        """Raise unless each of these values could follow the one before."""
        if not in_order(values) or values[0] is None or values[0] != values[0]:
            raise OrderError(f"{self.policy.attribute!r} falls, or has no value.")


def _instant(value: Any) -> Any:
    return parse_instant(value) if isinstance(value, datetime) else value
