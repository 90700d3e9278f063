"""The options of a stream, and whether they fit each other and the queries."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from panes.errors import PlanError, StateWarning
from panes.queries.eviction import Limits
from panes.queries.windows import RowWindow, Sliding
from panes.suggestions import shown
from panes.timeline import format_duration

if TYPE_CHECKING:
    from panes.queries.query import Query
    from panes.queries.windows import Window

Mode: TypeAlias = Literal["append", "update"]
_MOST_SHARDS = 1024


@dataclass(frozen=True)
class StreamOptions:
    """The options of ``plan.stream``; a catalogue is the address of its folder, and its history in µs."""

    mode: Mode = "append"
    layout: Literal["long", "wide"] = "long"
    empty: bool = False
    late: Literal["count", "emit"] = "count"
    shards: int = 1
    limits: Limits | None = None
    catalogue: str | None = None
    history: int = 0
    checkpoint: str | None = None

    @property
    def partial(self) -> bool:
        """Whether answers come out that lack events, with their coverage."""
        return self.catalogue is not None or (self.limits is not None and self.limits.emit)

    @property
    def labelled(self) -> bool:
        """Whether rows say what they are: not all of them are answers of declared queries."""
        return self.partial or self.late == "emit"

    def check(self, queries: Sequence[Query]) -> None:
        """Refuse options that do not fit each other or the queries, and warn of state that nothing bounds."""
        self._check_values()
        check_shards(self.shards)
        self._check_windows(queries)
        self._check_reserved_columns(queries)
        if self.layout == "wide":
            self._check_wide([window for query in queries for window in query.windows])
        times = list(dict.fromkeys(query.at for query in queries if _on_the_clock(query)))
        if len(times) > 1:
            raise PlanError(
                f"the queries have several event times ({', '.join(times)}), but a stream has one watermark. "
                "Run the queries of each event time as a separate stream."
            )
        if self.limits is None:
            _warn_of_growth(queries)

    def _check_values(self) -> None:
        if self.mode not in ("append", "update"):
            raise PlanError(
                f"mode={self.mode!r}: write 'append' (an answer once, when the watermark has passed its end) or "
                "'update' (early answers and corrections). Repeating all answers ('complete') would never end."
            )
        if self.late not in ("count", "emit"):
            raise PlanError(f"late={self.late!r}: write 'count', or 'emit' to also get late events as rows.")
        if self.limits is not None and not isinstance(self.limits, Limits):
            raise PlanError(f"limits={shown(self.limits)} are not limits. Write limits=pn.Limits(age='1 hour').")
        if self.empty and self.mode != "append":
            raise PlanError("empty=True needs mode='append': in update mode rows come out for what has changed.")

    def _check_windows(self, queries: Sequence[Query]) -> None:
        """Refuse what windows of rows do not have, and corrections where answers are final."""
        for query in queries:
            if query.row_windows:
                self._check_row_window(query.name, query.row_windows[0].name)
            if self.mode == "update":
                _check_corrections(query)

    def _check_row_window(self, query: str, window: str) -> None:
        reasons = {
            "late='emit'": "a late row is dropped or, for sessions, counts where its session would still be open",
            "limits=...": "their state is the rows that they hold, and evict=pn.evict(...) of the query bounds it",
            "catalogue=...": "their state is kept for the declared windows alone, and others could not be answered",
        }
        for option in self._given():
            if option in reasons:
                raise PlanError(
                    f"{option} is for windows on the clock and sliding windows, and query {query!r} has the window "
                    f"{window!r}, which is one of rows or a session: {reasons[option]}. Leave it out, or plan that "
                    "window apart."
                )

    def _check_reserved_columns(self, queries: Sequence[Query]) -> None:
        """Refuse output columns that would hide what rows say about themselves."""
        reserved = {"kind", "detail"} if self.late == "emit" else set()
        if self.catalogue is not None or self.limits is not None:
            reserved |= {"kind", "detail", "coverage"}
        for query in queries if reserved else ():
            for column in (*query.by, *query.groups, *query.columns):
                if column.lower() in reserved:
                    raise PlanError(
                        f"query {query.name!r} has a column {column!r}, which rows of this stream use to tell answers "
                        "from late events and refusals. Rename it."
                    )

    def _check_wide(self, windows: Sequence[Window]) -> None:
        """Refuse the wide layout where windows that end together may come out apart."""
        for option in self._given():
            raise PlanError(
                f"layout='wide' with {option}: rows then come out one by one, and a row of all windows cannot say "
                "which of them it is about. Take layout='long'."
            )
        other = next((window for window in windows if _lag(window) != _lag(windows[0])), None)
        if other is not None:
            raise PlanError(
                f"layout='wide' has one row for all windows that end together, and {windows[0]} and {other} come out "
                "at different times: windows on the clock when the watermark has reached their end, sliding windows "
                "and those that hold their end when it has passed it. Plan them apart, or take layout='long'."
            )

    def _given(self) -> list[str]:
        """What lets rows out one by one, as it is written."""
        given = {
            "mode='update'": self.mode == "update",
            "late='emit'": self.late == "emit",
            "limits=...": self.limits is not None,
            "catalogue=...": self.catalogue is not None,
        }
        return [option for option, is_given in given.items() if is_given]


def check_shards(shards: object) -> None:
    """Refuse an invalid number of shards."""
    if not isinstance(shards, int) or not 1 <= shards <= _MOST_SHARDS:
        raise PlanError(f"shards={shards!r}: write a whole number from 1 to {_MOST_SHARDS}.")


def _check_corrections(query: Query) -> None:
    """Refuse update mode for windows whose answers are final."""
    final = [str(window) for window in query.over if isinstance(window, (Sliding, RowWindow))]
    if not final:
        return
    write = "Stream them with mode='append'."
    if len(final) < len(query.over):
        write = (
            "Declare these windows in a query of their own and stream it with mode='append', beside the others with "
            "mode='update' and a checkpoint of their own."
        )
    raise PlanError(
        f"mode='update' corrects answers while events come, but those of {', '.join(final)} of query {query.name!r} "
        f"come once, when all events before them have arrived, and are final. {write}"
    )


def _warn_of_growth(queries: Sequence[Query]) -> None:
    """Warn of exact aggregates over values whose state nothing bounds."""
    for query in queries:
        windows = _on_the_clock(query)
        for _, aggregate in query.aggregates if windows else ():
            if aggregate.collects:
                widest = max(window.geometry.range for window in windows)
                warnings.warn(
                    f"query {query.name!r}: {aggregate} keeps every different value of each key and granule for "
                    f"{format_duration(widest)}, some 16 bytes each and more for text, and nothing bounds how many "
                    "there are. Use approx_count_distinct or approx_quantile, which keep sketches, or bound the keys "
                    "with limits=pn.Limits(...).",
                    StateWarning,
                    stacklevel=2,
                )
                return


def _on_the_clock(query: Query) -> list[Window]:
    return [window for declared in query.over if not isinstance(declared, RowWindow) for window in declared.windows]


def _lag(window: Window) -> tuple[int, int]:
    """How long after the end that results show an instance is complete, in µs, and before the event it is about."""
    return window.end_shift or window.shift, window.ago
