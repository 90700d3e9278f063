"""Granules in the order of time: the nodes of a stairwise chain, which join what comes and know their total."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Generic, TypeAlias, TypeVar

T = TypeVar("T")
Combine: TypeAlias = Callable[[T, T], T]
"""Two contents, the earlier one first, as one."""


@dataclass(frozen=True, slots=True)
class Granule(Generic[T]):
    """What happened in ``[start, end)``."""

    start: int
    end: int
    content: T


@dataclass
class Buffer(Generic[T]):
    """Granules in the order of time; few, since they leave when the level slides."""

    combine: Combine[T]
    granules: deque[Granule[T]] = field(default_factory=deque)

    def put(self, granule: Granule[T]) -> None:
        """Join the granule of the same span, or take a place among the others."""
        at = len(self.granules)
        while at and self.granules[at - 1].start > granule.start:
            at -= 1
        if at and self.granules[at - 1].start == granule.start:
            known = self.granules[at - 1]
            self.granules[at - 1] = replace(known, content=self.combine(known.content, granule.content))
        else:
            self.granules.insert(at, granule)

    def total(self, now: int) -> T | None:
        """All that has begun before now; arrivals may lie ahead."""
        content: T | None = None
        for granule in self.granules:
            if granule.start < now:
                content = joined(self.combine, content, granule.content)
        return content


class Core(Buffer[T]):
    """A queue of granules that knows its total: two stacks, so that no law beyond associativity is needed.

    The paper takes an expiring sub-aggregate off where that is possible and searches the rest where it is not. Here the
    older granules have suffix sums, made when the last of them has left, and the younger ones a running sum.
    """

    def __init__(self, combine: Combine[T]) -> None:
        super().__init__(combine)
        self._suffixes: list[T] = []
        self._recent: T | None = None

    def push(self, granule: Granule[T]) -> None:
        """Take in the youngest granule."""
        self.granules.append(granule)
        self._recent = joined(self.combine, self._recent, granule.content)

    def pop(self) -> Granule[T]:
        """Let the oldest granule go."""
        if not self._suffixes:
            for granule in reversed(self.granules):
                older = granule.content
                self._suffixes.append(self.combine(older, self._suffixes[-1]) if self._suffixes else older)
            self._recent = None
        self._suffixes.pop()
        return self.granules.popleft()

    def put(self, granule: Granule[T]) -> None:
        """Join what comes late; sums are made anew."""
        super().put(granule)
        self._suffixes, self._recent = [], super().total(self.granules[-1].end)

    def total(self, now: int) -> T | None:
        """All of it, since nothing in a core lies ahead."""
        return joined(self.combine, self._suffixes[-1] if self._suffixes else None, self._recent)

    def sums(self) -> Iterator[T]:
        """What is kept beside the granules."""
        # The suffix of the youngest granule is that granule's own content.
        yield from self._suffixes[1:]
        if self._recent is not None and len(self.granules) - len(self._suffixes) > 1:
            yield self._recent


def joined(combine: Combine[T], earlier: T | None, later: T | None) -> T | None:
    """Two contents of which one may be missing."""
    if earlier is None or later is None:
        return later if earlier is None else earlier
    return combine(earlier, later)
