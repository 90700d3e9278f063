"""A live plan as one sealed file: what it is as JSON, then types, keys and events as Arrow streams. Data, never code.

Stored are events (or granules), not what algorithms make of them; indexes are built again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from panes.aggregates.operations import Array
from panes.errors import PlanError, StateError
from panes.expressions.stored import same_meaning, spelt_as_stored
from panes.live.threshold_index import threshold_index
from panes.queries.measures import Rows
from panes.queries.query import Query
from panes.queries.windows import Nested
from panes.sealed import Damaged, OtherFormat, sealed_file, unseal
from panes.timeline import format_duration, parse_duration

if TYPE_CHECKING:
    from panes.live.live import Live
    from panes.live.part import Part

FORMAT: Final = 3
"""Raised whenever older versions could not read what is written, or newer ones what was."""

_DECLARED: Final = b"panes.live"


def save(live: Live, path: str | os.PathLike[str]) -> None:
    """Write a file, whole or not at all."""
    folder = Path(path).parent
    if not folder.is_dir():
        raise PlanError(f"live.save({os.fspath(path)!r}): there is no folder {str(folder)!r}. Make it first.")
    declared = {
        "queries": [text_of(query) for query in live.queries],
        "keep": _keep_as_data(live._keep),
        "algorithm": live._algorithm,
        "null_times": live.null_times,
        "newest": live._newest,
        "parts": [_facts(part) for part in live._parts],
        "granules": {name: granules.facts for name, granules in live._granules.items()},
    }
    tables = [pa.table({}).replace_schema_metadata({_DECLARED: json.dumps(declared).encode()})]
    tables += [table for part in live._parts if part.schema is not None for table in _tables(part)]
    tables += [table for granules in live._granules.values() for table in granules.saved()]
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with sealed_file(path, FORMAT) as file:
        for table in tables:
            with pa.ipc.new_stream(file, table.schema, options=options) as writer:
                writer.write_table(table)


def load(path: str | os.PathLike[str], queries: Sequence[Query], keep: Any, algorithm: str | None) -> Live:
    """Read what ``save`` wrote for the same queries; other formats and other files are refused.

    Parameters
    ----------
    keep, algorithm
        As they were, or None.
    """
    from panes.live.live import Live

    with pa.BufferReader(pa.py_buffer(_read(path))) as file:
        tables = _streams(file)
        declared = json.loads(next(tables).schema.metadata[_DECLARED])
        _check_same(declared, queries, keep, algorithm)
        live = Live(queries, _keep_of_data(declared["keep"]), declared["algorithm"])
        live.null_times, live._newest = declared["null_times"], declared["newest"]
        with live._using():
            for part, facts in zip(live._parts, declared["parts"], strict=True):
                _restore(part, facts, tables, live._newest.get(part.declared.at.lower()))
            for name, granules in live._granules.items():
                granules.restore(declared["granules"][name], tables)
    return live


def _read(path: str | os.PathLike[str]) -> memoryview:
    """Read a file that ``save`` wrote, whole and into memory: a file that is saved meanwhile is another one."""
    named = repr(os.fspath(path))
    try:
        return unseal(Path(path).read_bytes(), FORMAT)
    except Damaged as error:
        raise StateError(
            f"{named} is not a complete file of live.save(): {error}. Load an earlier file, or build the plan anew "
            "from the events."
        ) from error
    except OtherFormat as error:
        raise StateError(
            f"{named} was {error}, and this version of Panes reads {FORMAT}. Read it with the version that wrote it, "
            "or build it anew from the events."
        ) from error
    except OSError as error:
        raise StateError(
            f"{named} cannot be read: {error.strerror or error}. Give the path that live.save() was given."
        ) from error


def text_of(query: Query) -> dict[str, Any]:
    """What identifies a query; functions of a user's own by their names."""
    return {
        "name": query.name,
        "by": list(query.by),
        "at": query.at,
        "select": {alias: str(aggregate) for alias, aggregate in query.aggregates},
        "arguments": {alias: list(aggregate.arguments) for alias, aggregate in query.aggregates},
        "derived": {alias: value.sql for alias, value in query.derived},
        "over": [str(window) for window in query.over],
        # Different windows may have one name.
        "windows": [repr(window) for window in query.over],
        "where": None if query.where is None else query.where.sql,
        "ties": list(query.ties),
    }


def _check_same(declared: dict[str, Any], queries: Sequence[Query], keep: Any, algorithm: str | None) -> None:
    saved = declared["queries"]
    for old, query in zip(saved, queries, strict=False):
        new = text_of(query)
        if _same_meaning(old, query):
            # What was spelt otherwise when it was saved is as good.
            old = {**old, **{what: new[what] for what in ("select", "arguments", "derived", "where")}}
        for what, value in old.items():
            if value != new[what]:
                raise StateError(
                    f"the file holds a query {old['name']!r} with {what}={value!r}, and the plan has {new[what]!r}. "
                    "Load it with the plan that it was saved with."
                )
    if len(saved) != len(queries):
        names = ", ".join(repr(query["name"]) for query in saved)
        raise StateError(f"the file holds {len(saved)} queries ({names}), and the plan has {len(queries)}.")
    for what, value, before in (
        ("keep", _keep_as_data(keep), declared["keep"]),
        ("algorithm", algorithm, declared["algorithm"]),
    ):
        if value is not None and value != before:
            raise StateError(
                f"{what}= is {_text(before)} in the file, and was given as {_text(value)}. Leave it out when loading."
            )


def _same_meaning(old: dict[str, Any], query: Query) -> bool:
    """Return whether the SQL of a saved query means what that of a query does."""
    aggregates, derived = dict(query.aggregates), {alias: value.sql for alias, value in query.derived}
    if list(old["select"]) != list(aggregates) or list(old["derived"]) != list(derived):
        return False
    spelt = {alias: spelt_as_stored(each, old["arguments"][alias]) for alias, each in aggregates.items()}
    return (
        {alias: str(aggregate) for alias, aggregate in spelt.items()} == old["select"]
        and all(same_meaning(old["derived"][alias], sql) for alias, sql in derived.items())
        and same_meaning(old["where"], None if query.where is None else query.where.sql)
    )


def _keep_as_data(keep: Any) -> Any:
    if keep is None:
        return None
    if isinstance(keep, Rows):
        return {"rows": keep.n}
    if isinstance(keep, Nested):
        return {"nested": json.loads(json.dumps(asdict(keep)))}
    return {"time": format_duration(parse_duration(keep))}


def _text(data: Any) -> str:
    """What a user writes, out of how it is stored."""
    if not isinstance(data, dict):
        return repr(data)
    if "nested" in data:
        ranges, slides = ([format_duration(each) for each in data["nested"][name]] for name in ("ranges", "slides"))
        return f"pn.nested({ranges}, {slides})"
    return f"pn.rows({data['rows']})" if "rows" in data else repr(data["time"])


def _keep_of_data(data: Any) -> Any:
    if data is None or "time" in data:
        return None if data is None else data["time"]
    if "rows" in data:
        return Rows(data["rows"])
    given = data["nested"]
    return Nested(**{**given, "ranges": tuple(given["ranges"]), "slides": tuple(given["slides"])})


def _facts(part: Part) -> dict[str, Any]:
    indexes = [[query, column, index.p] for (query, column), index in part.indexes.items()]
    begun = part.schema is not None
    return {"begun": begun, "left_out": part.store.left_out if begun else 0, "indexes": indexes}


def _tables(part: Part) -> list[pa.Table]:
    """The events that are held, key after key, how many each key has, and the keys."""
    store, every = part.store, np.arange(len(part.store.rings))
    held = {
        "first": store.rings.first,
        "count": store.rings.end - store.rings.first,
        "evicted_until": store.evicted_until,
    }
    keys = pa.table({}) if part.dictionary is None else pa.Table.from_batches([part.dictionary.keys])
    return [part.events(every), pa.table({name: pa.array(array) for name, array in held.items()}), keys]


def _restore(part: Part, facts: dict[str, Any], tables: Iterator[pa.Table], newest: int | None) -> None:
    if facts["begun"]:
        events, held, keys = (next(tables) for _ in range(3))
        first, count, evicted_until = (_integers(held, name) for name in ("first", "count", "evicted_until"))
        part.restore(events, first, count, keys)
        store = part.store
        # Filled afterwards: events that were held are not to be measured against what has left before them.
        store.evicted_until[:], store.left_out, store.newest = evicted_until, facts["left_out"], newest
    for name, column, p in facts["indexes"]:
        query = next(query for query in part.declared.queries if query.name == name)
        part.add_index(name, column, threshold_index(query, column, p))


def _streams(file: Any) -> Iterator[pa.Table]:
    while True:
        with pa.ipc.open_stream(file) as reader:
            yield reader.read_all()


def _integers(table: pa.Table, name: str) -> Array:
    return np.array(table.column(name).to_numpy(), np.int64)
