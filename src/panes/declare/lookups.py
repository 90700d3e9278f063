"""A lookup: which aggregates, over which windows back from each request, of which events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias, get_args

from panes.algebra.aggregates import Aggregate
from panes.declare.expressions import ExpressionLike
from panes.declare.measures import Rows
from panes.declare.query import Query, query
from panes.declare.windows import RowWindow, Sliding, checked_name, sliding, tumbling
from panes.errors import DeclarationError
from panes.timeline import DurationLike, Geometry

Closed: TypeAlias = Literal["right", "left", "both", "neither"]
LookupLayout: TypeAlias = Literal["wide", "long"]
Back: TypeAlias = Sliding | RowWindow
"""A window that looks back from a request: over time, or over a number of events."""

BackLike: TypeAlias = "DurationLike | Back"

_ANY_AGE: Final = 2**60
"""No two events are further apart, in µs."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """Aggregates over windows that end at requests. Made by :func:`declare_lookup`, which checks it.

    Parameters
    ----------
    query
        Keys, event time, aggregates, derived columns and condition; its windows are ``windows``.
    asked_at
        The column of the requests that says when.
    windows
        How far each answer looks back.
    closed
        Which of its bounds belong to a window over time.
    layout
        ``wide``: a row per request. ``long``: a row per request and window.
    """

    query: Query
    asked_at: str
    windows: tuple[Back, ...]
    closed: Closed
    layout: LookupLayout

    @property
    def holds_start(self) -> int:
        """1 where the start of a window belongs to it."""
        return int(self.closed in ("left", "both"))

    @property
    def holds_end(self) -> int:
        """1 where the end of a window, the time of the request, belongs to it."""
        return int(self.closed in ("right", "both"))

    @property
    def reach(self) -> int:
        """How many µs before a request the oldest event may be that a window over time asks for."""
        return max((w.size + w.ago for w in self.windows if isinstance(w, Sliding)), default=0)

    @property
    def rows(self) -> int:
        """How many events before a request a window over events may ask for."""
        return max((w.size.n + w.ago for w in self.windows if isinstance(w.size, Rows)), default=0)

    @property
    def features(self) -> tuple[tuple[str, str, str], ...]:
        """The columns of the wide layout: the name of the window, the output column, and the name of both together."""
        return tuple((w.name, alias, f"{alias}_{w.suffix}") for w in self.windows for alias in self.query.columns)


def declare_lookup(
    *,
    by: str | Iterable[str],
    at: str | Sequence[str] | None,
    select: Mapping[str, Aggregate | ExpressionLike] | None,
    over: BackLike | Iterable[BackLike] | Mapping[str, BackLike] | None,
    where: ExpressionLike | None = None,
    closed: Closed = "right",
    layout: LookupLayout = "wide",
) -> Lookup:
    """Check what a user writes about a lookup.

    Examples
    --------
    >>> import panes as pn
    >>> asked = declare_lookup(by="card", at=("paid", "ts"), select={"n": pn.count()}, over=["1 h", pn.last(10)])
    >>> asked.features, asked.query.at, asked.asked_at
    ((('1h', 'n', 'n_1h'), ('last_10', 'n', 'n_last_10')), 'paid', 'ts')
    """
    _check_choices(closed, layout)
    for name, value, example in (("select", select, "{'n': pn.count()}"), ("over", over, "['1 hour', '7 days']")):
        if value is None:
            raise DeclarationError(f"the lookup has no {name}=. Write {name}={example}, or give a query.")
    happened, asked = _times(at)
    windows = _windows(over)
    # Everything but the windows is what a query has; these only lend it their names.
    stand_ins = [tumbling("1 us", name=window.name) for window in windows]
    assert select is not None
    declared = query("lookup", by=by, at=happened, select=select, over=stand_ins, where=where)
    return _checked(Lookup(declared, asked, windows, closed, layout))


def lookup_of(
    asked: Query, *, at: str | Sequence[str] | None = None, closed: Closed = "right", layout: LookupLayout = "wide"
) -> Lookup:
    """The lookup of what a query over sliding windows answers for every event.

    Parameters
    ----------
    at
        The column of the requests that says when; by default that of the query.
    """
    _check_choices(closed, layout)
    if not isinstance(asked, Query):
        raise DeclarationError(f"{asked!r} is not a query. Make one with pn.query(..., over=pn.sliding('1 hour')).")
    if asked.having is not None:
        raise DeclarationError(
            f"query {asked.name!r} has having=, but a lookup answers every request. Filter its result instead."
        )
    if at is not None and not isinstance(at, str):
        raise DeclarationError(f"at={at!r} with a query is the time of the requests alone. Write one column.")
    return _checked(Lookup(asked, asked.at if at is None else at, _windows(asked.over), closed, layout))


def _check_choices(closed: str, layout: str) -> None:
    if closed not in get_args(Closed):
        raise DeclarationError(
            f"closed={closed!r}: write 'right' for (t - size, t], 'left' for [t - size, t), 'both' or 'neither'."
        )
    if layout not in get_args(LookupLayout):
        raise DeclarationError(
            f"layout={layout!r}: write 'wide' (a row per request) or 'long' (a row per request and window)."
        )


def _checked(lookup: Lookup) -> Lookup:
    _check_aggregates(lookup.query, lookup.windows)
    if lookup.layout == "wide":
        _refuse_twins(lookup)
    return lookup


def _times(at: Any) -> tuple[str, str]:
    both = (at, at) if isinstance(at, str) else at
    fits = isinstance(both, Sequence) and not isinstance(both, str) and len(both) == 2
    if not fits or not all(isinstance(name, str) and name for name in both):
        raise DeclarationError(
            f"at={at!r} is not one column for both sides, nor one for the events and one for the requests. Write "
            "at='ts', or at=('paid', 'asked')."
        )
    return both[0], both[1]


def _windows(over: Any) -> tuple[Back, ...]:
    if isinstance(over, Mapping):
        named = [replace(_window(window), name=checked_name(name)) for name, window in over.items()]
    elif isinstance(over, Iterable) and not isinstance(over, str):
        named = [_window(window) for window in over]
    else:
        named = [_window(over)]
    if not named:
        raise DeclarationError("the lookup has no window. Write over=['1 hour', '7 days'], or {'week': '7 days'}.")
    names = [window.name for window in named]
    for name in names:
        if names.count(name) > 1:
            raise DeclarationError(f"the lookup has two windows called {name!r}; drop one, or name them: over={{...}}.")
    return tuple(named)


def _window(window: Any) -> Back:
    if isinstance(window, Sliding) or (isinstance(window, RowWindow) and window.kind == "sliding"):
        return window
    if hasattr(window, "windows"):
        raise DeclarationError(
            f"over= has the window {str(window)!r}, which has instances of its own; a lookup looks back from each "
            "request. Write a duration, pn.sliding(size, ago=...) or pn.sliding(pn.rows(10))."
        )
    return _window(sliding(window))


def _check_aggregates(declared: Query, windows: tuple[Back, ...]) -> None:
    """Refuse what has no meaning where windows end at any instant."""
    if declared.expiring:
        raise DeclarationError("a lookup asks when an answer expires, but answers are for one instant. Leave it out.")
    for alias, aggregate in declared.aggregates:
        if aggregate.levels or aggregate.in_order:
            what = "compares the levels of a nested window" if aggregate.levels else "has a value per tick"
            raise DeclarationError(
                f"the lookup selects {alias!r} = {aggregate}, which {what}, and windows of a lookup begin and end at "
                "any instant. Leave it to a query."
            )
        for window in windows:
            # However few events are counted, the oldest of them may be of any age.
            size = window.size if isinstance(window, Sliding) else _ANY_AGE
            if (reason := aggregate.misfit(Geometry(size, 1))) is None:
                continue
            if isinstance(window, RowWindow):
                reason = (
                    f"{aggregate} suits windows up to some length, and the last {window.size} may lie any "
                    "time back. Take a window over time, or another aggregate (aged without power= has no such end)."
                )
            raise DeclarationError(f"the lookup selects {alias!r} over {window.name!r}: {reason}")


def _refuse_twins(lookup: Lookup) -> None:
    owners: dict[str, str] = {}
    for window, alias, name in lookup.features:
        if name.lower() in owners:
            raise DeclarationError(
                f"the lookup would have two columns called {name!r} ({owners[name.lower()]} and {alias!r} over "
                f"{window!r}). Rename an output column or a window."
            )
        owners[name.lower()] = f"{alias!r} over {window!r}"
