"""How much is kept for the queries of a plan: what their windows need, or what a user says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from panes.errors import DeclarationError, DurationError
from panes.live.store import Keep
from panes.queries.lookup_declarations import LookupDeclaration, LookupPart
from panes.queries.measures import Rows
from panes.queries.query import Query
from panes.queries.windows import RowWindow, Sliding
from panes.timeline import format_duration, parse_duration


def keeps(declared: LookupDeclaration, keep: Any) -> list[tuple[LookupPart, Keep]]:
    """The queries of a plan in parts that count the same events in the same order, and how much each part holds.

    Parameters
    ----------
    keep
        None for what windows need, a duration, or ``pn.rows(n)``.
    """
    kept = _read_keep(keep)
    found: dict[object, list[Query]] = {}
    for query in declared.queries:
        of_rows = kept.rows is not None or _rows_of(query) > 0
        own = tuple(name.lower() for name in query.ties) if of_rows else None
        found.setdefault((tuple(key.lower() for key in query.by), query.at.lower(), query.where, own), []).append(query)
    parts = [LookupPart(tuple(queries), queries[0].at, 0) for queries in found.values()]
    return [(part, _keep(part, kept)) for part in parts]


def _keep(part: LookupPart, keep: Keep) -> Keep:
    reach, rows = _reach(part), part.rows
    if keep == Keep():
        return Keep(reach or None, rows or None)
    if keep.micros is not None:
        if keep.micros < reach:
            raise DeclarationError(
                f"keep={format_duration(keep.micros)!r} is less than the windows of {_names(part)} look back, "
                f"{format_duration(reach)} (a window on the clock by its pace more than its size, until its newest "
                "instance is complete). Keep that, or leave keep= out."
            )
        return replace(keep, rows=rows or None)
    assert keep.rows is not None
    if keep.rows < rows:
        raise DeclarationError(
            f"keep=pn.rows({keep.rows}) is less than the windows of {_names(part)} look back, {rows} rows. Keep that, "
            "or leave keep= out."
        )
    return keep


def _read_keep(keep: Any) -> Keep:
    if keep is None:
        return Keep()
    if isinstance(keep, Rows):
        if not keep.n:
            raise DeclarationError("keep=pn.rows(0) keeps nothing. Write how many rows of each key, as pn.rows(1000).")
        return Keep(rows=keep.n)
    if isinstance(keep, int) and not isinstance(keep, bool):
        raise DeclarationError(f"keep={keep!r} has no unit. Write keep=pn.rows({keep!r}), or how long, as '1 hour'.")
    if not isinstance(keep, (str, timedelta)):
        raise DeclarationError(
            f"keep={keep!r}: write how long, as '1 hour', how many rows of each key, as pn.rows(1000), or granules "
            "that grow coarser, as pn.nested(['5 min', '1 hour'], ['1 min', '10 min'])."
        )
    micros = parse_duration(keep)
    if micros <= 0:
        raise DurationError(f"keep={keep!r} is not longer than zero. Write for example '1 hour'.")
    return Keep(micros=micros)


def _reach(part: LookupPart) -> int:
    """How many µs before the latest event the oldest one may be that a window over time asks for then."""
    clock = (w.every for _, w in part.views if isinstance(w, RowWindow) and isinstance(w.every, int))
    closed = (w.size + w.ago + 1 for _, w in part.views if isinstance(w, Sliding) and w.bounds[0] == "[")
    # Those before an instant are beside all of that instant, however many.
    before = (1 for _, w in part.views if isinstance(w, RowWindow) and w.before)
    return max(part.reach, *closed, *clock, *before, 0, 0)


def _rows_of(query: Query) -> int:
    return sum(isinstance(window, RowWindow) for window in query.over)


def _names(part: LookupPart) -> str:
    return _listed([query.name for query in part.queries])


def _listed(names: Sequence[str]) -> str:
    return ("query " if len(names) == 1 else "queries ") + ", ".join(map(repr, names))
