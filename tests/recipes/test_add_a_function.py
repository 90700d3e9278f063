"""The recipe "Add a function to expressions" of CONTRIBUTING.md, followed: SQRT."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from sqlglot import exp

import panes as pn
from panes.errors import ExpressionError
from panes.expressions.coercion import DOUBLE
from panes.expressions.evaluate import evaluate, result_type
from panes.expressions.expression import Expression
from panes.expressions.functions import FUNCTIONS, NUMBER, Function


def sqrt(array: pa.Array) -> pa.Array:
    """Return the square root as a double; NaN of a negative number."""
    return pc.sqrt(array.cast(DOUBLE))


@pytest.fixture(autouse=True)
def declared(monkeypatch: pytest.MonkeyPatch) -> None:
    """The entry, and the function that computes it."""
    monkeypatch.setitem(FUNCTIONS, exp.Sqrt, Function("SQRT", NUMBER, lambda kind: DOUBLE, sqrt))


def test_it_is_read_written_and_computed() -> None:
    table = pa.table({"x": [4.0, -1.0, None], "n": pa.array([9, 0, 2], pa.int8())})
    assert Expression("sqrt( x )").sql == "SQRT(x)"
    assert evaluate("SQRT(x) + SQRT(n)", table).to_pylist()[0] == 5
    assert evaluate("SQRT(x)", table).to_pylist()[2] is None
    assert result_type("SQRT(n)", table.schema) == DOUBLE
    assert result_type("SQRT(NULL)", table.schema) == DOUBLE


def test_mistakes_name_it() -> None:
    with pytest.raises(ExpressionError, match="'word' is STRING, and a number is needed here"):
        result_type("SQRT(word)", pa.schema({"word": pa.string()}))


def test_queries_use_it() -> None:
    events = pa.table({"ts": pa.array([1, 2], pa.timestamp("s", "UTC")), "x": [4.0, 9.0]})
    query = pn.query(at="ts", select={"total": pn.sum("SQRT(x)")}, where="SQRT(x) > 0", over=pn.tumbling("1 min"))
    assert pn.plan(query).run(events).column("total").to_pylist() == [5.0]


def test_spark_computes_the_same(spark) -> None:
    numbers = pa.table({"x": [4.0, -1.0, 2.0, None], "n": pa.array([9, 0, 2, None], pa.int8())})
    for sql in ("SQRT(x)", "SQRT(n)", "SQRT(NULL)", "SQRT(n / 2.5)"):
        theirs = spark.createDataFrame(numbers).selectExpr(sql).toArrow().column(0)
        ours = evaluate(sql, numbers)
        assert ours.type == theirs.type
        assert str(ours.to_pylist()) == str(theirs.to_pylist())
