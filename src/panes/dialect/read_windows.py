"""Windows read from SQL: functions in ``GROUP BY``, table functions in ``FROM``, and brackets after the stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from panes.dialect.intervals import read_interval, read_unit, read_whole
from panes.dialect.tokens import Cursor, checked
from panes.dialect.window_kinds import WINDOW_KINDS, WindowFunction, brackets, declare, functions
from panes.queries.window_constructors import check_name
from panes.queries.windows import AnyWindow, Bounds

T = TypeVar("T")

_ELSEWHERE = {
    "sliding": "Azure's SlidingWindow answers when an event enters and also when one leaves, which is not supported. "
    "Write HoppingWindow(minute, 60, 1), or FROM stream [RANGE 60 MINUTES] for an answer per event.",
}
"""Window functions of other systems that mean something else, and what to write instead."""


def read_window_list(words: Cursor, bounds: Bounds) -> list[AnyWindow]:
    """Read ``Windows(Window('20 min', TumblingWindow(minute, 20)), HoppingWindow(minute, 60, 5), [ROWS 10])``."""
    words.next()
    windows: list[AnyWindow] = []
    for member in words.arguments():
        if member.took("Window"):
            parts = member.arguments()
            if len(parts) != 2 or parts[0].tokens[0].token_type is not TokenType.STRING:
                member.fail("write Window('a name', TumblingWindow(minute, 20)).", member.tokens)
            token = parts[0].next()
            parts[0].end("one name is enough.")
            name = checked(parts[0], [token], lambda token=token: check_name(token.text))  # type: ignore[misc]
            windows.append(_read_member(parts[1], bounds, name))
            parts[1].end("a window ends here.")
        else:
            windows.append(_read_member(member, bounds))
        member.end("a window ends here.")
        if windows[-1].name in [window.name for window in windows[:-1]]:
            member.fail(
                f"two windows are called {windows[-1].name!r}. Leave one out, or name it, as Window('another', "
                "TumblingWindow(minute, 5)).",
                member.tokens,
            )
    return windows


def _read_member(words: Cursor, bounds: Bounds, name: str | None = None) -> AnyWindow:
    return read_bracket(words, bounds, name) if words.sees("[") else read_azure_function(words, bounds, name)


def read_bracket(words: Cursor, bounds: Bounds, name: str | None = None) -> AnyWindow:
    """Read ``[RANGE 300 SECONDS SLIDE 60 SECONDS]``."""
    begin = words.at
    words.next()
    begun, form = next(((begins, form) for begins, form in brackets().items() if words.took(*begins)), ((), None))
    if form is None:
        words.fail("expected RANGE, RANGES or ROWS, as [RANGE 300 SECONDS SLIDE 60 SECONDS].")
    kind, arguments = form.read(words, begun, bounds)
    window = declare(words, words.tokens[begin : words.at], kind, arguments, name)
    words.expect("]", "A window in brackets ends with it.")
    return window


# Azure Stream Analytics


def is_azure_function(name: str) -> bool:
    """Whether ``GROUP BY`` knows a window function of this name, in any case and with or without ``Window``."""
    return name.lower() in _azure_functions() or _elsewhere(name) is not None


def _azure_functions() -> dict[str, tuple[str, WindowFunction]]:
    named = {function.name.lower(): (kind, function) for kind, function in functions("azure")}
    return named | {name.removesuffix("window"): each for name, each in named.items()}


def _elsewhere(name: str) -> str | None:
    return _ELSEWHERE.get(name.lower().removesuffix("window"))


def read_azure_function(words: Cursor, bounds: Bounds, name: str | None = None) -> AnyWindow:
    """Read ``HoppingWindow(minute, 60, 5)`` or ``HoppingWindow(Duration(hour, 1), Hop(minute, 5))``."""
    begin = words.at
    token = words.next()
    hint = _elsewhere(token.text)
    if hint is not None:
        words.fail(hint, words.tokens[begin:])
    known = _azure_functions()
    if token.text.lower() not in known:
        names = ", ".join(function.name for _, function in functions("azure"))
        words.fail(f"there is no window {token.text!r}. Write one of {names}.", [token])
    kind, function = known[token.text.lower()]
    arguments = words.arguments()
    call = words.tokens[begin : words.at]
    if arguments and len(arguments[0].tokens) > 1 and arguments[0].tokens[1].text == "(":
        lengths, bounds = _read_parts(function, arguments, bounds)
    else:
        lengths = _read_in_order(words, function, arguments, call)
    allowed = {**function.arguments, **function.optional}
    refused = next((hint for part, hint in function.refused.items() if part in lengths), None)
    if refused is not None:
        words.fail(refused, call)
    if not set(function.arguments) <= set(lengths):
        optional = f", and may have {' and '.join(function.optional)}" if function.optional else ""
        words.fail(f"{function.name} needs {' and '.join(function.arguments)}{optional}.", call)
    if not WINDOW_KINDS[kind].bounds and bounds != "[)":
        words.fail(f"{function.name} has no bounds: leave Bounds out.", call)
    values = {allowed[part]: length for part, length in lengths.items()}
    return _declare(words, call, kind, values, bounds, name)


def _read_parts(function: WindowFunction, arguments: list[Cursor], bounds: Bounds) -> tuple[dict[str, int], Bounds]:
    """Read ``Duration(minute, 60), Hop(minute, 5), Offset(minute, 1), Bounds('(]')``, in any order."""
    names = {name.lower(): name for name in (*function.arguments, *function.optional, *function.refused)}
    lengths: dict[str, int] = {}
    chosen: Bounds | None = None
    for argument in arguments:
        token = argument.next()
        part = names.get(token.text.lower())
        is_bounds = token.text.lower() == "bounds"
        if part in lengths or (part is None and not is_bounds):
            known = ", ".join((*function.arguments, *function.optional, "Bounds"))
            argument.fail(f"{function.name} has the parts {known}, each once.", [token])
        values = argument.arguments()
        argument.end("a part ends here.")
        if is_bounds:
            texts = [word.text for value in values for word in value.tokens]
            if chosen is not None or texts not in (["[)"], ["(]"]):
                argument.fail("write Bounds('[)') or Bounds('(]').", argument.tokens)
            chosen = "[)" if texts == ["[)"] else "(]"
        elif part is None or len(values) != 2:
            argument.fail(f"write {token.text}(minute, 5).", argument.tokens)
        else:
            lengths[part] = _only(values[0], read_unit) * _only(values[1], _read_units)
    return lengths, chosen or bounds


def _read_in_order(
    words: Cursor, function: WindowFunction, arguments: list[Cursor], call: Sequence[Token]
) -> dict[str, int]:
    """Read ``minute, 60, 5``, and an offset after them."""
    order = (*function.arguments, *function.optional, *function.refused)
    if not 2 <= len(arguments) <= len(order) + 1:
        numbers = ", ".join(["60", "5", "0"][: len(order)])
        words.fail(f"write {function.name}(minute, {numbers}): a unit, {', '.join(order)}.", call)
    factor = _only(arguments[0], read_unit)
    return {part: _only(value, _read_units) * factor for part, value in zip(order, arguments[1:], strict=False)}


def _read_units(words: Cursor) -> int:
    return read_whole(words, "the number of units")


# Spark


def is_spark_function(name: str) -> bool:
    """Whether ``GROUP BY`` knows a function of this name as one of Spark's windows."""
    return name.lower() in {function.name for _, function in functions("spark")}


def read_spark_function(words: Cursor, bounds: Bounds) -> tuple[str, AnyWindow]:
    """Read ``window(ts, '1 hour', '5 minutes', '15 minutes')``: the column of event time, and the window."""
    begin = words.at
    called = words.next().text.lower()
    arguments = words.arguments()
    call = words.tokens[begin : words.at]
    known = {kind: function for kind, function in functions("spark") if function.name == called}
    fits = [kind for kind, function in known.items() if _takes(function, len(arguments) - 1)]
    if not fits:
        examples = [f"{called}({', '.join(['ts', *_SPARK[: len(function.arguments)]])})" for function in known.values()]
        words.fail(f"write {' or '.join(examples)}.", call)
    function = known[fits[0]]
    at = _only(arguments[0], lambda first: first.name("the column of event time"))
    lengths = [_only(argument, read_interval) for argument in arguments[1:]]
    values = dict(zip((*function.arguments.values(), *function.optional.values()), lengths, strict=False))
    return at, _declare(words, call, fits[0], values, bounds, None)


def _takes(function: WindowFunction, count: int) -> bool:
    return len(function.arguments) <= count <= len(function.arguments) + len(function.optional)


_SPARK = ("'1 hour'", "'5 minutes'")


# Flink


def flink_functions() -> tuple[str, ...]:
    """Return the names of the table functions in ``FROM``."""
    return tuple(function.name for _, function in functions("flink"))


def read_flink_function(words: Cursor, bounds: Bounds) -> tuple[str, str, AnyWindow]:
    """Read ``TUMBLE(TABLE ev, DESCRIPTOR(ts), INTERVAL '10' MINUTES)``: the stream, its event time, the window."""
    begin = words.at
    called = words.next().text.upper()
    kind, function = next((kind, function) for kind, function in functions("flink") if function.name == called)
    arguments = words.arguments()
    call = words.tokens[begin : words.at]
    order = ("DATA", "TIMECOL", *function.arguments, *function.optional)
    needed = len(order) - len(function.optional)
    arguments = _positional(words, arguments, called, order, needed)
    if not needed <= len(arguments) <= len(order):
        words.fail(f"write {_flink_example(function)}.", call)
    arguments[0].took("TABLE")
    stream = _only(arguments[0], lambda first: first.dotted("the name of a stream"))
    described = arguments[1]
    described.expect("DESCRIPTOR", f"Write {_flink_example(function)}.")
    columns = described.arguments()
    described.end("only the column of event time goes here.")
    if len(columns) != 1:
        words.fail("one column is the event time: DESCRIPTOR(ts).", described.tokens)
    at = _only(columns[0], lambda column: column.name("the column of event time"))
    lengths = [_only(argument, read_interval) for argument in arguments[2:]]
    values = dict(zip((*function.arguments.values(), *function.optional.values()), lengths, strict=False))
    return stream, at, _declare(words, call, kind, values, bounds, None)


def _positional(words: Cursor, arguments: list[Cursor], name: str, order: tuple[str, ...], needed: int) -> list[Cursor]:
    """Return named arguments, as ``SIZE => INTERVAL '10' MINUTES``, in their order."""
    are_named = [len(a.tokens) > 2 and a.tokens[1].token_type is TokenType.FARROW for a in arguments]
    if not any(are_named):
        return arguments
    values: dict[str, Cursor] = {}
    for argument, is_named in zip(arguments, are_named, strict=True):
        word = argument.tokens[0].text.upper()
        if not is_named or word not in order or word in values:
            argument.fail(f"name every argument of {name} once: {', '.join(order)}.", argument.tokens)
        values[word] = Cursor(argument.text, argument.tokens[2:])
    missing = [word for word in order[:needed] if word not in values]
    if missing:
        words.fail(f"{name} also needs {', '.join(missing)}.")
    return [values[word] for word in order if word in values]


def _flink_example(function: WindowFunction) -> str:
    lengths = ("INTERVAL '5' MINUTES", "INTERVAL '1' HOUR")
    named = [f"{word} => {length}" for word, length in zip(function.arguments, lengths, strict=False)]
    return f"{function.name}({', '.join(['DATA => TABLE ev', 'TIMECOL => DESCRIPTOR(ts)', *named])})"


# All functions


def _declare(
    words: Cursor, call: Sequence[Token], kind: str, arguments: dict[str, int], bounds: Bounds, name: str | None
) -> AnyWindow:
    """Make the window of a function."""
    if WINDOW_KINDS[kind].bounds:
        return declare(words, call, kind, {**arguments, "bounds": bounds}, name)
    return declare(words, call, kind, arguments, name)


def _only(words: Cursor, read: Callable[[Cursor], T]) -> T:
    value = read(words)
    words.end("nothing more is expected here.")
    return value
