"""The base of operators: input and output ports for tuples and window punctuations, and the windows of an operator.

Paper: Gedik 2014, sections 2.1, 4.1.5 and 5. A user's operator is a subclass with a model: it makes a window, registers
handlers of events, inserts the tuples that arrive, and submits results from its handlers.
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
from panes.operators.window import WindowContainer
from panes.queries.eviction import BY_OPERATOR, Evict


class Operator(WindowEvents):
    """The base class of operators.

    Parameters
    ----------
    windows
        The declared window of each input port; None for a port without one.
    by
        The attributes of the key: one, several, or ``()`` if ``insert(item, key)`` passes the key. There is one window
        per key; without ``by``, one for all tuples. Windows from ``pn.apply`` already have their keys, and other
        windows of the operator get the same.
    evict
        Which keys are evicted: a ``pn.evict``, or one for each window, with None for no eviction.
    clock
        The clock of time-based policies; by default its own wall clock.
    outputs
        The number of output ports, if it differs from the model's.
    """

    model: ClassVar[OperatorModel]
    _keeps: ClassVar[frozenset[str]] = frozenset()
    """The attributes with state that ``save`` of the same class keeps: a stream would lose any others."""

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
        self.windows: list[WindowContainer[Any]] = []
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
        """Make a window of this operator, and register handlers of some of its events.

        Parameters
        ----------
        window
            The window of a port, or another one, which gets the same keys.
        handler
            The object with the handlers; by default the operator.
        summarizer
            See ``TumblingWindow``.
        """
        port = next((port for port, given in enumerate(self._given) if given is window), None)
        declared = self._policies_of(window) if port is None else self.declared[port]
        assert declared is not None
        if summarizer is not None and not isinstance(declared, TumblingPolicies):
            raise DeclarationError(
                "summarizers are for tumbling windows: a sliding one evicts single tuples. Leave summarizer= out."
            )
        evicts = None if declared.partitioned is None else declared.partitioned.evict
        if evicts is not None and evicts.choose == BY_OPERATOR and Event.PARTITION_SELECTION not in events:
            raise DeclarationError(
                f"{self.model.name} does not select partitions, so {BY_OPERATOR!r} would select none. Write "
                "choose='least recently updated', another of pn.evict, or a function."
            )
        made: WindowContainer[Any]
        if isinstance(declared, SlidingPolicies):
            made = SlidingWindow(declared, clock=self.clock)
        else:
            made = TumblingWindow(declared, clock=self.clock, summarizer=summarizer)
        # One clock, and so one lock, for all windows of an operator.
        self.clock = made.clock if self.clock is None else self.clock
        made.register(self if handler is None else handler, *events)
        self.windows.append(made)
        return made

    # Input

    def process(self, item: Any, port: int = 0) -> None:
        """Process a tuple that arrives at a port."""
        raise NotImplementedError(f"{type(self).__name__} has no method process. Write one that takes a tuple.")

    def process_all(self, items: Sequence[Any], port: int = 0, *, at: Sequence[int] | None = None) -> None:
        """Process tuples, with the same effect as one after another; some operators do it faster.

        Parameters
        ----------
        at
            When each tuple arrives; the event clock is advanced to it. Without it, all arrive now.
        """
        if at is None:
            for item in items:
                self.process(item, port)
            return
        if not isinstance(self.clock, EventClock):
            raise DeclarationError("instants of arrival need an event clock. Write clock=EventClock().")
        for item, instant in zip(items, at, strict=True):
            self.clock.advance(instant)
            self.process(item, port)

    def punctuate(self, port: int = 0) -> None:
        """Process a window punctuation: by default submit it to the output ports that preserve those of this port."""
        for out in range(self.outputs):
            if self.output_mode(out).port == port:
                self.submit(PUNCTUATION, out)

    def receive(self, item: Any, port: int = 0) -> None:
        """Process a tuple or a window punctuation."""
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

    # Output

    def connect(self, sink: Callable[[Any], object], port: int = 0) -> None:
        """Call a function with everything that is submitted to an output port."""
        self._sinks[port].append(sink)

    def submit(self, item: Any, port: int = 0) -> None:
        """Submit a tuple, or ``PUNCTUATION``, to an output port."""
        for sink in self._sinks[port]:
            sink(item)

    def run(self, stream: Iterable[Any], port: int = 0) -> list[Any]:
        """Process a stream on one port, and return what was submitted to output port 0.

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
                # It may have side effects between two tuples, such as advancing a clock.
                for item in stream:
                    self.receive(item, port)
        finally:
            sinks.remove(out.append)
        return out

    # For graphs and stores

    def input_mode(self, port: int) -> InputMode:
        """Return whether this instance expects window punctuations on a port."""
        declared = self.declared[port] if port < len(self.declared) else None
        return self.model.inputs[port].mode(declared)

    def output_mode(self, port: int) -> OutputMode:
        """Return how this instance treats window punctuations on an output port."""
        modes = self.model.outputs
        return modes[min(port, len(modes) - 1)]

    @property
    def threaded(self) -> bool:
        """Whether a clock's thread changes windows of this operator."""
        return self.clock is not None and self.clock.threaded and any(window.timed for window in self.windows)

    def lock(self) -> AbstractContextManager[Any]:
        """Return the lock to hold while reading windows of this operator; it costs nothing without a thread."""
        return self.clock.guard if self.clock is not None and self.threaded else nullcontext()

    def declaration(self) -> str:
        """Return as text the declarations that give its state a meaning: its windows, and more in subclasses."""
        made = (window.declared for window in self.windows if window.declared not in self.declared)
        return policies_text(*(each for each in (*self.declared, *made) if each is not None))

    def save(self) -> list[dict[str, Any]]:
        """Return the state of the operator as plain values; by default that of its windows."""
        with self.lock():
            return [window.save() for window in self.windows]

    def load(self, state: Sequence[dict[str, Any]]) -> None:
        """Continue from the saved state of an operator with the same declaration."""
        with self.lock():
            for window, saved in zip(self.windows, state, strict=True):
                window.load(saved)

    def close(self) -> None:
        """Stop the clock, unless it was passed as ``clock=``."""
        if self.clock is not None and self._owns_clock:
            self.clock.close()


def _keys_of(windows: Iterable[WindowLike | None]) -> By:
    """Return the keys that some of the windows already have."""
    partitions = (each.partitioned for each in windows if isinstance(each, WindowPolicies))
    return next((each.by for each in partitions if each is not None), None)


def _refuse_other_keys(windows: Iterable[WindowLike | None]) -> None:
    for window in windows:
        if isinstance(window, WindowPolicies):
            operator_policies(window, ())


def partition_attributes(operator: str, window: WindowPolicies) -> tuple[Attribute, ...]:
    """Return the attributes by which a window is partitioned; raise if it is partitioned by none."""
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
            f"[{declared}]. Declare it as before, or start without the state."
        )
