"""Errors for calls that do not fit: a wrong keyword is answered with the right one."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection
from typing import Any, TypeAlias, TypeVar, cast

from panes.errors import DeclarationError, nearest

F = TypeVar("F", bound=Callable[..., Any])
More: TypeAlias = "str | Callable[..., str | None]"

_SHORT = 100
"""How much of a value a message quotes."""


def helpful(
    example: str | None = None, note: str | None = None, /, *, more: More | None = None, **renamed: str
) -> Callable[[F], F]:
    """Let a public function or class explain calls that do not fit its parameters.

    Parameters
    ----------
    example
        A call that is right, for messages.
    note
        What every message begins with: what the function is, where its name means something else elsewhere.
    more
        What to say of an argument by position that is one too many; or a function that says it of all of them, or None.
    renamed
        What users of other systems call a parameter, and its name here; or a sentence that says what to write.

    Examples
    --------
    >>> @helpful("hop('1 hour', every='5 min')", slide="every")
    ... def hop(size, *, every): ...
    >>> hop("1 hour", slide="5 min")
    Traceback (most recent call last):
    ...
    panes.errors.DeclarationError: hop() has no slide=: it is called every=. Write for example hop('1 hour', ...
    """

    def wrap(function: F) -> F:
        if isinstance(function, type):
            made: Any = function
            made.__init__ = _checked(made.__init__, function.__name__, example, note, more, renamed)
            return function
        return cast(F, _checked(function, function.__name__, example, note, more, renamed))

    return wrap


def _checked(
    function: Any, name: str, example: str | None, note: str | None, more: More | None, renamed: dict[str, str]
) -> Any:
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            signature.bind(*args, **kwargs)
        except TypeError:
            told = _explained(name, signature, args, kwargs, renamed, example, more)
            raise DeclarationError(told if note is None else f"{note} {told}") from None
        return function(*args, **kwargs)

    return call


def arguments_of(function: Callable[..., object], owner: object, /, *args: object, **kwargs: object) -> dict[str, Any]:
    """The arguments of a call of a method, with its defaults; a call that does not fit fails as it does itself.

    Examples
    --------
    >>> class Hops:
    ...     @helpful(slide="every")
    ...     def hop(self, size, *, every="5 min"): ...
    >>> arguments_of(Hops.hop, Hops(), "1 hour")
    {'size': '1 hour', 'every': '5 min'}
    """
    signature = inspect.signature(function)
    try:
        bound = signature.bind(owner, *args, **kwargs)
    except TypeError:
        function(owner, *args, **kwargs)
        raise
    bound.apply_defaults()
    return {name: value for name, value in bound.arguments.items() if name != "self"}


def each_of(value: Any) -> tuple[Any, ...]:
    """What a user lists, or the one thing that stands alone.

    A column of Spark's passes for iterable until somebody iterates; it is one thing, and refused like any other.

    Examples
    --------
    >>> each_of("card"), each_of(["card", "city"]), each_of(5)
    (('card',), ('card', 'city'), (5,))
    """
    if isinstance(value, str):
        return (value,)
    try:
        return tuple(value)
    except TypeError:
        return (value,)


def shown(value: object) -> str:
    """What a user gave, as messages quote it; what would fill a screen by its type.

    Examples
    --------
    >>> shown(["a", 5]), shown(range(3)), shown(dict.fromkeys(range(99)))
    ("['a', 5]", 'range(0, 3)', 'a dict')
    """
    if isinstance(value, (list, tuple)):
        text = f"[{', '.join(map(shown, value))}]"
    else:
        # Aggregates and windows are written as they are named.
        text = str(value) if type(value).__module__.startswith("panes.") else repr(value)
    return text if len(text) <= _SHORT and "\n" not in text else f"a {type(value).__name__}"


def _explained(
    name: str,
    signature: inspect.Signature,
    args: tuple[object, ...],
    kwargs: dict[str, object],
    renamed: dict[str, str],
    example: str | None,
    more: More | None,
) -> str:
    parameters = {key: value for key, value in signature.parameters.items() if key != "self"}
    args = args[1:] if "self" in signature.parameters else args
    many = any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters.values())
    parameters = {key: p for key, p in parameters.items() if p.kind is not inspect.Parameter.VAR_POSITIONAL}
    positional = [key for key, p in parameters.items() if p.kind is not inspect.Parameter.KEYWORD_ONLY and not many]
    given = {*positional[: len(args)], *kwargs}
    missing = [key for key, p in parameters.items() if p.default is inspect.Parameter.empty and key not in given]
    write = "" if example is None else f" Write for example {example}."
    for key in kwargs:
        if key not in parameters:
            return f"{name}() has no {key}={_meant(key, parameters, renamed)}{write}"
    if len(args) > len(positional) and not many:
        extra = args[len(positional)]
        taken = f"{name}() takes {', '.join(positional) or 'nothing'} by position, and was also given {shown(extra)}"
        said = more(*args) if callable(more) else more
        if said is not None:
            return f"{taken}: {said}{write}"
        if len(missing) == 1:
            return f"{taken}: write it by name, as {missing[0]}={shown(extra)}.{write}"
        named = ", ".join(f"{key}=" for key in parameters if key not in positional)
        return f"{taken}: {'write it by name' if named else 'leave it out'}{f' ({named})' if named else ''}.{write}"
    twice = next((key for key in positional[: len(args)] if key in kwargs), None)
    if twice is not None:
        return f"{name}() is given {twice}= twice, by position and by name.{write}"
    return f"{name}() needs {' and '.join(f'{key}=' for key in missing)}{' too' if given else ''}.{write}"


def _meant(key: str, parameters: Collection[str], renamed: dict[str, str]) -> str:
    """What a keyword that is not there stands for; ``groupBy`` and ``group_by`` are one word."""
    found = {_letters(other): meant for other, meant in renamed.items()} | {_letters(own): own for own in parameters}
    meant = found.get(_letters(key))
    if meant is None or (" " not in meant and meant not in parameters):
        known = list(parameters)
        return f" ({nearest(key, known)})." if known else ": it takes nothing by name."
    return f": {meant}" if " " in meant else f": it is called {meant}=."


def _letters(key: str) -> str:
    return key.replace("_", "").lower()
