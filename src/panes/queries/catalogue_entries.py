"""Changes to the views of a running stream, as lines of JSON that anyone may write and that are checked when read.

An entry never holds code: it names a query's aggregates by their signatures, which the stream compares with those it
keeps, and its conditions are SQL of the documented subset. What Panes writes has a checksum, so that a damaged entry is
refused and does not register another window. What is written by hand need not have one.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, TypeAlias

from panes.errors import DeclarationError, PanesError
from panes.queries.query import Query
from panes.queries.windows import Bounds, RowWindow, Window
from panes.timeline import Geometry

Action: TypeAlias = Literal["register", "suspend", "resume", "drop"]
ACTIONS: Final[tuple[Action, ...]] = ("register", "suspend", "resume", "drop")
FORMAT: Final = 1
LONGEST: Final = 1_000_000
"""Characters of an entry: some ten thousand windows."""

_FARTHEST: Final = 2**60
_CHECKSUM: Final = "checksum"
_FIELDS: Final = frozenset({"format", "action", "name", "at", "by", "select", "where", "over", _CHECKSUM})
_WINDOW_FIELDS: Final = frozenset({"name", "range", "slide", "offset", "bounds", "finer", "since"})
_MOST_PER_EVENT: Final = 100_000
"""Instances of a registered window that hold the same event: a job that others depend on answers it, too."""


@dataclass(frozen=True)
class Entry:
    """One change.

    Parameters
    ----------
    at, by, select, where, over
        Of a registration: the event time, key columns, the signature of each output column, a condition, the windows.
    """

    action: Action
    name: str
    at: str = ""
    by: tuple[str, ...] = ()
    select: tuple[tuple[str, str], ...] = ()
    where: str | None = None
    over: tuple[Window, ...] = ()

    def to_json(self) -> str:
        """Return the entry as a line of text.

        Examples
        --------
        >>> Entry("drop", "q").to_json()
        '{"format": 1, "action": "drop", "name": "q", "checksum": "..."}'
        """
        data: dict[str, Any] = {"format": FORMAT, "action": self.action, "name": self.name}
        if self.action == "register":
            data |= {
                "at": self.at,
                "by": list(self.by),
                "select": dict(self.select),
                "where": self.where,
                "over": [_written(window) for window in self.over],
            }
        return json.dumps({**data, _CHECKSUM: _digest(data)})


def registration(query: Query) -> Entry:
    """Return a query as an entry; reject one that no running stream could serve as a view."""
    for declared in query.over:
        if isinstance(declared, RowWindow):
            raise DeclarationError(
                f"query {query.name!r}: the window {declared} depends on rows, and a running stream keeps only what "
                "its declared windows need. Declare it when the stream starts, or register a window on the clock."
            )
    if query.derived or query.having is not None:
        raise DeclarationError(
            f"query {query.name!r} has derived columns or having=, which views of a running stream do not support. "
            "Register it without them, and apply them to the answers."
        )
    for window in query.windows:
        if window.per_event:
            raise DeclarationError(
                f"query {query.name!r}: the sliding window {window.name} has an answer per event, which a running "
                "stream cannot add. Declare it when the stream starts, or register a hopping window with a short pace."
            )
    select = tuple((alias, aggregate.signature) for alias, aggregate in query.aggregates)
    where = None if query.where is None else query.where.sql
    # On the clock, groups inside a window are further keys.
    entry = Entry("register", query.name, query.at, (*query.by, *query.groups), select, where, query.windows)
    read_entry(entry.to_json())  # what no stream would accept is not written
    return entry


def read_entry(text: str) -> Entry:
    """Read an entry; reject any other text with the reason.

    Examples
    --------
    >>> read_entry('{"format": 1, "action": "suspend", "name": "q"}')
    Entry(action='suspend', name='q', at='', by=(), select=(), where=None, over=())
    >>> read_entry(Entry("drop", "q").to_json().replace('"q"', '"r"'))
    Traceback (most recent call last):
    ...
    panes.errors.DeclarationError: not a catalogue entry: its checksum is not that of its contents: it is damaged, ...
    >>> read_entry("rm -rf /")
    Traceback (most recent call last):
    ...
    panes.errors.DeclarationError: not a catalogue entry: Expecting value: line 1 column 1 (char 0).
    """
    try:
        data = _json(text)
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise ValueError(f"it is not of format {FORMAT}")
        _check_whole(data)
        if data.get("action") not in ACTIONS:
            raise ValueError(f"the action {data.get('action')!r} is not one of {', '.join(ACTIONS)}")
        if not _text(data.get("name")):
            raise ValueError("it has no name")
        if data["action"] != "register":
            return Entry(data["action"], data["name"])
        if not isinstance(data["by"], list) or not data["select"]:
            raise ValueError("by must be a list, and select must not be empty")
        over = tuple(
            Window(
                Geometry(_whole(w["range"]), _whole(w["slide"]), _whole(w["offset"])),
                _text(w["name"]),
                _bounds(w.get("bounds", "[)")),
                tuple(map(_whole, w.get("finer", ()))),
                _since(w),
            )
            for w in data["over"]
        )
        for window in over:
            instances = -(-window.geometry.range // window.geometry.slide)
            if instances > _MOST_PER_EVENT:
                raise ValueError(
                    f"each event is in {instances:,} instances of the window {window.name!r}, each of them an answer, "
                    f"and a running stream adds at most {_MOST_PER_EVENT:,}; take a longer every="
                )
        if not over or len({(window.name, window.geometry) for window in over}) < len(over):
            raise ValueError("it has no window, or one of them twice")
        select = tuple((_text(alias), _text(what)) for alias, what in data["select"].items())
        where = None if data["where"] is None else _text(data["where"])
        by = tuple(map(_text, data["by"]))
        return Entry("register", data["name"], _text(data["at"]), by, select, where, over)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, PanesError) as error:
        reason = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        if isinstance(error, RecursionError):
            reason = "it is nested too deeply, and an entry has at most four levels"
        raise DeclarationError(f"not a catalogue entry: {reason}.") from error


def _check_whole(data: dict[str, Any]) -> None:
    """Reject an entry that is damaged, be it in the name of the field that would tell."""
    for what, given, known in [
        ("field", data, _FIELDS),
        *(("field of a window", window, _WINDOW_FIELDS) for window in data.get("over") or ()),
    ]:
        if unknown := [name for name in given if name not in known]:
            raise ValueError(f"it has an unknown {what}: {unknown[0]!r}. Known are {', '.join(sorted(known))}")
    rest = {name: value for name, value in data.items() if name != _CHECKSUM}
    if _CHECKSUM in data and data[_CHECKSUM] != _digest(rest):
        raise ValueError(
            "its checksum is not that of its contents: it is damaged, or was changed by hand. Register the query "
            f"again, or leave out {_CHECKSUM!r}"
        )


def _digest(data: dict[str, Any]) -> str:
    """Return the checksum of an entry, which does not depend on how its JSON is laid out."""
    text = json.dumps(data, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def name_in(text: str) -> str | None:
    """Return the name of the query that an entry is about, however wrong the rest is; None if it cannot be read."""
    try:
        return _text(json.loads(text[: LONGEST + 1])["name"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _json(text: str) -> Any:
    """Read JSON; reject what parsers read in different ways."""
    if len(text) > LONGEST:
        raise ValueError(f"it has more than {LONGEST:,} characters; register its windows as several queries")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} is there twice")
        return found

    def constant(word: str) -> Any:
        raise ValueError(f"{word} is not a number in JSON")

    return json.loads(text, object_pairs_hook=once, parse_constant=constant)


def _written(window: Window) -> dict[str, Any]:
    """Return a window as plain values, without those that most windows do not have."""
    data: dict[str, Any] = {"name": window.name, **asdict(window.geometry)}
    if window.shift:
        data["bounds"] = window.bounds
    if window.finer:
        data["finer"] = list(window.finer)
    if window.since is not None:
        data["since"] = window.since
    return data


def _since(data: dict[str, Any]) -> int | None:
    if data.get("since") is None:
        return None
    since = _whole(data["since"])
    if (since - data["offset"]) % data["slide"]:
        raise ValueError("since is not an edge of the window")
    return since


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} is not a whole number of microseconds")
    if abs(value) > _FARTHEST:
        raise ValueError("it has a duration of more than 36,000 years")
    return value


def _bounds(value: Any) -> Bounds:
    if value not in ("[)", "(]"):
        raise ValueError(f"the bounds {value!r} are neither '[)' nor '(]'")
    bounds: Bounds = value
    return bounds


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    value.encode()  # Half of a surrogate pair is not text.
    return value
