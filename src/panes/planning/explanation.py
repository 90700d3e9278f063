"""A physical plan in, text out: a summary, a tree with costs and the trace, a Mermaid flowchart, plain values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from panes.planning.panes import describe_edges
from panes.planning.physical_plan import PhysicalPlan, StorePlan, WindowsOfRows
from panes.planning.statistics import Keys
from panes.queries.windows import Cumulate, geometry_name
from panes.timeline import Geometry, format_duration

_STRATEGY = {
    "native": "Spark's own windows, one group-by each",
    "rewrite": "a tree of group-bys in the JVM",
    "columnar": "panes in the JVM, then every window from sorted columns",
}
_PER_EVENT = "an answer per event, every window from sorted columns"


def summary(physical: PhysicalPlan) -> str:
    """Return a few lines: how many queries and windows there are, and how each store runs."""
    row_windows = physical.row_windows
    windows = sum(len(query.windows) for query in physical.queries) + sum(len(some.windows) for some in row_windows)
    passes = sum(_passes(store) for store in physical.stores) + len({some.column for some in row_windows})
    queries = {query.name for query in physical.queries} | {some.query for some in row_windows}
    lines = [
        f"{counted(len(queries), 'query', 'queries')}, {counted(windows, 'window')}, "
        f"{counted(passes, 'pass', 'passes')} over the events"
    ]
    lines += [f"  {title_of(store)}" for store in physical.stores]
    lines += [f"  {describe_row_windows(some)}: {', '.join(some.windows)}" for some in row_windows]
    return "\n".join(lines)


def explain(physical: PhysicalPlan) -> str:
    """Return the tree of every store with predicted costs, savings, and the trace of what was tried."""
    known = physical.statistics
    lines = [summary(physical).splitlines()[0], f"  {known.origin}: {known.rate:,.6g} events/s"]
    for store in physical.stores:
        lines += ["", title_of(store), *(f"  {line}" for line in figures_of(physical, store)), *_tree(store)]
        lines += ["  tried:", *(f"    {line}" for line in store.trace)]
    for number in dict.fromkeys(some.column for some in physical.row_windows):
        sharing = [some for some in physical.row_windows if some.column == number]
        windows = [f"{some.query}: {name}" for some in sharing for name in some.windows]
        keys = listed(sharing[0].keys)
        lines += [
            "",
            f"by {keys}: events in the order of time, one sorted column or one operator for all windows of rows",
        ]
        lines += [*(f"  ├─ {name}" for name in windows[:-1]), f"  └─ {windows[-1]}"]
    return "\n".join(lines)


def describe_row_windows(some: WindowsOfRows) -> str:
    """Return how windows that depend on rows are computed, in words."""
    column = f"sorted column {some.column + 1}"
    return f"query {some.query!r} by {listed(some.keys)}: from its events in the order of time, {column}"


def mermaid(physical: PhysicalPlan) -> str:
    """Return a Mermaid flowchart of the stream, panes, factor windows (dashed) and the user's windows."""
    lines = ["flowchart LR", '  stream(["events"])']
    for number, store in enumerate(physical.stores):
        root = "stream" if store.source is None else f"s{store.source}"
        if store.strategy == "columnar":
            what = f"{_column_of(store)} by {_keys(store)}<br/>{_edges(store)}"
            lines.append(f'  s{number}[("{what}")]')
            lines.append(f"  {root} --> s{number}")
            root = f"s{number}"
        titles = window_titles(store)
        ids = {node.window: f"s{number}w{i}" for i, node in enumerate(store.forest.nodes)}
        for node in store.forest.nodes:
            shape = ("{{", "}}") if node.factor else ("[", "]")
            title = titles[node.window].replace('"', "#quot;")
            lines.append(f'  {ids[node.window]}{shape[0]}"{title}"{shape[1]}')
            lines.append(f"  {root if node.provider is None else ids[node.provider]} --> {ids[node.window]}")
        factors = [ids[window] for window in store.forest.factors]
        if factors:
            lines.append(f"  class {','.join(factors)} factor")
    for number, some in enumerate(physical.row_windows):
        lines += [
            f'  e{number}[("events by {listed(some.keys)}<br/>in the order of time")]',
            f"  stream --> e{number}",
        ]
        for i, name in enumerate(some.windows):
            title = name.replace('"', "#quot;")
            lines += [f'  e{number}w{i}["{title}"]', f"  e{number} --> e{number}w{i}"]
    lines.append("  classDef factor stroke-dasharray: 4 4")
    return "\n".join(lines)


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> counted(1, "query", "queries"), counted(2000, "answer")
    ('1 query', '2,000 answers')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def title_of(store: StorePlan) -> str:
    """Return the keys of a store and how it runs."""
    how = _PER_EVENT if store.per_event else _STRATEGY[store.strategy]
    return f"by {_keys(store)}: {store.strategy} ({how})"


def number_of_keys(physical: PhysicalPlan, store: StorePlan) -> str:
    """Return the expected number of keys of a store."""
    number = physical.statistics.distinct(store.keys)
    return f"{number:,.6g} {'key' if number == 1 else 'keys'}"


def figures_of(physical: PhysicalPlan, store: StorePlan) -> Iterator[str]:
    """Yield what a store is predicted to cost, and what that saves."""
    cost = store.costs.by_strategy.get(store.strategy)
    native = store.costs.by_strategy.get("native")
    yield number_of_keys(physical, store)
    if cost is None:
        yield "cost unknown"
    elif native is None:
        compared = "" if store.per_event else "; Spark has no windows of its own for it"
        yield f"predicted {cost / 1e6:.3g} core-ms per second of events{compared}"
    else:
        saved = (
            ""
            if store.strategy == "native"
            else f", Spark's own windows {native / 1e6:.3g}: {native / cost:.1f}× cheaper"
        )
        yield f"predicted {cost / 1e6:.3g} core-ms per second of events{saved}"
    forest = store.forest
    if forest.total < forest.naive:
        unit = "panes" if store.strategy == "columnar" else "events"
        saving = 1 - forest.total / forest.naive
        yield f"windows read {saving:.1%} less than if each read all {unit}"


def _tree(store: StorePlan) -> Iterator[str]:
    if store.per_event:
        yield "  events, sorted by key and time"
    elif store.strategy == "columnar":
        origin = "events" if store.source is None else "the panes above"
        origin += ", sorted by key and time" if store.from_events else ""
        yield f"  {origin} → panes {describe_panes(store)}"
    else:
        yield "  events"
    children = store.forest.children()
    nodes = {node.window: node for node in store.forest.nodes}
    titles = window_titles(store)
    stack = [(w, "  ", i == 0) for i, w in enumerate(reversed(children.get(None, ())))]
    while stack:
        window, indent, last = stack.pop()
        node = nodes[window]
        cost = f"{node.cost * 1e6:,.4g}{' answers' if store.per_event else ''}/s per key"
        yield f"{indent}{'└─' if last else '├─'} {titles[window]}  ({cost})"
        deeper = indent + ("   " if last else "│  ")
        stack += [(w, deeper, i == 0) for i, w in enumerate(reversed(children.get(window, ())))]


def window_titles(store: StorePlan) -> dict[Geometry, str]:
    """Return the names of the windows of every geometry in a store."""
    names: dict[Geometry, list[str]] = {}
    for _, query in store.queries:
        cumulating = {declared.name for declared in query.over if isinstance(declared, Cumulate)}
        for window in query.windows:
            first = f", first {format_duration(window.geometry.range)}" if window.name in cumulating else ""
            names.setdefault(window.geometry, []).append(f"{window.name}{first}")
    titles = {geometry: ", ".join(dict.fromkeys(some)) for geometry, some in names.items()}
    factors = (node.window for node in store.forest.nodes if node.window not in titles)
    return titles | {geometry: f"factor window {geometry_name(geometry)}" for geometry in factors}


def describe_panes(store: StorePlan) -> str:
    """Return where the panes of a store are cut, and how many share a row."""
    return f"{_edges(store)}{f', {store.lanes} side by side in a row' if store.lanes > 1 else ''}"


def panes_of_store(store: StorePlan) -> str:
    """Return the panes of a store, with its keys."""
    return f"{_column_of(store)} by {_keys(store)} {_edges(store)}"


def data_of(physical: PhysicalPlan) -> dict[str, Any]:
    """Return the plan as plain values: queries, and the strategy, predicted costs, panes and windows of every store."""
    return {
        "rate": physical.statistics.rate,
        "queries": [
            {"name": query.name, "by": list(query.by), "at": query.at, "windows": [w.name for w in query.over]}
            for query in physical.queries
        ],
        "stores": [_store_data(physical, store) for store in physical.stores],
        "row_windows": [asdict(some) for some in physical.row_windows],
    }


def _store_data(physical: PhysicalPlan, store: StorePlan) -> dict[str, Any]:
    titles = window_titles(store)
    return {
        "by": list(store.keys),
        "keys": physical.statistics.distinct(store.keys),
        "strategy": store.strategy,
        "per_event": store.per_event,
        "core_seconds_per_second": {name: cost / 1e9 for name, cost in store.costs.by_strategy.items()},
        "reads": "events" if store.source is None else f"store {store.source}",
        "panes": [asdict(edges) for edges in store.edges] if store.strategy == "columnar" else [],
        "windows": [
            {
                "name": titles[node.window],
                **asdict(node.window),
                "factor": node.factor,
                "reads": None if node.provider is None else titles[node.provider],
                "rows_per_second_and_key": node.cost * 1e6,
            }
            for node in store.forest.nodes
        ],
        "tried": list(store.trace),
    }


def _column_of(store: StorePlan) -> str:
    return "events" if store.per_event else "panes"


def _edges(store: StorePlan) -> str:
    if store.per_event:
        return "in the order of time"
    return describe_edges(store.edges)


def _keys(store: StorePlan) -> str:
    return listed(store.keys)


def listed(keys: Keys) -> str:
    """Return key columns as text."""
    return f"({', '.join(keys)})" if keys else "nothing"


def _passes(store: StorePlan) -> int:
    if store.strategy == "native":
        return sum(len(query.windows) for _, query in store.queries)
    if store.source is not None:
        return 0
    if store.strategy == "rewrite":
        return sum(node.provider is None for node in store.forest.nodes)
    return 1
