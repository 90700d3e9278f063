"""Windows for any operator: policies, events and operators, one tuple after another (Gedik 2014)."""

from panes.windowing import policy
from panes.windowing.aggregate import Aggregate
from panes.windowing.clocks import EventClock, WallClock
from panes.windowing.events import Event, WindowEvents
from panes.windowing.functor import Functor
from panes.windowing.graph import Graph
from panes.windowing.join import Join
from panes.windowing.operator import Operator
from panes.windowing.operator_model import (
    EVERY_TUPLE,
    SLIDING_WINDOWS,
    TUMBLING_WINDOWS,
    InputPort,
    OperatorModel,
    Supported,
)
from panes.windowing.punctuations import (
    FREE,
    GENERATING,
    PUNCTUATION,
    InputMode,
    preserving,
    tuples_of,
    windows_of,
)
from panes.windowing.replay import Replay
from panes.windowing.sliding_window import SlidingWindow
from panes.windowing.sort import Sort
from panes.windowing.summarizers import Summarizer
from panes.windowing.tumbling_window import TumblingWindow

__all__ = [
    "EVERY_TUPLE",
    "FREE",
    "GENERATING",
    "PUNCTUATION",
    "SLIDING_WINDOWS",
    "TUMBLING_WINDOWS",
    "Aggregate",
    "Event",
    "EventClock",
    "Functor",
    "Graph",
    "InputMode",
    "InputPort",
    "Join",
    "Operator",
    "OperatorModel",
    "Replay",
    "SlidingWindow",
    "Sort",
    "Summarizer",
    "Supported",
    "TumblingWindow",
    "WallClock",
    "WindowEvents",
    "policy",
    "preserving",
    "tuples_of",
    "windows_of",
]
