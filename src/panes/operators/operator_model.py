"""The model of an operator: which windows its ports support, and how they treat window punctuations.

Paper: Gedik 2014, sections 3.3.4, 3.4, 5.1 and 6.1. A model is checked when an operator is made, and by a graph of
operators before it runs. A window punctuation is a mark between tuples that ends a window; it carries window boundaries
from one operator to the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from panes.errors import DeclarationError
from panes.operators.policies import TumblingPolicies, WindowPolicies, eviction_kind, kind_of
from panes.queries.measures import Punctuation, Rows

# Window punctuations


class WindowPunctuation:
    """A boundary between two windows of a stream. Its only instance is ``PUNCTUATION``."""

    _only: WindowPunctuation | None = None

    def __new__(cls) -> WindowPunctuation:  # noqa: D102
        if cls._only is None:
            cls._only = super().__new__(cls)
        return cls._only

    def __repr__(self) -> str:
        return "PUNCTUATION"


PUNCTUATION: Final = WindowPunctuation()


def tuples_of(stream: Iterable[Any]) -> Iterator[Any]:
    """Return the tuples of a stream, without its punctuations.

    Examples
    --------
    >>> list(tuples_of([1, PUNCTUATION, 2]))
    [1, 2]
    """
    return (item for item in stream if item is not PUNCTUATION)


def windows_of(stream: Iterable[Any]) -> Iterator[list[Any]]:
    """Yield the windows of a punctuated stream; tuples after the last punctuation are not a complete window.

    Examples
    --------
    >>> list(windows_of([1, 2, PUNCTUATION, PUNCTUATION, 3]))
    [[1, 2], []]
    """
    window: list[Any] = []
    for item in stream:
        if item is PUNCTUATION:
            yield window
            window = []
        else:
            window.append(item)


class InputMode(Enum):
    """Whether an input port expects window punctuations."""

    OBLIVIOUS = "oblivious"
    EXPECTING = "expecting"
    WINDOW_BOUND = "window-bound"
    """Expecting if its window has a punctuation policy, otherwise oblivious."""


@dataclass(frozen=True, slots=True)
class OutputMode:
    """Whether an output port carries window punctuations: free, generating, or preserving those of an input port."""

    name: str
    port: int | None = None

    def __str__(self) -> str:
        return self.name if self.port is None else f"{self.name} those of port {self.port}"


FREE: Final = OutputMode("free")
GENERATING: Final = OutputMode("generating")


def preserving(port: int = 0) -> OutputMode:
    """Return the mode of an output port that passes on the punctuations of an input port.

    Examples
    --------
    >>> print(preserving(1))
    preserving those of port 1
    """
    return OutputMode("preserving", port)


EVICTIONS_OF_PARTITIONS = ("partition count", "tuple count", "partition age")
ALL_EVICTIONS = ("count", "delta", "time", "punctuation")
SLIDING_POLICIES = ("count", "delta", "time")
PARTITIONS = ("not partitioned", "never evicted", *EVICTIONS_OF_PARTITIONS)
"""What a window does with partitions: exactly one of these."""


@dataclass(frozen=True, slots=True)
class Supported:
    """A family of windows that a port supports.

    Parameters
    ----------
    evictions
        Kinds of eviction policies: ``count``, ``delta``, ``time``, ``punctuation``.
    triggers
        Kinds of trigger policies of sliding windows; none for tumbling windows.
    every
        The only count that a count-based trigger may have; None for any.
    empty
        Whether a sliding window may be empty: ``pn.rows(0)``.
    full
        Whether a sliding window may wait until it is full: ``partial=False``.
    partitions
        Which of ``PARTITIONS`` are supported, all by default. An operator with state of its own that does not react to
        partition evictions leaves these out.

    Examples
    --------
    >>> import panes as pn
    >>> from panes.operators.policies import operator_policies
    >>> one = Supported(("count",), ("count",), partitions=("not partitioned", "never evicted"))
    >>> one.holds(operator_policies(pn.sliding(pn.rows(3)), by="k"))
    True
    >>> one.holds(operator_policies(pn.sliding(pn.rows(3)), by="k", evict=pn.evict(keys=9)))
    False
    """

    evictions: tuple[str, ...]
    triggers: tuple[str, ...] = ()
    every: int | None = None
    empty: bool = False
    full: bool = True
    partitions: tuple[str, ...] = PARTITIONS

    def __post_init__(self) -> None:
        unknown = [each for each in self.partitions if each not in PARTITIONS]
        if unknown or not self.partitions:
            what = f"names {unknown[0]!r}" if unknown else "is empty"
            raise DeclarationError(f"partitions= {what}. Write some of {PARTITIONS}.")

    def holds(self, window: WindowPolicies) -> bool:
        """Return whether a window belongs to the family."""
        if kind_of(window.evict) not in self.evictions or _partitions_of(window) not in self.partitions:
            return False
        if isinstance(window, TumblingPolicies):
            return not self.triggers
        if kind_of(window.trigger) not in self.triggers or (window.evict == Rows(0) and not self.empty):
            return False
        if not (window.partial or self.full):
            return False
        return self.every is None or not isinstance(window.trigger, Rows) or window.trigger.n == self.every

    def partitioned(self) -> str:
        """Describe which partitions are supported, for error messages."""
        if set(self.partitions) == set(PARTITIONS):
            return "partitioned or not"
        shapes = {PARTITIONS[0]: "not partitioned", PARTITIONS[1]: "with partitions that are never evicted"}
        return " or ".join(shapes.get(each, f"with partitions evicted by {each}") for each in self.partitions)

    def __str__(self) -> str:
        evictions = " | ".join(_SHAPES[kind] for kind in self.evictions)
        if not self.triggers:
            return f"pn.tumbling({evictions})"
        triggers = " | ".join(
            f"pn.rows({self.every})" if kind == "count" and self.every is not None else _SHAPES[kind]
            for kind in self.triggers
        )
        shown = f"pn.hopping({evictions}, every={triggers})"
        if self.triggers == ("count",) and self.every == 1:
            shown = f"pn.sliding({evictions})"
        return f"{shown}{'' if self.full else ' without partial=False'}{_EMPTY if self.empty else ''}"


def _partitions_of(window: WindowPolicies) -> str:
    if window.partitioned is None:
        return "not partitioned"
    return eviction_kind(window.partitioned)


_SHAPES = {
    "count": "pn.rows(n)",
    "delta": "pn.delta(column, by)",
    "time": "duration",
    "punctuation": "pn.punctuation()",
}
_EMPTY = " and the empty pn.sliding(pn.rows(0))"


@dataclass(frozen=True, slots=True)
class InputPort:
    """An input port: the windows that it supports (none if it has no window), and its punctuation mode."""

    supports: tuple[Supported, ...] = ()
    punctuation: InputMode = InputMode.OBLIVIOUS

    def mode(self, window: WindowPolicies | None) -> InputMode:
        """Return whether the port expects punctuations, given the window of an instance."""
        if self.punctuation is not InputMode.WINDOW_BOUND:
            return self.punctuation
        bound = window is not None and isinstance(window.evict, Punctuation)
        return InputMode.EXPECTING if bound else InputMode.OBLIVIOUS


@dataclass(frozen=True, slots=True)
class OperatorModel:
    """The name and ports of an operator. Additional output ports of an instance are like the last one."""

    name: str
    inputs: tuple[InputPort, ...]
    outputs: tuple[OutputMode, ...]

    def check(self, window: WindowPolicies, port: int = 0) -> None:
        """Reject a window that a port does not support, and list those that it does.

        Examples
        --------
        >>> import panes as pn
        >>> from panes.operators.policies import operator_policies
        >>> port = InputPort((Supported(("count", "time")),))
        >>> model = OperatorModel("Writer", (port,), ())
        >>> model.check(operator_policies(pn.sliding(pn.rows(2))))
        Traceback (most recent call last):
        ...
        panes.errors.DeclarationError: Writer does not support the window pn.sliding(pn.rows(2)). It supports
        pn.tumbling(pn.rows(n) | duration); ...
        """
        supports = self.inputs[port].supports
        if not any(family.holds(window) for family in supports):
            known = "; ".join(f"{family}, each {family.partitioned()}" for family in supports) or "no window at all"
            if len(how := {family.partitioned() for family in supports}) == 1:
                known = "; ".join(map(str, supports)) + f"; each of them {how.pop()}"
            where = f" on port {port}" if len(self.inputs) > 1 else ""
            partitions = "" if window.partitioned is None else f" ({_partitions_of(window)})"
            raise DeclarationError(
                f"{self.name} does not support the window {window}{partitions}{where}. It supports {known}."
            )


TUMBLING_WINDOWS = Supported(ALL_EVICTIONS)
SLIDING_WINDOWS = Supported(SLIDING_POLICIES, SLIDING_POLICIES)
EVERY_TUPLE = Supported(SLIDING_POLICIES, ("count",), every=1, full=False)
