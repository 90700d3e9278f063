"""One window instead of those of the plan: what ``over=`` and ``ago=`` mean, and the answers over it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TypeAlias

import pyarrow as pa

from panes.aggregates.operations import Array
from panes.engine.lookback import BoundLookup
from panes.engine.lookup_results import answers_of
from panes.engine.schema import field_of
from panes.errors import DeclarationError
from panes.live.answers import LiveLookup
from panes.live.part import Part, part_over
from panes.live.requests import Span
from panes.queries.lookup_declarations import LookupWindow, declare_lookup
from panes.queries.measures import Rows
from panes.queries.time_zones import warn_of_zone
from panes.queries.window_constructors import sliding
from panes.queries.windows import DeclaredWindow, Nested, RowWindow, Sliding
from panes.timeline import DurationLike

Over: TypeAlias = "DurationLike | Rows | LookupWindow | tuple[str, str]"
"""One window: a duration, ``pn.rows(n)``, a window, or the names of two columns of the requests."""


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
            f"over={over!r} is the name of a window. Write over='15 min' for the time up to then, or the window "
            "itself, as over=pn.hopping('1 hour', every='5 min')."
        )
    if isinstance(over, (str, timedelta, Rows)):
        return sliding(over, ago=ago)
    if ago is not None:
        raise DeclarationError(f"ago={ago!r} is for a size. Write it on the window, as pn.sliding('1 h', ago='1 day').")
    if isinstance(over, Nested):
        raise DeclarationError("over=pn.nested(...) is several windows, and over= takes one. Write over='1 hour'.")
    if not isinstance(over, DeclaredWindow):
        hint = f" Write over=pn.rows({over!r}) for rows." if isinstance(over, int) else ""
        if isinstance(over, (list, tuple)):
            hint = " It takes one: make a call for each of several."
        raise DeclarationError(
            f"over={over!r} is not a window.{hint} Write a duration such as '15 min', pn.rows(100), a window such as "
            "pn.sliding('1 hour'), or the names of two columns, ('from', 'to')."
        )
    return over


def ends_of(window: Sliding, time: int) -> tuple[int, int]:
    """The first and the last instant of a window up to some time."""
    end = time - window.ago
    return end - window.size + (window.bounds[0] == "("), end - (window.bounds[1] == ")")


class OneWindow:
    """A query of a part over one window.

    Parameters
    ----------
    number
        Which query of the part.
    """

    def __init__(self, part: Part, number: int, window: LookupWindow | Span) -> None:
        self._part, self._number, self._window = part, number, window
        if part.schema is not None and not isinstance(window, Span):
            warn_of_zone([window], field_of(part.schema, part.declared.at).type.tz)
        self._bound = _bound_over(part, number, window)

    def answers(
        self, key: Array, instant: Array, keys: list[pa.Array], quantiles: dict[str, Array] | None = None
    ) -> tuple[dict[str, pa.Array], Array]:
        """The output columns at some requests, and which of these windows hold an event.

        Parameters
        ----------
        key, instant, keys
            Of each request, sorted by key and time: the number of its key, its time, and the columns of its key.
        quantiles
            The quantile that each request wants, of output columns where it is not the declared one.
        """
        part, window = self._part, self._window
        lookup = LiveLookup(part, self._bound, key, instant, quantiles, window if isinstance(window, Span) else None)
        assert part.schema is not None
        time = field_of(part.schema, part.declared.at).type
        [columns] = answers_of(self._bound, lookup, keys, time, [part.types[self._number]]).values()
        return columns, lookup.held


def _bound_over(part: Part, number: int, window: LookupWindow | Span) -> BoundLookup:
    """What a part computes for one of its queries over a window."""
    query = part.declared.queries[number]
    found = next((str(aggregate) for _, aggregate in query.aggregates if aggregate.levels), None)
    if found is not None:
        raise DeclarationError(
            f"query {query.name!r}: {found} compares the levels of a nested window, and over= has none. Leave it out."
        )
    declared = part_over(part.declared, number, [sliding("1 us") if isinstance(window, Span) else window])
    declare_lookup(declared.queries, layout="long")
    if query.uses_expires and isinstance(window, (Span, Sliding, RowWindow)):
        raise DeclarationError(
            f"query {query.name!r} refers to the time when answers expire, and a window up to now has none. Leave it "
            "out."
        )
    return replace(part.bound, part=declared, readings=(part.bound.readings[number],))
