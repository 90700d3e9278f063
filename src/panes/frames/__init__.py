"""Frames: the instances of a window as index pairs ``(lo, hi)`` on a sorted column.

Start with ``time_windows``: ``frame`` chooses how to find the pairs of a window in time. ``row_sliding`` and
``row_tumbling`` find those of windows of rows, policy by policy, in the order of steps that ``order`` declares;
``row_windows.framing`` puts them together for a declared window. ``positions`` and ``distances`` are the searches
below, and ``matching`` finds pairs of near rows for joins.

NumPy only. Imports ``timeline`` and ``errors``; knows no declarations.
"""

from panes.frames.positions import Positions
from panes.frames.time_windows import Frame, frame

__all__ = ["Frame", "Positions", "frame"]
