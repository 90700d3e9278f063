"""Window punctuations, and how the ports of operators treat them.

Paper: Gedik 2014, sections 3.3.4 and 3.4. A window punctuation is a mark between tuples that ends a window; it carries
window boundaries from one operator to the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final


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
