"""The table of window kinds in SQL, which reading and writing share.

A new kind of window, or a new spelling of one, is an entry of ``WINDOW_KINDS``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from sqlglot.tokens import Token  # type: ignore[attr-defined]

from panes.dialect.intervals import largest_unit
from panes.dialect.tokens import Cursor, checked
from panes.dialect.window_brackets import FRAME, LEVELS, PACED, Bracket
from panes.queries.nested import nested
from panes.queries.window_constructors import cumulate, hopping, session, sliding, tumbling
from panes.queries.windows import AnyWindow
from panes.timeline import format_duration

Style: TypeAlias = Literal["azure", "flink", "spark"]


@dataclass(frozen=True, slots=True)
class WindowFunction:
    """A window function: its name, and the constructor's argument for each of its own, in its order.

    Parameters
    ----------
    refused
        Arguments that the function has elsewhere, and what to write instead.
    """

    name: str
    arguments: Mapping[str, str]
    optional: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WindowKind:
    """A kind of window in SQL.

    Parameters
    ----------
    make
        The constructor; ``window.kind`` is its name, and ``window.arguments`` are its arguments.
    azure
        ``HoppingWindow(minute, 60, 5)`` in ``GROUP BY``; the style in which windows are written.
    flink
        ``HOP(TABLE ev, DESCRIPTOR(ts), INTERVAL '5' MINUTES, INTERVAL '1' HOUR)`` in ``FROM``.
    spark
        ``window(ts, '1 hour', '5 minutes')`` in ``GROUP BY``.
    brackets
        ``[RANGE 1 HOUR SLIDE 5 MINUTES]`` after the stream.
    bounds
        Whether window functions choose which bounds belong to it.
    """

    make: Callable[..., AnyWindow]
    azure: WindowFunction | None = None
    flink: WindowFunction | None = None
    spark: WindowFunction | None = None
    brackets: tuple[Bracket, ...] = ()
    bounds: bool = True


_OFFSET = {"Offset": "offset"}

WINDOW_KINDS: dict[str, WindowKind] = {
    "tumbling": WindowKind(
        tumbling,
        azure=WindowFunction("TumblingWindow", {"Duration": "size"}, _OFFSET),
        flink=WindowFunction("TUMBLE", {"SIZE": "size"}, {"OFFSET": "offset"}),
        spark=WindowFunction("window", {"windowDuration": "size"}),
        brackets=(PACED,),
    ),
    "hopping": WindowKind(
        hopping,
        azure=WindowFunction("HoppingWindow", {"Duration": "size", "Hop": "every"}, _OFFSET),
        flink=WindowFunction("HOP", {"SLIDE": "every", "SIZE": "size"}, {"OFFSET": "offset"}),
        spark=WindowFunction("window", {"windowDuration": "size", "slideDuration": "every"}, {"startTime": "offset"}),
        brackets=(PACED,),
    ),
    "cumulate": WindowKind(
        cumulate,
        azure=WindowFunction("CumulateWindow", {"Duration": "upto", "Step": "step"}, _OFFSET),
        flink=WindowFunction("CUMULATE", {"STEP": "step", "SIZE": "upto"}, {"OFFSET": "offset"}),
    ),
    "session": WindowKind(
        session,
        azure=WindowFunction(
            "SessionWindow",
            {"Timeout": "gap"},
            refused={
                "MaxDuration": "a session has no longest duration here. Leave it out, or write a TumblingWindow of "
                "that size."
            },
        ),
        spark=WindowFunction("session_window", {"gapDuration": "gap"}),
        bounds=False,
    ),
    "sliding": WindowKind(sliding, brackets=(PACED, FRAME)),
    "nested": WindowKind(nested, brackets=(LEVELS,)),
}
"""By the names of their constructors."""


def functions(style: Style) -> Iterator[tuple[str, WindowFunction]]:
    """Yield the window functions of a style, each with its kind."""
    for name, kind in WINDOW_KINDS.items():
        function: WindowFunction | None = getattr(kind, style)
        if function is not None:
            yield name, function


def brackets() -> dict[tuple[str, ...], Bracket]:
    """Return the forms in brackets by the words they begin with, longest first."""
    forms = {begins: form for kind in WINDOW_KINDS.values() for form in kind.brackets for begins in form.begins}
    return dict(sorted(forms.items(), key=lambda item: -len(item[0])))


def declare(
    words: Cursor, call: Sequence[Token], kind: str, arguments: Mapping[str, Any], name: str | None
) -> AnyWindow:
    """Make a window; durations are in µs. An error is shown where ``call`` stands in the statement."""
    values = {argument: format_duration(v) if isinstance(v, int) else v for argument, v in arguments.items()}
    return checked(words, call, lambda: WINDOW_KINDS[kind].make(**values, name=name))


def write_window(window: AnyWindow) -> str | None:
    """Return a window as SQL, without its name; None if no spelling has what it says.

    Examples
    --------
    >>> import panes as pn
    >>> write_window(pn.hopping("1 hour", every="5 min")), write_window(pn.sliding(pn.rows(10)))
    ('HoppingWindow(minute, 60, 5)', '[ROWS 10]')
    """
    kind = WINDOW_KINDS[window.kind]
    arguments = {argument: value for argument, value in window.arguments.items() if argument != "name"}
    texts = [] if kind.azure is None else [_write_function(kind.azure, arguments)]
    texts += [form.write(window.kind, arguments) for form in kind.brackets]
    return next((text for text in texts if text is not None), None)


def _write_function(function: WindowFunction, arguments: Mapping[str, Any]) -> str | None:
    named = {**function.arguments, **function.optional}
    lengths = {part: arguments[argument] for part, argument in named.items() if argument in arguments}
    unsaid = set(arguments) - set(named.values()) - {"bounds"}
    if unsaid or not all(isinstance(length, int) for length in lengths.values()):
        return None
    if "bounds" not in arguments:
        unit, factor = largest_unit(*lengths.values())
        return f"{function.name}({unit}, {', '.join(str(length // factor) for length in lengths.values())})"
    parts = [_write_part(part, length) for part, length in lengths.items()]
    return f"{function.name}({', '.join([*parts, _write_bounds(arguments)])})"


def _write_part(name: str, length: int) -> str:
    unit, factor = largest_unit(length)
    return f"{name}({unit}, {length // factor})"


def _write_bounds(arguments: Mapping[str, Any]) -> str:
    return f"Bounds('{arguments['bounds']}')"
