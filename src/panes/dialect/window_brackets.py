"""Windows in brackets, as CQL writes them after the stream: how each form is read and written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from panes.dialect.intervals import read_count, read_interval, read_unit, read_whole, write_count, write_interval
from panes.dialect.tokens import Cursor, checked
from panes.expressions.writing import quoted
from panes.queries.measures import Rows, rows
from panes.queries.windows import Bounds
from panes.timeline import format_duration, format_instant, parse_instant

Declaration: TypeAlias = tuple[str, dict[str, Any]]
"""The kind of a window, and the arguments of its constructor; durations are in µs."""


@dataclass(frozen=True, slots=True)
class Bracket:
    """A form of window in brackets.

    Parameters
    ----------
    begins
        The words that it may begin with.
    read
        Reads the words after those, given which of them it began with and the default bounds.
    write
        Returns the text of a kind with arguments, or None if the form cannot express them. It may return text that
        reads back as another window: the caller checks that.
    """

    begins: tuple[tuple[str, ...], ...]
    read: Callable[[Cursor, tuple[str, ...], Bounds], Declaration]
    write: Callable[[str, Mapping[str, Any]], str | None]


# [RANGE 300 SECONDS SLIDE 60 SECONDS], [ROWS 100 SLIDE 10], [RANGE 1 HOUR]


def _read_paced(words: Cursor, begun: tuple[str, ...], bounds: Bounds) -> Declaration:
    size: int | Rows = _read_rows(words) if begun == ("ROWS",) else _positive(words, read_count(words))
    if not words.took("SLIDE"):
        return "sliding", {"size": size}
    every = _read_pace(words, in_rows=begun == ("ROWS",))
    if isinstance(size, Rows) and size == every and size != Rows(1):
        return "tumbling", {"size": size}
    # At a pace of rows a window holds the latest ones, whatever the bounds of windows on the clock.
    return "hopping", {"size": size, "every": every, "bounds": None if isinstance(every, Rows) else bounds}


def _read_pace(words: Cursor, *, in_rows: bool) -> int | Rows:
    """Read ``5 MINUTES``, ``10 ROWS``, or just ``10`` after a number of rows."""
    number = read_whole(words, "the pace")
    bare = words.sees("]")
    if words.took("ROWS") or words.took("ROW") or (bare and in_rows):
        return _checked_rows(words, number)
    if bare:
        words.fail("the pace has no unit. Write SLIDE 5 MINUTES, or SLIDE 10 ROWS.")
    return _positive(words, number * read_unit(words))


def _read_rows(words: Cursor) -> Rows:
    return _checked_rows(words, read_whole(words, "the number of rows"))


def _checked_rows(words: Cursor, number: int) -> Rows:
    if number <= 0:
        words.fail("a number of rows must be positive.", words.tokens[: words.at])
    return checked(words, words.tokens[: words.at], lambda: rows(number))


def _positive(words: Cursor, length: int) -> int:
    if length <= 0:
        words.fail("a range and its pace must be positive.", words.tokens[: words.at])
    return length


def _write_paced(kind: str, arguments: Mapping[str, Any]) -> str | None:
    size = arguments["size"]
    every = size if kind == "tumbling" else arguments.get("every")
    if not isinstance(size, (int, Rows)) or not isinstance(every, (int, Rows, type(None))):
        return None
    if kind == "sliding" and len(arguments) > 1:
        return None
    length = f"ROWS {size.n}" if isinstance(size, Rows) else f"RANGE {write_count(size)}"
    if every is None:
        return f"[{length}]"
    if isinstance(every, int):
        return f"[{length} SLIDE {write_count(every)}]"
    unit = "" if isinstance(size, Rows) else " ROW" if every.n == 1 else " ROWS"
    return f"[{length} SLIDE {every.n}{unit}]"


PACED = Bracket((("ROWS",), ("RANGE",)), _read_paced, _write_paced)


# [ROWS BETWEEN 9 PRECEDING AND CURRENT ROW], [RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW]


_FRAME = "Write [RANGE BETWEEN INTERVAL '5' MINUTES PRECEDING AND CURRENT ROW], or ROWS BETWEEN 9 PRECEDING AND ..."


def _read_frame(words: Cursor, begun: tuple[str, ...], bounds: Bounds) -> Declaration:
    """Read a frame of SQL, which includes both its bounds."""
    in_rows = begun[0] == "ROWS"
    first = _read_preceding(words, in_rows=in_rows)
    words.expect("AND", _FRAME)
    current = words.took("CURRENT", "ROW") or words.took("CURRENT ROW")
    last = 0 if current else _read_preceding(words, in_rows=in_rows)
    if last >= first + in_rows:
        farther = "the farther row" if in_rows else "the longer time"
        words.fail(f"this frame ends before it begins. Write {farther} first.", words.tokens[: words.at])
    if in_rows:
        size = checked(words, words.tokens[: words.at], lambda: rows(first - last + 1))
        return "sliding", {"size": size, "ago": rows(last) if last else None}
    return "sliding", {"size": first - last, "ago": last, "bounds": "[]"}


def _read_preceding(words: Cursor, *, in_rows: bool) -> int:
    if words.sees("UNBOUNDED"):
        words.fail("a window has a size here. Write a number of rows or a time, as 7 DAYS PRECEDING.")
    if in_rows:
        distance = read_whole(words, "the number of rows")
    else:
        distance = read_interval(words) if words.sees("INTERVAL") else read_count(words)
    if distance < 0:
        words.fail("rows after the current one are not known yet: write 0 or more.", words.tokens[: words.at])
    words.expect("PRECEDING", _FRAME)
    return distance


def _write_frame(kind: str, arguments: Mapping[str, Any]) -> str | None:
    size, ago = arguments["size"], arguments.get("ago")
    if isinstance(size, Rows) and isinstance(ago, Rows):
        return f"[ROWS BETWEEN {size.n + ago.n - 1} PRECEDING AND {ago.n} PRECEDING]"
    if not isinstance(size, int):
        return None
    last = f"{write_interval(ago)} PRECEDING" if ago else "CURRENT ROW"
    return f"[RANGE BETWEEN {write_interval(size + (ago or 0))} PRECEDING AND {last}]"


FRAME = Bracket((("ROWS", "BETWEEN"), ("RANGE", "BETWEEN")), _read_frame, _write_frame)


# [RANGES 1 HOUR, 10 MINUTES SLIDES 5 MINUTES, 1 MINUTE SINCE '2026-01-01 09:30']


def _read_levels(words: Cursor, begun: tuple[str, ...], bounds: Bounds) -> Declaration:
    ranges = _read_counts(words)
    words.expect("SLIDES", "Write [RANGES 1 HOUR, 10 MINUTES SLIDES 5 MINUTES, 1 MINUTE].")
    slides = _read_counts(words)
    since = _read_instant(words) if words.took("SINCE") else None
    return "nested", {"ranges": ranges, "slides": slides, "since": since, "bounds": bounds}


def _read_counts(words: Cursor) -> list[str]:
    lengths = [read_count(words)]
    while words.took(","):
        lengths.append(read_count(words))
    return list(map(format_duration, lengths))


def _read_instant(words: Cursor) -> str:
    words.took("TIMESTAMP")
    token = words.next()
    if token.token_type is not TokenType.STRING:
        words.fail("expected an instant here, as SINCE '2026-01-01 09:30'.", [token])
    checked(words, [token], lambda: parse_instant(token.text))
    return token.text


def _write_levels(kind: str, arguments: Mapping[str, Any]) -> str | None:
    ranges, slides = (", ".join(map(write_count, reversed(arguments[what]))) for what in ("ranges", "slides"))
    since = arguments.get("since")
    start = "" if since is None else f" SINCE {quoted(format_instant(since))}"
    return f"[RANGES {ranges} SLIDES {slides}{start}]"


LEVELS = Bracket((("RANGES",),), _read_levels, _write_levels)
