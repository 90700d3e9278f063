"""The levels of a collective index: which distance from the end of a substream each of them stands for.

Distance 1 is the newest element of a substream, distance 2 the one before it. There are p levels of size 1, then p of
size 2, p of size 4, and so on, one after another: the level at place c of exponent b covers the 2^b distances
``(2^b (p + c) - p, 2^b (p + c + 1) - p]``. With p = 1 these are the levels of Definition 4.1.

Paper: Arasu and Widom, Resource Sharing in Continuous Sliding-Window Aggregates (2004), section 4.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from panes.errors import DeclarationError

Integers: TypeAlias = npt.NDArray[np.int64]

_MOST = 256


@dataclass(frozen=True, slots=True)
class Level:
    """One level: 2^exponent distances, at one of the p places of that size."""

    exponent: int
    place: int


@dataclass(frozen=True, slots=True)
class Levels:
    """p levels of every size.

    Examples
    --------
    >>> Levels(1).epsilon, Levels(2).epsilon, Levels(8).epsilon
    (0.75, 0.5, 0.2)
    >>> Levels.within(0.25)
    Levels(p=6)
    """

    p: int

    def __post_init__(self) -> None:
        if isinstance(self.p, bool) or not isinstance(self.p, int) or not 1 <= self.p <= _MOST:
            raise DeclarationError(f"p={self.p!r}: write how many levels of each size there are, from 1 to {_MOST}.")

    @classmethod
    def within(cls, epsilon: float) -> Levels:
        """The fewest levels whose error is at most ε."""
        if isinstance(epsilon, bool) or not isinstance(epsilon, (int, float)) or not 0 < epsilon < 1:
            raise DeclarationError(
                f"epsilon={epsilon!r}: write by which part of a threshold candidates may miss it, as 0.5."
            )
        p = next((p for p in range(1, _MOST + 1) if cls(p).epsilon <= epsilon), None)
        if p is None:
            raise DeclarationError(
                f"epsilon={epsilon!r} is too small: it would take more than {_MOST} levels of each size. Answers are "
                "exact whatever it is; write for example 0.25."
            )
        return cls(p)

    @property
    def epsilon(self) -> float:
        """By which part of a threshold a candidate may miss it: it has more than v (1 - ε) where v was asked for."""
        # Within a size the worst is place 0, asked for up to two levels on; 3 / (2p + 2) is the step to the next size.
        return max(2 / (self.p + 2), 3 / (2 * self.p + 2))

    def nearest(self, level: Level) -> int:
        """The smallest distance that a level covers."""
        return ((self.p + level.place) << level.exponent) - self.p + 1

    def farthest(self, level: Level) -> int:
        """The largest distance that a level covers."""
        return ((self.p + level.place + 1) << level.exponent) - self.p

    def for_at_least(self, elements: int) -> Level:
        """The last level that a substream reaches within its newest so many elements, of which there are 1 or more.

        More than v elements are at least v + 1. The paper asks level ⌊log2 v⌋ - 1 for them; with p = 1 this is the same
        level, or the next one where its last distance is v + 1 or v.

        Examples
        --------
        >>> Levels(1).for_at_least(12)
        Level(exponent=2, place=0)
        """
        # farthest <= elements, solved for the exponent and then for the place.
        exponent = ((elements + self.p) // (self.p + 1)).bit_length() - 1
        return Level(exponent, min(self.p - 1, ((elements + self.p) >> exponent) - self.p - 1))

    def for_at_most(self, elements: int) -> Level:
        """The first level that begins only after so many elements, of which there are 0 or more.

        Examples
        --------
        >>> Levels(1).for_at_most(11)
        Level(exponent=4, place=0)
        """
        # nearest > elements, that is 2^b (p + c) >= elements + p.
        exponent = 0
        while (2 * self.p - 1) << exponent < elements + self.p:
            exponent += 1
        return Level(exponent, max(0, -(-(elements + self.p) >> exponent) - self.p))


def bit_lengths(values: Integers) -> Integers:
    """``int.bit_length`` of integers from 0 on; in halves, since a double has only 53 bits.

    Examples
    --------
    >>> bit_lengths(np.array([0, 1, 4, 2**62 - 1]))
    array([ 0,  1,  3, 62])
    """
    high = values >> 32
    lengths: Integers = np.where(high > 0, np.frexp(high)[1] + 32, np.frexp(values & 0xFFFFFFFF)[1]).astype(np.int64)
    return lengths
