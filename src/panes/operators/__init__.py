"""Windows and operators, one tuple after another (Gedik 2014). Users import this room for operators of their own.

A window (``tumbling_window``, ``sliding_window``; ``window`` is their base) holds the tuples of each partition in a
``subwindow``, runs the steps that ``frames.order`` declares, and fires ``events``. An ``operator`` makes windows and
reacts: ``aggregate_operator``, ``join_operator``, ``sort_operator``. ``policies`` turns declared windows into the
paper's eviction and trigger policies; windows of rows in columns (``panes.row_windows``) start from the same policies.

Start with ``window`` and ``operator``. Imports ``queries``, ``frames``, ``aggregates`` and ``engine.keys``.
"""

from panes.operators.aggregate_operator import Aggregate
from panes.operators.clocks import EventClock, WallClock
from panes.operators.events import Event, WindowEvents
from panes.operators.graph import Functor, Graph, Replay
from panes.operators.join_operator import Join
from panes.operators.operator import Operator
from panes.operators.operator_model import (
    EVERY_TUPLE,
    FREE,
    GENERATING,
    PUNCTUATION,
    SLIDING_WINDOWS,
    TUMBLING_WINDOWS,
    InputMode,
    InputPort,
    OperatorModel,
    Supported,
    preserving,
    tuples_of,
    windows_of,
)
from panes.operators.sliding_window import SlidingWindow
from panes.operators.sort_operator import Sort
from panes.operators.subwindow import Summarizer
from panes.operators.tumbling_window import TumblingWindow

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
    "preserving",
    "tuples_of",
    "windows_of",
]
