"""An index of one output column: which keys may have a count, sum, maximum or minimum beyond a threshold?

Paper: Arasu and Widom, Resource Sharing in Continuous Sliding-Window Aggregates (2004), section 4. Its substreams are
keys here, and its elements events.
"""

from __future__ import annotations

from collections import deque
from typing import Final

import numpy as np
import pyarrow as pa

from panes.aggregates.aggregate import Aggregate
from panes.aggregates.operations import Array
from panes.engine.columns import whole
from panes.errors import DeclarationError
from panes.expressions.evaluate import evaluate, result_type
from panes.expressions.expression import expression
from panes.live.collective import Levels
from panes.live.conditions import Range
from panes.live.events_by_key import Grouped
from panes.live.indexed_aggregates import IndexedAggregate, check_aggregate, indexed
from panes.live.layers import ByTime, Layers
from panes.live.ragged import Integers
from panes.queries.query import Query

_AT_ONCE: Final = 1 << 24
"""Events that are inserted at once, so that their copies are 64-bit integers."""

_SPARE: Final = 1 << 12
"""Expired events that are kept, beside as many as have not expired."""

_P: Final = 4


class ThresholdIndex:
    """The events of a query by key, kept so that the few keys beyond a threshold are found without scanning the others.

    It gives candidates, and misses no key. Windows and thresholds come with each lookup. Keys are numbers, those of the
    plan that the index belongs to.

    Parameters
    ----------
    query
        All events that the index gets fulfil its condition already.
    alias
        An output column: ``count``, ``sum``, ``max`` or ``min``.
    keep
        How many µs lookups go back. Older events expire.
    p
        Of counts and sums: how many levels of each size the index has; more of them give fewer candidates, and take
        more memory. 4 by default.
    epsilon
        Instead of p: the share of a threshold by which a candidate may miss it.

    Attributes
    ----------
    levels
        Of counts and sums; None for maxima and minima, which are exact.

    Examples
    --------
    >>> import panes as pn
    >>> spend = pn.query(by="card", at="ts", select={"total": pn.sum("amount")}, over=pn.sliding("1 hour"))
    >>> index = ThresholdIndex(spend, "total", keep=3_600_000_000)
    >>> amounts = pa.table({"amount": [500, 90, 600, 450]})
    >>> index.bind(amounts.schema)
    >>> minute = 60_000_000
    >>> index.update(np.array([0, 1, 0, 0]), minute * np.array([0, 5, 14, 16]), *index.read(amounts))
    >>> index.candidates(Range("total", above=1000), first=minute + 1, last=16 * minute)
    array([0])
    """

    def __init__(
        self, query: Query, alias: str, keep: int, *, p: int | None = None, epsilon: float | None = None
    ) -> None:
        self._keep = keep
        self._aggregate = check_aggregate(dict(query.aggregates)[alias])
        if not query.by:
            raise DeclarationError(
                f"query {query.name!r} has no key, and an index finds a few keys among many. Write by='card'."
            )
        self.levels = _levels(self._aggregate, p, epsilon)
        self._latest: int | None = None
        self._recent: Layers[ByTime] | None = None
        # The latest time and the number of events of each batch that has not expired.
        self._batches: deque[tuple[int, int]] = deque()
        self._living = self._since_renewed = 0

    def bind(self, schema: pa.Schema) -> None:
        """Fix the type of values; one that cannot be compared with a number is an error."""
        type_ = result_type(expression(self._aggregate.arguments[0]), schema)
        self._indexed: IndexedAggregate = indexed(self._aggregate, type_, self.levels or Levels(1))

    def read(self, table: pa.Table) -> tuple[Array | None, Array | None]:
        """The values of events (None where they are only counted), and which events have one (None for all)."""
        return self._indexed.read(whole(evaluate(self._aggregate.arguments[0], table)))

    def update(self, keys: Integers, times: Integers, values: Array | None, valid: Array | None) -> None:
        """Add events, in any order.

        It is cheapest in the order of time: where an event is older than the latest one of its key, that key is built
        again from its events.
        """
        for start in range(0, len(times), _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            newest = int(times[some].max())
            self._latest = newest if self._latest is None else max(newest, self._latest)
            kept = times[some] > self._latest - self._keep
            if valid is not None:
                kept &= valid[some]
            if kept.any():
                self._insert(keys[some][kept], times[some][kept], None if values is None else values[some][kept])
            self._expire()

    def candidates(self, wanted: Range, first: int, last: int) -> Integers:
        """The keys whose answer over ``[first, last]`` may be in a range; none is missing.

        If no value is negative and the window ends with the latest event or later, answers are more than
        ``above * (1 - epsilon)`` and less than ``below / (1 - epsilon)``, but for the rounding of floats.
        """
        if self._latest is None:
            return np.zeros(0, np.int64)
        suffix = last >= self._latest
        return self._indexed.candidates(wanted, first, lambda: self._active(first), suffix=suffix)

    def keep_keys(self, chosen: Integers) -> None:
        """Drop all other keys; those that stay are numbered anew, in this order."""
        every = self._indexed.held.of(self._indexed.held.held())
        number = np.full(max(int(array.max(initial=-1)) for array in (chosen, every.keys)) + 1, -1)
        number[chosen] = np.arange(len(chosen))
        self._rebuild(number[every.key_of_each], every)

    def _insert(self, keys: Integers, times: Integers, values: Array | None) -> None:
        if not self._indexed.held.events:
            self._indexed = self._indexed.renewed(values)
        self._indexed.extend(int(keys.max()) + 1)
        new, held = Grouped.of(keys, times, values), self._indexed.held
        known = np.flatnonzero(held.sizes(new.keys))
        late = known[new.first_times[known] < held.newest(new.keys[known])]
        if len(late):
            again = new.keys[late]
            new = new.merged_with(held.of(again))
            self._indexed.clear(again)
        self._indexed.insert(new)
        if self._recent is not None:
            self._recent.note(new.keys)
        self._batches.append((int(times.max()), len(times)))
        self._living += len(times)
        self._since_renewed += len(times)
        often = 2 * self._since_renewed < self._living
        if self._indexed.full or not (often or self._indexed.suits(values)):
            self._renew()

    def _expire(self) -> None:
        """Drop what no lookup sees any more, once that is more than half of everything."""
        assert self._latest is not None
        while self._batches and self._batches[0][0] <= self._latest - self._keep:
            self._living -= self._batches.popleft()[1]
        if self._indexed.held.events > 2 * self._living + _SPARE:
            self._renew()

    def _renew(self) -> None:
        """Build everything again from the events that have not expired."""
        every = self._indexed.held.of(self._indexed.held.held())
        self._rebuild(every.key_of_each, every)

    def _rebuild(self, keys: Integers, events: Grouped) -> None:
        """Hold these events, but for expired ones, under new numbers of their keys; -1 drops an event."""
        kept = keys >= 0
        if self._latest is not None:
            kept &= events.times > self._latest - self._keep
        keys, values = keys[kept], None if events.values is None else events.values[kept]
        self._indexed, self._recent, self._since_renewed = self._indexed.renewed(values), None, 0
        if len(keys):
            self._indexed.extend(int(keys.max()) + 1)
            self._indexed.insert(Grouped.of(keys, events.times[kept], values))

    def _active(self, since: int) -> Integers:
        """All keys with an event since an instant."""
        held = self._indexed.held
        if self._recent is None:
            self._recent = Layers(lambda keys: ByTime.of(keys, self._indexed.held.newest(keys)), held.held())
        keys = self._recent.candidates(lambda layer: (layer.since(since),))
        return keys[held.newest(keys) >= since]


def _levels(aggregate: Aggregate, p: int | None, epsilon: float | None) -> Levels | None:
    if p is not None and epsilon is not None:
        raise DeclarationError("p= and epsilon= say the same thing. Give one of them.")
    if aggregate.idempotent:
        if p is not None or epsilon is not None:
            raise DeclarationError(f"the index of {aggregate} is exact. Leave p= and epsilon= out.")
        return None
    return Levels.within(epsilon) if epsilon is not None else Levels(_P if p is None else p)
