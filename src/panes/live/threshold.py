"""Substream filters: which keys have a count, sum, maximum or minimum beyond a threshold over the last minutes?

Paper: Arasu and Widom, Resource Sharing in Continuous Sliding-Window Aggregates (2004), section 4.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from panes.aggregates.aggregates import Aggregate
from panes.engine.columns import column_of, whole
from panes.engine.schema import check_columns, check_same_types, field_of
from panes.errors import DeclarationError
from panes.expressions.evaluate import evaluate, result_type
from panes.expressions.expression import expression
from panes.inputs import as_table
from panes.live.collective import ByTime, Layers
from panes.live.substreams import Integers, Levels
from panes.live.threshold_history import Grouped
from panes.live.threshold_keys import KeyNumbers
from panes.live.threshold_measures import Measure, Window, check_aggregate, measure_of
from panes.live.threshold_values import Asked, Number
from panes.queries.query import Query

_PIECE = 1 << 24
_IDLE = 1 << 12
_P = 4


class Threshold:
    """Events by key, kept so that the few keys beyond a threshold are found without looking at the others.

    It gives candidates, never too few. Windows, their ends and thresholds are those of the question; nothing of them is
    declared.

    Parameters
    ----------
    query
        Whose keys and event time; all events that it is given fulfil its condition already.
    alias
        Which of its output columns: ``count``, ``sum``, ``max`` or ``min``.
    keep
        How many µs questions go back. Older events expire.
    p
        Of counts and sums: how many levels of each size the index has; more of them give fewer candidates, and take
        more memory. 4 by default.
    epsilon
        Instead of p: by which part of a threshold a candidate may miss it.

    Examples
    --------
    >>> import datetime as dt, pyarrow as pa, panes as pn
    >>> spend = pn.query(by="card", at="ts", select={"total": pn.sum("amount")}, over=pn.sliding("1 hour"))
    >>> spent = Threshold(spend, "total", 3_600_000_000)
    >>> minute = 60_000_000
    >>> spent.update(pa.table({"ts": pa.array([0, 5 * minute, 14 * minute, 16 * minute], pa.timestamp("us")),
    ...     "card": ["a", "b", "a", "a"], "amount": [500, 90, 600, 450]}))
    >>> spent.candidates(1000, None, 1 * minute + 1, 16 * minute).to_pylist()
    [{'card': 'a'}]
    """

    def __init__(
        self, query: Query, alias: str, keep: int, *, p: int | None = None, epsilon: float | None = None
    ) -> None:
        self._keep = keep
        self._aggregate = check_aggregate(dict(query.aggregates)[alias])
        self._query = replace(
            query, aggregates=((alias, self._aggregate),), derived=(), columns=(alias,), where=None, ties=()
        )
        if not query.by:
            raise DeclarationError(
                f"query {query.name!r} has no key, and an index finds some keys among many. Write by='card'."
            )
        self.levels = _levels(self._aggregate, p, epsilon)
        self._schema: pa.Schema | None = None
        self._latest: int | None = None
        self._batches: deque[tuple[int, int]] = deque()
        self._living = self._since_renewed = 0

    @property
    def epsilon(self) -> float:
        """By which part of a threshold a candidate may miss it; 0 for maxima and minima."""
        return 0.0 if self.levels is None else self.levels.epsilon

    def update(self, batch: Any) -> None:
        """Take in events: a pyarrow Table or RecordBatch, or anything with the Arrow C interface.

        They may come in any order. It is cheapest in the order of time; where an event is older than the latest one of
        its key, that key is built again from what is kept of it.
        """
        table = as_table(batch, {name.lower() for name in self._query.used})
        check_columns([self._query], table.schema)
        self.bind(table.schema)
        for start in range(0, table.num_rows, _PIECE):
            self._take_in(table.slice(start, _PIECE))

    def candidates(self, above: Number | None, below: Number | None, first: int, last: int) -> pa.Table:
        """The keys whose answer over a window may be more than one number and less than another; none is missing.

        If no value is negative and the window ends with the latest event or later, answers have more than
        ``above * (1 - epsilon)`` and less than ``below / (1 - epsilon)``, but for the rounding of floats.

        Parameters
        ----------
        above, below
            One of them, or both; neither is within.
        first, last
            The instants ``[first, last]``, within what is kept.
        """
        keys: Integers = np.zeros(0, np.int64)
        if self._latest is not None:
            window = Window(first, last, suffix=last >= self._latest)
            keys = self._measure.candidates(Asked(above, below), window, lambda: self._active(first))
        return self._keys.take(keys)

    def bind(self, schema: pa.Schema) -> None:
        """Fix the types; those that cannot be compared with a number are an error."""
        used = pa.schema([field_of(schema, name) for name in sorted(self._query.used)])
        if self._schema is None:
            type_ = result_type(expression(self._aggregate.arguments[0]), schema)
            self._measure: Measure = measure_of(self._aggregate, type_, self.levels or Levels(1))
            self._keys = KeyNumbers(pa.schema([(name, field_of(schema, name).type) for name in self._query.by]))
            self._recent: Layers[ByTime] | None = None
            self._schema = used
        check_same_types(used, self._schema)

    def _take_in(self, table: pa.Table) -> None:
        # What may fail comes before anything changes.
        values, valid = self._measure.read(whole(evaluate(self._aggregate.arguments[0], table)))
        if not table.num_rows:
            return
        times = column_of(table, self._query.at).view(pa.int64()).to_numpy()
        newest = int(times.max())
        self._latest = newest if self._latest is None else max(newest, self._latest)
        kept = times > self._latest - self._keep
        if valid is not None:
            kept &= valid
        if not kept.all():
            table, times = table.filter(pa.array(kept)), times[kept]
            values = None if values is None else values[kept]
        if len(times):
            self._insert(table, times, values)
        self._expire()

    def _insert(self, table: pa.Table, times: Integers, values: Any) -> None:
        numbers = self._keys.numbers([column_of(table, name) for name in self._query.by], len(times))
        if not self._measure.history.elements:
            self._measure = self._measure.renewed(values)
        self._measure.extend(len(self._keys))
        new = Grouped.of(numbers, times, values)
        history = self._measure.history
        known = np.flatnonzero(history.sizes(new.keys))
        late = known[new.first_times[known] < history.newest(new.keys[known])]
        if len(late):
            again = new.keys[late]
            new = new.with_(history.elements_of(again))
            self._measure.forget(again)
        self._measure.insert(new)
        if self._recent is not None:
            self._recent.note(new.keys)
        self._batches.append((int(times.max()), len(times)))
        self._living += len(times)
        self._since_renewed += len(times)
        often = 2 * self._since_renewed < self._living
        if self._measure.full or not (often or self._measure.suits(values)):
            self._renew()

    def _expire(self) -> None:
        """Forget what no lookup sees any more, once that is more than half of everything."""
        assert self._latest is not None
        while self._batches and self._batches[0][0] <= self._latest - self._keep:
            self._living -= self._batches.popleft()[1]
        if self._measure.history.elements > 2 * self._living + _IDLE:
            self._renew()

    def _renew(self) -> None:
        """Build everything again from the events that are kept, without those that have expired, and their keys."""
        assert self._latest is not None
        every = self._measure.history.elements_of(np.arange(len(self._keys)))
        kept = every.times > self._latest - self._keep
        numbers, values = np.repeat(every.keys, every.counts)[kept], every.values
        kept_only = Grouped.of(numbers, every.times[kept], None if values is None else values[kept])
        self._build(self._keys.table(), kept_only)

    def _build(self, keys: pa.Table, events: Grouped) -> None:
        """Have these events and the keys that they have, and nothing else."""
        found = keys.take(pa.array(events.keys))
        self._keys = KeyNumbers(self._keys.schema)
        numbers = self._keys.numbers([whole(column) for column in found.columns], len(events.keys))
        self._measure, self._recent, self._since_renewed = self._measure.renewed(events.values), None, 0
        self._measure.extend(len(self._keys))
        if len(numbers):
            self._measure.insert(Grouped(numbers, events.counts, events.times, events.values))

    def _active(self, since: int) -> Integers:
        """All keys with an event since an instant."""
        history = self._measure.history
        if self._recent is None:
            self._recent = Layers(
                lambda keys: ByTime.of(keys, self._measure.history.newest(keys)),
                np.flatnonzero(history.sizes(np.arange(len(self._keys)))),
            )
        keys = self._recent.candidates(lambda layer: (layer.since(since),))
        return keys[history.newest(keys) >= since]


def _levels(aggregate: Aggregate, p: int | None, epsilon: float | None) -> Levels | None:
    if p is not None and epsilon is not None:
        raise DeclarationError("p= and epsilon= say the same thing. Give one of them.")
    if aggregate.idempotent:
        if p is not None or epsilon is not None:
            raise DeclarationError(f"the index of {aggregate} is exact. Leave p= and epsilon= out.")
        return None
    return Levels.within(epsilon) if epsilon is not None else Levels(_P if p is None else p)
