"""Connect operators into a data flow graph, and replay streams through one in event time.

==========  =====================================================================================================
``Graph``   operators and streams; a port that expects punctuations must read a single punctuated stream
``Replay``  tuples in any order, inserted by timestamp as watermarks allow; O(log n) per tuple, of n that wait
==========  =====================================================================================================

Paper: Gedik 2014, sections 2.1 and 3.4. A stream is *punctuated* if its output port generates punctuations, or
preserves those of an input port that reads a single punctuated stream. A window that expects punctuations would
otherwise grow for ever, or have garbled boundaries. The paper's wall clock becomes event time in a replay: the
answers are the same whenever it runs, however the tuples were shuffled within the watermark's delay.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any, ClassVar

from panes.errors import DeclarationError, SchemaError
from panes.operators.clocks import Clock, EventClock
from panes.operators.operator import Operator
from panes.operators.operator_model import FREE, InputMode, InputPort, OperatorModel, OutputMode, preserving
from panes.operators.policies import Attribute
from panes.suggestions import nearest
from panes.timeline import parse_instant


@dataclass(frozen=True, slots=True)
class Stream:
    """The output of a port of an operator, or a source if ``operator`` is None."""

    name: str
    mode: OutputMode
    operator: Operator | None = None


class Graph:
    """Operators and the streams between them. Add a stream before the operators that read it.

    Examples
    --------
    >>> import panes as pn
    >>> from panes.operators import Aggregate
    >>> graph = Graph()
    >>> graph.source("Readings")
    >>> lowest = Aggregate(pn.tumbling(pn.punctuation()), {"least": pn.min("x")})
    >>> graph.add(lowest, reads=["Readings"], writes=["Lowest"])
    Traceback (most recent call last):
    ...
    panes.errors.DeclarationError: Aggregate expects window punctuations on port 0, and the stream 'Readings' has none:
    ...
    """

    def __init__(self) -> None:
        self._streams: dict[str, Stream] = {}
        self._readers: dict[str, list[tuple[Operator, int]]] = {}
        self._inputs: dict[int, list[list[str]]] = {}
        self._collected: dict[str, list[Any]] = {}
        self._clock: Clock | None = None

    def source(self, name: str, mode: OutputMode = FREE) -> None:
        """Declare an input stream; ``mode=GENERATING`` if it has window punctuations."""
        if mode.port is not None:
            raise DeclarationError(f"the source {name!r} has no input port whose punctuations it could preserve.")
        self._add_stream(Stream(name, mode))

    def add(self, operator: Operator, *, reads: Sequence[str | Iterable[str]], writes: Sequence[str] = ()) -> None:
        """Connect an operator.

        Parameters
        ----------
        reads
            For each input port a stream, or several streams that are merged as they come.
        writes
            A name for the stream of each output port; the output of other ports is dropped.

        Raises
        ------
        DeclarationError
            If a stream is unknown, or the graph would not respect punctuations.
        """
        name = operator.model.name
        inputs = [[each] if isinstance(each, str) else list(each) for each in reads]
        if len(inputs) != len(operator.model.inputs):
            raise DeclarationError(
                f"{name} has {len(operator.model.inputs)} input ports, and reads= has {len(inputs)} entries. Write "
                "one for each port."
            )
        if len(writes) > operator.outputs:
            raise DeclarationError(f"{name} has {operator.outputs} output ports, and writes= names {len(writes)}.")
        self._check_clock(operator)
        for port, streams in enumerate(inputs):
            for stream in streams:
                if stream not in self._streams:
                    raise DeclarationError(f"{name} reads {stream!r}: {nearest(stream, self._streams)}.")
            if operator.input_mode(port) is InputMode.EXPECTING:
                self._check_expecting(name, port, streams)
        if id(operator) in self._inputs:
            raise DeclarationError(
                f"this {name} is in the graph already. Name all streams that it reads at once, or make another one."
            )
        self._inputs[id(operator)] = inputs
        for port, stream in enumerate(writes):
            self._add_stream(Stream(stream, operator.output_mode(port), operator))
            operator.connect(lambda item, stream=stream: self._deliver(stream, item), port)  # type: ignore[misc]
        for port, streams in enumerate(inputs):
            for stream in streams:
                self._readers[stream].append((operator, port))

    def punctuated(self, name: str) -> bool:
        """Return whether a stream carries the punctuations of exactly one operator."""
        stream = self._streams[name]
        if stream.mode.port is None:
            return stream.mode is not FREE
        connected = self._inputs[id(stream.operator)][stream.mode.port]
        return len(connected) == 1 and self.punctuated(connected[0])

    def send(self, stream: str, item: Any) -> None:
        """Send a tuple or a window punctuation from a source."""
        known = self._streams.get(stream)
        if known is None or known.operator is not None:
            sources = [each.name for each in self._streams.values() if each.operator is None]
            raise DeclarationError(f"{stream!r} is not a source: {nearest(stream, sources)}.")
        if self._clock is None:
            self._deliver(stream, item)
            return
        # The thread of the clock sends tuples through the same operators.
        with self._clock.guard:
            self._clock.settle()
            self._deliver(stream, item)

    def run(self, arrivals: Iterable[tuple[str, Any]], *, collect: Sequence[str]) -> Mapping[str, list[Any]]:
        """Send tuples, each with the name of its source, and return what some streams carried meanwhile."""
        for name in collect:
            if name not in self._streams:
                raise DeclarationError(f"there is no stream {name!r} to collect: {nearest(name, self._streams)}.")
        self._collected = {name: [] for name in collect}
        for stream, item in arrivals:
            self.send(stream, item)
        collected, self._collected = self._collected, {}
        return collected

    def _deliver(self, stream: str, item: Any) -> None:
        if stream in self._collected:
            self._collected[stream].append(item)
        for operator, port in self._readers[stream]:
            operator.receive(item, port)

    def _add_stream(self, stream: Stream) -> None:
        if stream.name in self._streams:
            raise DeclarationError(f"there are two streams {stream.name!r}. Give each its own name.")
        self._streams[stream.name] = stream
        self._readers[stream.name] = []

    def _check_clock(self, operator: Operator) -> None:
        if not operator.threaded:
            return
        if self._clock is not None and operator.clock is not self._clock:
            raise DeclarationError(
                f"{operator.model.name} and another operator of the graph have different wall clocks, whose threads "
                "would interfere. Make one WallClock() and pass it to all of them as clock=."
            )
        self._clock = operator.clock

    def _check_expecting(self, operator: str, port: int, streams: list[str]) -> None:
        what = f"{operator} expects window punctuations on port {port}, and"
        if len(streams) != 1:
            raise DeclarationError(
                f"{what} {len(streams)} streams are connected to it: the punctuations of one would fall among the "
                "tuples of another. Connect one punctuated stream."
            )
        if not self.punctuated(streams[0]):
            raise DeclarationError(
                f"{what} the stream {streams[0]!r} has none: its window would never end. Connect the output of an "
                "operator that generates them, directly or through operators that preserve them."
            )


class Replay:
    """Feeds an operator or a graph in the order of event time.

    Parameters
    ----------
    target
        An operator, or a graph, made with ``clock``.
    at
        The attribute with the timestamp: int µs, or a ``datetime``.
    ties
        A key that orders tuples of one timestamp; without it they keep their order of arrival.

    Examples
    --------
    >>> import panes as pn
    >>> from panes.operators import Aggregate
    >>> clock = EventClock()
    >>> counts = Aggregate(pn.tumbling("5 us", origin="first"), {"n": pn.count()}, clock=clock)
    >>> out = []
    >>> counts.connect(out.append)
    >>> replay = Replay(counts, clock, at="ts")
    >>> replay.add([{"ts": 3}, {"ts": 1}, {"ts": 7}])
    >>> replay.advance(11); out
    [{'n': 2}, PUNCTUATION, {'n': 1}, PUNCTUATION]
    """

    def __init__(
        self, target: Operator | Graph, clock: EventClock, *, at: Attribute, ties: Callable[[Any], Any] | None = None
    ) -> None:
        self._deliver: Callable[[Any, Any], None] = (
            target.process if isinstance(target, Operator) else lambda item, source: target.send(source, item)
        )
        self._clock = clock
        self._at: Callable[[Any], Any] = itemgetter(at)
        self._ties = ties
        self._waiting: list[tuple[int, Any, int, Any, int | str]] = []
        self._arrived = 0
        self._watermark: int | None = None
        self.late = 0
        """The number of tuples dropped because they came behind the watermark."""

    def add(self, items: Iterable[Any], port: int | str = 0) -> None:
        """Add tuples in any order, for a port of an operator or a source of a graph."""
        for item in items:
            instant = self._at(item)
            if isinstance(instant, datetime):
                instant = parse_instant(instant)
            if isinstance(instant, bool) or not isinstance(instant, int):
                raise SchemaError(
                    f"a tuple has the timestamp {instant!r}. Write whole µs since the epoch, or a datetime."
                )
            if self._watermark is not None and instant < self._watermark:
                self.late += 1
                continue
            self._arrived += 1
            tie = None if self._ties is None else self._ties(item)
            heapq.heappush(self._waiting, (instant, tie, self._arrived, item, port))

    def advance(self, watermark: int) -> None:
        """Process everything before an instant: no earlier tuple will come."""
        waiting = self._waiting
        while waiting and waiting[0][0] < watermark:
            instant, _, _, item, port = heapq.heappop(waiting)
            self._clock.advance(instant)
            self._deliver(item, port)
        self._clock.advance(watermark)
        self._watermark = watermark

    def finish(self) -> None:
        """Process the tuples that still wait. Windows that are not full by then stay open."""
        if self._waiting:
            self.advance(max(instant for instant, *_ in self._waiting) + 1)


class Functor(Operator):
    """Filter and transform tuples: an operator without a window, which preserves punctuations.

    Paper: Gedik 2014, sections 3.4 and 6.1.

    Examples
    --------
    >>> from panes.operators import PUNCTUATION
    >>> Functor(lambda x: 10 * x, where=lambda x: x > 1).run([1, 2, PUNCTUATION, 3])
    [20, PUNCTUATION, 30]
    """

    model: ClassVar[OperatorModel] = OperatorModel("Functor", (InputPort(),), (preserving(0),))

    def __init__(
        self, transform: Callable[[Any], Any] | None = None, *, where: Callable[[Any], bool] | None = None
    ) -> None:
        super().__init__()
        self._transform = transform
        self._where = where

    def process(self, item: Any, port: int = 0) -> None:
        """Submit the transformed tuple if it fulfils the condition."""
        if self._where is None or self._where(item):
            self.submit(item if self._transform is None else self._transform(item))
