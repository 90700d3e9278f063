"""What things cost on Spark, in nanoseconds of one core.

Measured on two cores with ``make bench NAME=calibrate``; only ratios matter to the planner.
"""

from __future__ import annotations

from typing import Final

SCAN: Final = 30.0
"""Read an event and evaluate keys and arguments."""

GROUP_EVENT: Final = 200.0
"""One event into a hash aggregate, once per window copy."""

GROUP_ROW: Final = 1000.0
"""One group through the shuffle and the final aggregate of Spark's own window."""

PANE_EVENT: Final = 180.0
"""One event into the hash aggregate of panes."""

EDGE: Final = 3.0
"""One more progression of pane edges, per event."""

PANE: Final = 1900.0
"""One pane through two shuffles, a sort and into Python."""

LANE: Final = 0.7
"""One stored column of panes side by side, per event: the check that the event is not of its lane."""

STORED: Final = 300.0
"""One stored column in a row of panes: built, moved, and read by Python."""

EVENT: Final = 2050.0
"""One event through a shuffle, a sort and into Python, where panes would hardly be fewer.

A little above what is measured: a sample that misses the busy hours makes panes look emptier than they are.
"""

ANSWER: Final = 350.0
"""One answer out of a kernel, back to the JVM."""

TREE_ROW: Final = 1600.0
"""One partial read by a group-by of the rewritten tree."""
