"""What things cost on Spark, in nanoseconds of one core.

Measured on two cores with ``make bench NAME=calibrate``; only ratios matter to the planner.
"""

from __future__ import annotations

from typing import Final

SCAN: Final = 30.0
"""Read an event and evaluate keys and arguments."""

GROUP_EVENT: Final = 200.0
"""Add an event to a hash aggregate, once per instance that holds it."""

GROUP_ROW: Final = 1000.0
"""Take a group through the shuffle and the final aggregate of Spark's own window."""

PANE_EVENT: Final = 180.0
"""Add an event to the hash aggregate of panes."""

EDGE: Final = 3.0
"""Check another progression of pane edges, per event."""

PANE: Final = 1900.0
"""Take a pane through two shuffles and a sort, into Python."""

LANE: Final = 0.7
"""Check whether an event belongs to a lane, per event and stored column of a row with several panes."""

STORED: Final = 300.0
"""Build, move and read a stored column of a pane."""

EVENT: Final = 2050.0
"""Take an event through a shuffle and a sort, into Python.

A little above what is measured: a sample that misses the busy hours underestimates the events in a pane.
"""

ANSWER: Final = 350.0
"""Compute an answer and bring it back to the JVM."""

TREE_ROW: Final = 1600.0
"""Read a partial in a group-by of the rewritten tree."""
