"""Add an aggregate, as CONTRIBUTING.md says: a geometric mean, usable everywhere at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import panes as pn
from panes.aggregates.aggregate import Aggregate, Bound
from panes.aggregates.component import call
from panes.aggregates.registry import arguments_of, constructor
from panes.aggregates.sums import Count, Sum
from panes.errors import SqlError
from panes.operators import PUNCTUATION
from panes.operators import Aggregate as AggregateOperator
from panes.queries.catalogue_entries import read_entry, registration
from panes.testing import assert_same_answers, brute_force, brute_force_lookup, check_aggregate, events, spark_answers

# 1. Its chapter in panes.aggregates: what a user writes, what it is, and what it stores if no component does so yet.


@constructor("pn.geometric_mean('factor')", sql="GEOMEAN")
def geometric_mean(value: str) -> Aggregate:
    """The geometric mean of the positive values."""
    return GeometricMeanOf(arguments_of(value))


@dataclass(frozen=True)
class GeometricMeanOf(Aggregate):
    """``geometric_mean(x)``."""

    name: ClassVar[str] = "geometric_mean"
    weight: ClassVar[int] = 2

    def bind(self, arguments: tuple[str, ...], types: tuple[pa.DataType, ...]) -> Bound:
        self._require_number(types[0])
        positive = (f"CASE WHEN {arguments[0]} > 0 THEN {arguments[0]} END",)
        parts = LogSum(positive, types), Count(positive, types)
        return Bound(
            parts,
            pa.float64(),
            lambda logs, n: pc.exp(pc.divide(logs, n)),
            lambda logs, n: f"CASE WHEN {n} > 0 THEN exp({logs} / {n}) END",
        )

    def native(self, arguments: tuple[str, ...]) -> str:
        return f"exp(avg(ln(CASE WHEN {arguments[0]} > 0 THEN {arguments[0]} END)))"

    def reference(self, rows: Sequence[Any], **window: Any) -> float | None:
        logs = [math.log(x) for (x,) in rows if x > 0]
        return math.exp(math.fsum(logs) / len(logs)) if logs else None


@dataclass(frozen=True)
class LogSum(Sum):
    """The sum of logarithms: merged and stored as any sum of doubles."""

    kind: ClassVar[str] = "log_sum"

    @property
    def storage(self) -> pa.DataType:
        return pa.float64()

    def build(self, only: str | None = None) -> str:
        return call("sum", f"ln({self.arguments[0]})", only)

    def lift(self, *values: pa.Array) -> pa.Array:
        return pc.ln(values[0].cast(pa.float64()))


# 2. Its name in panes/__init__.py.


@pytest.fixture(autouse=True)
def exported(monkeypatch):
    monkeypatch.setattr(pn, "geometric_mean", geometric_mean, raising=False)


# 3. Its test. Nothing else had to know of it.

VALUES = {"x": pa.int32(), "f": pa.float64(), "d": pa.decimal128(6, 2)}
TABLE = events(300, keys={"k": pa.string()}, values=VALUES, special=0, seed=3)


def query_of(value="x", over=None):
    return pn.query(
        "growth",
        by="k",
        at="ts",
        select={"factor": pn.geometric_mean(value), "n": pn.count()},
        over=over or [pn.hopping("20 s", every="5 s"), pn.sliding("7 s"), pn.sliding(pn.rows(5)), pn.session("2 s")],
    )


def test_it_keeps_the_laws_that_it_claims():
    check_aggregate(pn.geometric_mean("x"), [3.0, -1.0, 0.5, 1e-300, 1e300, 0.0, 7.0])


@pytest.mark.parametrize("value", VALUES)
def test_every_verb_agrees_with_the_reference(value):
    query = query_of(value)
    assert_same_answers(pn.plan(query).run(TABLE), brute_force(query, TABLE))
    query = query_of(value, pn.sliding("7 s"))
    requests = TABLE.select(["k", "ts"]).slice(0, 50)
    found = pn.plan(query).lookup(TABLE, requests)
    assert_same_answers(found, brute_force_lookup(query, TABLE, requests))
    live = pn.plan(query).live()
    live.update(TABLE.sort_by("ts"))
    now = pc.max(TABLE["ts"]).as_py()
    at = requests.set_column(1, "ts", pa.array([now] * len(requests), TABLE.schema.field("ts").type))
    assert live.lookup(at)["factor_7s"].equals(pn.plan(query).lookup(TABLE, at)["factor_7s"])


def test_spark_gives_the_same_answers(spark):
    query = query_of(over=[pn.hopping("20 s", every="5 s"), pn.tumbling("9 s")])
    frame = spark.createDataFrame(TABLE)
    expected = spark_answers(query, frame).toArrow()
    for strategy in ("rewrite", "native", "columnar"):
        assert_same_answers(pn.plan(query).run(frame, strategy=strategy).toArrow(), expected)


def test_it_is_sql():
    (read,) = pn.sql("SELECT k, geomean(x * 2) AS factor FROM s TIMESTAMP BY ts GROUP BY k, Tumbling(minute, 5)")
    assert read.aggregates == (("factor", pn.geometric_mean("x * 2")),)
    assert "GEOMEAN(x * 2) AS factor" in pn.to_sql(read)
    assert pn.sql(pn.to_sql(read)) == [read]
    with pytest.raises(SqlError, match=r"write GEOMEAN\(x\), and nothing after it"):
        pn.sql("SELECT GEOMEAN(x, y) FROM s TIMESTAMP BY ts GROUP BY Tumbling(minute, 5)")


def test_a_catalogue_names_it():
    query = query_of(over=pn.tumbling("1 min"))
    entry = read_entry(registration(query).to_json())
    assert dict(entry.select)["factor"] == "geometric_mean('x')"


def test_a_live_plan_is_saved_with_it(tmp_path):
    plan = pn.plan(query_of(over=pn.sliding("7 s")))
    live = plan.live()
    live.update(TABLE.sort_by("ts"))
    live.save(tmp_path / "live")
    keys = TABLE.select(["k"]).slice(0, 20)
    assert plan.live(load=tmp_path / "live").lookup(keys).equals(live.lookup(keys))


def test_operators_take_it():
    operator = AggregateOperator(pn.tumbling(pn.rows(3)), {"factor": pn.geometric_mean("x")})
    answer, mark = operator.run([{"x": 2}, {"x": -5}, {"x": 8}])
    assert answer["factor"] == pytest.approx(4)
    assert mark is PUNCTUATION


def test_a_wrong_call_is_explained():
    with pytest.raises(pn.PanesError, match=r"write where= of the query.*Write for example pn.geometric_mean"):
        pn.geometric_mean("x", where="x > 0")
