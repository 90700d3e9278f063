"""What random and mutated inputs are fed to. Whatever comes in, only errors of Panes may come out.

A target takes a source of randomness, makes one input of it and tries it. It returns nothing: an error that is not one
of Panes, or of Python's own call syntax, is the finding.
"""

from __future__ import annotations

import datetime as dt
import json
import re
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

import pyarrow as pa

import panes as pn
from panes.engine.bind_program import bind_store, types_in
from panes.queries.catalogue_entries import read_entry, registration
from panes.state.registered_queries import Offer, bind_entry
from panes.timeline import parse_duration, parse_instant

TABLE: Final = pa.table(
    {
        "ts": [dt.datetime(2026, 1, 1, 0, minute) for minute in (0, 1, 1, 5)],
        "k": ["a", "b", "a", "a"],
        "a": pa.array([1, None, 3, 2**40], pa.int64()),
        "b": [1.5, -2.0, float("nan"), None],
        "s": ["x", "", None, "é%_\\"],
        "t": [True, False, None, True],
        "d": pa.array([1, 2, None, 3], pa.decimal128(10, 2)),
    }
)
_CALL_SYNTAX: Final = re.compile(r"positional argument|keyword argument|required argument|missing \d+ required")
Target = Callable[[Random], None]


class Finding(Exception):
    """An input that brought out something else than an error of Panes."""


def attempt(call: Callable[[], object], described: Callable[[], str]) -> None:
    """Try a call; raise a finding with the input if anything but a sentence comes out."""
    try:
        call()
    except pn.PanesError as error:
        if not str(error).strip():
            raise Finding(f"{described()}\n  {type(error).__name__} without a sentence") from error
    except TypeError as error:
        if not _CALL_SYNTAX.search(str(error)):
            raise Finding(f"{described()}\n  TypeError: {error}") from error
    except Exception as error:
        raise Finding(f"{described()}\n  {type(error).__name__}: {str(error)[:300]}") from error


# Texts

_ODD: Final = (
    "",
    " ",
    "\n",
    "\0",
    "\ud800",
    "é",
    "😀",
    "'",
    '"',
    "`",
    "\\",
    "--",
    "/*",
    "*/",
    ";",
    "%",
    "$",
    "{",
    "}",
    "\x7f",
)
_NUMBERS: Final = (
    "0",
    "-1",
    "1",
    "2147483648",
    "9223372036854775808",
    "1e308",
    "1e309",
    "1e-400",
    "1.5",
    ".5",
    "1" * 400,
)
_PLAIN: Final = """
    a b s t d k ts n x window window.start number expires NULL TRUE FALSE AND OR NOT IN IS LIKE BETWEEN CASE WHEN THEN
    ELSE END CAST AS INT BIGINT DOUBLE STRING DATE TIMESTAMP DECIMAL(10,2) DECIMAL(39,2) SELECT FROM WHERE HAVING BY
    ABS CEIL COALESCE CONCAT FLOOR GREATEST IF ISNAN LEAST LENGTH LOWER NULLIF ROUND TRIM UPPER RAND SUM COUNT ( ) , .
    + - * / % = <> < > <= >= <=> || ! != [ ] :: -> => ? @ # ~ ^ & | << INTERVAL EXISTS ARRAY MAP STRUCT OVER PARTITION
    FILTER DISTINCT UNION ALL JOIN ON USING LATERAL VALUES WITH RECURSIVE LIMIT ORDER ASC DESC TumblingWindow(
    HoppingWindow( SlidingWindow( Windows( Window( GROUP RANGE SLIDE ROWS MINUTES minute hour 'x' '2024-02-29' ''
"""
_WORDS: Final = (
    *_PLAIN.split(),
    "DATE '2024-02-30'",
    "TIMESTAMP '2024-02-29 12:00:00'",
    "IS NOT NULL",
    "NOT IN",
    "ORDER BY",
    *_NUMBERS,
)
_EXPRESSIONS: Final = (
    "a + 1 > 2 AND b < 3.5 OR s LIKE 'x%' AND NOT t",
    "CASE WHEN a > 1 THEN b WHEN t THEN 2 ELSE NULL END",
    "CAST(a AS DECIMAL(10, 2)) / d - COALESCE(b, 0) * ROUND(b, 1)",
    "s || UPPER(TRIM(s)) = 'X' AND a IN (1, 2, NULL) AND ts > TIMESTAMP '2026-01-01 00:00:00'",
    "NULLIF(a, 0) BETWEEN -1 AND GREATEST(a, 2) OR LENGTH(s) % 2 = 1",
    "n / 2 > x AND window_name = '10m'",
)
_STATEMENTS: Final = (
    "-- name: q\nSELECT k, COUNT(*) AS n, SUM(a) AS x FROM ev TIMESTAMP BY ts WHERE b > 1 "
    "GROUP BY k, TumblingWindow(minute, 5)",
    "SELECT k, MAX(b) AS top FROM ev GROUP BY k, window(ts, '1 hour', '5 minutes') HAVING MAX(b) > 3",
    "SELECT COUNT(DISTINCT s) FROM ev TIMESTAMP BY ts [RANGE 5 MINUTES SLIDE 1 MINUTE]",
    "SELECT window_start, k, AVG(a) + 1 AS m FROM TABLE(TUMBLE(TABLE ev, DESCRIPTOR(ts), INTERVAL '10' MINUTES)) "
    "GROUP BY window_start, window_end, k",
    "SELECT k, MIN(a) FROM ev TIMESTAMP BY ts "
    "GROUP BY k, Windows(TumblingWindow(minute, 20), HoppingWindow(minute, 60, 5))",
    "SELECT LAST(a) FROM ev TIMESTAMP BY ts [ROWS 10]; "
    "SELECT SUM(a) FROM ev TIMESTAMP BY ts GROUP BY SessionWindow(minute, 5)",
)
_DURATIONS: Final = (
    "5 min",
    "1h30m",
    "INTERVAL '10' MINUTES",
    "1.5 s",
    "-3 d",
    "1us",
    "36000 days",
    "1 week 2 days",
    "1,000 ms",
    "٣ min",
)
_INSTANTS: Final = (
    "2026-01-01 09:30",
    "1970-01-01T01:00:00+01:00",
    "2026-W01-1",
    "0001-01-01T00:00:00+14:00",
    "20260101T0930Z",
)


def mutated(random: Random, text: str) -> str:
    """Return a text with a few pieces cut out, doubled, swapped or replaced."""
    pieces = re.findall(r"\w+|\s+|.", text, re.DOTALL)
    for _ in range(random.randint(0, 6)):
        at = random.randint(0, len(pieces))
        match random.randint(0, 6):
            case 0:
                pieces[at : at + random.randint(1, 4)] = []
            case 1:
                pieces.insert(at, random.choice(_WORDS))
            case 2:
                pieces.insert(at, f" {random.choice(_WORDS)} ")
            case 3:
                pieces.insert(at, random.choice(_ODD))
            case 4:
                pieces[at:at] = pieces[at : at + random.randint(1, 8)] * random.choice((1, 1, 2, 50))
            case 5:
                pieces[at : at + 1] = [random.choice(_WORDS)]
            case _:
                end = random.randint(0, len(pieces))
                pieces[at:at] = pieces[end : end + 3]
    return "".join(pieces)


def words(random: Random) -> str:
    """Return words of SQL in any order, or characters in any order."""
    if random.random() < 0.2:
        return "".join(
            chr(random.choice((random.randint(0, 127), random.randint(0, 0x1FFFF))))
            for _ in range(random.randint(0, 12))
        )
    return " ".join(random.choice(_WORDS) for _ in range(random.randint(0, 14)))


def text_like(random: Random, examples: tuple[str, ...]) -> str:
    """Return a mutated example, or words in any order."""
    return words(random) if random.random() < 0.2 else mutated(random, random.choice(examples))


def sql(random: Random) -> None:
    """``pn.sql``, and what it read written and read again."""
    text = text_like(random, _STATEMENTS)

    def call() -> None:
        for query in pn.sql(text):
            assert pn.sql(pn.to_sql(query), at=query.at)[0] == query, f"{pn.to_sql(query)!r} is read as another query"

    attempt(call, lambda: f"pn.sql({text!r})")


def expressions(random: Random) -> None:
    """Expressions in every place, evaluated on a table and by a live plan."""
    text = text_like(random, _EXPRESSIONS)
    place = random.choice(("where", "having", "select", "argument", "find"))

    def call() -> None:
        select: dict[str, Any] = {"n": pn.count(), "x": pn.max("a")}
        options: dict[str, Any] = {}
        if place in ("where", "having"):
            options[place] = text
        elif place == "select":
            select["y"] = text
        elif place == "argument":
            select["y"] = random.choice((pn.sum, pn.max, pn.count, pn.last))(text)
        plan = pn.plan(pn.query("q", by="k", at="ts", select=select, over=pn.tumbling("10 min"), **options))
        plan.run(TABLE)
        if place == "find":
            live = plan.live()
            live.update(TABLE)
            live.find(text, over="10 min")

    attempt(call, lambda: f"{place}: {text!r}")


def times(random: Random) -> None:
    """Durations and instants."""
    text = text_like(random, _DURATIONS + _INSTANTS)
    for read in (parse_duration, parse_instant):
        attempt(lambda read=read: read(text), lambda read=read: f"{read.__name__}({text!r})")


# Catalogue entries


@cache
def _offer() -> tuple[Offer, str]:
    query = pn.query(
        "q",
        by="k",
        at="ts",
        select={"n": pn.count(), "x": pn.sum("a")},
        over=pn.hopping("10 min", every="5 min"),
        where="a > 0",
    )
    store = pn.plan(query, strategy="columnar").physical_plan().stores[0]
    program = bind_store(store, types_in(TABLE.schema))
    view = program.views[0]
    return Offer([(query, view.readings, view.exists)], ("k",), program.edges, "ts"), registration(query).to_json()


def entries(random: Random) -> None:
    """Entries of a catalogue: texts, and JSON with values changed."""
    offer, text = _offer()
    if random.random() < 0.4:
        data = json.loads(text)
        holders = [data, data["over"][0]]
        for _ in range(random.randint(1, 3)):
            holder = random.choice(holders)
            holder[random.choice([*holder, "since", "finer", "bounds"])] = _value(random)
        text = json.dumps(data, default=str)
    elif random.random() < 0.1:
        depth = random.choice((10, 1000, 100_000))
        text = '{"format": 1, "by": ' * random.choice((0, 1)) + "[" * depth + "]" * random.choice((0, depth))
    else:
        text = mutated(random, text)

    def call() -> None:
        entry = read_entry(text)
        if entry.action == "register":
            bind_entry(entry, [offer])

    attempt(call, lambda: f"entry {text[:2000]!r}")


# Options


class _Strange:
    """A value of no type that anybody expects."""

    def __repr__(self) -> str:
        return "<strange>"


def _value(random: Random, depth: int = 0) -> Any:
    choices: list[Callable[[], Any]] = [
        lambda: None,
        lambda: random.choice((True, False)),
        lambda: random.choice((0, -1, 1, 7, 2**31, 2**63, -(2**70), 10**400)),
        lambda: random.choice((0.0, -0.5, 1.5, float("nan"), float("inf"), 1e308)),
        lambda: random.choice(
            ("", "a", "k", "ts", "[)", "(]", "first", "long", "append", "columnar", *_DURATIONS, *_INSTANTS)
        ),
        lambda: words(random),
        lambda: random.choice((b"x", 3j, range(3), {1, 2}, dt.date(2026, 1, 1), dt.datetime.max)),
    ]
    if depth < 2:
        choices += [
            lambda: [_value(random, depth + 1) for _ in range(random.randint(0, 3))],
            lambda: {str(_value(random, 2)): _value(random, depth + 1) for _ in range(random.randint(0, 2))},
        ]
    return random.choice(choices)()


def _option(random: Random) -> Any:
    """A value for an option: any, or one that some option takes."""
    own: list[Callable[[], Any]] = [
        lambda: _Strange(),
        lambda: dt.timedelta(seconds=random.choice((0, 1, -1, 86_400 * 999_999_999))),
        lambda: pn.rows(random.choice((0, 1, 10))),
        lambda: pn.delta("a", random.choice((1, 0.5, "5 min"))),
        lambda: pn.punctuation("t"),
        lambda: pn.tumbling("5 min"),
        lambda: pn.sliding(pn.rows(3)),
        lambda: pn.count(),
        lambda: pn.sum("a"),
        lambda: {"n": pn.count(), "m": "n + 1"},
        lambda: TABLE,
        lambda: pn.evict(keys=10),
        lambda: [pn.tumbling("5 min"), pn.hopping("1 hour", every="5 min")],
    ]
    return random.choice(own)() if random.random() < 0.4 else _value(random)


def _query(**options: Any) -> Any:
    usual = {"by": "k", "at": "ts", "select": {"n": pn.count(), "x": pn.sum("a")}, "over": pn.sliding("10 min")}
    return pn.query("q", **{**usual, **options})


def _live(**options: Any) -> Any:
    live = pn.plan(_query()).live()
    live.update(TABLE)
    return live


_REQUESTS: Final = TABLE.select(["ts", "k"])
_CALLS: Final[dict[str, tuple[Callable[..., Any], tuple[str, ...]]]] = {
    "tumbling": (pn.tumbling, ("size", "offset", "origin", "bounds", "name")),
    "hopping": (pn.hopping, ("size", "every", "offset", "origin", "bounds", "partial", "name")),
    "sliding": (pn.sliding, ("size", "ago", "bounds", "partial", "name")),
    "session": (pn.session, ("gap", "name")),
    "cumulate": (pn.cumulate, ("step", "upto", "offset", "bounds", "name")),
    "nested": (pn.nested, ("ranges", "slides", "since", "symmetric", "offset", "bounds", "name")),
    "rows": (pn.rows, ("n",)),
    "delta": (pn.delta, ("column", "by")),
    "punctuation": (pn.punctuation, ("column", "scope")),
    "evict": (pn.evict, ("keys", "rows", "age", "choose")),
    "query": (_query, ("by", "at", "select", "over", "where", "having", "groups", "ties", "evict")),
    "query and run": (
        lambda **options: pn.plan(_query(**options)).run(TABLE),
        ("by", "at", "select", "over", "where", "having", "groups", "ties", "evict"),
    ),
    "sql": (lambda **options: pn.sql(_STATEMENTS[1], **options), ("at", "bounds")),
    "plan": (lambda **options: pn.plan(_query(), **options), ("rate", "keys", "strategy", "factor_windows")),
    "run": (
        lambda data=TABLE, **options: pn.plan(_query(over=pn.tumbling("5 min"))).run(data, **options),
        ("data", "layout", "empty", "strategy", "observation"),
    ),
    "stream": (
        lambda events=None, **options: pn.plan(_query()).stream(events, **options),
        ("events", "mode", "layout", "empty", "late", "shards", "limits", "catalogue", "checkpoint"),
    ),
    "lookup": (
        lambda events=TABLE, requests=_REQUESTS, **options: pn.plan(_query()).lookup(events, requests, **options),
        ("events", "requests", "at", "delay", "layout"),
    ),
    "live": (lambda **options: pn.plan(_query()).live(**options), ("keep", "algorithm")),
    "live.update": (lambda batch: pn.plan(_query()).live().update(batch), ("batch",)),
    "live.lookup": (
        lambda requests=_REQUESTS, **options: _live().lookup(requests, **options),
        ("requests", "over", "ago", "at", "query", "q", "layout"),
    ),
    "live.add_index": (
        lambda column="n", **options: _live().add_index(column, **options),
        ("column", "query", "p", "epsilon"),
    ),
    "live.explain": (lambda **options: _live().explain(**options), ("condition", "over", "ago", "query")),
    "live.find": (
        lambda condition="n > 1", **options: _live().find(condition, **{"over": "10 min", **options}),
        ("condition", "over", "ago", "at", "query"),
    ),
    "join": (
        lambda left=TABLE, right=TABLE, **options: pn.join(
            left, right, **{"on": "k", "at": "ts", "over": "5 min", **options}
        ),
        ("left", "right", "on", "at", "over", "where", "how", "layout", "suffixes"),
    ),
    "sort": (
        lambda data=TABLE, **options: pn.sort(data, **{"order": "a", "over": pn.tumbling(pn.rows(2)), **options}),
        ("data", "order", "over", "by", "at", "where", "ties", "shards", "checkpoint"),
    ),
    "apply": (
        lambda data=TABLE, **options: pn.apply(
            data,
            lambda key, window, rows: {"n": len(rows)},
            **{"by": "k", "at": "ts", "over": pn.sliding(pn.rows(3)), **options},
        ),
        ("data", "by", "at", "over", "where", "ties", "evict", "schema", "port", "shards", "checkpoint"),
    ),
    "limits": (pn.Limits, ("age", "keys", "rows", "emit")),
    **{
        name: (getattr(pn, name), ("value",))
        for name in ("sum", "max", "min", "mean", "std", "first", "last", "median", "count_distinct", "collect_list")
        if hasattr(pn, name)
    },
}


def options(random: Random) -> None:
    """Values of any type for the options of every constructor and verb."""
    name = random.choice(list(_CALLS))
    function, parameters = _CALLS[name]
    given = {p: _option(random) for p in random.sample(parameters, random.randint(1, min(2, len(parameters))))}
    attempt(
        lambda: function(**given), lambda: f"{name}({', '.join(f'{p}={str(v)[:300]!r}' for p, v in given.items())})"
    )


# Saved files


@cache
def _saved() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "live"
        _live().save(path)
        return path.read_bytes()


def saved_files(random: Random) -> None:
    """Files of live plans with bytes changed, cut off or added."""
    data = bytearray(_saved())
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(data) + 1)
        match random.randint(0, 3):
            case 0:
                data[at : at + 1] = bytes([random.randint(0, 255)])
            case 1:
                del data[at : at + random.randint(1, 64)]
            case 2:
                data[at:at] = random.randbytes(random.randint(1, 16))
            case _:
                del data[at:]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "live"
        path.write_bytes(data)
        attempt(
            lambda: pn.plan(_query()).live(load=path), lambda: f"a saved file of {len(data)} bytes: {bytes(data)!r}"
        )


TARGETS: Final[dict[str, Target]] = {
    target.__name__: target for target in (sql, expressions, times, entries, options, saved_files)
}
