"""Windows in brackets, as CQL writes them behind the stream: a range or rows, and behind SLIDE the pace."""

from __future__ import annotations

from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from panes.declare.kinds import AnyWindow
from panes.declare.measures import MeasureLike, Rows, rows
from panes.declare.nested import nested
from panes.declare.windows import Bounds, hopping, sliding, tumbling
from panes.dialect.durations import counted, interval, unit, whole
from panes.dialect.tokens import Cursor, checked
from panes.timeline import format_duration, parse_instant

_EXAMPLE = "Write [RANGE BETWEEN INTERVAL '5' MINUTES PRECEDING AND CURRENT ROW], or ROWS BETWEEN 9 PRECEDING AND ..."


def bracket(words: Cursor, bounds: Bounds, name: str | None = None) -> AnyWindow:
    """``[RANGE 300 SECONDS SLIDE 60 SECONDS]``, ``[ROWS 100 SLIDE 10]``.

    ``[ROWS BETWEEN 9 PRECEDING AND CURRENT ROW]`` is a frame of SQL, and ``[RANGES 1 HOUR, 10 MINUTES SLIDES 5 MINUTES,
    1 MINUTE]`` a nested window.
    """
    begin = words.at
    words.next()
    if words.took("RANGES"):
        window = _nested(words, begin, bounds, name)
    elif words.sees("ROWS") or words.sees("RANGE"):
        window = _framed(words, begin, bounds, name)
    else:
        words.fail("expected RANGE, RANGES or ROWS, as [RANGE 300 SECONDS SLIDE 60 SECONDS].")
    words.expect("]", "A window in brackets ends with it.")
    return window


def _framed(words: Cursor, begin: int, bounds: Bounds, name: str | None) -> AnyWindow:
    by_rows = words.sees("ROWS")
    words.next()
    if words.took("BETWEEN"):
        return _between(words, begin, name, by_rows=by_rows)
    size: MeasureLike = _rows(words, begin) if by_rows else _positive(words, begin)
    if not words.took("SLIDE"):
        return checked(words, words.tokens[begin : words.at], lambda: sliding(size, name=name))
    every = _pace(words, begin, by_rows=by_rows)
    # Where rows set the pace, a window holds the latest ones, whatever the bounds of those on the clock.
    held = None if isinstance(every, Rows) else bounds
    call = words.tokens[begin : words.at]
    if isinstance(size, Rows) and size == every and size != Rows(1):
        return checked(words, call, lambda: tumbling(size, name=name))
    return checked(words, call, lambda: hopping(size, every=every, bounds=held, name=name))


def _between(words: Cursor, begin: int, name: str | None, *, by_rows: bool) -> AnyWindow:
    """A frame of SQL, which holds both its ends."""
    first = _preceding(words, by_rows=by_rows)
    words.expect("AND", _EXAMPLE)
    current = words.took("CURRENT", "ROW") or words.took("CURRENT ROW")
    last = 0 if current else _preceding(words, by_rows=by_rows)
    call = words.tokens[begin : words.at]
    if by_rows:
        if last > first:
            words.fail("this frame ends before it begins. Write the farther row first.", call)
        skipped = rows(last) if last else None
        return checked(words, call, lambda: sliding(rows(first - last + 1), ago=skipped, name=name))
    if last >= first:
        words.fail("this frame ends before it begins. Write the longer time first.", call)
    ago = format_duration(last) if last else None
    return checked(words, call, lambda: sliding(format_duration(first - last), ago=ago, bounds="[]", name=name))


def _preceding(words: Cursor, *, by_rows: bool) -> int:
    if words.sees("UNBOUNDED"):
        words.fail("a window has a size here. Write a number of rows or a time, as 7 DAYS PRECEDING.")
    if by_rows:
        found = whole(words, "the number of rows")
    else:
        found = interval(words) if words.sees("INTERVAL") else counted(words)
    if found < 0:
        words.fail("nothing behind the current row is known yet: write 0 or more.", words.tokens[: words.at])
    words.expect("PRECEDING", _EXAMPLE)
    return found


def _pace(words: Cursor, begin: int, *, by_rows: bool) -> MeasureLike:
    """``5 MINUTES``, ``10 ROWS``; behind a number of rows ``10`` alone counts rows, too."""
    number = whole(words, "the pace")
    bare = words.sees("]")
    if words.took("ROWS") or words.took("ROW") or (bare and by_rows):
        return _checked_rows(words, begin, number)
    if bare:
        words.fail("the pace has no unit. Write SLIDE 5 MINUTES, or SLIDE 10 ROWS.")
    return _time(words, begin, number * unit(words))


def _rows(words: Cursor, begin: int) -> Rows:
    return _checked_rows(words, begin, whole(words, "the number of rows"))


def _checked_rows(words: Cursor, begin: int, number: int) -> Rows:
    if number <= 0:
        words.fail("a number of rows has to be positive.", words.tokens[begin : words.at])
    return checked(words, words.tokens[begin : words.at], lambda: rows(number))


def _positive(words: Cursor, begin: int) -> str:
    return _time(words, begin, counted(words))


def _time(words: Cursor, begin: int, length: int) -> str:
    if length <= 0:
        words.fail("a range and its pace have to be positive.", words.tokens[begin : words.at])
    return format_duration(length)


def _nested(words: Cursor, begin: int, bounds: Bounds, name: str | None) -> AnyWindow:
    ranges = _listed(words)
    words.expect("SLIDES", "Write [RANGES 1 HOUR, 10 MINUTES SLIDES 5 MINUTES, 1 MINUTE].")
    slides = _listed(words)
    since = _since(words) if words.took("SINCE") else None
    lengths = [[format_duration(length) for length in some] for some in (ranges, slides)]
    call = words.tokens[begin : words.at]
    return checked(words, call, lambda: nested(*lengths, since=since, bounds=bounds, name=name))


def _since(words: Cursor) -> str:
    words.took("TIMESTAMP")
    token = words.next()
    if token.token_type is not TokenType.STRING:
        words.fail("expected an instant here, as SINCE '2026-01-01 09:30'.", [token])
    checked(words, [token], lambda: parse_instant(token.text))
    return token.text


def _listed(words: Cursor) -> list[int]:
    found = [counted(words)]
    while words.took(","):
        found.append(counted(words))
    return found
