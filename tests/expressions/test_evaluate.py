"""What the local runner promises by itself; that it agrees with Spark is tested beside Spark."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from panes.errors import ExpressionError, SchemaError
from panes.expressions.evaluate import evaluate, require_boolean, result_type

TABLE = pa.table({"a": [1, None, 0], "x": [1.5, float("nan"), None], "s": ["u", "V", None], "b": [True, False, None]})


def test_answers_have_the_chunks_of_the_table():
    chunked = pa.concat_tables([TABLE, TABLE])
    answer = evaluate("a + 1", chunked)
    assert answer.num_chunks == 2
    assert answer.to_pylist() == [2, None, 1] * 2


def test_no_rows_have_a_type_and_no_errors():
    answer = evaluate("1 / a", TABLE.slice(0, 0))
    assert (len(answer), answer.type) == (0, pa.float64())
    assert result_type("1 / a", TABLE.schema) == pa.float64()


def test_names_are_found_whatever_their_case():
    assert evaluate("A + 1", TABLE).to_pylist() == [2, None, 1]
    with pytest.raises(SchemaError, match="did you mean 'device'"):
        result_type("devcie", pa.schema({"device": pa.string()}))
    with pytest.raises(SchemaError, match="ambiguous"):
        result_type("a", pa.schema({"a": pa.int32(), "A": pa.int32()}))


def test_fields_of_structs():
    table = pa.table({"s": [{"x": 1}, None, {"x": None}]})
    assert evaluate("s.X + 1", table).to_pylist() == [2, None, None]
    with pytest.raises(SchemaError, match="no field 'z'"):
        evaluate("s.z", table)
    with pytest.raises(SchemaError, match="not a struct"):
        evaluate("s.x.y", table)


@pytest.mark.parametrize("sql", ["1 / a", "a % 0", "CAST(a + 300 AS TINYINT)", "9223372036854775807 + a"])
def test_a_failure_names_the_expression(sql):
    with pytest.raises(ExpressionError, match="fails on") as caught:
        evaluate(sql, TABLE)
    assert sql in str(caught.value)


def test_a_failure_shows_the_first_row_that_fails():
    table = pa.concat_tables([TABLE, TABLE])
    with pytest.raises(ExpressionError, match=r"fails on row 2 \(s = None, a = 0\): division by zero in '1 / a'\."):
        evaluate("IF(s IS NULL, 1 / a, 0)", table)
    with pytest.raises(ExpressionError, match=r"fails on row 2 \(a = 1\)"):
        evaluate("CASE WHEN a = 1 THEN 1 / (a - 1) END", table.slice(1))


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("CASE WHEN a <> 0 THEN 1 / a END", [1.0, None, None]),
        ("1 / NULLIF(a, 0)", [1.0, None, None]),
        ("a = 0 OR 1 / a > 0", [True, None, True]),
        ("a <> 0 AND 1 / a > 0", [True, None, False]),
        ("COALESCE(a, 1 / 0)", [1.0, None, 0.0]),
    ],
)
def test_failures_matter_only_where_somebody_looks(sql, expected):
    table = TABLE if "COALESCE" not in sql else TABLE.filter(pa.array([True, False, True]))
    answer = evaluate(sql, table).to_pylist()
    assert answer == (expected if table is TABLE else [expected[0], expected[2]])


@pytest.mark.parametrize("sql", ["'abc' + 1", "NOT a", "s = 1", "a AND b", "UPPER(a)", "IF(b, 1, 's')"])
def test_wrong_types_fail_before_rows_flow(sql):
    with pytest.raises(ExpressionError, match=r"cannot be computed|BOOLEAN"):
        result_type(sql, TABLE.schema)


def test_conditions_have_to_be_boolean():
    assert require_boolean("a > 1 OR b", TABLE.schema).sql == "a > 1 OR b"
    for sql in ("a", "s", "NULL"):
        with pytest.raises(ExpressionError, match="must be BOOLEAN"):
            require_boolean(sql, TABLE.schema)


def test_columns_come_in_the_types_of_spark():
    instant = datetime(2024, 2, 29, tzinfo=UTC)
    table = pa.table(
        {
            "small": pa.array([1], pa.uint8()),
            "huge": pa.array([2**64 - 1], pa.uint64()),
            "word": pa.array(["w"]).dictionary_encode(),
            "long": pa.array(["l"], pa.large_string()),
            "at": pa.array([instant], pa.timestamp("ns", tz="Europe/Paris")),
        }
    )
    kinds = {name: result_type(name, table.schema) for name in table.column_names}
    assert kinds == {
        "small": pa.int16(),
        "huge": pa.decimal128(20, 0),
        "word": pa.string(),
        "long": pa.string(),
        "at": pa.timestamp("us", tz="UTC"),
    }
    for name, kind in kinds.items():
        assert evaluate(name, table).type == kind
    assert evaluate("word || long", table).to_pylist() == ["wl"]
    assert evaluate("at = TIMESTAMP '2024-02-29 00:00:00Z'", table).to_pylist() == [True]


def test_long_chains_do_not_recurse_too_deep():
    assert evaluate(" OR ".join(f"a = {i}" for i in range(150)), TABLE).to_pylist() == [True, None, True]
