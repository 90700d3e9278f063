"""Which index pairs a window means on a sorted column of partials."""

from panes.frames.positions import Positions
from panes.frames.time_windows import Frame, frame

__all__ = ["Frame", "Positions", "frame"]
