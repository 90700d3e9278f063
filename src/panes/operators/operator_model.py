"""What an operator says about itself: the window configurations of its ports, and how they treat punctuations.

Paper: Gedik 2014, sections 5.1 and 6.1. A model is checked when an operator is built, and by a graph of operators
before anything runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import product
from typing import Any, Final

from panes.errors import DeclarationError
from panes.operators.policies import SlidingPolicies, TumblingPolicies, WindowPolicies, eviction_kind, kind_of
from panes.queries.measures import Punctuation, Rows

# Window punctuations, and how the ports of operators treat them.
#
# Paper: Gedik 2014, sections 3.3.4 and 3.4. A window punctuation is a mark between tuples that ends a window; it
# carries window boundaries from one operator to the next.


class WindowPunctuation:
    """A boundary between two windows of a stream. There is one of it: ``PUNCTUATION``."""

    _only: WindowPunctuation | None = None

    def __new__(cls) -> WindowPunctuation:  # noqa: D102
        if cls._only is None:
            cls._only = super().__new__(cls)
        return cls._only

    def __repr__(self) -> str:
        return "PUNCTUATION"


PUNCTUATION: Final = WindowPunctuation()


def tuples_of(stream: Iterable[Any]) -> Iterator[Any]:
    """A stream without its punctuations.

    Examples
    --------
    >>> list(tuples_of([1, PUNCTUATION, 2]))
    [1, 2]
    """
    return (item for item in stream if item is not PUNCTUATION)


def windows_of(stream: Iterable[Any]) -> Iterator[list[Any]]:
    """The windows of a punctuated stream, one after another; what follows the last punctuation is no window yet.

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
    """Whether an input port needs window punctuations."""

    OBLIVIOUS = "oblivious"
    EXPECTING = "expecting"
    WINDOW_BOUND = "window-bound"
    """Expecting where its window has a punctuation policy, oblivious elsewhere."""


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
    """The mode of an output port that passes on the punctuations of an input port.

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
"""What may be said of the partitions of a window: exactly one of these."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """One way to configure the window of a port, by the kinds of its policies.

    ``partition_eviction`` is None for a window that is not partitioned, and for one whose partitions are never evicted:
    to an operator both are the same, a window with one or many partitions.
    """

    type: str
    evict: str
    trigger: str | None
    partition_eviction: str | None

    @classmethod
    def of(cls, window: WindowPolicies) -> Configuration:
        """The configuration of a declared window."""
        partitions = _partitions_of(window)
        trigger = kind_of(window.trigger) if isinstance(window, SlidingPolicies) else None
        return cls(
            window.kind, kind_of(window.evict), trigger, partitions if partitions in EVICTIONS_OF_PARTITIONS else None
        )


@dataclass(frozen=True, slots=True)
class Supported:
    """A family of configurations: evictions, triggers, and what may happen to partitions.

    Parameters
    ----------
    evictions
        Kinds of eviction policies: ``count``, ``delta``, ``time``, ``punctuation``.
    triggers
        Kinds of trigger policies of sliding windows; none for tumbling windows.
    every
        The only size that a count-based trigger may have; None for any.
    empty
        Whether a sliding window may be empty: ``pn.rows(0)``.
    full
        Whether a sliding window may keep its answers back until it is full: ``partial=False``.
    partitions
        Which of ``PARTITIONS`` a window may be, all by default. An operator that keeps something of its own about
        tuples, and does not hear of partitions that are evicted, leaves those evictions out.

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
            raise DeclarationError(f"partitions= {what}, so no window is like that. Write some of {PARTITIONS}.")

    def holds(self, window: WindowPolicies) -> bool:
        """Whether a declared window is one of the family."""
        if kind_of(window.evict) not in self.evictions or _partitions_of(window) not in self.partitions:
            return False
        if isinstance(window, TumblingPolicies):
            return not self.triggers
        if kind_of(window.trigger) not in self.triggers or (window.evict == Rows(0) and not self.empty):
            return False
        if not (window.partial or self.full):
            return False
        return self.every is None or not isinstance(window.trigger, Rows) or window.trigger.n == self.every

    def configurations(self) -> Iterator[Configuration]:
        """All of the family."""
        triggers: tuple[str | None, ...] = self.triggers or (None,)
        partitions = dict.fromkeys(each if each in EVICTIONS_OF_PARTITIONS else None for each in self.partitions)
        for evict, trigger, eviction in product(self.evictions, triggers, partitions):
            yield Configuration("sliding" if trigger else "tumbling", evict, trigger, eviction)

    def partitioned(self) -> str:
        """What its windows may be, for people."""
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
    """An input port: the windows that it supports (none for a port without a window), and its punctuation mode."""

    supports: tuple[Supported, ...] = ()
    punctuation: InputMode = InputMode.OBLIVIOUS

    def mode(self, window: WindowPolicies | None) -> InputMode:
        """Whether the port of an instance with such a window is expecting or oblivious."""
        if self.punctuation is not InputMode.WINDOW_BOUND:
            return self.punctuation
        bound = window is not None and isinstance(window.evict, Punctuation)
        return InputMode.EXPECTING if bound else InputMode.OBLIVIOUS


@dataclass(frozen=True, slots=True)
class OperatorModel:
    """The ports of an operator. Further output ports of an instance are like the last one."""

    name: str
    inputs: tuple[InputPort, ...]
    outputs: tuple[OutputMode, ...]

    def check(self, window: WindowPolicies, port: int = 0) -> None:
        """Refuse a window that the operator does not support on a port, and say which ones it does.

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

    def configurations(self, port: int = 0) -> list[Configuration]:
        """All window configurations of a port."""
        return [each for family in self.inputs[port].supports for each in family.configurations()]


TUMBLING_WINDOWS = Supported(ALL_EVICTIONS)
SLIDING_WINDOWS = Supported(SLIDING_POLICIES, SLIDING_POLICIES)
EVERY_TUPLE = Supported(SLIDING_POLICIES, ("count",), every=1, full=False)
