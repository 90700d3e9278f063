"""Read statements: ``SELECT ... FROM a stream WHERE ... GROUP BY keys and windows HAVING ...``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from panes.dialect.read_windows import (
    flink_functions,
    is_azure_function,
    is_spark_function,
    read_azure_function,
    read_bracket,
    read_flink_function,
    read_spark_function,
    read_window_list,
)
from panes.dialect.selecting import Selected
from panes.dialect.tokens import NAMES, Cursor, fail, same, split, tokenized
from panes.errors import DeclarationError, SqlError
from panes.queries.query import Query
from panes.queries.query_constructor import query
from panes.queries.windows import AnyWindow, Bounds

_OF_THE_WINDOW = ("window_start", "window_end", "window_time")
_CLAUSES = ("FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "UNION", "INTERSECT", "EXCEPT", "QUALIFY")
_INSTEAD = {
    "ORDER BY": "answers of a stream have no order. Sort the result.",
    "LIMIT": "a stream has no first rows. Limit the result.",
    "UNION": "write several statements, with ; between them.",
    "INTERSECT": "write several statements, with ; between them.",
    "EXCEPT": "write several statements, with ; between them.",
    "QUALIFY": "write the condition after HAVING.",
    "JOIN": "a query reads one stream. Join first, and query the result.",
    "CROSS": "a query reads one stream. Join first, and query the result.",
    "LEFT": "a query reads one stream. Join first, and query the result.",
    "INNER": "a query reads one stream. Join first, and query the result.",
    "RIGHT": "a query reads one stream. Join first, and query the result.",
    "FULL": "a query reads one stream. Join first, and query the result.",
    "NATURAL": "a query reads one stream. Join first, and query the result.",
    ",": "a query reads one stream. Join first, and query the result.",
}


@dataclass(frozen=True)
class Statement:
    """A statement, read.

    Parameters
    ----------
    stream
        The stream that it reads.
    explain
        Whether it begins with ``EXPLAIN``.
    """

    query: Query
    stream: str
    explain: bool


def read_statements(text: str, *, at: str | None = None, bounds: Bounds = "[)") -> list[Statement]:
    """Read all statements of a text; they read one stream.

    Parameters
    ----------
    at
        The event time column of statements that name none.
    bounds
        Which bounds belong to windows that do not say so themselves.
    """
    if not isinstance(text, str):
        raise SqlError(f"{text!r} is not SQL text.")
    tokens = tokenized(text)
    found: list[Statement] = []
    names = _names(text, tokens)
    for number, words in enumerate(split(tokens)):
        name = names.get(words[0].start) or f"query{number + 1}"
        if name in [other.query.name for other in found]:
            fail(text, words[:1], f"two statements are called {name!r}. Name each with -- name: another.")
        try:
            found.append(_Reader(text, words, at, bounds).read(name))
        except RecursionError:
            fail(text, words[:1], "this statement is nested too deeply.")
        if found[-1].stream.lower() != found[0].stream.lower():
            streams = f"{found[0].stream}, {found[-1].stream}"
            instead = "Call pn.sql once for each stream."
            fail(
                text,
                words[:1],
                f"the statements read several streams ({streams}), and a plan reads one. {instead}",
            )
    if not found:
        raise SqlError("there is no statement. Write SELECT ... FROM stream GROUP BY key, TumblingWindow(minute, 5).")
    return found


def _names(text: str, tokens: Sequence[Token]) -> dict[int, str]:
    """Return the names that comments ``-- name: xyz`` give to statements, by the position where these begin."""
    names: dict[int, str] = {}
    begins, comments = True, list[str]()
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            begins, comments = True, list(token.comments)
            continue
        for comment in (*comments, *token.comments):
            word, colon, name = comment.strip().partition(":")
            if not colon or word.strip().lower() != "name":
                continue
            if not begins or not name.strip() or "\n" in name.strip():
                fail(text, [token], "a comment -- name: xyz is one line before the statement that it names.")
            names[token.start] = name.strip()
        begins, comments = False, []
    return names


class _Reader:
    """Reads one statement."""

    def __init__(self, text: str, tokens: Sequence[Token], at: str | None, bounds: Bounds) -> None:
        self._text, self._words, self._bounds = text, Cursor(text, tokens), bounds
        self._at: str | None = None
        self._default_at = at
        self._table_function = False
        self._windows: list[AnyWindow] = []
        self._keys: dict[str, list[Token]] = {}
        self._call: list[Token] = []

    def read(self, name: str) -> Statement:
        words = self._words
        explain = words.took("EXPLAIN")
        words.expect("SELECT", "A statement is SELECT ... FROM stream GROUP BY key, TumblingWindow(minute, 5).")
        if words.sees("DISTINCT"):
            words.fail("answers of windows are always distinct: leave it out.")
        items = self._listed("FROM")
        words.expect("FROM", "A query reads FROM a stream.")
        stream = self._from()
        where = self._clause("WHERE")
        if words.took("GROUP BY"):
            for group in self._listed("HAVING"):
                self._group(group)
        having = self._clause("HAVING")
        self._refuse_rest()
        if not self._windows:
            words.fail(
                "the statement has no window. Write GROUP BY ..., TumblingWindow(minute, 5), or FROM stream "
                "[RANGE 5 MINUTES SLIDE 1 MINUTE].",
                words.tokens[:1],
            )
        named = [_alias(self._words, self._with_window(item)) for item in items]
        aliases = [alias for _, alias, _ in named if alias is not None]
        selected = Selected(self._text, stream, list(self._keys), aliases)
        for item in named:
            selected.add(*item)
        filtered = selected.having(self._with_window(having)) if having else None
        if not selected.aggregates:
            everything = [token for item in items for token in item]
            words.fail("there is no aggregate. Write what to compute in every window, as COUNT(*) AS n.", everything)
        event_time = self._at or self._default_at
        if event_time is None:
            words.fail(
                "the statement does not say which column is the event time. Write FROM stream TIMESTAMP BY ts, or pass "
                "at='ts'.",
                words.tokens[:1],
            )
        for key, place in self._keys.items():
            if key.lower() == event_time.lower():
                words.fail("this is the event time, so every event would be a group. Leave it out.", place)
        try:
            made = query(
                name,
                at=event_time,
                by=list(self._keys),
                select=selected.select,
                hidden=selected.hidden,
                over=self._windows,
                where=selected.condition(where) if where else None,
                having=filtered,
            )
        except SqlError:
            raise
        except DeclarationError as error:
            words.fail(str(error), words.tokens[:1])
        return Statement(made, stream, explain)

    def _listed(self, *closing: str) -> list[list[Token]]:
        """Return the members of a list, up to a clause."""
        words, found = self._words, []
        while True:
            found.append(words.inside(*closing, *_CLAUSES))
            if not found[-1]:
                words.fail("something is missing here.")
            if not words.took(","):
                return found

    def _clause(self, word: str) -> list[Token]:
        """Return the words of a condition, none if there is no such clause."""
        words = self._words
        if not words.took(word):
            return []
        found = words.inside(*_CLAUSES)
        if not found:
            words.fail(f"{word} needs a condition.")
        if words.sees(","):
            words.fail(f"{word} has one condition: write AND or OR.")
        if found[-1].token_type is TokenType.ALIAS:
            words.fail("a condition cannot have a name.", found[-1:])
        return found

    def _from(self) -> str:
        words = self._words
        wrapped = words.took("TABLE", "(")
        if words.sees("("):
            words.fail("a query reads a stream, not another query.")
        if any(words.sees(name, "(") for name in flink_functions()):
            self._table_function = True
            stream, at, window = read_flink_function(words, self._bounds)
            self._set_time(at)
            self._windows.append(window)
        elif wrapped:
            words.fail(f"expected one of {', '.join(flink_functions())} here.")
        else:
            stream = words.dotted("the name of a stream")
        if wrapped:
            words.expect(")", "TABLE( is still open.")
        while True:
            if words.took("TIMESTAMP", "BY"):
                self._set_time(words.name("the column of event time"))
                if words.sees("."):
                    words.fail("event time must be a column. Select the field into a column first.")
            elif words.sees("["):
                begin = words.at
                self._add(words, [read_bracket(words, self._bounds)], words.tokens[begin : words.at])
            elif words.took("AS") or (not words.ended and self._words.tokens[words.at].token_type in NAMES):
                words.fail("a stream cannot be renamed here: leave the name out.")
            else:
                return stream

    def _group(self, tokens: list[Token]) -> None:
        words = Cursor(self._text, tokens)
        called = len(tokens) > 1 and tokens[1].text == "("
        first = tokens[0].text.lower()
        if called and first == "windows":
            self._add(words, read_window_list(words, self._bounds), tokens)
        elif called and is_spark_function(first):
            at, window = read_spark_function(words, self._bounds)
            self._set_time(at, tokens)
            self._add(words, [window], tokens)
            self._call = tokens if first == "window" else []
        elif called and is_azure_function(first):
            self._add(words, [read_azure_function(words, self._bounds)], tokens)
        elif called and first.upper() in flink_functions():
            words.fail(
                "this belongs in FROM, as FROM TABLE(TUMBLE(TABLE ev, DESCRIPTOR(ts), INTERVAL '10' MINUTES)), "
                "and the groups are window_start and window_end.",
                tokens,
            )
        elif called:
            words.fail(
                "a group is a column or a window, as device or TumblingWindow(minute, 5). Compute it in a column "
                "first.",
                tokens,
            )
        else:
            key = words.name("a key column or a window")
            if key.lower() in [known.lower() for known in self._keys]:
                words.fail(f"the statement already groups by {key!r}: name it once.", tokens)
            if key.lower() not in _OF_THE_WINDOW or not self._table_function:
                self._keys[key] = tokens
        words.end("a group is one column or one window.")

    def _add(self, words: Cursor, windows: list[AnyWindow], tokens: Sequence[Token]) -> None:
        """Add the windows of one clause; a second clause means different things in other systems."""
        if self._windows:
            instead = "Write Windows(TumblingWindow(minute, 5), HoppingWindow(hour, 1, 5)) for several."
            words.fail(f"the statement already has a window. {instead}", tokens)
        self._windows += windows

    def _with_window(self, tokens: list[Token]) -> list[Token]:
        """Replace the window call of GROUP BY by ``window``, as Spark does."""
        call, found, at = self._call, list[Token](), 0
        while at < len(tokens):
            words = tokens[at : at + len(call)]
            if call and same(words, call):
                found.append(Token(TokenType.VAR, "window", start=words[0].start, end=words[-1].end))
                at += len(call)
            elif call and same(tokens[at : at + 2], call[:2]):
                self._words.fail("this is not the window of GROUP BY. Write window, or the same call.", tokens[at:])
            else:
                found.append(tokens[at])
                at += 1
        return found

    def _set_time(self, at: str, tokens: Sequence[Token] | None = None) -> None:
        if self._at is not None and self._at.lower() != at.lower():
            self._words.fail(f"the event time is both {self._at!r} and {at!r}. Name one column.", tokens)
        self._at = at

    def _refuse_rest(self) -> None:
        words = self._words
        if not words.ended:
            word = " ".join(words.tokens[words.at].text.upper().split())
            words.fail(_INSTEAD.get(word, "this is not expected here."), words.tokens[words.at : words.at + 1])


def _alias(words: Cursor, tokens: list[Token]) -> tuple[list[Token], str | None, list[Token]]:
    """Return the words of an expression, its name, and all words of both."""
    if tokens[-1].token_type is TokenType.ALIAS:
        words.fail("a name is missing after AS.", tokens[-1:])
    if len(tokens) > 2 and tokens[-2].token_type is TokenType.ALIAS:
        last = tokens[-1]
        if last.token_type is not TokenType.STRING:
            Cursor(words.text, [last]).name("a name")
        return tokens[:-2], last.text, tokens
    behind = len(tokens) > 1 and tokens[-1].token_type in NAMES and tokens[-2].token_type in _ENDING
    return (tokens[:-1], tokens[-1].text, tokens) if behind else (tokens, None, tokens)


_ENDING = NAMES | {TokenType.R_PAREN, TokenType.NUMBER, TokenType.STRING, TokenType.END}
"""What an expression may end with if a name after it is its alias."""
