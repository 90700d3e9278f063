"""The options of a stream of windows over time, and the checks that they pass before it starts."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pyspark.sql import DataFrame

from panes.engine.program import Program
from panes.errors import PlanError, StateWarning
from panes.planning.physical_plan import PhysicalPlan
from panes.queries.eviction import Limits
from panes.spark.binding import check_watermark
from panes.spark.finish import check_wide
from panes.spark.shards import check_shards
from panes.state.job import Mode
from panes.state.key_eviction import Bounds
from panes.timeline import format_duration, parse_duration

Late: TypeAlias = Literal["count", "emit"]


@dataclass(frozen=True)
class StreamOptions:
    """How a stream runs.

    Parameters
    ----------
    mode
        ``append``: an answer once, when the watermark has passed its end. ``update``: early answers and corrections.
    shards
        Into how many parts keys are divided. A checkpoint keeps its number.
    catalogue
        The folder of a catalogue of queries that come and go.
    history
        How long panes stay as fine as they are for queries registered later, in µs.
    late
        ``count``: late events are counted. ``emit``: they also come out, as rows of kind ``late``.
    emit_all
        Whether instances without events are answered too, for keys that are held.
    limits
        When keys are evicted.
    checkpoint
        Where the stream will have its checkpoint, to be checked now.
    layout
        ``long``: a row per answer. ``wide``: a row per key and window end.
    """

    mode: Mode
    shards: int
    catalogue: str | None = None
    history: int = 0
    late: Late = "count"
    emit_all: bool = False
    limits: Limits | None = None
    checkpoint: str | None = None
    layout: Literal["long", "wide"] = "long"

    @property
    def partial(self) -> bool:
        """Whether answers come out that lack events, with their coverage."""
        return self.catalogue is not None or (self.limits is not None and self.limits.emit)

    @property
    def labelled(self) -> bool:
        """Whether rows say what they are: not all of them are answers of declared queries."""
        return self.partial or self.late == "emit"

    @property
    def bounds(self) -> Bounds | None:
        """The limits of one shard: its share of those of the stream."""
        if self.limits is None:
            return None
        keys, rows = (None if n is None else -(-n // self.shards) for n in (self.limits.keys, self.limits.rows))
        return Bounds(None if self.limits.age is None else parse_duration(self.limits.age), keys, rows)


def check_stream(physical: PhysicalPlan, events: DataFrame, options: StreamOptions) -> None:
    """Reject options that do not fit each other, the queries or the session."""
    _check_options(physical, options)
    _check_reserved_columns(physical, options)
    times = list(dict.fromkeys(query.at for query in physical.queries))
    if len(times) > 1:
        raise PlanError(
            f"the queries have several event times ({', '.join(times)}), but a stream has one watermark. "
            "Run the queries of each event time as a separate stream."
        )
    check_shards(events.sparkSession, options.shards)
    check_watermark(events, times[0])
    _warn_of_growth(physical, options)


def check_component_names(programs: Iterable[Program]) -> None:
    """Reject two columns of state with one name: after a restart, one would be taken for the other."""
    for program in programs:
        names = [component.name for component in program.components]
        for name in names:
            if names.count(name) > 1:
                raise PlanError(f"two aggregates of your own are called {name}; give each a name= of its own.")


def _check_options(physical: PhysicalPlan, options: StreamOptions) -> None:
    mode = options.mode
    if mode not in ("append", "update"):
        raise PlanError(
            f"mode={mode!r}: write 'append' (an answer once, when the watermark has passed its end) or 'update' "
            "(early answers and corrections). Repeating all answers ('complete') would never end."
        )
    if options.emit_all and mode != "append":
        raise PlanError("empty=True needs mode='append': in update mode rows come out for what has changed.")
    if options.late not in ("count", "emit"):
        raise PlanError(f"late={options.late!r}: write 'count', or 'emit' to also get late events as rows.")
    if options.layout == "wide":
        one_by_one = {"mode='update'": mode == "update", "late='emit'": options.late == "emit"}
        one_by_one |= {"limits=": options.limits is not None, "catalogue=": options.catalogue is not None}
        check_wide(physical.queries, one_by_one)


def _check_reserved_columns(physical: PhysicalPlan, options: StreamOptions) -> None:
    """Reject output columns that would hide what rows say about themselves."""
    taken = {"kind", "detail"} if options.late == "emit" else set()
    if options.catalogue is not None or options.limits is not None:
        taken |= {"kind", "detail", "coverage"}
    for query in physical.queries:
        for column in (*query.by, *query.columns):
            if column.lower() in taken:
                raise PlanError(
                    f"query {query.name!r} has a column {column!r}, which rows of this stream use to tell answers from "
                    "late events and refusals. Rename it."
                )


def _warn_of_growth(physical: PhysicalPlan, options: StreamOptions) -> None:
    """Warn of exact aggregates over values whose state nothing bounds."""
    aggregates = ((query, aggregate) for query in physical.queries for _, aggregate in query.aggregates)
    exact = next(((query, aggregate) for query, aggregate in aggregates if aggregate.collects), None)
    if exact is None or options.limits is not None:
        return
    query, aggregate = exact
    widest = max((window.geometry.range for window in query.windows), default=0)
    warnings.warn(
        f"query {query.name!r}: {aggregate} keeps every different value of each key and granule for "
        f"{format_duration(widest)}, some 16 bytes each and more for text, and nothing bounds how many there are. Use "
        "approx_count_distinct or approx_quantile, which keep sketches, or bound the keys with limits=pn.Limits(...).",
        StateWarning,
        stacklevel=2,
    )
