"""A cursor over the words of a statement, and errors that show where in the text they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn, TypeVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from panes.errors import DeclarationError, ExpressionError, SqlError
from panes.expressions.parsing import check_text, joined_strings

T = TypeVar("T")


def _percentile(arguments: list[exp.Expression]) -> exp.Expression:
    """All arguments: sqlglot drops the third one."""
    return exp.Anonymous(this="PERCENTILE", expressions=arguments)


class Panes(Spark):
    """Spark SQL, with the names of aggregates in other systems, and EXPLAIN as a word of its own."""

    class Tokenizer(Spark.Tokenizer):  # noqa: D106
        KEYWORDS = {word: kind for word, kind in Spark.Tokenizer.KEYWORDS.items() if word != "EXPLAIN"}  # noqa: RUF012

    class Parser(Spark.Parser):  # type: ignore[misc,valid-type]  # noqa: D106
        FUNCTION_PARSERS = {  # noqa: RUF012
            name: parse for name, parse in Spark.Parser.FUNCTION_PARSERS.items() if name != "PERCENTILE"
        }
        FUNCTIONS = {  # noqa: RUF012
            **Spark.Parser.FUNCTIONS,
            # sqlglot takes the second argument for a flag, and drops any other value.
            "FIRST": exp.First.from_arg_list,
            "LAST": exp.Last.from_arg_list,
            "PERCENTILE": _percentile,
            "QUANTILE": _percentile,
            "MEAN": exp.Avg.from_arg_list,
            "STD": exp.StddevSamp.from_arg_list,
            "STDEV": exp.StddevSamp.from_arg_list,
            "STDEVP": exp.StddevPop.from_arg_list,
            "VAR": exp.Variance.from_arg_list,
            "VARP": exp.VariancePop.from_arg_list,
        }


PANES = Panes()
NAMES = frozenset({TokenType.VAR, TokenType.IDENTIFIER})
_OPENING = {TokenType.L_PAREN: TokenType.R_PAREN, TokenType.L_BRACKET: TokenType.R_BRACKET}


def tokenized(text: str) -> list[Token]:
    """Split a text into words; an open quote or comment is an error."""
    try:
        check_text(text)
        return joined_strings(text, PANES.tokenize(text))
    except TokenError as error:
        raise SqlError("a quote, a backtick or a comment is opened and never closed.") from error
    except ExpressionError as error:
        raise SqlError(str(error)) from error


def fail(text: str, tokens: Sequence[Token], what: str) -> NoReturn:
    """Raise an error that shows where some words are."""
    if not tokens:
        raise SqlError(what)
    first, last = tokens[0].start, tokens[-1].end
    begin = text.rfind("\n", 0, first) + 1
    end = text.find("\n", first)
    shown = text[begin : len(text) if end < 0 else end]
    line, column = text.count("\n", 0, first) + 1, first - begin + 1
    mark = "^" * max(1, min(last + 1, begin + len(shown)) - first)
    before = "".join(letter if letter == "\t" else " " for letter in shown[: column - 1])
    raise SqlError(f"line {line}, column {column}: {what}\n  {shown}\n  {before}{mark}")


class Cursor:
    """A position in the words of a statement.

    Parameters
    ----------
    text
        The whole text, which errors quote.
    tokens
        The words of this statement.
    """

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self.text, self.tokens, self.at = text, tokens, 0

    @property
    def ended(self) -> bool:
        """Whether there is no further word."""
        return self.at >= len(self.tokens)

    def sees(self, *words: str) -> bool:
        """Whether the next words are these, in any case; a quoted name is not."""
        found = self.tokens[self.at : self.at + len(words)]
        return len(found) == len(words) and all(map(_is, found, words))

    def took(self, *words: str) -> bool:
        """Step over these words if they come next, and return whether they did."""
        if not self.sees(*words):
            return False
        self.at += len(words)
        return True

    def expect(self, word: str, instead: str) -> Token:
        """Step over a word that must come next; ``instead`` says what to write."""
        if not self.sees(word):
            self.fail(f"expected {word} here. {instead}")
        return self.next()

    def next(self) -> Token:
        """Step over a word, whatever it is."""
        if self.ended:
            self.fail("the statement ends too early.")
        self.at += 1
        return self.tokens[self.at - 1]

    def name(self, what: str) -> str:
        """Step over a name."""
        token = self.tokens[self.at] if not self.ended else None
        if token is None or (token.token_type not in NAMES and not _wordlike(token)):
            self.fail(f"expected {what} here.")
        assert token is not None
        self.at += 1
        return token.text

    def dotted(self, what: str) -> str:
        """Step over a name that may have several parts: ``catalog.schema.table``."""
        found = self.name(what)
        while self.took("."):
            found += f".{self.name('a name')}"
        return found

    def fail(self, what: str, tokens: Sequence[Token] | None = None) -> NoReturn:
        """Raise an error about some words, or about the next one."""
        here = self.tokens[self.at : self.at + 1] or self.tokens[-1:]
        fail(self.text, here if tokens is None else tokens, what)

    def inside(self, *closing: str) -> list[Token]:
        """Step over everything up to one of some words, or a comma, that is not within parentheses."""
        begin, depth = self.at, list[TokenType]()
        while not self.ended:
            token = self.tokens[self.at]
            if not depth and (token.token_type is TokenType.COMMA or any(_is(token, word) for word in closing)):
                break
            if token.token_type in _OPENING:
                depth.append(_OPENING[token.token_type])
            elif token.token_type in _OPENING.values() and (not depth or depth.pop() is not token.token_type):
                self.fail("there is no opening parenthesis for this.", [token])
            self.at += 1
        if depth:
            self.fail("this parenthesis is never closed.", self.tokens[begin : begin + 1])
        return list(self.tokens[begin : self.at])

    def arguments(self) -> list[Cursor]:
        """Step over a list in parentheses, and return a cursor over each member."""
        opening = self.expect("(", "Arguments are in parentheses.")
        found: list[Cursor] = []
        if self.took(")"):
            return found
        while True:
            members = self.inside(")")
            if not members:
                self.fail("an argument is missing here.")
            found.append(Cursor(self.text, members))
            if self.took(")"):
                return found
            if not self.took(","):
                self.fail("this parenthesis is never closed.", [opening])

    def end(self, what: str) -> None:
        """Reject further words."""
        if not self.ended:
            self.fail(what, self.tokens[self.at :])


def checked(words: Cursor, call: Sequence[Token], make: Callable[[], T]) -> T:
    """Make a value of some words; show an error of its constructor where they are."""
    try:
        return make()
    except DeclarationError as error:
        if isinstance(error, SqlError):
            raise
        words.fail(str(error), call)


def same(words: Sequence[Token], others: Sequence[Token]) -> bool:
    """Whether words are equal: strings exactly, everything else in any case."""
    return [_folded(token) for token in words] == [_folded(token) for token in others]


def split(tokens: Iterable[Token]) -> list[list[Token]]:
    """Split words into statements at semicolons."""
    found: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            found.append([])
        else:
            found[-1].append(token)
    return [statement for statement in found if statement]


def _folded(token: Token) -> tuple[bool, str]:
    text = token.token_type is TokenType.STRING
    return text, token.text if text else token.text.lower()


def _is(token: Token, word: str) -> bool:
    quoted = token.token_type in (TokenType.IDENTIFIER, TokenType.STRING)
    # Some keywords are two words, with any blanks between them.
    return not quoted and " ".join(token.text.upper().split()) == word.upper()


def _wordlike(token: Token) -> bool:
    """Whether a word is a keyword of SQL that may also be a name, as ``window`` or ``date``."""
    reserved = ("SELECT", "FROM", "WHERE", "HAVING", "BY", "AND", "OR", "NOT", "AS", "ORDER", "LIMIT", "NULL")
    word = token.text
    return token.token_type is not TokenType.STRING and word.isidentifier() and word.upper() not in reserved
