"""A plan that lives in this process: events come in, and any window of what is kept can be asked for at any time.

Paper: Arasu and Widom, Resource Sharing in Continuous Sliding-Window Aggregates (VLDB 2004).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panes.aggregates.aggregates import is_number
from panes.aggregates.operations import Array
from panes.engine.columns import NEVER, column_of, instants_of, whole
from panes.engine.input_columns import check_added
from panes.engine.lookback import BoundLookup
from panes.engine.lookup_results import Answers, answers_of, spread
from panes.engine.schema import check_key, check_times, field_of, one_type_each, position, time_position
from panes.errors import DeclarationError, PlanError, SchemaError, StateError, nearest
from panes.expressions.evaluate import evaluate, require_boolean
from panes.expressions.expression import Expression, expression
from panes.frames.positions import check_near
from panes.inputs import as_table, check_here
from panes.live.answers import AskedLive, Span, quantiles_of
from panes.live.column import algorithm_named
from panes.live.conditions import Range, range_of
from panes.live.nested_state import Granules
from panes.live.part import Part, part_over
from panes.live.retention import keeps
from panes.live.threshold_index import ThresholdIndex
from panes.queries.lookup_declarations import LookupDeclaration, LookupLayout, LookupWindow, declare_lookup
from panes.queries.measures import Rows
from panes.queries.query import Query
from panes.queries.window_constructors import sliding
from panes.queries.windows import DeclaredWindow, Nested, RowWindow, Sliding
from panes.suggestions import attribute, helpful
from panes.timeline import DurationLike, InstantLike, parse_instant

Over: TypeAlias = "DurationLike | Rows | LookupWindow | tuple[str, str]"
"""One window: a duration, ``pn.rows(n)``, a window, or the names of two columns of the requests."""

Quantiles: TypeAlias = float | str | Mapping[str, float | str]
"""Which quantile a lookup asks for: a number, a column of the requests, or one of these for each output column."""

_SIDES = ("the events", "the requests")


_ELSEWHERE = {
    **dict.fromkeys(("append", "add", "insert", "push", "ingest", "write"), "live.update(batch)"),
    **dict.fromkeys(("filter", "where", "having", "alert", "alerts"), "live.find('total > 1000', over='15 min')"),
    **dict.fromkeys(("get", "read", "features", "get_online_features"), "live.lookup(requests)"),
    **dict.fromkeys(("load", "restore"), "plan.live(load=path)"),
}
"""What other stores are asked for, and what it is called here."""


class Live:
    """The queries of a plan, kept in this process. Made by ``plan.live()``.

    One thread may feed it while others ask: each sees whole batches, in everything it asks.

    Attributes
    ----------
    null_times
        How many events had no time.
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
                raise DeclarationError("algorithm= is for events that are kept one by one, not for granules.")
            self._granules = {query.name: Granules(query, keep) for query in self.queries}
        else:
            declared = _declared(self.queries)
            wanted = keeps(declared, keep)
            self._parts = [Part(part, own, self._algorithm) for part, own in wanted]
        self._newest: dict[str, int] = {}
        # A stream feeds it in a thread of its own, while others ask.
        self._lock, self._broken = RLock(), False

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            return attribute(self, name, _ELSEWHERE)

    def __repr__(self) -> str:
        return f"<Live {self.explain().partition(chr(10))[0]}>"

    @property
    def rows(self) -> int:
        """How many events are held: once for each set of keys and condition that queries have, or granules' rows."""
        with self._lock:
            return sum(part.rows for part in self._parts) + sum(each.rows for each in self._granules.values())

    @property
    def left_out(self) -> int:
        """How many events were older than what is kept when they came.

        They are in no window that may still be asked for, so that no answer misses them: it is a figure about how late
        events come, not an error. More than a few of many say that ``keep=`` is short, or that a batch is a replay.
        """
        with self._lock:
            held = sum(part.store.left_out for part in self._parts if part.schema is not None)
            return held + sum(each.left_out for each in self._granules.values())

    @helpful("live.update(batch)", **dict.fromkeys(("events", "data", "table"), "batch"))
    def update(self, batch: Any) -> None:
        """Take in events: a pyarrow Table or RecordBatch, or anything with the Arrow C interface.

        They may come in any order, within a batch and over batches. Those behind later ones of their key make its rows
        be laid out anew, so that this should be rare; those that are older than what is kept are counted in
        ``left_out``. Events of one instant are in the order that ``ties=`` of a query says. The first batch fixes the
        types of all; one without rows will do.
        """
        check_here("live.update", "batch", batch)
        if isinstance(batch, pa.RecordBatchReader):
            batch = batch.read_all()
        with self._lock, np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            self._check_whole()
            if self._granules:
                sorted_ = [granules.prepare(batch) for granules in self._granules.values()]
                with self._whole_or_not_at_all():
                    for granules, events in zip(self._granules.values(), sorted_, strict=True):
                        granules.commit(events)
                return
            tables = [part.read(batch) for part in self._parts]
            # What may fail comes before anything changes.
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
            with self._whole_or_not_at_all():
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
        delay="it is for plan.lookup: what is here is answered from what has come.",
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
        """What the windows of the plan, or any other one, hold at each request.

        Without ``over=`` it is what ``plan.lookup`` would give of all events that have come. Where a key is unknown, or
        a window holds nothing, counts are 0 and other aggregates null; so it is where the time of a request is null. A
        window that reaches further back than what is kept is an error, never a wrong number.

        Parameters
        ----------
        requests
            A table with the key columns, in any order; it comes back with the answers beside it.
        over
            One window instead: a duration, ``pn.rows(n)``, a window such as ``pn.sliding("1 hour", bounds="[)")``, or
            the names of two columns of the requests, ``("from", "to")``, for ``[from, to)`` of each request's own.
        ago
            How long before the request, or how many rows before the last one, the window ended.
        at
            The column of time of the requests; by default it is called as that of the events. Where there is none, all
            requests are of the latest event that has come.
        query
            Which query ``over=`` is about, where there are several.
        q
            With ``over=``, which quantile instead of the declared one: a number, a column of the requests, or a mapping
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
                "the key where only some are wanted."
            )
        check_here("live.lookup", "requests", requests)
        asked = as_table(requests)
        with self._lock:
            self._check_whole()
            self._check_begun()
            if over is None:
                if ago is not None or q is not None or query is not None:
                    raise DeclarationError(
                        "ago=, q= and query= are about one window, and without over= all windows of the plan are "
                        "answered. Give over='15 min' as well."
                    )
                return self._lookup_all(declare_lookup(self.queries, at=at, layout=layout), at, asked)
            if layout != "wide":
                raise DeclarationError("layout= is for all windows of the plan, and over= is one. Leave it out.")
            part, number = self._part_of(query)
            own = part.declared.queries[number]
            _check_at(at)
            own_ends = isinstance(over, (tuple, list))
            if own_ends and (at is not None or ago is not None):
                raise DeclarationError("over=(...) names both ends of a window, so that at= and ago= say nothing.")
            asked_of = self._requests(part, at, asked, timed=not own_ends)
            window: LookupWindow | Span
            if isinstance(over, (tuple, list)):
                window = _span(part, over, asked, asked_of.turn)
                asked_of = replace(asked_of, instant=np.where(window.begin == NEVER, NEVER, 0))
            else:
                window = one_window(over, ago)
            taken = [name for name in own.columns if name.lower() in map(str.lower, asked.column_names)]
            if taken:
                raise SchemaError(f"the requests have a column {taken[0]!r}, which the answers have too. Rename one.")
            parts = {alias: part_[asked_of.turn] for alias, part_ in quantiles_of(own.aggregates, q, asked).items()}
            bound = _over(part, number, window)
            live = AskedLive(part, bound, asked_of.key, asked_of.instant, parts)
            [found] = _answers(part, bound, live, asked_of.keys, window, number).values()
            for alias in own.columns:
                asked = asked.append_column(alias, found[alias].take(asked_of.back))
            return asked

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
        """The keys that pass a condition over a window: their columns, and the output columns of the query.

        Only keys with an event in the window have an answer, as in Spark's ``HAVING``.

        Parameters
        ----------
        condition
            An expression over output columns and keys; without it, all keys with an event in the window.
        over, ago
            A duration, ``pn.rows(n)`` or a window, as in :meth:`lookup`. Of granules it is rounded up to whole ones,
            and a column ``window`` says to which.
        at
            When the window ends; by default with the latest event. Of granules it does not go back.
        query
            Which query is meant, where there are several.

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
        with self._lock:
            self._check_whole()
            part, number = self._part_of(query)
            own = part.declared.queries[number]
            if wanted is not None:
                _check_names(own, wanted, [*own.by, *own.columns, *dict(own.aggregates)])
            self._check_begun()
            time = self._newest.get(part.declared.at.lower(), NEVER)
            if at is not None:
                time = int(check_near(np.array([parse_instant(at)]))[0])
            if wanted is not None:
                _check_condition(part, number, wanted)
            found = self._range(part, number, wanted, window, time)
            key = part.occupied() if found is None else self._candidates(part, own.name, found, window, time)
            bound = _over(part, number, window)
            live = AskedLive(part, bound, key, np.full(len(key), time))
            [columns] = _answers(part, bound, live, part.keys(key), window, number).values()
            keys = dict(zip(part.declared.by, part.keys(key), strict=True))
            named = {name: next(c for k, c in keys.items() if k.lower() == name.lower()) for name in own.by}
            answers = _table({**named, **columns}, len(key)).filter(pa.array(live.held))
            if wanted is not None:
                answers = answers.filter(pc.fill_null(whole(evaluate(wanted, answers)), False))
            return answers.select([*own.by, *own.columns])

    @helpful("live.add_index('total')", on="column", columns="column")
    def add_index(
        self, column: str, *, query: str | None = None, p: int | None = None, epsilon: float | None = None
    ) -> None:
        """Let ``find`` look up conditions such as ``total > 1000`` instead of going through all keys.

        What is found stays the same. It takes the place of a scan where a condition compares the column with numbers,
        alone or as one of several conjuncts, over a window in time.

        Parameters
        ----------
        column
            An output column: ``pn.count``, ``pn.sum``, ``pn.min`` or ``pn.max``.
        query
            Which query is meant, where there are several.
        p
            Of counts and sums, how finely the index tells amounts apart: more give fewer candidates that are none, and
            take more memory. 4 by default.
        epsilon
            Instead of ``p``: by which part of a threshold a candidate may miss it.

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
        with self._lock:
            part, number = self._part_of(query)
            own = part.declared.queries[number]
            if column not in dict(own.aggregates):
                raise DeclarationError(
                    f"there is no aggregate {column!r} in query {own.name!r} "
                    f"({nearest(str(column), dict(own.aggregates))}). An index is of one that is selected."
                )
            if part.keep.micros is None:
                raise PlanError(
                    f"an index looks back over a span of time, and {part.keep} are kept. Write keep='3 hours'."
                )
            index = ThresholdIndex(own, column, part.keep.micros, p=p, epsilon=epsilon)
            part.add_index(own.name, column, index)

    def explain(
        self,
        condition: str | Expression | None = None,
        *,
        over: Over | None = None,
        ago: DurationLike | Rows | None = None,
        query: str | None = None,
    ) -> str:
        """What is kept, by which algorithm and why; with a condition and a window, how ``find`` would go about it."""
        with self._lock:
            if self._granules:
                return "\n".join(f"{name}: {granules.explain()}" for name, granules in self._granules.items())
            if over is None:
                return "\n".join(line for part in self._parts for line in _lines(part))
            part, number = self._part_of(query)
            own, window = part.declared.queries[number], one_window(over, ago)
            wanted = None if condition is None else expression(condition)
            time = self._newest.get(part.declared.at.lower(), 0)
            found = self._range(part, number, wanted, window, time)
            if found is not None:
                return f"{own.name}: the index of {found.column} gives candidates, which are checked"
            keys = "all keys" if part.schema is None else f"all {len(part.occupied()):,} keys"
            return f"{own.name}: a scan of {keys}"

    @helpful("live.save('spend.live')", **dict.fromkeys(("folder", "file", "to"), "path"))
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file, whole or not at all, for ``plan.live(load=path)``: data, no code."""
        from panes.live.saving import save

        with self._lock:
            self._check_whole()
            save(self, path)

    # Which query, which requests

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
            raise DeclarationError(f"which query is meant? Write query={names[0]!r}, or another of {', '.join(names)}.")
        if query not in names:
            raise DeclarationError(f"query={query!r} is not in the plan ({nearest(str(query), names)}).")
        return query

    def _requests(self, part: Part, at: str | None, asked: pa.Table, *, timed: bool = True) -> _Requests:
        declared, events, schema = part.declared, part.schema, asked.schema
        assert events is not None
        places = [position(f"by={key!r}", key, _SIDES[1], schema) for key in declared.by]
        for key, place in zip(declared.by, places, strict=True):
            check_key(f"by={key!r}", _SIDES, (field_of(events, key).type, schema.field(place).type))
        name = declared.at if at is None else at
        if not timed or (at is None and name.lower() not in map(str.lower, schema.names)):
            instant = np.full(len(asked), self._newest.get(declared.at.lower(), NEVER))
        else:
            place = time_position(f"at={name!r}", name, _SIDES[1], schema)
            times = field_of(events, declared.at).type, schema.field(place).type
            check_times((f"at={declared.at!r}", f"at={name!r}"), _SIDES, times)
            instant = instants_of(whole(asked.column(place)))
        keys = [whole(asked.column(place)) for place in places]
        number = part.find(keys, len(asked))
        turn = np.lexsort((instant, number))
        rows = pa.array(turn)
        return _Requests(
            number[turn], instant[turn], [key.take(rows) for key in keys], turn, pa.array(np.argsort(turn))
        )

    def _lookup_all(self, declared: LookupDeclaration, at: str | None, asked: pa.Table) -> pa.Table:
        check_added(declared, asked.schema)
        if declared.layout == "long":
            every = (types.items() for part in self._parts for types in part.types)
            one_type_each(column for columns in every for column in columns)
        found: Answers = {}
        for part in self._parts:
            asked_of = self._requests(part, at, asked)
            live = AskedLive(part, part.bound, asked_of.key, asked_of.instant)
            assert part.schema is not None
            time = field_of(part.schema, part.declared.at).type
            answers = answers_of(part.bound, live, asked_of.keys, time, part.types)
            found |= {view: {a: c.take(asked_of.back) for a, c in columns.items()} for view, columns in answers.items()}
        return spread(declared.queries, declared.layout, asked, found)

    # Finding

    def _range(
        self, part: Part, number: int, wanted: Expression | None, window: LookupWindow, time: int
    ) -> Range | None:
        """The range that an index is asked for; None where keys are scanned."""
        query = part.declared.queries[number]
        indexed = [column for name, column in part.indexes if name == query.name]
        if wanted is None or not isinstance(window, Sliding) or not indexed:
            return None
        newest = self._newest.get(part.declared.at.lower())
        assert part.keep.micros is not None
        if newest is not None and _edges(window, time)[0] <= newest - part.keep.micros:
            return None
        numeric = indexed
        if part.schema is not None:
            types = part.types[number]
            numeric = [alias for alias, _ in query.aggregates if alias in types and is_number(types[alias])]
        return range_of(wanted, numeric, indexed)

    def _candidates(self, part: Part, query: str, found: Range, window: LookupWindow, time: int) -> Array:
        assert isinstance(window, Sliding)
        index = part.indexes[query, found.column]
        return np.sort(index.candidates(found, *_edges(window, time)))

    # Granules

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
        with self._lock:
            self._check_whole()
            name = self._query_of(query)
            own = next(each for each in self.queries if each.name == name)
            answers = self._granules[name].state(over, at=at)
            if wanted is not None:
                _check_names(own, wanted, answers.column_names)
                require_boolean(wanted, answers.schema)
                answers = answers.filter(pc.fill_null(whole(evaluate(wanted, answers)), False))
            return answers.select([*own.by, "window", *own.columns])

    # Whether it is whole

    def _check_begun(self) -> None:
        if any(part.schema is None for part in self._parts):
            raise PlanError(
                "there are no types yet: no event has come. Call update(batch) first; a batch without rows will do."
            )

    @contextmanager
    def _whole_or_not_at_all(self) -> Iterator[None]:
        """What breaks off an update, be it an error in a function of the user's, leaves columns that do not agree."""
        self._broken = True
        yield
        self._broken = False

    def _check_whole(self) -> None:
        if self._broken:
            raise StateError(
                "an update broke off halfway, so that answers would be wrong. Load what was saved last, or begin anew "
                "with plan.live()."
            )


@dataclass(frozen=True, eq=False)
class _Requests:
    """Requests by key and time.

    Parameters
    ----------
    key, instant, keys
        The number of each one's key, -1 where it is unknown, its time, and the columns of its key.
    turn, back
        Where each one stands among the requests as they came, and where each of these stands here.
    """

    key: Array
    instant: Array
    keys: list[pa.Array]
    turn: Array
    back: pa.Array


def _declared(queries: Sequence[Query]) -> LookupDeclaration:
    try:
        return declare_lookup(queries, layout="long")
    except DeclarationError as error:
        raise DeclarationError(
            f"plan.live() answers what plan.lookup does. {error} plan.run and plan.stream take it as it is."
        ) from None


def one_window(over: Over, ago: DurationLike | Rows | None) -> LookupWindow:
    """The window that ``over=`` and ``ago=`` mean.

    Examples
    --------
    >>> import panes as pn
    >>> str(one_window("15 min", "1 hour")), str(one_window(pn.rows(5), pn.rows(2)))
    ('15m/event-1h', '5rows/event-2rows')
    """
    if isinstance(over, str) and "/" in over:
        raise DeclarationError(
            f"over={over!r} is how a window is called. Write over='15 min' for what was up to then, or the window "
            "itself, as over=pn.hopping('1 hour', every='5 min')."
        )
    if isinstance(over, (str, timedelta, Rows)):
        return sliding(over, ago=ago)
    if ago is not None:
        raise DeclarationError(f"ago={ago!r} is for a size. Write it on the window, as pn.sliding('1 h', ago='1 day').")
    if isinstance(over, Nested):
        raise DeclarationError("over=pn.nested(...) is several windows, and over= is one. Write over='1 hour'.")
    if not isinstance(over, DeclaredWindow):
        hint = f" Write over=pn.rows({over!r}) for rows." if isinstance(over, int) else ""
        if isinstance(over, (list, tuple)):
            hint = " It is one: ask for several one after the other."
        raise DeclarationError(
            f"over={over!r} is not a window.{hint} Write a duration such as '15 min', pn.rows(100), a window such as "
            "pn.sliding('1 hour'), or the names of two columns, ('from', 'to')."
        )
    return over


def _over(part: Part, number: int, window: LookupWindow | Span) -> BoundLookup:
    """What a part computes for one of its queries over another window."""
    placeholder = sliding("1 us") if isinstance(window, Span) else window
    query = part.declared.queries[number]
    found = next((str(aggregate) for _, aggregate in query.aggregates if aggregate.levels), None)
    if found is not None:
        raise DeclarationError(
            f"query {query.name!r}: {found} compares the levels of a nested window, and over= has none. Leave it out."
        )
    asking = part_over(part.declared, number, [placeholder])
    declare_lookup(asking.queries, layout="long")
    _check_expiring(query, window)
    return replace(part.bound, part=asking, readings=(part.bound.readings[number],))


def _check_expiring(query: Query, window: object) -> None:
    if query.uses_expires and isinstance(window, (Span, Sliding, RowWindow)):
        raise DeclarationError(
            f"query {query.name!r} asks when answers expire, and those of a window up to now just have. Leave it out."
        )


def _answers(
    part: Part, bound: BoundLookup, live: AskedLive, keys: list[pa.Array], window: LookupWindow | Span, number: int
) -> Answers:
    assert part.schema is not None
    time = field_of(part.schema, part.declared.at).type
    if isinstance(window, Span):
        live = _Spanning(live, window)  # type: ignore[assignment]
    return answers_of(bound, live, keys, time, [part.types[number]])


class _Spanning:
    """Answers each request over its own window, whichever is asked for."""

    def __init__(self, live: AskedLive, span: Span) -> None:
        self._live, self._span = live, span

    def answer(self, query: int, window: object) -> Any:
        """The aggregates of a query."""
        return self._live.answer(query, self._span)


def _span(part: Part, over: Sequence[str], asked: pa.Table, turn: Array) -> Span:
    names = {name.lower() for name in asked.column_names}
    if (
        len(over) != 2
        or not all(isinstance(name, str) for name in over)
        or any(name[:1].isdigit() and name.lower() not in names for name in over)
    ):
        raise DeclarationError(
            f"over={over!r}: it is one window, or the names of two columns of the requests, as ('from', 'to'). For "
            "several windows ask for one after the other, or declare them in the query."
        )
    assert part.schema is not None
    edges, some = [], np.ones(len(asked), np.bool_)
    for name in over:
        place = time_position(f"over={name!r}", name, _SIDES[1], asked.schema)
        times = field_of(part.schema, part.declared.at).type, asked.schema.field(place).type
        check_times((f"at={part.declared.at!r}", f"the column {name!r}"), _SIDES, times)
        edges.append(instants_of(whole(asked.column(place))))
        some &= edges[-1] != NEVER
    begin, end = (np.where(some, edge, NEVER)[turn] for edge in edges)
    return Span(begin, end)


def _edges(window: Sliding, time: int) -> tuple[int, int]:
    """The first and the last instant that a window up to some time holds."""
    end = time - window.ago
    return end - window.size + (window.bounds[0] == "("), end - (window.bounds[1] == ")")


def _check_at(at: object) -> None:
    if at is not None and (not isinstance(at, str) or not at):
        raise DeclarationError(f"at={at!r} is not the name of a column of the requests. Write one, as at='asked'.")


def _check_condition(part: Part, number: int, wanted: Expression) -> None:
    query = part.declared.queries[number]
    assert part.schema is not None
    keys = [(key, field_of(part.schema, key).type) for key in query.by]
    require_boolean(wanted, pa.schema([*keys, *part.types[number].items()]))


def _check_names(query: Query, wanted: Expression, names: Sequence[str]) -> None:
    known = [*query.by, *query.columns]
    for name in wanted.roots:
        if name.lower() not in map(str.lower, names):
            raise DeclarationError(
                f"the condition refers to {name!r}, which is neither a key nor an output column of query "
                f"{query.name!r} ({nearest(name, known)})."
            )


def _table(columns: Mapping[str, pa.Array], rows: int) -> pa.Table:
    return pa.table(dict(columns)) if columns else pa.table({"": pa.nulls(rows)})


def _lines(part: Part) -> list[str]:
    named = ", ".join(query.name for query in part.declared.queries)
    indexes = [f"  index of {column}, for query {query}" for query, column in part.indexes]
    return [f"{named}: {part.keep}, {part.rows:,} events held", *part.explain(), *indexes]
