"""Which index pairs a window means on a sorted column of partials."""

from panes.frames.pairs import Frame
from panes.frames.positions import Positions
from panes.frames.window import frame

__all__ = ["Frame", "Positions", "frame"]
