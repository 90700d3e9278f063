"""Queries planned together: look at the plan, run it, stream it, look it up, keep it live."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from panes.api.options import check_catalogue, check_empty, check_layout, check_run, check_strategy, check_streaming
from panes.errors import PlanError
from panes.inputs import both_on_spark, check_one, is_spark, unread, zone_of
from panes.planning import explanation
from panes.planning.physical_plan import PhysicalPlan
from panes.planning.plan_queries import plan_queries
from panes.planning.statistics import Statistics
from panes.planning.steps import Steps
from panes.planning.strategy import Strategy
from panes.queries.limits import check_copies, check_instances, check_windows
from panes.queries.lookup_declarations import LookupLayout, declare_lookup
from panes.queries.query import Query, check_queries
from panes.queries.time_zones import warn_of_zone
from panes.queries.windows import RowWindow
from panes.suggestions import arguments_of, attribute, helpful

if TYPE_CHECKING:
    from panes.api.streams import Catalogue
    from panes.live.live import Live
    from panes.queries.eviction import Limits
    from panes.queries.measures import Rows
    from panes.queries.windows import Nested
    from panes.row_windows.parts import RowsPart
    from panes.state.stream_options import Mode
    from panes.timeline import DurationLike

Layout = Literal["long", "wide"]
_STREAM = "it is for streams: plan.stream(events, ...)."
_ELSEWHERE = {
    **dict.fromkeys(("collect", "execute", "compute", "batch", "answer"), "plan.run(data)"),
    **dict.fromkeys(("start", "write_stream", "writeStream"), "plan.stream(events).writeStream"),
    **dict.fromkeys(("join", "asof_join", "features", "get_historical_features"), "plan.lookup(events, requests)"),
    **dict.fromkeys(("load", "restore"), "plan.live(load=path)"),
    **dict.fromkeys(("find", "update", "save"), "live = plan.live(), which has it"),
}
"""Verbs of other systems, and what to write here."""


@helpful("pn.plan([query, another])", "Plans are made by pn.plan.")
@dataclass(frozen=True)
class Plan:
    """All windows of all queries, planned together. Made by :func:`plan`.

    Print it for a summary; ``explain()`` shows the tree, the costs and the alternatives.
    """

    queries: tuple[Query, ...]
    statistics: Statistics
    strategy: Strategy | None = None
    factor_windows: bool = True

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            return attribute(self, name, _ELSEWHERE)

    def physical_plan(self, statistics: Statistics | None = None, strategy: Strategy | None = None) -> PhysicalPlan:
        """What the planner decides under some statistics; by default under those it was given."""
        if statistics in (None, self.statistics) and strategy in (None, self.strategy):
            return self._physical_plan
        return self._planned(statistics or self.statistics, strategy or self.strategy)

    @cached_property
    def _physical_plan(self) -> PhysicalPlan:
        return self._planned(self.statistics, self.strategy)

    @cached_property
    def _for_tables(self) -> PhysicalPlan:
        """The plan for one process, which runs all of it in columns."""
        if all(store.strategy == "columnar" and store.source is None for store in self._physical_plan.stores):
            return self._physical_plan
        return plan_queries(
            self._over_time, self.statistics, "columnar", factor_windows=self.factor_windows, feed=False
        )

    @cached_property
    def _for_streams(self) -> PhysicalPlan:
        """The plan for streams, whose shards read every window from granules."""
        if not self._over_time:
            return self._physical_plan
        return plan_queries(self._over_time, self.statistics, "columnar", factor_windows=False, feed=False)

    def _planned(self, statistics: Statistics, strategy: Strategy | None) -> PhysicalPlan:
        planned = PhysicalPlan((), (), statistics)
        if self._over_time:
            planned = plan_queries(self._over_time, statistics, strategy, factor_windows=self.factor_windows)
        if not self._key_sets:
            return planned
        from panes.row_windows.parts import planned_row_windows

        return replace(planned, row_windows=planned_row_windows(self._key_sets))

    @cached_property
    def _over_time(self) -> tuple[Query, ...]:
        """The queries with their windows over time; what groups rows inside a window is one more key there."""
        found = []
        for query in self.queries:
            over = tuple(window for window in query.over if not isinstance(window, RowWindow))
            if over:
                found.append(replace(query, over=over, by=(*query.by, *query.groups), groups=()))
        return tuple(found)

    @cached_property
    def _over_rows(self) -> tuple[RowsPart, ...]:
        """The queries with their windows of rows."""
        if not any(isinstance(window, RowWindow) for query in self.queries for window in query.over):
            return ()
        from panes.row_windows.parts import over_rows

        return over_rows(self.queries)

    @cached_property
    def _key_sets(self) -> tuple[tuple[RowsPart, ...], ...]:
        """Windows of rows, those that share a sorted column together."""
        if not self._over_rows:
            return ()
        from panes.row_windows.parts import key_sets

        return key_sets(self._over_rows)

    @helpful(
        "plan.run(events)",
        mode=_STREAM,
        shards=_STREAM,
        late=_STREAM,
        limits=_STREAM,
        catalogue=_STREAM,
        history=_STREAM,
        checkpoint=_STREAM,
        emit="write empty=True to answer windows without events, too.",
    )
    def run(
        self,
        data: Any,
        *,
        layout: Layout = "long",
        empty: bool = False,
        strategy: Strategy | None = None,
        observation: Any = None,
    ) -> Any:
        """Answer every query: a row per key and window.

        Parameters
        ----------
        data
            A Spark DataFrame gives a (lazy) Spark DataFrame. A pyarrow Table, or anything with the Arrow C
            interface (pandas, polars), is answered in this process and gives a pyarrow Table. A streaming DataFrame
            is ``plan.stream`` with its defaults.
        layout
            ``long``: one row per answer. ``wide``: one row per key and window end.
        empty
            Whether windows on the clock are also answered where they hold no event (``count`` 0, others null), between
            a key's first and last event. Other windows are answered with events and are as they are.
        strategy
            Run all of it with one strategy (``native``, ``rewrite`` or ``columnar``), for comparison.
        observation
            A ``pyspark.sql.Observation`` that counts ``events`` and ``null_timestamps``.

        Examples
        --------
        >>> import datetime as dt, pyarrow as pa, panes as pn
        >>> events = pa.table({"ts": [dt.datetime(2026, 1, 1, 0, m) for m in (1, 9, 12)], "temp": [20.0, 21.0, 25.0]})
        >>> plan = pn.plan(pn.query(at="ts", select={"top": pn.max("temp")}, over=pn.tumbling("10 min")))
        >>> plan.run(events).select(["window_name", "top"]).to_pydict()
        {'window_name': ['10m', '10m'], 'top': [21.0, 25.0]}
        """
        return self._run_steps(data, layout, empty, strategy, observation).carry_out()

    @helpful(
        "plan.stream(events, mode='append')",
        output_mode="mode",
        outputMode="mode",
        strategy="a stream runs one stateful operator.",
        observation="a stream's figures are observed metrics of the streaming query.",
        emit="write empty=True to answer windows without events, too.",
        history="it belongs to the catalogue: pn.Catalogue(path, history='1 day').",
    )
    def stream(
        self,
        events: Any,
        *,
        mode: Mode = "append",
        layout: Layout = "long",
        empty: bool = False,
        late: Literal["count", "emit"] = "count",
        shards: int = 4,
        limits: Limits | None = None,
        catalogue: Catalogue | None = None,
        checkpoint: str | None = None,
    ) -> Any:
        """Answer every query while events come: the rows that ``run`` gives, each when its window is complete.

        Parameters
        ----------
        events
            A streaming DataFrame with a watermark on the event time. The result is one, too: write it somewhere.
        mode
            ``append`` gives an answer once, when the watermark has passed its end; ``update`` gives early answers and
            corrections, only what changed. Write the stream with the same output mode.
        layout
            ``long``: one row per answer. ``wide``: one row per key and window end, in append mode.
        empty
            Whether windows on the clock are also answered where they hold no event, while the key is held.
        late
            ``count`` counts late events; ``emit`` also emits them, as rows with ``kind = 'late'`` and the event as JSON
            in ``detail``.
        shards
            The number of parts that keys are divided into. A checkpoint keeps its number.
        limits
            When keys are evicted from the state, a :class:`Limits`.
        catalogue
            A :class:`Catalogue` of queries that come and go while the stream runs. Answers then carry ``coverage``,
            ``kind`` and ``detail``.
        checkpoint
            The stream's checkpoint location. A checkpoint that cannot serve these queries is then refused here, before
            the stream starts, and otherwise in its first micro-batch.
        """
        return self._stream_steps(
            events,
            catalogue,
            mode=mode,
            layout=layout,
            empty=empty,
            late=late,
            shards=shards,
            limits=limits,
            checkpoint=checkpoint,
        ).carry_out()

    @helpful(
        "plan.lookup(payments, labels)",
        **dict.fromkeys(("labels", "entities", "spine"), "requests"),
        **dict.fromkeys(("on", "by"), "keys belong to the query, as pn.query(by='card', ...)."),
        **dict.fromkeys(("over", "select", "where"), "it belongs to the query, which a stream serves unchanged."),
        **dict.fromkeys(("watermark", "lag"), "delay"),
        closed="it belongs to the window, as pn.sliding('1 hour', bounds='[)') for only what was before the request.",
    )
    def lookup(
        self,
        events: Any,
        requests: Any,
        *,
        at: str | None = None,
        delay: DurationLike | None = None,
        layout: LookupLayout = "wide",
    ) -> Any:
        """What each window's answer was at each request: a training set with no leakage from the future.

        Of a sliding window it is the answer up to the request, exactly: what ``run`` has for an event of that time. Of
        a window on the clock it is that of the newest instance with ``end + delay <= t``. Where a window holds no event
        of the key, counts are 0 and other aggregates null.

        Parameters
        ----------
        events, requests
            Two Spark DataFrames give a (lazy) Spark DataFrame. Two pyarrow Tables, or anything with the Arrow C
            interface (pandas, polars), give a pyarrow Table. Requests have the key columns, a time, and any other
            columns; neither side need be sorted.
        at
            The time column of the requests; by default it has the name of that of the events. A request without a time
            finds no event.
        delay
            The watermark delay of the stream that serves the same plan: windows on the clock then are what had been
            served by the time of the request. Sliding windows are not affected: a stream answers them as of the time
            of the event, however late that answer comes.
        layout
            ``wide``: the requests with a column ``<output column>_<window>`` for each window, as ``total_7d``.
            ``long``: a row per request, query and window, with columns ``query`` and ``window_name``.

        Returns
        -------
        pyarrow.Table or pyspark.sql.DataFrame
            All columns of the requests, then the answers. In this process rows keep the order of the requests.

        Examples
        --------
        >>> import datetime as dt, pyarrow as pa, panes as pn
        >>> hour = lambda *hours: [dt.datetime(2026, 1, 1, h) for h in hours]
        >>> payments = pa.table({"ts": hour(1, 2, 9, 3), "card": ["a", "a", "a", "b"], "amount": [10, 20, 5, 7]})
        >>> labels = pa.table({"ts": hour(2, 9, 12), "card": ["a", "a", "c"], "fraud": [False, True, False]})
        >>> spend = pn.query(by="card", at="ts", select={"n": pn.count(), "total": pn.sum("amount")},
        ...     over=[pn.sliding("1 day"), pn.sliding(pn.rows(1)), pn.tumbling("6 hours")])
        >>> features = pn.plan(spend).lookup(payments, labels)
        >>> features.column_names[3:]
        ['n_1d', 'total_1d', 'n_1row', 'total_1row', 'n_6h', 'total_6h']
        >>> for row in features.drop_columns(["ts"]).to_pylist():
        ...     print(*row.values())
        a False 2 30 1 20 0 None
        a True 3 35 1 5 2 30
        c False 0 None 0 None 0 None
        """
        return self._lookup_steps(events, requests, at, delay, layout).carry_out()

    @helpful(
        "plan.live(keep='3 hours')",
        **dict.fromkeys(("retention", "ttl", "history"), "keep"),
        **dict.fromkeys(("path", "restore"), "load"),
        over="it belongs to the query, and any other window is asked for with live.lookup(requests, over='15 min').",
    )
    def live(
        self,
        keep: DurationLike | Rows | Nested | None = None,
        *,
        algorithm: str | None = None,
        load: str | os.PathLike[str] | None = None,
    ) -> Live:
        """Keep the plan in this process: events come in batches, and any window can be looked up at any time.

        ``live.update(batch)`` takes in events, ``live.lookup(requests)`` gives what :meth:`lookup` would, or answers
        over any other window, and ``live.find("total > 1000", over="15 min")`` the keys that pass a condition.

        Parameters
        ----------
        keep
            How much is held: a duration, counted back from the latest event of all keys; ``pn.rows(1000)``, so many
            rows of each key; ``pn.nested(ranges, slides)``, granules that grow coarser with age. By default what the
            windows of the plan need.
        algorithm
            ``running``, ``landmark``, ``dyadic`` or ``elements`` for all aggregates; by default an adviser
            chooses for each, and changes its choice with the requests.
        load
            A file that ``live.save(path)`` of the same plan wrote.

        Examples
        --------
        >>> import datetime as dt, pyarrow as pa, panes as pn
        >>> spend = pn.query(by="card", at="ts", select={"total": pn.sum("amount")}, over=pn.sliding("1 hour"))
        >>> live = pn.plan(spend).live()
        >>> minute = lambda *some: [dt.datetime(2026, 1, 1, 9, m) for m in some]
        >>> live.update(pa.table({"ts": minute(0, 5, 14), "card": ["a", "b", "a"], "amount": [500, 900, 600]}))
        >>> live.lookup(pa.table({"card": ["b"], "ts": minute(30)}))["total_1h"].to_pylist()
        [900]
        >>> live.find("total > 1000", over="15 min").to_pylist()
        [{'card': 'a', 'total': 1100}]
        """
        if load is not None:
            from panes.live.saving import load as load_live

            return load_live(load, self.queries, keep, algorithm)
        from panes.live.live import Live

        return Live(self.queries, keep, algorithm)

    def with_statistics(self, events: Any) -> Plan:
        """The same queries, planned on what a sample of a Spark DataFrame says about its rate and keys.

        ``run`` does this by itself for plans without ``rate`` and ``keys``.
        """
        if not self._over_time:
            return self
        from panes.spark.run import check
        from panes.spark.sampling import sample, worth_a_sample

        physical = self.physical_plan()
        check(physical, events)  # mistakes first: a sample is a small job
        if not worth_a_sample(physical):
            return self
        return replace(self, statistics=sample(events, physical.queries, self.statistics))

    def status(self, streaming_query: Any) -> str:
        """Where a running stream of this plan stands: its watermark, and what each window waits for."""
        from panes.spark.progress import status

        return status(self._over_time, self.physical_plan().row_windows, streaming_query.lastProgress)

    def explain(self, data: Any = None, requests: Any = None, **options: Any) -> str:
        """What runs: the tree of windows with predicted costs; with data, the steps that a run on them takes.

        Nothing is answered. Where ``run`` would sample the data to choose a plan, so does this.

        Parameters
        ----------
        data
            What would be given to ``run`` or, where it is a stream, to ``stream``. Without data, the plan is shown as
            it looks under the figures that :func:`plan` was given, where a run on a batch starts.
        requests
            What ``lookup`` would be given beside the events.
        options
            Those of ``run``, ``stream`` or ``lookup``.

        Examples
        --------
        >>> import datetime as dt, pyarrow as pa, panes as pn
        >>> events = pa.table({"ts": [dt.datetime(2026, 1, 1)], "temp": [20.0]})
        >>> over = [pn.tumbling("10 min"), pn.hopping("1 hour", every="10 min"), pn.sliding(pn.rows(10))]
        >>> print(pn.plan(pn.query(at="ts", select={"top": pn.max("temp")}, over=over)).explain(events))
        plan.run on a table: 3 windows, 2 passes over the events
          1 read    events
          2 sort    events by nothing and time (1)
          3 answer  panes every 10m, and every window from them (2)
              10m
              1h/10m
          4 union   all answers (3)
          5 sort    events by nothing and time (1)
          6 answer  windows of rows, from one sorted column (5)
              10rows/event
          7 union   the answers of all parts (4, 6)
        """
        if "format" in options:
            raise PlanError("explain() gives text; plan.to_mermaid(), plan.to_svg() and plan.to_dict() other formats.")
        if data is None:
            if requests is not None or options:
                given = ", ".join(f"{name}=" for name in (*(() if requests is None else ("requests",)), *options))
                says = "say" if ", " in given else "says"
                raise PlanError(f"{given} {says} how a plan runs on data: write plan.explain(events, ...).")
            return explanation.explain(self.physical_plan())
        return str(self._steps(data, requests, options))

    def _steps(self, data: Any, requests: Any, options: Mapping[str, Any]) -> Steps:
        """What the verb that fits would carry out."""
        if requests is not None:
            return self._lookup_steps(**arguments_of(Plan.lookup, self, unread(data), unread(requests), **options))
        if is_spark(data) and data.isStreaming:
            return self._stream_steps(**arguments_of(Plan.stream, self, data, **options))
        return self._run_steps(**arguments_of(Plan.run, self, unread(data), **options))

    def to_mermaid(self) -> str:
        """The plan as a Mermaid flowchart."""
        return explanation.mermaid(self.physical_plan())

    def to_svg(self) -> str:
        """The plan as a picture: text of an SVG file."""
        from panes.planning.svg import svg

        return svg(self.physical_plan())

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain values, ready for JSON."""
        return explanation.data_of(self.physical_plan())

    def __str__(self) -> str:
        return explanation.summary(self.physical_plan())

    # What verbs carry out, and explain shows

    def _run_steps(self, data: Any, layout: Layout, empty: bool, strategy: Strategy | None, observation: Any) -> Steps:
        check_one("run on", data)
        on_spark, forced = is_spark(data), strategy or self.strategy
        streaming = on_spark and data.isStreaming
        self._check_options(layout, empty, forced)
        check_run(forced, observation, on_spark=on_spark, streaming=streaming)
        if streaming:
            return self._stream_steps(**arguments_of(Plan.stream, self, data, empty=empty, layout=layout))
        check_instances(self._over_time)
        self._check_zones(data)
        if not on_spark:
            from panes.local.run import run_steps

            return run_steps(self._for_tables, data, self._key_sets, layout=layout, empty=empty)
        check_copies(self._over_time, forced)
        from panes.spark.run import run_steps as run_steps_on_spark

        return run_steps_on_spark(
            self.physical_plan(),
            data,
            self._key_sets,
            layout=layout,
            empty=empty,
            strategy=forced,
            observation=observation,
            plan=self.physical_plan,
        )

    def _stream_steps(self, events: Any, catalogue: Catalogue | None, **options: Any) -> Steps:
        from panes.state.stream_options import StreamOptions

        if catalogue is not None:
            check_catalogue(catalogue)
        folder, history = (None, 0) if catalogue is None else (catalogue.path, catalogue.history)
        declared = StreamOptions(catalogue=folder, history=history, **options)
        self._check_options(declared.layout, declared.empty, None)
        declared.check(self.queries)
        check_instances(self._over_time)
        check_streaming(events)
        self._check_zones(events)
        from panes.spark.stream import stream_steps

        return stream_steps(self._for_streams, events, self._key_sets, declared)

    def _lookup_steps(
        self, events: Any, requests: Any, at: str | None, delay: DurationLike | None, layout: LookupLayout
    ) -> Steps:
        declared = declare_lookup(self.queries, at=at, delay=delay, layout=layout)
        on_spark = both_on_spark("look up in", events=events, requests=requests)
        self._check_zones(events)
        if on_spark:
            from panes.spark.lookup import lookup_steps as lookup_steps_on_spark

            return lookup_steps_on_spark(declared, events, requests)
        from panes.local.lookup import lookup_steps

        return lookup_steps(declared, events, requests)

    def _check_zones(self, data: Any) -> None:
        """Warn of windows on the clock that do not begin where local time does."""
        for query in self.queries:
            warn_of_zone(query.over, zone_of(data, query.at))

    def _check_options(self, layout: Layout, empty: bool, strategy: Strategy | None) -> None:
        """Refuse what rows cannot be laid out as, or no window could answer."""
        check_layout(self.queries, layout)
        check_empty(self.queries, empty, strategy)


def _read(text: str) -> list[Query]:
    from panes.api.sql import sql

    return sql(text)


QueryLike: TypeAlias = Query | str
"""A query, or SQL text of one or several."""


@helpful(
    "pn.plan([query, another], rate=1000, keys=50_000)",
    more="several queries go into a list, as pn.plan([query, another]).",
    query="queries",
    n_keys="keys",
    **dict.fromkeys(("events", "data", "df"), "a plan is run afterwards: pn.plan(query).run(data)."),
    **dict.fromkeys(("by", "at", "select", "over", "where"), "it belongs to the query: pn.plan(pn.query(...))."),
)
def plan(
    queries: QueryLike | Iterable[QueryLike],
    *,
    rate: float | None = None,
    keys: float | Mapping[Any, float] | None = None,
    strategy: Strategy | None = None,
    factor_windows: bool = True,
) -> Plan:
    """Plan all windows of all queries together.

    Parameters
    ----------
    queries
        What ``pn.query`` made, SQL text as ``pn.sql`` reads it, or several of them.
    rate
        Expected events per second of event time. Without it (and without ``keys``), a sample of the data decides.
    keys
        Expected number of distinct keys, or one number per key column or tuple of key columns.
    strategy
        Run all of it with one strategy instead of the cheapest ones.
    factor_windows
        Whether the planner may add unrequested windows that others can be read from.

    Examples
    --------
    >>> import panes as pn
    >>> windows = [pn.tumbling("20 min"), pn.tumbling("30 min"), pn.tumbling("40 min")]
    >>> print(pn.plan(pn.query("temps", by="device", at="ts", select={"low": pn.min("temp")}, over=windows)))
    1 query, 3 windows, 1 pass over the events
      ...
    """
    check_strategy(strategy)
    listed = tuple(queries) if isinstance(queries, Iterable) and not isinstance(queries, str) else (queries,)
    declared = tuple(query for some in listed for query in (_read(some) if isinstance(some, str) else [some]))
    checked = check_queries(declared)
    check_windows(checked)
    planned = Plan(checked, Statistics.given(rate, keys), strategy, factor_windows)
    planned.physical_plan()  # a mistake shows here, and not when the plan runs
    return planned
