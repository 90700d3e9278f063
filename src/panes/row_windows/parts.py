"""Group the windows of rows of queries: which of them see the same rows, and which share one sorted column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from panes.operators.policies import Partitions, SlidingPolicies, Time, WindowPolicies, policies_of
from panes.planning.physical_plan import WindowsOfRows
from panes.queries.measures import Punctuation, Rows
from panes.queries.query import Query
from panes.queries.window_constructors import tumbling
from panes.queries.windows import RowWindow, Window
from panes.row_windows.window_input import WindowInput, check_output


@dataclass(frozen=True)
class RowsPart:
    """Windows of one query that see the same rows.

    Parameters
    ----------
    query
        The query, with only these windows.
    windows, inputs
        The windows, and how rows arrive at each of them.
    """

    query: Query
    windows: tuple[RowWindow | Window, ...]
    inputs: tuple[WindowInput, ...]

    @property
    def input(self) -> WindowInput:
        """How rows arrive at the first window; keys, time, condition and marks are those of all windows."""
        return self.inputs[0]

    @property
    def bare(self) -> Query:
        """The aggregates alone, by keys and groups, to be bound to types."""
        query = self.query
        aggregates = tuple(alias for alias, _ in query.aggregates)
        keys, over = (*query.by, *query.groups), (tumbling("1 us"),)
        return replace(query, by=keys, groups=(), over=over, derived=(), having=None, columns=aggregates)

    @property
    def deltas(self) -> tuple[str, ...]:
        """The columns that sizes and paces are measured in."""
        return tuple(dict.fromkeys(name for input in self.inputs for name in input.deltas))

    @property
    def used(self) -> frozenset[str]:
        """The columns of the data that are needed, except those that only order rows of one instant."""
        return self.query.used.union(*(input.used for input in self.inputs))


def over_rows(queries: Iterable[Query]) -> tuple[RowsPart, ...]:
    """Return the windows of rows of queries as parts, each of windows that see the same rows in the same order.

    Marks are not rows to the windows that they end, and ordinary rows to others. Columns that sizes and paces are
    measured in order the rows of one instant for these windows only: adding a window changes no other.

    Examples
    --------
    >>> import panes as pn
    >>> declared = pn.query("trades", at="ts", select={"n": pn.count()}, over=[
    ...     pn.tumbling("1 h"), pn.sliding(pn.rows(100)), pn.session("1 h"), pn.tumbling(pn.punctuation("end"))])
    >>> [[str(input.window) for input in part.inputs] for part in over_rows([declared])]
    [['pn.sliding(pn.rows(100))', "pn.session('1h')"], ["pn.tumbling(pn.punctuation('end'))"]]
    """
    found = []
    for query in queries:
        parts: dict[object, list[RowWindow]] = {}
        for window in query.over:
            if isinstance(window, RowWindow):
                marks = window.size if isinstance(window.size, Punctuation) else None
                # Windows that evict keys evict different ones, and hold different rows.
                order = tuple(dict.fromkeys(str(each.column).lower() for each in window.deltas))
                parts.setdefault((marks, order) if query.evict is None else window, []).append(window)
        found += [_part(query, tuple(windows)) for windows in parts.values()]
    return tuple(found)


def over_everything(query: Query) -> tuple[RowsPart, ...]:
    """Return all windows of a query as parts, for functions that see rows; windows on the clock are one part.

    Examples
    --------
    >>> import panes as pn
    >>> over = [pn.hopping("1 h", every="5 min"), pn.sliding("1 h"), pn.sliding(pn.rows(100))]
    >>> declared = pn.query(at="ts", select={"n": pn.count()}, over=over)
    >>> [[str(input.window) for input in part.inputs] for part in over_everything(declared)]
    [["pn.hopping('1h', every='5m')", "pn.sliding('1h')"], ...]
    """
    of_rows = over_rows([query])
    declared = tuple(window for window in query.over if not isinstance(window, RowWindow))
    if not declared:
        return of_rows
    windows = tuple(window for each in declared for window in each.windows)
    policies = [_on_the_clock(window, query.by) for window in windows]
    inputs = tuple(WindowInput(policy, query.by, query.at, query.where, ties=query.ties) for policy in policies)
    return (RowsPart(replace(query, over=declared), windows, inputs), *of_rows)


def is_session(window: object) -> bool:
    """Return whether a window is a session."""
    return isinstance(window, RowWindow) and window.kind == "session"


def is_complete(window: RowWindow | Window) -> bool:
    """Return whether the last instances of a table are answered: their end does not depend on later rows."""
    return isinstance(window, Window) or is_session(window)


def depends_on_clock(window: RowWindow | Window) -> bool:
    """Return whether the last instances of a table depend on how far the clock runs."""
    if isinstance(window, Window) or is_session(window):
        return False
    return isinstance(window.size, int) or isinstance(window.every, int)


def _on_the_clock(window: Window, by: Sequence[str]) -> WindowPolicies:
    """Return policies that hold the rows of a window on the clock, or more rows if each row is answered."""
    if window.per_event:
        partitioned = Partitions(tuple(by)) if by else None
        return SlidingPolicies(Time(window.lifespan.range - 1), Rows(1), partitioned)
    return policies_of(replace(window, since=None, finer=()), by if by else None)


def key_sets(parts: Sequence[RowsPart]) -> tuple[tuple[RowsPart, ...], ...]:
    """Group parts that share one sorted column: with the same keys, time, and order of rows of one instant."""
    found: dict[object, list[RowsPart]] = {}
    for part in parts:
        input = part.input
        names = tuple(tuple(name.lower() for name in some) for some in (input.by, part.deltas, input.ties))
        # Evicting keys depends on the rows of all keys, in the order of time.
        found.setdefault((*names, input.at, input.together), []).append(part)
    return tuple(tuple(some) for some in found.values())


def planned_row_windows(key_sets: Sequence[Sequence[RowsPart]]) -> tuple[WindowsOfRows, ...]:
    """The same windows as a plan shows them, numbered by their sorted column."""
    return tuple(
        WindowsOfRows(
            part.query.name,
            part.query.by,
            part.query.at,
            tuple(map(str, part.windows)),
            number,
            tuple(str(window) for window in part.windows if is_session(window)),
        )
        for number, some in enumerate(key_sets)
        for part in some
    )


def _part(query: Query, windows: tuple[RowWindow, ...]) -> RowsPart:
    for alias, aggregate in query.aggregates:
        check_output(alias, aggregate)
    policies = [policies_of(window, query.by if query.by else None, query.evict) for window in windows]
    at = query.at if query.timed else None
    inputs = tuple(WindowInput(policy, query.by, at, query.where, ties=query.ties) for policy in policies)
    return RowsPart(replace(query, over=windows), windows, inputs)
