"""What every operator is: ports, through which tuples and window punctuations come in and go out.

Paper: Gedik 2014, sections 2.1, 4.1.5 and 5. An operator of a user's own is a subclass with a model: it makes a window,
registers for the events that it wants, inserts the tuples that come in, and submits results from its handlers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar

from panes.errors import DeclarationError, StateError
from panes.operators.clocks import Clock, EventClock
from panes.operators.events import Event, WindowEvents
from panes.operators.operator_model import PUNCTUATION, InputMode, OperatorModel, OutputMode
from panes.operators.policies import (
    Attribute,
    By,
    SlidingPolicies,
    TumblingPolicies,
    WindowLike,
    WindowPolicies,
    operator_policies,
    policies_text,
)
from panes.operators.sliding_window import SlidingWindow
from panes.operators.subwindow import Summarizer
from panes.operators.tumbling_window import TumblingWindow
from panes.operators.window import Window
from panes.queries.eviction import BY_OPERATOR, Evict


class Operator(WindowEvents):
    """A reusable piece of a data flow graph.

    Parameters
    ----------
    windows
        The declared window of each input port; None where a port has none.
    by
        The attributes of the key: one, several, or ``()`` where ``insert(item, key)`` says to which key a tuple
        belongs. There is one window for each key; without ``by`` there is one for all tuples. Windows that ``pn.apply``
        gives to an operator have their keys already, and those that stand beside them get the same.
    evict
        Which keys are forgotten, a ``pn.evict``; or one for each window, with None where none are.
    clock
        What time-based policies go by; a wall clock of its own where nothing is given.
    outputs
        How many output ports the instance has.
    """

    model: ClassVar[OperatorModel]
    _keeps: ClassVar[frozenset[str]] = frozenset()
    """Which attributes change, and are kept by the method ``save`` of the same class: a stream forgets the others."""

    def __init__(
        self,
        *windows: WindowLike | None,
        by: By = None,
        evict: Evict | Sequence[Evict | None] | None = None,
        clock: Clock | None = None,
        outputs: int | None = None,
    ) -> None:
        self._by = _keys_of(windows) if by is None else by
        evictions = list(evict) if isinstance(evict, Sequence) else [evict] * len(windows)
        if len(evictions) != len(windows):
            raise DeclarationError(
                f"evict= has {len(evictions)} entries for {len(windows)} windows. Write one for each."
            )
        if by is not None:
            _refuse_other_keys(windows)
        self._given = tuple(windows)
        self.declared = tuple(
            None if window is None else self._policies_of(window, kept)
            for window, kept in zip(windows, evictions, strict=True)
        )
        for port, declared in enumerate(self.declared):
            if declared is not None:
                self.model.check(declared, port)
        self.clock = clock
        self._owns_clock = clock is None
        self.outputs = len(self.model.outputs) if outputs is None else outputs
        self.windows: list[Window[Any]] = []
        self._sinks: list[list[Callable[[Any], object]]] = [[] for _ in range(self.outputs)]

    def _policies_of(self, window: WindowLike, evict: Evict | None = None) -> WindowPolicies:
        return operator_policies(window, None if isinstance(window, WindowPolicies) else self._by, evict)

    def window(
        self,
        window: WindowLike,
        *events: Event,
        handler: object | None = None,
        summarizer: Callable[[], Summarizer] | None = None,
    ) -> Any:
        """Make a window of this operator, and register for some of its events.

        Parameters
        ----------
        window
            That of a port, or another one of the operator's own, which has the same keys.
        handler
            Whose handlers are called; by default those of the operator.
        summarizer
            See ``TumblingWindow``.
        """
        port = next((port for port, given in enumerate(self._given) if given is window), None)
        declared = self._policies_of(window) if port is None else self.declared[port]
        assert declared is not None
        if summarizer is not None and not isinstance(declared, TumblingPolicies):
            raise DeclarationError("summarizers are for tumbling windows: a sliding one has to evict single tuples.")
        evicts = None if declared.partitioned is None else declared.partitioned.evict
        if evicts is not None and evicts.choose == BY_OPERATOR and Event.PARTITION_SELECTION not in events:
            raise DeclarationError(
                f"{self.model.name} does not select partitions, so {BY_OPERATOR!r} would select none. Write "
                "choose='least recently updated', another of pn.evict, or a function."
            )
        made: Window[Any]
        if isinstance(declared, SlidingPolicies):
            made = SlidingWindow(declared, clock=self.clock)
        else:
            made = TumblingWindow(declared, clock=self.clock, summarizer=summarizer)
        # Windows of one operator go by one clock, so that one lock guards them all.
        self.clock = made.clock if self.clock is None else self.clock
        made.register(self if handler is None else handler, *events)
        self.windows.append(made)
        return made

    # What comes in

    def process(self, item: Any, port: int = 0) -> None:
        """Take in a tuple."""
        raise NotImplementedError(f"{type(self).__name__} has no method process. Write what it does with a tuple.")

    def process_all(self, items: Sequence[Any], port: int = 0, *, at: Sequence[int] | None = None) -> None:
        """Take in tuples: the same as one after another, and faster where an operator can do better.

        Parameters
        ----------
        at
            When each of them arrives, where the operator is on an event clock: it is advanced to them. Without it, all
            arrive now.
        """
        if at is None:
            for item in items:
                self.process(item, port)
            return
        if not isinstance(self.clock, EventClock):
            raise DeclarationError("instants of arrival are for an event clock. Write clock=EventClock().")
        for item, instant in zip(items, at, strict=True):
            self.clock.advance(instant)
            self.process(item, port)

    def punctuate(self, port: int = 0) -> None:
        """Take in a window punctuation: pass it on through the output ports that preserve those of this port."""
        for out in range(self.outputs):
            if self.output_mode(out).port == port:
                self.submit(PUNCTUATION, out)

    def receive(self, item: Any, port: int = 0) -> None:
        """Take in a tuple or a window punctuation."""
        if item is PUNCTUATION:
            self.punctuate(port)
        else:
            self.process(item, port)

    def _receive_all(self, items: Sequence[Any], port: int) -> None:
        begin = 0
        for place in [place for place, item in enumerate(items) if item is PUNCTUATION]:
            self.process_all(items[begin:place], port)
            self.punctuate(port)
            begin = place + 1
        self.process_all(items[begin:], port)

    # What goes out

    def connect(self, sink: Callable[[Any], object], port: int = 0) -> None:
        """Give everything that goes out through a port to a function."""
        self._sinks[port].append(sink)

    def submit(self, item: Any, port: int = 0) -> None:
        """Let a tuple, or ``PUNCTUATION``, out through a port."""
        for sink in self._sinks[port]:
            sink(item)

    def run(self, stream: Iterable[Any], port: int = 0) -> list[Any]:
        """Take in a whole stream on one port, and give what came out of port 0 because of it.

        Examples
        --------
        >>> import panes as pn
        >>> from panes.operators import Sort
        >>> Sort(pn.tumbling(pn.rows(3)), order="x").run([{"x": x} for x in (3, 1, 2, 9)])
        [{'x': 1}, {'x': 2}, {'x': 3}, PUNCTUATION]
        """
        out: list[Any] = []
        sinks = self._sinks[0] if self._sinks else []
        sinks.append(out.append)
        try:
            if isinstance(stream, (list, tuple)):
                self._receive_all(stream, port)
            else:
                # It may do something between two tuples, such as advance a clock.
                for item in stream:
                    self.receive(item, port)
        finally:
            sinks.remove(out.append)
        return out

    # What a graph and a store need

    def input_mode(self, port: int) -> InputMode:
        """Whether this instance expects window punctuations on a port."""
        declared = self.declared[port] if port < len(self.declared) else None
        return self.model.inputs[port].mode(declared)

    def output_mode(self, port: int) -> OutputMode:
        """How this instance treats window punctuations on an output port."""
        modes = self.model.outputs
        return modes[min(port, len(modes) - 1)]

    @property
    def threaded(self) -> bool:
        """Whether the thread of a clock changes some window of this operator."""
        return self.clock is not None and self.clock.threaded and any(window.timed for window in self.windows)

    def lock(self) -> AbstractContextManager[Any]:
        """What to hold while looking at several windows of this operator; it costs nothing where no thread is."""
        return self.clock.guard if self.clock is not None and self.threaded else nullcontext()

    def declaration(self) -> str:
        """What the operator was declared with, as far as that decides what its state means: its windows, and more."""
        made = (window.declared for window in self.windows if window.declared not in self.declared)
        return policies_text(*(each for each in (*self.declared, *made) if each is not None))

    def save(self) -> list[dict[str, Any]]:
        """The state of the operator as plain values: that of its windows, unless it keeps more."""
        with self.lock():
            return [window.save() for window in self.windows]

    def load(self, state: Sequence[dict[str, Any]]) -> None:
        """Continue where an operator of the same declaration was saved."""
        with self.lock():
            for window, saved in zip(self.windows, state, strict=True):
                window.load(saved)

    def close(self) -> None:
        """Stop the clock, unless it was given from outside."""
        if self.clock is not None and self._owns_clock:
            self.clock.close()


def _keys_of(windows: Iterable[WindowLike | None]) -> By:
    """The keys that some of the windows have already."""
    partitions = (each.partitioned for each in windows if isinstance(each, WindowPolicies))
    return next((each.by for each in partitions if each is not None), None)


def _refuse_other_keys(windows: Iterable[WindowLike | None]) -> None:
    for window in windows:
        if isinstance(window, WindowPolicies):
            operator_policies(window, ())


def partition_attributes(operator: str, window: WindowPolicies) -> tuple[Attribute, ...]:
    """The attributes by which the window of an operator is partitioned; it needs some, if it is."""
    if window.partitioned is None:
        return ()
    if not window.partitioned.by:
        raise DeclarationError(
            f"{operator} has a window that is partitioned by no attribute. Write for example by='state'."
        )
    return window.partitioned.by


def check_same(operator: str, saved: str | None, declared: str) -> None:
    """Reject the state of an operator with another declaration."""
    if saved != declared:
        raise StateError(
            f"the state of {operator} was saved by one that was declared with [{saved}], and this one is declared with "
            f"[{declared}]. Declare it as before, or begin without the state."
        )
