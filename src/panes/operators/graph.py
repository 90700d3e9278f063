"""Event time for operators: tuples that come out of order go in by their timestamps, as watermarks allow.

==========  =====================================================================================================
requires    a timestamp in each tuple, and watermarks: no tuple with an earlier timestamp will come
costs       O(log n) for each tuple, of the n that wait for the watermark
==========  =====================================================================================================

The wall clock of the paper's time-based policies becomes event time, so that a replay gives the same answers whenever
it is run, and however its tuples were shuffled within the watermark's delay.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any, ClassVar

from panes.errors import DeclarationError, SchemaError, nearest
from panes.operators.clocks import Clock, EventClock
from panes.operators.operator import Operator
from panes.operators.operator_model import FREE, InputMode, InputPort, OperatorModel, OutputMode, preserving
from panes.operators.policies import Attribute
from panes.timeline import parse_instant

# Selection and projection: an operator without a window, which preserves the punctuations of its stream.
#
# Paper: Gedik 2014, sections 3.4 and 6.1.


class Functor(Operator):
    """Keep tuples that fulfil a condition, and make other tuples of them.

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
        """Pass on a tuple, if it is to be kept."""
        if self._where is None or self._where(item):
            self.submit(item if self._transform is None else self._transform(item))


# A data flow graph of operators, checked before anything runs.
#
# Paper: Gedik 2014, sections 2.1 and 3.4. A stream is *punctuated* if its output port generates punctuations, or
# preserves those of an input port to which a single punctuated stream is connected. Every port that expects
# punctuations has to be connected to a single punctuated stream: otherwise its window would grow for ever, or have
# garbled boundaries.


@dataclass(frozen=True, slots=True)
class Stream:
    """What comes out of a port of an operator, or of a source, where ``operator`` is None."""

    name: str
    mode: OutputMode
    operator: Operator | None = None


class Graph:
    """Operators and the streams between them. A stream has to be there before an operator reads it.

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
        """Declare a stream that comes from outside; ``mode=GENERATING`` if it has window punctuations."""
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
            A name for the stream of each output port; ports without a name lead nowhere.

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
        """Whether a stream carries punctuations that one operator, and only one, generated."""
        stream = self._streams[name]
        if stream.mode.port is None:
            return stream.mode is not FREE
        connected = self._inputs[id(stream.operator)][stream.mode.port]
        return len(connected) == 1 and self.punctuated(connected[0])

    def send(self, stream: str, item: Any) -> None:
        """Let a tuple or a window punctuation come in from a source."""
        known = self._streams.get(stream)
        if known is None or known.operator is not None:
            sources = [each.name for each in self._streams.values() if each.operator is None]
            raise DeclarationError(f"{stream!r} is no source: {nearest(stream, sources)}.")
        if self._clock is None:
            self._deliver(stream, item)
            return
        # The thread of the clock sends tuples through the same operators.
        with self._clock.guard:
            self._clock.settle()
            self._deliver(stream, item)

    def run(self, arrivals: Iterable[tuple[str, Any]], *, collect: Sequence[str]) -> Mapping[str, list[Any]]:
        """Let tuples come in, each with the name of its source, and collect what streams carry because of it."""
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
            raise DeclarationError(f"there are two streams {stream.name!r}: give each a name of its own.")
        self._streams[stream.name] = stream
        self._readers[stream.name] = []

    def _check_clock(self, operator: Operator) -> None:
        if not operator.threaded:
            return
        if self._clock is not None and operator.clock is not self._clock:
            raise DeclarationError(
                f"{operator.model.name} has a wall clock of its own, and so has another operator of the graph: their "
                "threads would get into each other's way. Make one WallClock() and give it to all of them as clock=."
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
    """Feeds an operator in the order of event time.

    Parameters
    ----------
    target
        An operator, or a graph of them, made with ``clock``.
    at
        The attribute with the timestamp: int µs, or a ``datetime``.
    ties
        What orders tuples of one timestamp, instead of their arrival.

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
        """How many tuples came behind the watermark; they are left out."""

    def add(self, items: Iterable[Any], port: int | str = 0) -> None:
        """Take in tuples, in any order, for a port of an operator or a source of a graph."""
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
        """Let everything happen before an instant: no earlier tuple will come."""
        waiting = self._waiting
        while waiting and waiting[0][0] < watermark:
            instant, _, _, item, port = heapq.heappop(waiting)
            self._clock.advance(instant)
            self._deliver(item, port)
        self._clock.advance(watermark)
        self._watermark = watermark

    def finish(self) -> None:
        """Let in what still waits. Windows that are not full by then stay open."""
        if self._waiting:
            self.advance(max(instant for instant, *_ in self._waiting) + 1)
