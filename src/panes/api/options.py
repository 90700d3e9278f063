"""Checks of the options of a verb against the windows of a plan, before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from panes.errors import PlanError
from panes.inputs import is_spark
from panes.planning.strategy import STRATEGIES
from panes.queries.measures import Rows
from panes.queries.query import Query
from panes.queries.windows import RowWindow, Sliding

if TYPE_CHECKING:
    from panes.row_windows.parts import RowsPart


def check_rows(parts: Sequence[RowsPart], given: Mapping[str, Any]) -> None:
    """Refuse options of streams that windows by rows do not have."""
    if not parts:
        return
    part = parts[0]
    why = {
        "late": "a late row is dropped or, for sessions, counts where its session would still be open",
        "limits": "their state is the rows that they hold, and evict=pn.evict(...) of the query bounds it",
        "catalogue": "their state is kept for the declared windows alone, and others could not be answered from it",
    }
    usual = {"late": "count"}
    for name, value in given.items():
        if value != usual.get(name):
            shown = f"{value!r}" if isinstance(value, str) else "..."
            raise PlanError(
                f"{name}={shown} is for windows on the clock, and query {part.query.name!r} has the window "
                f"{part.windows[0].name!r}, which goes by rows: {why[name]}. Leave it out, or plan that window apart."
            )


def check_layout(layout: str, parts: Iterable[RowsPart]) -> None:
    """Refuse an unknown layout, and the wide one where windows go by rows."""
    if layout not in ("long", "wide"):
        raise PlanError(f"layout={layout!r}: write 'long' (one row per answer) or 'wide' (one row per key and end).")
    for part in parts if layout == "wide" else ():
        window = part.windows[0]
        also = (
            " plan.lookup(data, data) has a row per event, with the last rows and windows in time side by side."
            if all(_last_rows(each) for part in parts for each in part.windows)
            else ""
        )
        raise PlanError(
            f"layout='wide' has a row per key and window end, and those of the window {window.name!r} of query "
            f"{part.query.name!r} go by rows, of which several may share an instant. Take layout='long'.{also}"
        )


def _last_rows(window: object) -> bool:
    return isinstance(window, RowWindow) and window.per_row and isinstance(window.size, Rows)


def check_stream(events: Any) -> None:
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
        raise PlanError(f"empty=True runs in columns: Spark's group-bys ({strategy}) know no empty groups.")
    windows = [window for query in queries for window in query.over]
    if all(isinstance(window, (Sliding, RowWindow)) for window in windows):
        raise PlanError(
            f"empty=True answers windows on the clock where they hold no event, and {windows[0]} is answered with "
            "events, as all windows here are. Leave it out, or take pn.hopping(size, every=...) with two durations."
        )


def check_mode(queries: Iterable[Query], mode: str) -> None:
    """Refuse corrections where answers are final."""
    for query in queries if mode == "update" else ():
        final = [str(window) for window in query.over if isinstance(window, (Sliding, RowWindow))]
        if not final:
            continue
        write = "Stream them with mode='append'."
        if len(final) < len(query.over):
            write = (
                "Declare these windows in a query of their own and stream it with mode='append', beside the others "
                "with mode='update' and a checkpoint of their own."
            )
        raise PlanError(
            f"mode='update' corrects answers while events come, but those of {', '.join(final)} of query "
            f"{query.name!r} come once, when all events before them are there, and are final. {write}"
        )


def check_strategy(strategy: str | None) -> None:
    """Refuse an unknown strategy."""
    if strategy is not None and strategy not in STRATEGIES:
        raise PlanError(f"strategy={strategy!r}: write one of {', '.join(STRATEGIES)}, or leave it to the planner.")
