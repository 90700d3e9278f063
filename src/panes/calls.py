"""Errors for calls that do not fit: a wrong keyword is answered with the right one."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from panes.errors import DeclarationError, nearest

P = ParamSpec("P")
R = TypeVar("R")


def helpful(example: str | None = None, /, **renamed: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a public function explain calls that do not fit its parameters.

    Parameters
    ----------
    example
        A call that is right, for messages.
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

    def wrap(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                signature.bind(*args, **kwargs)
            except TypeError:
                raise DeclarationError(
                    _explained(function.__name__, signature, args, kwargs, renamed, example)
                ) from None
            return function(*args, **kwargs)

        return call

    return wrap


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


def _explained(
    name: str,
    signature: inspect.Signature,
    args: tuple[object, ...],
    kwargs: dict[str, object],
    renamed: dict[str, str],
    example: str | None,
) -> str:
    parameters = {key: value for key, value in signature.parameters.items() if key != "self"}
    args = args[1:] if "self" in signature.parameters else args
    write = "" if example is None else f" Write for example {example}."
    for key in kwargs:
        if key in parameters:
            continue
        meant = renamed.get(key)
        if meant is None:
            return f"{name}() has no {key}= ({nearest(key, parameters)}).{write}"
        return (
            f"{name}() has no {key}=: {meant}{write}"
            if " " in meant
            else (f"{name}() has no {key}=: it is called {meant}=.{write}")
        )
    positional = [key for key, p in parameters.items() if p.kind is not inspect.Parameter.KEYWORD_ONLY]
    if len(args) > len(positional):
        named = [key for key, p in parameters.items() if p.kind is inspect.Parameter.KEYWORD_ONLY]
        extra = args[len(positional)]
        return (
            f"{name}() takes {', '.join(positional) or 'nothing'} by position, and was also given {extra!r}: write it "
            f"by name ({', '.join(f'{key}=' for key in named)}).{write}"
        )
    twice = next((key for key in positional[: len(args)] if key in kwargs), None)
    if twice is not None:
        return f"{name}() is given {twice}= twice, by position and by name.{write}"
    given = {*positional[: len(args)], *kwargs}
    missing = [key for key, p in parameters.items() if p.default is inspect.Parameter.empty and key not in given]
    return f"{name}() needs {' and '.join(f'{key}=' for key in missing)} too.{write}"
