"""Substream filters: which keys have a count, sum, maximum or minimum beyond a threshold over the last minutes?

Paper: Arasu and Widom, Resource Sharing in Continuous Sliding-Window Aggregates (2004), section 4.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panes.algebra.aggregates import Aggregate
from panes.algebra.declare import count
from panes.algebra.declare import max as max_of
from panes.algebra.declare import min as min_of
from panes.algebra.declare import sum as sum_of
from panes.declare.expressions import Expression, expression
from panes.declare.query import query
from panes.declare.windows import tumbling
from panes.engine.schema import check_columns, check_same_types, field_of
from panes.errors import DeclarationError, DurationError, PlanError
from panes.live.collective_layers import ByTime, Layers
from panes.live.collective_levels import Integers, Levels
from panes.live.threshold_files import Saved, read, write
from panes.live.threshold_history import Grouped
from panes.live.threshold_keys import KeyNumbers
from panes.live.threshold_measures import Measure, Window, check_aggregate, measure_of
from panes.live.threshold_ranges import Asked, Number
from panes.local.columns import column_of, whole
from panes.local.evaluate import evaluate, require_boolean, result_type
from panes.local.intake import as_table
from panes.timeline import DurationLike, InstantLike, format_duration, format_instant, parse_duration, parse_instant

VALUE = "value"
"""The column of answers."""

_PIECE = 1 << 24
_IDLE = 1 << 12
_P = 4


class Threshold:
    """Events by key, kept so that the few keys beyond a threshold are found without looking at the others.

    An index gives candidates, never too few, and running sums of each candidate tell the exact answer. Windows, their
    ends and thresholds are those of the lookup; nothing of them is declared.

    Parameters
    ----------
    aggregate
        ``pn.count()``, ``pn.count(x)``, ``pn.sum(x)``, ``pn.max(x)`` or ``pn.min(x)``.
    by
        The key columns. Null is a key.
    at
        The column of event time.
    keep
        How far back lookups go. Older events expire.
    p
        Of counts and sums: how many levels of each size the index has; more of them give fewer candidates, and take
        more memory. 4 by default.
    epsilon
        Instead of p: by which part of a threshold a candidate may miss it.
    where
        Which events count.

    Attributes
    ----------
    left_out
        How many events had no time, or came when they were older than ``keep`` already.

    Examples
    --------
    >>> import datetime as dt, pyarrow as pa, panes as pn
    >>> spent = pn.Threshold(pn.sum("amount"), by="card", at="ts", keep="1 hour")
    >>> spent.update(pa.table({
    ...     "ts": [dt.datetime(2026, 1, 1, 9, minute) for minute in (0, 5, 14, 16)],
    ...     "card": ["a", "b", "a", "a"], "amount": [500, 900, 600, 450]}))
    >>> spent.lookup(over="15 min", above=1000).to_pylist()
    [{'card': 'a', 'value': 1050}]
    >>> spent.lookup(over="15 min", below=1000, at="2026-01-01 09:19").to_pylist()
    [{'card': 'b', 'value': 900}]
    """

    def __init__(
        self,
        aggregate: Aggregate,
        *,
        by: str | Iterable[str],
        at: str,
        keep: DurationLike,
        p: int | None = None,
        epsilon: float | None = None,
        where: str | Expression | None = None,
    ) -> None:
        self.left_out = 0
        self._keep = _positive("keep", keep)
        # A query checks names and expressions, and says which columns are used.
        self._query = query(
            "threshold", at=at, by=by, where=where, select={VALUE: check_aggregate(aggregate)}, over=tumbling(keep)
        )
        if not self._query.by:
            raise DeclarationError(
                "by= names no key: a threshold finds some keys among many. Name at least one column."
            )
        self._aggregate = self._query.aggregates[0][1]
        self._levels = _levels(self._aggregate, p, epsilon)
        self._schema: pa.Schema | None = None
        self._latest: int | None = None
        self._batches: deque[tuple[int, int]] = deque()
        self._living = self._since_renewed = 0

    @property
    def epsilon(self) -> float:
        """By which part of a threshold a candidate may miss it; 0 for maxima and minima."""
        return 0.0 if self._levels is None else self._levels.epsilon

    def update(self, batch: Any) -> None:
        """Take in events: a pyarrow Table or RecordBatch, or anything with the Arrow C interface.

        They may come in any order. It is cheapest in the order of time; where an event is older than the latest one of
        its key, that key is built again from what is kept of it.
        """
        table = as_table(batch, {name.lower() for name in self._query.used})
        check_columns([self._query], table.schema)
        self._bind(table.schema)
        for start in range(0, table.num_rows, _PIECE):
            self._take_in(table.slice(start, _PIECE))

    def lookup(
        self,
        *,
        over: DurationLike,
        above: Number | None = None,
        below: Number | None = None,
        between: tuple[Number, Number] | None = None,
        at: InstantLike | None = None,
        ago: DurationLike | None = None,
        exact: bool = True,
    ) -> pa.Table:
        """Find the keys whose answer over a window is in a range: their columns, and the answer as ``value``.

        Only keys with an event in the window have an answer, as in Spark's ``HAVING``.

        Parameters
        ----------
        over
            The length of the window ``(at - over, at]``, up to ``keep``.
        above, below, between
            Of these one: more than a number, less than a number, or both, neither end within.
        at
            When the window ends; by default with the latest event.
        ago
            A window that ended a while before that.
        exact
            Otherwise the candidates are the answer, without their values: every key in the range, and some that are
            not. If no value is negative and the window ends with the latest event or later, they have more than
            ``above * (1 - epsilon)`` and less than ``below / (1 - epsilon)``, but for the rounding of floats.
        """
        asked = Asked.of(above, below, between)
        if self._schema is None:
            raise PlanError("there is nothing to look up: no event has come. Call update(batch) first.")
        keys: Integers = np.zeros(0, np.int64)
        window = self._window(over, at, ago)
        if window is not None:
            keys = self._measure.candidates(asked, window, lambda: self._active(window.first))
        if not exact:
            return self._keys.take(keys)
        # Without any event there is no window, and no key either.
        keys, values = self._measure.answers(asked, window or Window(0, 0, suffix=True), keys)
        return self._keys.take(keys).append_column(VALUE, values)

    def save(self, folder: str | Path) -> None:
        """Write what was declared and what is kept into a folder, for :meth:`load`."""
        query_, aggregate = self._query, self._aggregate
        declared = {
            "aggregate": aggregate.name,
            "argument": aggregate.arguments[0],
            "by": list(query_.by),
            "at": query_.at,
            "keep": self._keep,
            "p": None if self._levels is None else self._levels.p,
            "where": None if query_.where is None else query_.where.sql,
            "latest": self._latest,
            "left_out": self.left_out,
        }
        keys, numbers, times, values = None, np.zeros(0, np.int64), np.zeros(0, np.int64), None
        if self._schema is not None:
            kept = self._measure.history.elements_of(np.arange(len(self._keys)))
            keys, numbers, times, values = (
                self._keys.table(),
                np.repeat(kept.keys, kept.counts),
                kept.times,
                kept.values,
            )
        write(Path(folder), Saved(declared, self._schema, keys, numbers, times, values))

    @classmethod
    def load(cls, folder: str | Path) -> Threshold:
        """Read what :meth:`save` wrote."""
        saved = read(Path(folder))
        found = saved.declared
        # The count of the literal 1 is the count of events.
        kind = {"count": count, "sum": sum_of, "max": max_of, "min": min_of}[found["aggregate"]]
        loaded = cls(
            kind(found["argument"]),
            by=found["by"],
            at=found["at"],
            keep=timedelta(microseconds=found["keep"]),
            p=found["p"],
            where=found["where"],
        )
        loaded.left_out, loaded._latest = found["left_out"], found["latest"]
        if saved.schema is not None and saved.keys is not None:
            loaded._bind(saved.schema)
            loaded._build(saved.keys, Grouped.of(saved.numbers, saved.times, saved.values))
            if len(saved.times):
                loaded._batches.append((int(saved.times.max()), len(saved.times)))
                loaded._living = len(saved.times)
        return loaded

    def _bind(self, schema: pa.Schema) -> None:
        used = pa.schema([field_of(schema, name) for name in sorted(self._query.used)])
        if self._schema is None:
            if self._query.where is not None:
                require_boolean(self._query.where, schema)
            type_ = result_type(expression(self._aggregate.arguments[0]), schema)
            self._measure: Measure = measure_of(self._aggregate, type_, self._levels or Levels(1))
            self._keys = KeyNumbers(pa.schema([(name, field_of(schema, name).type) for name in self._query.by]))
            self._recent: Layers[ByTime] | None = None
            self._schema = used
        check_same_types(used, self._schema)

    def _take_in(self, table: pa.Table) -> None:
        timed = column_of(table, self._query.at).is_valid()
        untimed = table.num_rows - int(pc.sum(timed).as_py())
        if self._query.where is not None:
            timed = pc.and_(timed, pc.fill_null(evaluate(self._query.where, table), False))
        table = table.filter(timed)
        # What may fail comes before anything changes.
        values, valid = self._measure.read(whole(evaluate(self._aggregate.arguments[0], table)))
        self.left_out += untimed
        if not table.num_rows:
            return
        times = column_of(table, self._query.at).view(pa.int64()).to_numpy()
        newest = int(times.max())
        self._latest = newest if self._latest is None else max(newest, self._latest)
        kept = times > self._latest - self._keep
        self.left_out += int(len(kept) - np.count_nonzero(kept))
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

    def _window(self, over: DurationLike, at: InstantLike | None, ago: DurationLike | None) -> Window | None:
        length = _positive("over", over)
        end = self._latest if at is None else parse_instant(at)
        if self._latest is None or end is None:
            return None
        end -= 0 if ago is None else _positive("ago", ago)
        if end - length < self._latest - self._keep:
            raise PlanError(
                f"the window of {format_duration(length)} up to {format_instant(end)} begins before what is kept: "
                f"{format_duration(self._keep)} up to the latest event, {format_instant(self._latest)}. Ask for less, "
                "or declare a longer keep=."
            )
        return Window(end - length + 1, end, suffix=end >= self._latest)


def _levels(aggregate: Aggregate, p: int | None, epsilon: float | None) -> Levels | None:
    if p is not None and epsilon is not None:
        raise DeclarationError("p= and epsilon= say the same thing. Give one of them.")
    if aggregate.idempotent:
        if p is not None or epsilon is not None:
            raise DeclarationError(f"the index of {aggregate} is exact. Leave p= and epsilon= out.")
        return None
    return Levels.within(epsilon) if epsilon is not None else Levels(_P if p is None else p)


def _positive(name: str, value: DurationLike) -> int:
    micros = parse_duration(value)
    if micros <= 0:
        raise DurationError(f"{name}={value!r} is not positive. Write for example '15 min'.")
    return micros
