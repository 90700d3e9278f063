"""What takes the tuples of a tumbling window, so that the window need not store them.

Paper: Gedik 2014, section 4.1.6. A window with summarizers creates one for each subwindow and delivers the tuples to
it; how much of them is kept is the summarizer's own affair.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any


class Summarizer:
    """Override what is of interest; state of constant or logarithmic size is what it is for.

    Examples
    --------
    >>> class Longest(Summarizer):
    ...     def open(self, partition):
    ...         self.length = 0
    ...     def insert(self, item):
    ...         self.length = max(self.length, len(item))
    >>> longest = Longest()
    >>> longest.open(()); longest.insert("one"); longest.insert("three"); longest.length
    5
    """

    def open(self, partition: Hashable) -> None:
        """A subwindow was created, and this summarizer for it."""

    def insert(self, item: Any) -> None:
        """A tuple was inserted into the window, which will not keep it."""

    def insert_all(self, items: Sequence[Any]) -> None:
        """Tuples were inserted, one after another."""
        for item in items:
            self.insert(item)

    def close(self) -> None:
        """The subwindow was processed, or its partition evicted; this summarizer is not used again."""
