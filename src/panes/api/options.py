"""Checks of the options of a verb against the windows of a plan, before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from panes.engine.schema import wide_columns
from panes.errors import PlanError
from panes.inputs import is_spark
from panes.planning.strategy import STRATEGIES
from panes.queries.measures import Rows
from panes.queries.query import Query
from panes.queries.windows import RowWindow, Sliding
from panes.suggestions import shown


def check_layout(queries: Sequence[Query], layout: str) -> None:
    """Refuse an unknown layout, and the wide one over windows of rows or where two columns would have one name."""
    if layout not in ("long", "wide"):
        raise PlanError(f"layout={layout!r}: write 'long' (one row per answer) or 'wide' (one row per key and end).")
    if layout == "long":
        return
    row_windows = [(query, window) for query in queries for window in query.row_windows]
    for query, window in row_windows:
        also = (
            " plan.lookup(data, data) has a row per event, with the last rows and windows in time side by side."
            if all(window.per_row and isinstance(window.size, Rows) for _, window in row_windows)
            else ""
        )
        raise PlanError(
            f"layout='wide' has a row per key and window end, and those of the window {window.name!r} of query "
            f"{query.name!r} are measured in rows, several of which may share an instant. Take layout='long'.{also}"
        )
    wide_columns(queries)


def check_catalogue(catalogue: Any) -> None:
    """Refuse what is not a catalogue."""
    from panes.api.streams import Catalogue

    if not isinstance(catalogue, Catalogue):
        raise PlanError(f"catalogue={shown(catalogue)} is not a catalogue. Write catalogue=pn.Catalogue(path).")


def check_streaming(events: Any) -> None:
    """Refuse what is not a streaming DataFrame."""
    if not is_spark(events) or not events.isStreaming:
        what = "a batch" if is_spark(events) else f"a {type(events).__name__}"
        raise PlanError(
            f"plan.stream takes a streaming DataFrame, and was given {what}. Read it with spark.readStream, or write "
            "plan.run(data)."
        )


def check_run(strategy: str | None, observation: Any, *, on_spark: bool, streaming: bool) -> None:
    """Refuse an unknown strategy, and on a table or a stream what is for batches on Spark."""
    check_strategy(strategy)
    if (on_spark and not streaming) or (strategy not in ("native", "rewrite") and observation is None):
        return
    if streaming:
        raise PlanError(
            "strategy='native' or 'rewrite', and observation=, are for batches. A stream runs one stateful operator; "
            "its figures are observed metrics of the streaming query."
        )
    raise PlanError("strategy='native' or 'rewrite', and observation=, are for Spark DataFrames only.")


def check_empty(queries: Iterable[Query], empty: bool, strategy: str | None) -> None:
    """Refuse empty answers where no window could have any."""
    if not isinstance(empty, bool):
        raise PlanError(f"empty={empty!r}: write True to answer windows without events too, or leave it out.")
    if not empty:
        return
    if strategy in ("native", "rewrite"):
        raise PlanError(f"empty=True runs in columns: Spark's group-bys ({strategy}) have no empty groups.")
    windows = [window for query in queries for window in query.over]
    if all(isinstance(window, (Sliding, RowWindow)) for window in windows):
        raise PlanError(
            f"empty=True answers windows on the clock where they hold no event, and {windows[0]} is answered with "
            "events, as all windows here are. Leave it out, or take pn.hopping(size, every=...) with two durations."
        )


def check_strategy(strategy: str | None) -> None:
    """Refuse an unknown strategy."""
    if strategy is not None and strategy not in STRATEGIES:
        raise PlanError(f"strategy={strategy!r}: write one of {', '.join(STRATEGIES)}, or leave it to the planner.")
