"""A plan that is kept in this process: events come in, and any window of them can be looked up at any time.

Paper: Arasu and Widom, Resource Sharing in Continuous Sliding-Window Aggregates (VLDB 2004).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panes.engine.columns import NEVER, column_of
from panes.engine.input_columns import check_added
from panes.engine.lookup_results import Answers, answers_of, spread
from panes.engine.schema import field_of, one_type_each
from panes.errors import DeclarationError, PlanError, SchemaError, StateError
from panes.expressions.evaluate import require_boolean
from panes.expressions.expression import Expression, expression
from panes.frames.positions import check_near
from panes.inputs import as_table, check_here, zone_of
from panes.live.answers import LiveLookup
from panes.live.column import algorithm_named
from panes.live.finding import check_names, find, passing, served_range
from panes.live.nested_state import Granules
from panes.live.over import OneWindow, Over, one_window
from panes.live.part import Part
from panes.live.requests import Quantiles, Requests, Span, quantiles_of, spans_of
from panes.live.retention import keeps
from panes.live.threshold_index import threshold_index
from panes.queries.lookup_declarations import LookupDeclaration, LookupLayout, LookupWindow, declare_lookup
from panes.queries.measures import Rows
from panes.queries.query import Query
from panes.queries.time_zones import warn_of_zone
from panes.queries.windows import Nested
from panes.suggestions import attribute, helpful, nearest, shown
from panes.timeline import DurationLike, InstantLike, parse_instant

_ELSEWHERE = {
    **dict.fromkeys(("append", "add", "insert", "push", "ingest", "write"), "live.update(batch)"),
    **dict.fromkeys(("filter", "where", "having", "alert", "alerts"), "live.find('total > 1000', over='15 min')"),
    **dict.fromkeys(("get", "read", "features", "get_online_features"), "live.lookup(requests)"),
    **dict.fromkeys(("load", "restore"), "plan.live(load=path)"),
}
"""What the methods of other stores are called here."""


class Live:
    """The queries of a plan, kept in this process. Made by ``plan.live()``.

    One thread may update it while others look up: every call sees whole batches.

    Attributes
    ----------
    null_times
        The number of events without a time.
    """

    def __init__(self, queries: Sequence[Query], keep: Any = None, algorithm: str | None = None) -> None:
        self.null_times = 0
        self.queries = tuple(queries)
        self._algorithm = None if algorithm is None else algorithm_named(algorithm)
        self._keep = keep
        self._parts: list[Part] = []
        self._granules: dict[str, Granules] = {}
        if isinstance(keep, Nested):
            if algorithm is not None:
                raise DeclarationError("algorithm= is for single events, not for granules. Leave it out.")
            self._granules = {query.name: Granules(query, keep) for query in self.queries}
        else:
            declared = _declared(self.queries)
            self._parts = [Part(part, own, self._algorithm) for part, own in keeps(declared, keep)]
        self._newest: dict[str, int] = {}
        self._lock, self._broken = RLock(), False

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            return attribute(self, name, _ELSEWHERE)

    def __repr__(self) -> str:
        return f"<Live {self.explain().partition(chr(10))[0]}>"

    @property
    def rows(self) -> int:
        """The number of events held, once for each set of keys and condition of queries; of granules, their rows."""
        with self._lock:
            return sum(part.rows for part in self._parts) + sum(each.rows for each in self._granules.values())

    @property
    def left_out(self) -> int:
        """The number of events that were older than what is kept when they came.

        No window that can still be looked up holds them, so that no answer misses them: it is a figure about late
        events, not an error. If it is more than a few of many, ``keep=`` is short, or a batch is a replay.
        """
        with self._lock:
            held = sum(part.store.left_out for part in self._parts if part.schema is not None)
            return held + sum(each.left_out for each in self._granules.values())

    @helpful("live.update(batch)", **dict.fromkeys(("events", "data", "table"), "batch"))
    def update(self, batch: Any) -> None:
        """Add events: a pyarrow Table or RecordBatch, or anything with the Arrow C interface.

        They may come in any order, within a batch and over batches; but an event behind later ones of its key rewrites
        that key's rows, so that late events should be rare. Events older than what is kept are counted in ``left_out``.
        Events of one instant are in the order of the query's ``ties=``. The first batch fixes the types; it may have no
        rows.
        """
        check_here("live.update", "batch", batch)
        if isinstance(batch, pa.RecordBatchReader):
            batch = batch.read_all()
        for query in self.queries:
            warn_of_zone(query.over, zone_of(batch, query.at))
        with self._using():
            self._check_usable()
            if self._granules:
                sorted_ = [granules.prepare(batch) for granules in self._granules.values()]
                with self._all_or_nothing():
                    for granules, events in zip(self._granules.values(), sorted_, strict=True):
                        granules.commit(events)
                return
            tables = [part.read(batch) for part in self._parts]
            # All that may fail, before anything changes.
            batches = [part.prepare(table) for part, table in zip(self._parts, tables, strict=True)]
            times: dict[str, pa.Array] = {}
            for part, table in zip(self._parts, tables, strict=True):
                times.setdefault(part.declared.at.lower(), column_of(table, part.declared.at))
            for at, column in times.items():
                latest = pc.max(column.view(pa.int64())).as_py()
                if latest is not None:
                    check_near(np.array([latest]))
                    self._newest[at] = max(latest, self._newest.get(at, latest))
            self.null_times += sum(column.null_count for column in times.values())
            with self._all_or_nothing():
                for part, ready in zip(self._parts, batches, strict=True):
                    newest = self._newest.get(part.declared.at.lower())
                    if newest is not None:
                        part.commit(ready, newest)

    @helpful(
        "live.lookup(requests, over='15 min')",
        **dict.fromkeys(("window", "size", "last"), "over"),
        skip="write ago=pn.rows(20) beside over=pn.rows(100).",
        **dict.fromkeys(("labels", "entities"), "requests"),
        **dict.fromkeys(("quantile", "quantiles"), "q"),
        delay="it is for plan.lookup: live.lookup answers from the events that have come.",
    )
    def lookup(
        self,
        requests: Any,
        *,
        over: Over | None = None,
        ago: DurationLike | Rows | None = None,
        at: str | None = None,
        query: str | None = None,
        q: Quantiles | None = None,
        layout: LookupLayout = "wide",
    ) -> pa.Table:
        """Return the requests, with the answers over the plan's windows, or any other one, beside them.

        Without ``over=`` these are the answers of ``plan.lookup`` over all events that have come. Where a key is
        unknown, a window holds no event, or the time of a request is null, counts are 0 and other aggregates null. A
        window that reaches further back than what is kept is an error, never a wrong number.

        Parameters
        ----------
        requests
            A table with the key columns, in any order.
        over
            One window instead: a duration, ``pn.rows(n)``, a window such as ``pn.sliding("1 hour", bounds="[)")``, or
            the names of two columns of the requests, ``("from", "to")``, for a window ``[from, to)`` of each request.
        ago
            How long before the request, or how many rows before the last one, the window ended.
        at
            The column of the requests' time; by default it has the name of the events' time. Without such a column,
            all requests are at the latest event that has come.
        query
            Which query ``over=`` is about, if there are several.
        q
            With ``over=``, a quantile instead of the declared one: a number, a column of the requests, or a mapping
            from output columns to these.
        layout
            Of the plan's windows, as in ``plan.lookup``.

        Examples
        --------
        >>> import datetime as dt, pyarrow as pa, panes as pn
        >>> load = pn.query(by="host", at="ts", select={"n": pn.count(), "top": pn.max("x")}, over=pn.sliding("1 hour"))
        >>> live = pn.plan(load).live()
        >>> minutes = [dt.datetime(2026, 1, 1, 9, m) for m in range(60)]
        >>> live.update(pa.table({"ts": minutes, "host": ["a", "b"] * 30, "x": list(range(60))}))
        >>> live.lookup(pa.table({"host": ["a", "c"]})).to_pylist()
        [{'host': 'a', 'n_1h': 30, 'top_1h': 58}, {'host': 'c', 'n_1h': 0, 'top_1h': None}]
        >>> live.lookup(pa.table({"host": ["a", "b"]}), over="10 min").to_pylist()
        [{'host': 'a', 'n': 5, 'top': 58}, {'host': 'b', 'n': 5, 'top': 59}]
        """
        if self._granules:
            raise PlanError(
                "granules answer for all keys at once, as of now. Write live.find(over='25 min'), with a condition on "
                "the key for some of them."
            )
        check_here("live.lookup", "requests", requests)
        table = as_table(requests)
        with self._using():
            self._check_usable()
            self._check_begun()
            if over is None:
                if ago is not None or q is not None or query is not None:
                    raise DeclarationError(
                        "ago=, q= and query= are about one window, and without over= all windows of the plan are "
                        "answered. Give over='15 min' as well."
                    )
                return self._lookup_all(declare_lookup(self.queries, at=at, layout=layout), at, table)
            if layout != "wide":
                raise DeclarationError("layout= is for all windows of the plan, and over= is one. Leave it out.")
            if at is not None and (not isinstance(at, str) or not at):
                raise DeclarationError(f"at={at!r} is not the name of a column of the requests. Write at='ts'.")
            return self._lookup_one(over, ago, at, self._part_of(query), q, table)

    @helpful(
        "live.find('total > 1000', over='15 min')",
        **dict.fromkeys(("having", "where", "filter"), "condition"),
        **dict.fromkeys(("window", "size", "horizon"), "over"),
        **dict.fromkeys(("above", "below", "between"), "write a condition, as 'total > 1000'."),
    )
    def find(
        self,
        condition: str | Expression | None = None,
        *,
        over: Over,
        ago: DurationLike | Rows | None = None,
        at: InstantLike | None = None,
        query: str | None = None,
    ) -> pa.Table:
        """Return the keys that pass a condition over a window, with the output columns of the query.

        Only keys with an event in the window have an answer, as in Spark's ``HAVING``.

        Parameters
        ----------
        condition
            An expression over output columns and keys; by default, all keys with an event in the window.
        over, ago
            A duration, ``pn.rows(n)`` or a window, as in :meth:`lookup`. With granules it is rounded up to whole ones,
            shown in a column ``window``.
        at
            When the window ends; by default with the latest event. With granules it must not go back.
        query
            Which query, if there are several.

        Examples
        --------
        >>> import datetime as dt, pyarrow as pa, panes as pn
        >>> spend = pn.query(by="card", at="ts", select={"total": pn.sum("amount")}, over=pn.sliding("1 hour"))
        >>> live = pn.plan(spend).live()
        >>> live.update(pa.table({
        ...     "ts": [dt.datetime(2026, 1, 1, 9, minute) for minute in (0, 5, 14, 16)],
        ...     "card": ["a", "b", "a", "a"], "amount": [500, 900, 600, 450]}))
        >>> live.find("total > 1000", over="15 min").to_pylist()
        [{'card': 'a', 'total': 1050}]
        """
        wanted = None if condition is None else expression(condition)
        if self._granules:
            return self._find_in_granules(wanted, over, ago, at, query)
        window = one_window(over, ago)
        with self._using():
            self._check_usable()
            part, number = self._part_of(query)
            own = part.declared.queries[number]
            if wanted is not None:
                check_names(own, wanted, [*own.by, *own.columns, *dict(own.aggregates)])
            self._check_begun()
            time = self._newest_of(part, NEVER)
            if at is not None:
                time = int(check_near(np.array([parse_instant(at)]))[0])
            return find(part, number, wanted, window, time, self._newest.get(part.declared.at.lower()))

    @helpful("live.add_index('total')", on="column", columns="column")
    def add_index(
        self, column: str, *, query: str | None = None, p: int | None = None, epsilon: float | None = None
    ) -> None:
        """Index an output column, so that ``find`` need not scan all keys for conditions such as ``total > 1000``.

        The answers stay the same. The index serves a condition that compares the column with numbers, alone or as one
        of several conjuncts, over a window in time.

        Parameters
        ----------
        column
            An output column: ``pn.count``, ``pn.sum``, ``pn.min`` or ``pn.max``.
        query
            Which query, if there are several.
        p
            Of counts and sums, how finely the index tells amounts apart: a larger one gives fewer candidates that do
            not qualify, and sorts more often. 4 by default.
        epsilon
            Instead of ``p``: the share of a threshold by which a candidate may miss it.

        Examples
        --------
        >>> import panes as pn
        >>> spend = pn.query(by="card", at="ts", select={"total": pn.sum("amount")}, over=pn.sliding("1 hour"))
        >>> live = pn.plan(spend).live(keep="3 hours")
        >>> live.add_index("total")
        >>> print(live.explain("total > 1000", over="15 min"))
        query: the index of total gives candidates, which are checked
        """
        if self._granules:
            raise PlanError("granules have no index: they hold whole spans of all keys. Write keep='3 hours'.")
        with self._using():
            part, number = self._part_of(query)
            own = part.declared.queries[number]
            if not isinstance(column, str) or column not in dict(own.aggregates):
                raise DeclarationError(
                    f"there is no aggregate {shown(column)} in query {own.name!r} "
                    f"({nearest(str(column), dict(own.aggregates))}). Index a selected one."
                )
            if part.keep.micros is None:
                raise PlanError(
                    f"an index looks back over a span of time, and {part.keep} are kept. Write keep='3 hours'."
                )
            part.add_index(own.name, column, threshold_index(own, column, p, epsilon))

    def explain(
        self,
        condition: str | Expression | None = None,
        *,
        over: Over | None = None,
        ago: DurationLike | Rows | None = None,
        query: str | None = None,
    ) -> str:
        """Describe what is kept, by which algorithm and why; with a condition and a window, how ``find`` searches."""
        with self._lock:
            if self._granules:
                return "\n".join(f"{name}: {granules.explain()}" for name, granules in self._granules.items())
            if over is None:
                return "\n".join(line for part in self._parts for line in _lines(part))
            part, number = self._part_of(query)
            own, window = part.declared.queries[number], one_window(over, ago)
            wanted = None if condition is None else expression(condition)
            newest = self._newest.get(part.declared.at.lower())
            served = served_range(part, number, wanted, window, self._newest_of(part, 0), newest)
            if served is not None:
                return f"{own.name}: the index of {served.column} gives candidates, which are checked"
            keys = "all keys" if part.schema is None else f"all {len(part.occupied()):,} keys"
            return f"{own.name}: a scan of {keys}"

    @helpful("live.save('spend.live')", **dict.fromkeys(("folder", "file", "to"), "path"))
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file for ``plan.live(load=path)``, whole or not at all: data, no code."""
        from panes.live.saving import save

        with self._lock:
            self._check_usable()
            save(self, path)

    # Queries

    def _part_of(self, query: str | None) -> tuple[Part, int]:
        name = self._query_of(query)
        return next(
            (part, number)
            for part in self._parts
            for number, own in enumerate(part.declared.queries)
            if own.name == name
        )

    def _query_of(self, query: str | None) -> str:
        names = [each.name for each in self.queries]
        if query is None and len(names) == 1:
            return names[0]
        if query is None:
            raise DeclarationError(f"the plan has several queries: write query= with one of {', '.join(names)}.")
        if query not in names:
            raise DeclarationError(f"query={query!r} is not in the plan ({nearest(str(query), names)}).")
        return query

    def _newest_of(self, part: Part, none: int) -> int:
        """The latest instant of a part's events."""
        return self._newest.get(part.declared.at.lower(), none)

    # Looking up

    def _lookup_all(self, declared: LookupDeclaration, at: str | None, table: pa.Table) -> pa.Table:
        """All windows of the plan."""
        check_added(declared, table.schema)
        if declared.layout == "long":
            every = (types.items() for part in self._parts for types in part.types)
            one_type_each(column for columns in every for column in columns)
        found: Answers = {}
        for part in self._parts:
            requests = self._requests(part, table, at)
            lookup = LiveLookup(part, part.bound, requests.key, requests.instant)
            assert part.schema is not None
            time = field_of(part.schema, part.declared.at).type
            answers = answers_of(part.bound, lookup, requests.keys, time, part.types)
            found |= {view: {a: c.take(requests.back) for a, c in columns.items()} for view, columns in answers.items()}
        return spread(declared.queries, declared.layout, table, found)

    def _lookup_one(
        self,
        over: Over,
        ago: DurationLike | Rows | None,
        at: str | None,
        query: tuple[Part, int],
        q: Quantiles | None,
        table: pa.Table,
    ) -> pa.Table:
        """One query over one window."""
        part, number = query
        own = part.declared.queries[number]
        window: LookupWindow | Span
        if isinstance(over, (tuple, list)):
            if at is not None or ago is not None:
                raise DeclarationError("over=(...) names both ends of a window. Leave at= and ago= out.")
            requests, window = spans_of(part, over, table, self._requests(part, table, None, timed=False))
        else:
            requests, window = self._requests(part, table, at), one_window(over, ago)
        taken = [name for name in own.columns if name.lower() in map(str.lower, table.column_names)]
        if taken:
            raise SchemaError(f"the requests have a column {taken[0]!r}, which the answers have too. Rename one.")
        quantiles = {alias: one[requests.order] for alias, one in quantiles_of(own.aggregates, q, table).items()}
        one = OneWindow(part, number, window)
        columns, _ = one.answers(requests.key, requests.instant, requests.keys, quantiles)
        for alias in own.columns:
            table = table.append_column(alias, columns[alias].take(requests.back))
        return table

    def _requests(self, part: Part, table: pa.Table, at: str | None, *, timed: bool = True) -> Requests:
        return Requests.of(part, table, at, self._newest_of(part, NEVER), timed=timed)

    # Finding

    def _find_in_granules(
        self,
        wanted: Expression | None,
        over: Over,
        ago: DurationLike | Rows | None,
        at: InstantLike | None,
        query: str | None,
    ) -> pa.Table:
        if ago is not None or not isinstance(over, (str, timedelta)):
            raise DeclarationError(
                f"granules answer spans of time up to now, not over={over!r}, ago={ago!r}. Write over='25 min'."
            )
        with self._using():
            self._check_usable()
            name = self._query_of(query)
            own = next(each for each in self.queries if each.name == name)
            answers = self._granules[name].state(over, at=at)
            if wanted is not None:
                check_names(own, wanted, answers.column_names)
                require_boolean(wanted, answers.schema)
            return passing(answers, wanted).select([*own.by, "window", *own.columns])

    # Whether it can be used

    @contextmanager
    def _using(self) -> Iterator[None]:
        """One call at a time. Infinities that meet are NaN, and expired rows may be combined with held ones."""
        with self._lock, np.errstate(all="ignore"):
            yield

    def _check_begun(self) -> None:
        if any(part.schema is None for part in self._parts):
            raise PlanError(
                "the types are unknown: no event has come. Call update(batch) first; the batch may have no rows."
            )

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """An error halfway, as in a function of the user's, leaves columns that do not agree."""
        self._broken = True
        yield
        self._broken = False

    def _check_usable(self) -> None:
        if self._broken:
            raise StateError(
                "an update failed halfway, so that answers would be wrong. Load the last saved file, or begin anew "
                "with plan.live()."
            )


def _declared(queries: Sequence[Query]) -> LookupDeclaration:
    try:
        return declare_lookup(queries, layout="long")
    except DeclarationError as error:
        raise DeclarationError(
            f"plan.live() answers what plan.lookup does. {error} plan.run and plan.stream take it as it is."
        ) from None


def _lines(part: Part) -> list[str]:
    named = ", ".join(query.name for query in part.declared.queries)
    indexes = [f"  index of {column}, for query {query}" for query, column in part.indexes]
    return [f"{named}: {part.keep}, {part.rows:,} events held", *part.explain(), *indexes]
