"""Expressions as values: one spelling, a closed subset, errors that show the place."""

from __future__ import annotations

import pickle

import pytest

from panes.errors import ExpressionError
from panes.expressions.expression import (
    Expression,
    column,
    disjunction,
    expression,
    when,
)

SPELLINGS = {
    "price*QTY": "price * QTY",
    "((a)+(b))*((c))": "(a + b) * c",
    "a-(b-c)": "a - (b - c)",
    "(a-b)-c": "a - b - c",
    "a/(b*c)": "a / (b * c)",
    "not(a and(b or c))": "NOT (a AND (b OR c))",
    "((a) and (b)) or (((c)))": "a AND b OR c",
    "(a=b)<c": "(a = b) < c",
    "a == 1 and b != 2": "a = 1 AND b <> 2",
    "not a in (1,2)": "a NOT IN (1, 2)",
    "a not like 'x%'": "a NOT LIKE 'x%'",
    "(a not like 'x') and ((b not like 'y'))": "a NOT LIKE 'x' AND b NOT LIKE 'y'",
    "not (a is null)": "a IS NOT NULL",
    "a between 1 and 2 and b": "a BETWEEN 1 AND 2 AND b",
    "- -1": "-(-1)",
    "(a||b)+c": "CONCAT(a, b) + c",
    "a || (b || c) || upper(d || e)": "CONCAT(a, CONCAT(b, c), UPPER(CONCAT(d, e)))",
    "ifnull(a, b)": "COALESCE(a, b)",
    "ceiling(a)": "CEIL(a)",
    "mod(a, b)": "a % b",
    "int(a)": "CAST(a AS INT)",
    "cast(a as decimal)": "CAST(a AS DECIMAL(10, 0))",
    "cast('2024-02-29' as date)": "DATE '2024-02-29'",
    "timestamp '2024-02-29'": "TIMESTAMP '2024-02-29'",
    "case a when 1 then 2 else 3 end": "CASE a WHEN 1 THEN 2 ELSE 3 END",
    "'it''s' || \"it's\"": "CONCAT('it\\'s', 'it\\'s')",
    "1E3 + 007 + .5": "1E3 + 7 + 0.5",
    "a /* why */ + 1 -- because": "a + 1",
    "`my col` + `a.b` + `order` + s.`x y` + `plain`": "`my col` + `a.b` + `order` + s.`x y` + plain",
    "temp > -60": "temp > -60",
}


@pytest.mark.parametrize("text", SPELLINGS)
def test_one_spelling(text):
    found = Expression(text)
    assert found.sql == SPELLINGS[text]
    assert Expression(found.sql) == found
    assert Expression(found.sql).tree == found.tree
    assert hash(Expression(found.sql)) == hash(found)
    assert pickle.loads(pickle.dumps(found)) == found


REFUSALS = {
    "rand() > 1": ("RAND is not deterministic", "^^^^"),
    "a > current_timestamp()": ("CURRENT_TIMESTAMP is not deterministic", "    ^^^^^^^^^^^^^^^^^"),
    "sum(a) + 1": ("an aggregate reads many rows", "^^^"),
    "sum(a) over (partition by b)": ("a window function reads other rows", None),
    "a in (select b from t)": ("a subquery reads other rows", None),
    "(select 1)": ("a subquery reads other rows", None),
    "1 + frobnicate(a)": ("the function FROBNICATE is not in the subset", "    ^^^^^^^^^^"),
    "*": ("a star stands for many columns", None),
    "a.*": ("a star stands for many columns", None),
    "a; drop table b": ("it holds several statements", " ^"),
    "a as b": ("an expression has no alias", None),
    "a b": ("an expression has no alias", None),
    "a +": ("line 1, column 3", "  ^"),
    "(a": ("line 1, column 2: expecting )", None),
    "'abc": ("never closed", None),
    "": ("is empty", None),
    "a < b < c": ("comparisons do not chain", None),
    "a || b + c": ("needs parentheses", None),
    "'a' 'b'": ("two strings stand side by side", "    ^^^"),
    "a like b": ("must be one string literal", None),
    "a like 'x\\\\'": ("a backslash in a pattern", None),
    "a like 'x' escape '!'": ("ESCAPE is not in the subset", None),
    "a in ()": ("IN needs a list", None),
    "try_cast(a as int)": ("TRY_CAST is not in the subset", None),
    "cast(a as date)": ("depends on the session's time zone", None),
    "cast(a as array<int>)": ("is not in the subset", None),
    "cast('1' as int)": ("a cast from a string", None),
    "cast(a as decimal(39, 2))": ("needs 1 to 38 digits", None),
    "round(a, b)": ("must be an integer literal", None),
    "floor(a, 2)": ("FLOOR with DECIMALS", None),
    "ltrim(a)": ("TRIM with POSITION", None),
    "trim('x' from a)": ("TRIM with EXPRESSION", None),
    "least(a)": ("needs at least two", None),
    "interval 1 day": ("intervals and date arithmetic", None),
    "date '2024-02-30'": ("is not a date", None),
    "timestamp '2024-01-01 24:00:00'": ("is not a timestamp", None),
    "timestamp 'yesterday'": ("is not a timestamp", None),
    "timestamp '2024-02-29 12:00Z'": ("is not a timestamp", None),
    "1e999": ("too large", None),
    "1" * 39: ("more than the 38 digits", None),
    ":x": ("there are no parameters", None),
    "a[0]": ("is not in the subset", None),
    "x'1f'": ("is not in the subset", None),
}


@pytest.mark.parametrize("text", REFUSALS)
def test_outside_the_subset(text):
    reason, underline = REFUSALS[text]
    with pytest.raises(ExpressionError) as caught:
        Expression(text)
    assert reason in str(caught.value)
    if underline is not None:
        assert f"\n  {text}\n  {underline}\n" in str(caught.value)


def test_only_text_is_an_expression():
    with pytest.raises(ExpressionError, match="give SQL text, as 'temp > -60'"):
        expression(5)  # type: ignore[arg-type]


def test_columns():
    found = Expression("a + s.x * A + s.y.z.u.v + `a.b`")
    assert found.columns == ("a", "s.x", "A", "s.y.z.u.v", "a.b")
    assert found.roots == ("a", "s", "A", "a.b")
    assert Expression("case when c then d end").columns == ("c", "d")
    assert Expression("1 + 1").columns == ()


@pytest.mark.parametrize(
    ("text", "plain"), [("a", True), ("(`a b`)", True), ("a.b", True), ("a + 0", False), ("1", False)]
)
def test_is_column(text, plain):
    assert Expression(text).is_column is plain


def test_builders():
    assert when("a or b", "x") == Expression("CASE WHEN a OR b THEN x END")
    assert disjunction(["a and b", "not c"]).sql == "a AND b OR NOT c"
    assert disjunction(["a", Expression("b OR c")]).sql == "a OR (b OR c)"
    assert disjunction(["a"]).sql == "a"
    assert disjunction([]).sql == "FALSE"
    assert column("end").sql == "`end`"
    assert expression(Expression("a")) == expression("a") == Expression("a")
    assert str(Expression("a+1")) == "a + 1"


def test_rename():
    found = Expression("a * s.x + s.y")
    assert found.rename({"A": "q r"}).sql == "`q r` * s.x + s.y"
    assert found.rename({"s": "t"}).sql == "a * t.x + t.y"
    assert found.rename({"s.x": "flat", "s": "t"}).sql == "a * flat + t.y"
    assert found.rename({"a": Expression("b + 1")}).sql == "(b + 1) * s.x + s.y"
    assert Expression("a + b").rename({"a": "b", "b": "a"}).sql == "b + a"
    assert found.sql == "a * s.x + s.y"
    with pytest.raises(ExpressionError, match="is not a column"):
        found.rename({"s": Expression("b + 1")})
