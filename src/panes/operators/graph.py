"""A data flow graph of operators, checked before anything runs.

Paper: Gedik 2014, sections 2.1 and 3.4. A stream is *punctuated* if its output port generates punctuations, or
preserves those of an input port to which a single punctuated stream is connected. Every port that expects punctuations
has to be connected to a single punctuated stream: otherwise its window would grow for ever, or have garbled
boundaries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from panes.errors import DeclarationError, nearest
from panes.operators.clocks import Clock
from panes.operators.operator import Operator
from panes.operators.punctuations import FREE, InputMode, OutputMode


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
