"""How much a plan may ask for, and the sentences with which more is refused before anything is allocated.

What costs follows the data, not the windows: these limits are only for what nobody can mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from panes.errors import DeclarationError, PlanError

if TYPE_CHECKING:
    from panes.queries.query import Query
    from panes.queries.windows import DeclaredWindow

MOST_WINDOWS: Final = 100_000
"""Windows of a plan; a cumulating or nested window counts as many."""

MOST_LEVELS: Final = 1_000
"""Levels of a nested window."""

MOST_PER_EVENT: Final = 10_000_000
"""Instances of one window that hold the same event, where each of them is an answer."""

MOST_COPIES: Final = 1_000
"""Instances that Spark's own windows copy an event into; it plans each of them."""


def check_steps(steps: int, write: str) -> None:
    """Refuse a window that stands for more windows than a plan may have."""
    if steps > MOST_WINDOWS:
        raise DeclarationError(
            f"this is {steps:,} windows, one per step, and a plan has at most {MOST_WINDOWS:,}. Take a longer step, as "
            f"{write}."
        )


def check_levels(levels: int) -> None:
    """Refuse a nested window with too many levels."""
    if levels > MOST_LEVELS:
        raise DeclarationError(
            f"this nested window has {levels:,} levels, and it may have {MOST_LEVELS:,}. Leave levels out: one for "
            "each unit that people look at, as ['1 day', '1 hour', '1 min'], is usual."
        )


def check_windows(queries: Iterable[Query]) -> None:
    """Refuse a plan with too many windows, before it is planned."""
    counts = {query.name: sum(map(_number_of, query.over)) for query in queries}
    total = sum(counts.values())
    if total > MOST_WINDOWS:
        most = max(counts, key=counts.__getitem__)
        raise PlanError(
            f"this plan has {total:,} windows ({counts[most]:,} of them in the query {most!r}), and a plan may have "
            f"{MOST_WINDOWS:,}. Split it into several plans, or declare fewer windows and look the others up: "
            "live.lookup(requests, over=...) answers any window."
        )


def _number_of(window: DeclaredWindow) -> int:
    from panes.queries.windows import Cumulate

    # Not len(window.windows): those need not be made.
    return window.upto // window.step if isinstance(window, Cumulate) else len(window.names)


def check_instances(queries: Iterable[Query]) -> None:
    """Refuse windows of which each event would be in too many instances, every one of them an answer."""
    for query in queries:
        for window in query.windows:
            instances = math.ceil(window.geometry.range / window.geometry.slide)
            if not window.per_event and instances > MOST_PER_EVENT:
                raise PlanError(
                    f"query {query.name!r}: each event is in {instances:,} instances of the window {window.name!r}, "
                    f"and every instance is a row of the result, of which an event may be in {MOST_PER_EVENT:,}. Take "
                    "a longer every=, pn.sliding(...) for one answer per event, or plan.lookup(events, requests), "
                    "which answers only where it is asked."
                )


def check_copies(queries: Iterable[Query], strategy: str | None) -> None:
    """Refuse Spark's own windows, where they are forced, if each event would be copied too often."""
    if strategy not in ("native", "rewrite"):
        return
    for query in queries:
        for window in query.windows:
            copies = math.ceil(window.geometry.range / window.geometry.slide)
            if copies > MOST_COPIES and not window.per_event:
                raise PlanError(
                    f"query {query.name!r}: strategy={strategy!r} copies each event into the {copies:,} instances of "
                    f"the window {window.name!r} that hold it, and Spark plans at most about {MOST_COPIES:,}. Leave "
                    "strategy= out: columns copy nothing."
                )
