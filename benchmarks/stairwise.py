"""Stairwise: nested time frames kept together, in a chain of buffers and cores.

::

    now ─┐ δ0 ┌─────── g0 ───────┐ δ1 ┌─────── g1 ───────┐ δ2 ┌── g2 ... ──┐ discarded
         │    │ granules of β0   │    │ granules of β1   │    │            │
       arrivals  → promotion      shift → promotion      shift → promotion

A core g_k keeps what level k looks at and narrower levels do not, one content per granule of its slide. A buffer δ_k
gathers what expires from the level below until level k slides. Then its full granules are promoted into g_k, and what
expires from g_k is shifted into δ_k+1. So every tuple is in one node, and the nodes lie next to one another.

Three things are settled here that the paper leaves open. Granules begin at ``origin + m * slide``: where a range is no
multiple of the next wider slide, the rest of a granule waits in the buffer, which is then not empty after a slide.
Where slides are no multiples of one another, a granule ends wherever a granule of a wider level does, or an aggregate
could not be cut there later. And in that case a narrow level that lags behind may reach further back than a wider one;
what is older than the wider level's rear is left out of its report.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Generic, TypeAlias, TypeVar

from panes.errors import PlanError

# Granules in the order of time: the nodes of a stairwise chain, which join what comes and know their total.


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


def joined(combine: Combine[T], earlier: T | None, later: T | None) -> T | None:
    """Two contents of which one may be missing."""
    if earlier is None or later is None:
        return later if earlier is None else earlier
    return combine(earlier, later)


@dataclass(frozen=True, slots=True)
class Composed(Generic[T]):
    """What nodes hold together in ``[start, end)``; None where nothing happened."""

    start: int
    end: int
    content: T | None


@dataclass(frozen=True, slots=True)
class Node(Generic[T]):
    """A node as others see it: buffer δ or core g of a level, the span it covers, and its granules."""

    name: str
    start: int
    end: int
    granules: tuple[Granule[T], ...]


class Stairwise(Generic[T]):
    """The state of a nested window.

    ==========  =====================================================================
    requires    any monoid: granules are combined from the earlier to the later
    build       O(1) combinations per tuple or granule that arrives, amortised
    answer      O(levels + granules of one level)
    memory      one partial per granule of a level between the range of the level
                below it and its own, and as many partial sums
    paper       Patroumpas & Sellis 2010, sections III-B, III-C and IV-A, figure 2
    ==========  =====================================================================

    Time is half-open: at ``now``, everything before it has come. Insert what comes, then advance.

    Parameters
    ----------
    ranges, slides
        Of each level, from the narrowest on: ω and β.
    combine
        Of two contents, the earlier one first: partial aggregates of many keys, lists of tuples, or anything else that
        can be joined.
    origin
        The initiation time τ0; what happened earlier is left out.

    Examples
    --------
    >>> chain = Stairwise([4, 8], [1, 4], combine=lambda a, b: a + b)
    >>> for instant in range(12):
    ...     _ = chain.insert(instant, [instant])
    ...     chain.advance(instant + 1)
    >>> chain.state(4)
    Composed(start=8, end=12, content=[8, 9, 10, 11])
    >>> chain.state(5)
    Composed(start=4, end=12, content=[4, 5, 6, 7, 8, 9, 10, 11])
    """

    def __init__(self, ranges: Sequence[int], slides: Sequence[int], combine: Combine[T], *, origin: int = 0) -> None:
        _check(ranges, slides)
        self.ranges, self.slides, self.origin, self.now = tuple(ranges), tuple(slides), origin, origin
        self._combine = combine
        # Where granules of a level end: where those of any level from it on do.
        self._edges = [_needed(slides[level:]) for level in range(len(slides))]
        self._buffers: list[Buffer[T]] = [Buffer(combine) for _ in slides]
        self._cores: list[Core[T]] = [Core(combine) for _ in slides]

    def insert(self, instant: int, content: T) -> bool:
        """Take in what happened at an instant; whether any level still looks at it.

        What comes late joins the granule that covers it. New arrivals join δ0, whatever their time.
        """
        if instant < self.origin:
            return False
        for level, (joint, rear) in enumerate(self._bounds()):
            if instant >= joint:
                self._buffers[level].put(self._granule(level, instant, content))
                return True
            if instant >= rear:
                self._cores[level].put(self._granule(level, instant, content))
                return True
        return False

    def advance(self, to: int) -> None:
        """Let time pass; levels that slide meanwhile promote and shift, the narrowest first."""
        self.now = max(self.now, to)
        for level, (joint, _) in enumerate(self._bounds()):
            buffer, core, last = self._buffers[level], self._cores[level], level == len(self._cores) - 1
            while buffer.granules and buffer.granules[0].end <= joint:
                core.push(buffer.granules.popleft())
            while core.granules and core.granules[0].start < self.rear(level):
                expired = core.pop()
                if not last:
                    self._buffers[level + 1].put(self._granule(level + 1, expired.start, expired.content))

    def front(self, level: int) -> int:
        """Where a level ends since it slid last: ``now - mod(now - origin, slide)``."""
        return self.now - (self.now - self.origin) % self.slides[level]

    def rear(self, level: int) -> int:
        """Where a level would begin if the stream had always been there."""
        return self.front(level) - self.ranges[level]

    def state(self, horizon: int) -> Composed[T]:
        """Continuous reporting: what happened in the last so many instants, rounded up to whole granules."""
        if not 0 < horizon <= self.ranges[-1]:
            raise PlanError(f"the chain looks back up to {self.ranges[-1]}, and was asked for a horizon of {horizon}.")
        begin = self.now - horizon
        for level, bounds in enumerate(self._bounds()):
            if begin >= bounds[1]:
                return self._since(self._span(level, begin)[0])
        raise AssertionError("the widest level covers every horizon that is allowed")

    def nodes(self) -> list[Node[T]]:
        """Buffers and cores in turn, from the youngest on."""
        found, end = list[Node[T]](), self.now
        for level, bounds in enumerate(self._bounds()):
            for name, start, node in zip("δg", bounds, (self._buffers[level], self._cores[level]), strict=True):
                found.append(Node(f"{name}{level}", start, end, tuple(node.granules)))
                end = start
        return found

    def _since(self, start: int) -> Composed[T]:
        """Everything from an edge of granules on: whole nodes, and the younger granules of the last one."""
        content: T | None = None
        for pair in zip(self._buffers, self._cores, strict=True):
            for node in pair:
                if not node.granules or node.granules[0].start >= start:
                    content = joined(self._combine, node.total(self.now), content)
                    continue
                for granule in reversed(node.granules):
                    if start <= granule.start < self.now:
                        content = joined(self._combine, granule.content, content)
        return Composed(max(start, self.origin), self.now, content)

    def _bounds(self) -> Iterator[tuple[int, int]]:
        """Of each level: where its buffer begins and its core ends, and where its core begins."""
        for level in range(len(self.slides)):
            joint = self.front(level)
            if level:
                # What had expired from the level below when this one slid last, in whole granules.
                below = joint - (joint - self.origin) % self.slides[level - 1] - self.ranges[level - 1]
                joint = self._span(level, below)[0]
            yield joint, min(self.rear(level), joint)

    def _granule(self, level: int, instant: int, content: T) -> Granule[T]:
        return Granule(*self._span(level, instant), content)

    def _span(self, level: int, instant: int) -> tuple[int, int]:
        """The granule of a level that covers an instant."""
        passed = [(instant - self.origin) % slide for slide in self._edges[level]]
        left = [slide - past for slide, past in zip(self._edges[level], passed, strict=True)]
        return instant - min(passed), instant + min(left)


def _needed(slides: Sequence[int]) -> tuple[int, ...]:
    """Without slides that are multiples of shorter ones: they end where those do."""
    return tuple(s for s in sorted(set(slides)) if not any(other < s and s % other == 0 for other in slides))


def _check(ranges: Sequence[int], slides: Sequence[int]) -> None:
    levels = list(zip(ranges, slides, strict=True))
    wider = all(r < other for r, other in pairwise(ranges))
    slower = all(s <= other for s, other in pairwise(slides))
    if not levels or not wider or not slower or any(s <= 0 or r <= 0 or r % s for r, s in levels):
        raise PlanError(
            f"⟨{list(ranges)}, {list(slides)}⟩ are no levels: ranges rise, slides do not fall, and every range is a "
            "positive multiple of its slide."
        )
