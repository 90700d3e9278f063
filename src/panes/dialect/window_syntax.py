"""Windows as functions: in ``GROUP BY`` as Azure Stream Analytics and Spark write them, or Flink's over the stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeVar

from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from panes.dialect.tokens import Cursor, checked
from panes.errors import DurationError
from panes.queries.measures import MeasureLike, Rows, rows
from panes.queries.nested import nested
from panes.queries.window_constructors import check_name, cumulate, hopping, session, sliding, tumbling
from panes.queries.windows import AnyWindow, Bounds, Cumulate
from panes.timeline import format_duration, parse_duration, parse_instant

# Durations as SQL spells them: ``INTERVAL '10' MINUTES``, ``5 MINUTES``, ``minute, 5``, ``'5 minutes'``.


UNITS = {
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1000,
    "microsecond": 1,
}
"""Units as Azure's window functions name them, with their microseconds; the largest first."""

_DIGITS = 15
_WEEK = 7 * UNITS["day"]
_ABBREVIATED = {"dd": "day", "d": "day", "hh": "hour", "mi": "minute", "n": "minute", "ss": "second", "s": "second"}
_ABBREVIATED |= {"ms": "millisecond", "mcs": "microsecond"}


def unit(words: Cursor) -> int:
    """The microseconds of a unit: ``minute``."""
    token = words.next()
    name = token.text.lower()
    name = _ABBREVIATED.get(name, name.removesuffix("s"))
    if name == "week":
        return _WEEK
    if name not in UNITS:
        words.fail(f"{token.text!r} is no unit of time here. Write one of week, {', '.join(UNITS)}.", [token])
    return UNITS[name]


def whole(words: Cursor, what: str) -> int:
    """A whole number, with a sign or without."""
    negative = words.took("-")
    token = words.next()
    if token.token_type is not TokenType.NUMBER or not _plain(token.text):
        words.fail(f"{what} has to be a whole number, and no longer than {_DIGITS} digits.", [token])
    return -int(token.text) if negative else int(token.text)


def counted(words: Cursor) -> int:
    """A number and a unit: ``300 SECONDS``."""
    number = whole(words, "the number of units")
    return number * unit(words)


def interval(words: Cursor) -> int:
    """``INTERVAL '10' MINUTES``, ``INTERVAL '1.5' HOURS``, ``INTERVAL '10 minutes'``, or just ``'10 minutes'``."""
    begin = words.at
    given = words.took("INTERVAL")
    token = words.next()
    number = _number(token.text.strip()) if given else None
    if number is not None:
        length = number * unit(words)
        if length.denominator > 1:
            words.fail("this is finer than a microsecond, the resolution of time here.", words.tokens[begin : words.at])
        return int(length)
    if token.token_type is not TokenType.STRING:
        words.fail("expected a duration here, as INTERVAL '10' MINUTES or '10 minutes'.", [token])
    try:
        return parse_duration(token.text)
    except (DurationError, ValueError) as error:
        words.fail(str(error), words.tokens[begin : words.at])


def _number(text: str) -> Fraction | None:
    """A number with a sign, a point, or neither."""
    if len(text) > _DIGITS or not set(text) <= set("+-.0123456789"):
        return None
    try:
        return Fraction(text)
    except ValueError:
        return None


def _plain(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _DIGITS


# Windows in brackets, as CQL writes them behind the stream: a range or rows, and behind SLIDE the pace.


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


T = TypeVar("T")

_KINDS = {
    "TumblingWindow": (("duration",), ("offset",)),
    "HoppingWindow": (("duration", "hop"), ("offset",)),
    "CumulateWindow": (("duration", "step"), ("offset",)),
    "SessionWindow": (("timeout",), ("maxduration",)),
}
"""Azure's windows: the parts that each needs, and those it may have, in their order."""

FUNCTIONS = {
    spelling: kind
    for kind in (*_KINDS, "SlidingWindow")
    for spelling in (kind.lower(), kind.lower().removesuffix("window"))
}
"""The names of Azure's windows, in lower case."""

TABLE_FUNCTIONS = ("TUMBLE", "HOP", "CUMULATE")
_PARTS = ("duration", "hop", "step", "offset", "bounds", "timeout", "maxduration")


def named(words: Cursor, bounds: Bounds) -> list[AnyWindow]:
    """``Windows(Window('20 min', TumblingWindow(minute, 20)), HoppingWindow(minute, 60, 5), [ROWS 10])``."""
    words.next()
    found: list[AnyWindow] = []
    for member in words.arguments():
        if member.took("Window"):
            parts = member.arguments()
            if len(parts) != 2 or parts[0].tokens[0].token_type is not TokenType.STRING:
                member.fail("write Window('a name', TumblingWindow(minute, 20)).", member.tokens)
            name = parts[0].next()
            parts[0].end("one name is enough.")
            found.append(_member(parts[1], bounds, _name(parts[0], name)))
            parts[1].end("a window ends here.")
        else:
            found.append(_member(member, bounds))
        member.end("a window ends here.")
        if found[-1].name in [window.name for window in found[:-1]]:
            what = f"two windows are called {found[-1].name!r}. Leave one out, or name it"
            member.fail(f"{what}, as Window('another', TumblingWindow(minute, 5)).", member.tokens)
    return found


def _member(words: Cursor, bounds: Bounds, name: str | None = None) -> AnyWindow:
    return bracket(words, bounds, name) if words.sees("[") else function(words, bounds, name)


def function(words: Cursor, bounds: Bounds, name: str | None = None) -> AnyWindow:
    """One of Azure's window functions."""
    begin = words.at
    token = words.next()
    kind = FUNCTIONS.get(token.text.lower())
    if kind is None:
        words.fail(f"there is no window {token.text!r}. Write TumblingWindow, HoppingWindow or SessionWindow.", [token])
    if kind == "SlidingWindow":
        words.fail(
            "Azure's SlidingWindow answers when an event comes and also when one leaves, which does not run here. "
            "Write HoppingWindow(minute, 60, 1), or FROM stream [RANGE 60 MINUTES] for an answer per event.",
            words.tokens[begin:],
        )
    arguments = words.arguments()
    whole_call = words.tokens[begin : words.at]
    if arguments and len(arguments[0].tokens) > 1 and arguments[0].tokens[1].text == "(":
        lengths, own = _parts(arguments, bounds)
    else:
        lengths, own = _in_order(words, kind, arguments, whole_call), bounds
    return checked(words, whole_call, lambda: _made(words, kind, lengths, own, name, whole_call))


def spark_window(words: Cursor, bounds: Bounds) -> tuple[str, AnyWindow]:
    """``window(ts, '1 hour', '5 minutes', '15 minutes')``, with the column of event time."""
    begin = words.at
    is_session = words.sees("session_window")
    words.next()
    arguments = words.arguments()
    call = words.tokens[begin : words.at]
    if not 2 <= len(arguments) <= (2 if is_session else 4):
        what = (
            "session_window(ts, '5 minutes')" if is_session else "window(ts, '1 hour') or window(ts, '1 hour', '5 min')"
        )
        words.fail(f"write {what}.", call)
    at = arguments[0].name("the column of event time")
    arguments[0].end("the column of event time stands alone.")
    lengths = [_only(argument, interval) for argument in arguments[1:]]
    if is_session:
        if lengths[0] <= 0:
            words.fail("a session needs a positive timeout.", call)
        return at, session(format_duration(lengths[0]))
    size, every, offset = lengths if len(lengths) == 3 else (lengths[0], lengths[-1], 0)
    return at, checked(words, call, lambda: _hopping(size, every, offset, bounds, None))


def table_function(words: Cursor, bounds: Bounds) -> tuple[str, str, AnyWindow]:
    """``TUMBLE(TABLE ev, DESCRIPTOR(ts), INTERVAL '10' MINUTES)``: the stream, its event time, the window."""
    begin = words.at
    kind = words.next().text.upper()
    arguments = words.arguments()
    call = words.tokens[begin : words.at]
    example = {
        "TUMBLE": "TUMBLE(TABLE ev, DESCRIPTOR(ts), INTERVAL '10' MINUTES)",
        "HOP": "HOP(TABLE ev, DESCRIPTOR(ts), INTERVAL '5' MINUTES, INTERVAL '1' HOUR), first the step",
        "CUMULATE": "CUMULATE(TABLE ev, DESCRIPTOR(ts), INTERVAL '1' HOUR, INTERVAL '1' DAY), first the step",
    }[kind]
    arguments = _in_place(words, arguments, kind)
    needed = 3 if kind == "TUMBLE" else 4
    if not needed <= len(arguments) <= needed + 1:
        words.fail(f"write {example}.", call)
    arguments[0].took("TABLE")
    stream = _only(arguments[0], lambda a: a.dotted("the name of a stream"))
    described = arguments[1]
    described.expect("DESCRIPTOR", f"Write {example}.")
    columns = described.arguments()
    described.end("only the column of event time stands here.")
    if len(columns) != 1:
        words.fail("one column is the event time: DESCRIPTOR(ts).", described.tokens)
    at = _only(columns[0], lambda a: a.name("the column of event time"))
    lengths = [_only(argument, interval) for argument in arguments[2:]]
    offset = lengths[needed - 2] if len(lengths) > needed - 2 else 0
    if kind == "CUMULATE":
        return stream, at, checked(words, call, lambda: _cumulate(lengths[0], lengths[1], offset, bounds, None))
    every, size = (lengths[0], lengths[0]) if kind == "TUMBLE" else (lengths[0], lengths[1])
    return stream, at, checked(words, call, lambda: _hopping(size, every, offset, bounds, None))


def _name(words: Cursor, token: Token) -> str:
    return checked(words, [token], lambda: check_name(token.text))


def _parts(arguments: list[Cursor], bounds: Bounds) -> tuple[dict[str, int], Bounds]:
    """Azure's second spelling: ``HoppingWindow(Duration(minute, 60), Hop(minute, 5), Offset(minute, 1))``."""
    lengths: dict[str, int] = {}
    chosen = False
    for argument in arguments:
        token = argument.next()
        part = token.text.lower()
        if part not in _PARTS or part in lengths:
            argument.fail(f"{token.text!r} is no part of a window. Write Duration, Hop, Offset, Bounds, once.", [token])
        values = argument.arguments()
        argument.end("a part ends here.")
        if part == "bounds":
            words_ = values[0].tokens if len(values) == 1 else []
            said = {"[)": "[)", "(]": "(]"}.get(words_[0].text if len(words_) == 1 else "")
            if said is None or chosen:
                argument.fail("write Bounds('[)') or Bounds('(]').", argument.tokens)
            chosen, bounds = True, said  # type: ignore[assignment]
        elif len(values) == 2:
            lengths[part] = _only(values[0], unit) * _only(values[1], lambda v: whole(v, "the number of units"))
        else:
            argument.fail(f"write {token.text}(minute, 5).", argument.tokens)
    return lengths, bounds


def _in_order(words: Cursor, kind: str, arguments: list[Cursor], call: Sequence[Token]) -> dict[str, int]:
    """Azure's first spelling: ``HoppingWindow(minute, 60, 5)``, with an offset behind."""
    needed, more = _KINDS[kind]
    order = (*needed, *more)
    if not 2 <= len(arguments) <= len(order) + 1:
        words.fail(
            f"write {kind}(minute, {', '.join(['60', '5', '0'][: len(order)])}): a unit, {', '.join(order)}.", call
        )
    factor = _only(arguments[0], unit)
    numbers = [_only(argument, lambda a: whole(a, "a number of units")) for argument in arguments[1:]]
    return {name: number * factor for name, number in zip(order, numbers, strict=False)}


def _made(
    words: Cursor, kind: str, lengths: dict[str, int], bounds: Bounds, name: str | None, call: Sequence[Token]
) -> AnyWindow:
    needed, more = _KINDS[kind]
    if not set(needed) <= set(lengths) <= {*needed, *more}:
        words.fail(f"{kind} has {' and '.join(needed)}, and may have {' and '.join(more)}.", call)
    if kind == "SessionWindow":
        gap = lengths["timeout"]
        if gap <= 0:
            words.fail("a session needs a positive timeout.", call)
        if "maxduration" in lengths:
            words.fail(
                "a session has no longest duration here. Leave it out, or write a TumblingWindow of that size.", call
            )
        if bounds != "[)":
            words.fail("a session holds its events, whatever the bounds: leave Bounds out.", call)
        return session(format_duration(gap), name=name)
    size, offset = lengths["duration"], lengths.get("offset", 0)
    if kind == "CumulateWindow":
        return _cumulate(lengths["step"], size, offset, bounds, name)
    return _hopping(size, lengths.get("hop", size), offset, bounds, name)


def _hopping(size: int, every: int, offset: int, bounds: Bounds, name: str | None) -> AnyWindow:
    return hopping(
        format_duration(size), every=format_duration(every), offset=format_duration(offset), bounds=bounds, name=name
    )


def _cumulate(step: int, upto: int, offset: int, bounds: Bounds, name: str | None) -> Cumulate:
    return cumulate(
        format_duration(step), upto=format_duration(upto), offset=format_duration(offset), bounds=bounds, name=name
    )


def _only(words: Cursor, read: Callable[[Cursor], T]) -> T:
    found = read(words)
    words.end("nothing more is expected here.")
    return found


def _in_place(words: Cursor, arguments: list[Cursor], kind: str) -> list[Cursor]:
    """Flink's named arguments, as ``SIZE => INTERVAL '10' MINUTES``, in the order of those without names."""
    lengths = {"TUMBLE": ("SIZE",), "HOP": ("SLIDE", "SIZE"), "CUMULATE": ("STEP", "SIZE")}[kind]
    order = ("DATA", "TIMECOL", *lengths, "OFFSET")
    given = [len(a.tokens) > 2 and a.tokens[1].token_type is TokenType.FARROW for a in arguments]
    if not any(given):
        return arguments
    found: dict[str, Cursor] = {}
    for argument, is_named in zip(arguments, given, strict=True):
        name = argument.tokens[0].text.upper()
        if not is_named or name not in order or name in found:
            argument.fail(f"name every argument of {kind} once: {', '.join(order)}.", argument.tokens)
        found[name] = Cursor(argument.text, argument.tokens[2:])
    missing = [name for name in order[:-1] if name not in found]
    if missing:
        words.fail(f"{kind} needs {', '.join(missing)} too.")
    return [found[name] for name in order if name in found]
