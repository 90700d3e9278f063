"""How deep an expression may be nested.

Parsers descend once per level, and Python's stack has room for so many levels. What stands in a row, as ``a OR b OR
c``, a list behind IN or the branches of one CASE, is not nested: it may be as long as it likes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Thread
from typing import Final, TypeVar

from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

T = TypeVar("T")

MOST_LEVELS: Final = 32
"""Levels of parentheses, calls, CASE, and NOT or - before one another."""

_OPENING: Final = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE})
_CLOSING: Final = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END})
_PREFIX: Final = frozenset({TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE})
_INSTEAD: Final = (
    f"this is nested more than {MOST_LEVELS} levels deep, the most that an expression may be: leave out parentheses in "
    "chains of AND, OR or +, which may be of any length, write one CASE with many WHENs, or compute the inner part in "
    "a column first"
)


def too_deep(tokens: Iterable[Token]) -> tuple[Token, str] | None:
    """Return the word that opens one level too many, and what to write instead; None if there is none."""
    opened = prefixes = 0
    for token in tokens:
        kind = token.token_type
        prefixes = prefixes + 1 if kind in _PREFIX else 0
        opened += (kind in _OPENING) - (kind in _CLOSING and opened > 0)
        if opened + prefixes > MOST_LEVELS:
            return token, _INSTEAD
    return None


def with_room(function: Callable[[], T]) -> T:
    """Call a function that descends; where the caller has left too little of the stack, on one of its own."""
    try:
        return function()
    except RecursionError:
        pass
    found: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            found.append(function())
        except BaseException as error:
            failed.append(error)

    thread = Thread(target=run, name="panes-parser")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return found[0]
