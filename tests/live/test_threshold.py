"""Keys found by an index against every event: aggregates, types and ranges, late events, expiry, nulls, mistakes."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes as pn
from panes.errors import (
    AnswerOverflowError,
    DeclarationError,
    DurationError,
    ExpressionError,
    PanesError,
    PlanError,
    SchemaError,
)
from panes.live import staircase, store, threshold_index
from panes.live.conditions import Range
from panes.live.threshold_index import ThresholdIndex

KEEP = 40
SECOND = 1_000_000
Row = tuple[Any, int, Any]

TYPES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int": (pa.int32(), st.integers(0, 9)),
    "signed": (pa.int64(), st.integers(-9, 9)),
    "large": (pa.int64(), st.sampled_from([0, 3, 2**36 + 1, 2**40, 2**52])),
    "double": (pa.float64(), st.sampled_from([0.0, 0.125, 0.25, 1.5, 1e-320, 3e12])),
    "wild": (pa.float64(), st.sampled_from([-1.5, 0.0, -0.0, 2.25, math.inf, -math.inf, math.nan])),
    "float": (pa.float32(), st.sampled_from([0.5, 0.75, 8.0])),
    "decimal": (pa.decimal128(9, 2), st.decimals(0, 9, places=2)),
}
AGGREGATES = {
    "count": pn.count(),
    "count of x": pn.count("x"),
    "sum": pn.sum("x"),
    "max": pn.max("x"),
    "min": pn.min("x"),
}


def table_of(rows: list[Row], type_: pa.DataType, key: pa.DataType | None = None) -> pa.Table:
    instants = pa.array([row[1] * SECOND for row in rows], pa.int64()).view(pa.timestamp("us", "UTC"))
    keys, values = pa.array([row[0] for row in rows], key or pa.string()), pa.array([row[2] for row in rows], type_)
    return pa.table({"k": keys, "ts": instants, "x": values})


class Indexed:
    """A live plan of one column with an index; a lookup is written as a condition."""

    def __init__(self, aggregate: Any, *, by: Any, at: str, keep: str, where: str | None = None, **levels: Any) -> None:
        over = pn.sliding("1 us")
        plan = pn.plan(pn.query(by=by, at=at, select={"value": aggregate}, over=over, where=where))
        self.live = plan.live(keep)
        self.live.add_index("value", **levels)

    @property
    def index(self) -> ThresholdIndex:
        """What gives candidates."""
        return self.live._parts[0].indexes["query", "value"]

    def update(self, batch: Any) -> None:
        self.live.update(batch)

    def lookup(
        self, *, over: str, above: Any = None, below: Any = None, exact: bool = True, **options: Any
    ) -> pa.Table:
        """The keys whose answer is within an open range; or candidates, without their answers."""
        parts = [f"value {op} {number(v)}" for op, v in ((">", above), ("<", below)) if v is not None]
        if exact:
            found = self.live.find(" AND ".join(parts), over=over, **options)
            assert "at" in options or "ago" in options or "index" in self.live.explain(" AND ".join(parts), over=over)
            return found
        end = round(options["at"].timestamp()) * SECOND if "at" in options else self.live._newest["ts"]
        part = self.live._parts[0]
        # A little more than the range, as a condition is read.
        wanted = Range(
            "value",
            None if above is None else math.nextafter(float(above), -math.inf),
            None if below is None else math.nextafter(float(below), math.inf),
        )
        with np.errstate(all="ignore"):
            keys = self.index.candidates(wanted, end - int(over[:-1]) * SECOND + 1, end)
        return pa.table(part.keys(keys), names=list(part.declared.by))


def number(value: float | Decimal) -> str:
    """The literal of a number: of a float a double, where Spark reads 1.5 as a decimal."""
    text = str(value)
    return f"{text}e0" if isinstance(value, float) and "e" not in text else text


def instant(seconds: int) -> dt.datetime:
    return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=seconds)


def by_hand(aggregate: str, values: list[Any]) -> Any:
    """The answer over the values of a key in a window, of which there is one or more; nulls are skipped."""
    known = [value for value in values if value is not None]
    if aggregate == "count":
        return len(values)
    if aggregate == "count of x":
        return len(known)
    if not known:
        return None
    if aggregate == "sum":
        return sum(known)
    pick = max if aggregate == "max" else min
    # NaN is the largest of all, as in Spark.
    return pick(known, key=lambda value: (math.isnan(value), value if not math.isnan(value) else 0))


def holds(value: Any, low: Any, high: Any) -> bool:
    if value is None:
        return False
    nan = isinstance(value, float) and math.isnan(value)
    return (low is None or nan or value > low) and (high is None or (not nan and value < high))


def expected(rows: list[Row], aggregate: str, end: int, length: int, low: Any, high: Any) -> dict[Any, Any]:
    inside: dict[Any, list[Any]] = {}
    for key, time, value in rows:
        if end - length < time <= end:
            inside.setdefault(key, []).append(value)
    found = {key: by_hand(aggregate, values) for key, values in inside.items()}
    return {key: value for key, value in found.items() if holds(value, low, high)}


def same(found: dict[Any, Any], wanted: dict[Any, Any]) -> bool:
    return found.keys() == wanted.keys() and all(
        found[k] == wanted[k]
        or (isinstance(found[k], float) and (math.isclose(found[k], wanted[k]) or str(found[k]) == str(wanted[k])))
        for k in wanted
    )


@st.composite
def streams(draw: st.DrawFn, values: st.SearchStrategy[Any]) -> list[list[Row]]:
    """Batches whose times mostly go on, and sometimes go back."""
    batches, now = [], 100
    for _ in range(draw(st.integers(1, 6))):
        batch = []
        for _ in range(draw(st.integers(0, 12))):
            now += draw(st.sampled_from([0, 0, 1, 2, 7]))
            late = draw(st.sampled_from([0, 0, 0, 0, 1, 5, 60]))
            batch.append((draw(st.sampled_from(["a", "b", "c", None])), now - late, draw(st.none() | values)))
        batches.append(batch)
    return batches


@settings(max_examples=12)
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("aggregate", AGGREGATES)
@given(data=st.data())
def test_lookups_between_updates(aggregate: str, kind: str, data: st.DataObject) -> None:
    type_, values = TYPES[kind]
    levels = {} if aggregate in ("max", "min") else {"p": data.draw(st.sampled_from([1, 2, 4]))}
    index = Indexed(AGGREGATES[aggregate], by="k", at="ts", keep=f"{KEEP}s", **levels)
    rows: list[Row] = []
    for batch in data.draw(streams(values)):
        index.update(table_of(batch, type_))
        rows += batch
        if not rows:
            continue
        latest = max(time for _, time, _ in rows)
        rows = [row for row in rows if row[1] > latest - KEEP]
        for _ in range(3):
            length = data.draw(st.integers(1, KEEP))
            ago = data.draw(st.sampled_from([0, 0, 0, -3, KEEP - length]))
            threshold = data.draw(st.one_of(values, st.sampled_from([-1, 0, 2, 2.5, 30]))) or 0
            threshold = 4 if isinstance(threshold, float) and not math.isfinite(threshold) else threshold
            other = threshold + data.draw(st.integers(1, 9))
            for asked, low, high in (
                ({"above": threshold}, threshold, None),
                ({"below": threshold}, None, threshold),
                ({"above": threshold, "below": other}, threshold, other),
            ):
                end = {"at": instant(latest - ago)}
                found = index.lookup(over=f"{length}s", **asked, **end)  # type: ignore[arg-type]
                got = dict(zip(found["k"].to_pylist(), found["value"].to_pylist(), strict=True))
                wanted = expected(rows, aggregate, latest - ago, length, low, high)
                assert same(got, wanted), (asked, got, wanted)
                assert found.num_rows == len(got)
                some = index.lookup(over=f"{length}s", exact=False, **asked, **end)  # type: ignore[arg-type]
                assert some.column_names == ["k"]
                assert wanted.keys() <= set(some["k"].to_pylist())


@settings(max_examples=40)
@given(st.sampled_from([1, 2, 3, 6]), st.data())
def test_candidates_satisfy_the_relaxed_predicate(p: int, data: st.DataObject) -> None:
    index = Indexed(pn.sum("x"), by="k", at="ts", keep=f"{KEEP}s", p=p)
    rows: list[Row] = []
    for batch in data.draw(streams(st.integers(0, 50))):
        index.update(table_of(batch, pa.int64()))
        rows += batch
        if not rows:
            continue
        latest, length = max(time for _, time, _ in rows), data.draw(st.integers(1, KEEP))
        rows = [row for row in rows if row[1] > latest - KEEP]
        v = data.draw(st.integers(1, 200))
        sums = expected(rows, "sum", latest, length, None, math.inf)
        above = index.lookup(over=f"{length}s", above=v, exact=False)["k"].to_pylist()
        assert all(sums[key] > v * (1 - index.index.levels.epsilon) for key in above)
        below = index.lookup(over=f"{length}s", below=v, exact=False)["k"].to_pylist()
        assert all(sums.get(key, 0) < v / (1 - index.index.levels.epsilon) for key in below)


def test_the_example_of_the_paper() -> None:
    from tests.live.test_collective import K1, K2, K3, POSITIONS

    index = Indexed(pn.count(), by="k", at="ts", keep="1000s", p=1)
    # What Figure 8 does not show of each substream came long before.
    rows = [(k, t, None) for k, last in zip(("k1", "k2", "k3"), POSITIONS, strict=True) for t in range(last - 15)]
    rows += [(k, t, None) for k, shown in (("k1", K1), ("k2", K2), ("k3", K3)) for t in shown]
    index.update(table_of(sorted(rows, key=lambda row: row[1]), pa.int64()))
    # LOOKUP(106, 20, 11) gives k1 and k2, too; k2 has 10, and a condition is read as a slightly wider range.
    assert index.lookup(over="20s", above=10, exact=False)["k"].to_pylist() == ["k1", "k2"]
    assert index.lookup(over="20s", above=10).to_pylist() == [{"k": "k1", "value": 11}]


def test_windows_are_open_at_their_begin_and_closed_at_their_end() -> None:
    index = Indexed(pn.count(), by="k", at="ts", keep="10s")
    index.update(table_of([("a", 10, 0), ("b", 20, 0)], pa.int64()))
    # At 20, ten seconds hold (10, 20]: the event at 10 has just gone.
    assert index.lookup(over="10s", above=0)["k"].to_pylist() == ["b"]
    assert index.lookup(over="10s", above=0, at=instant(29))["k"].to_pylist() == ["b"]
    assert index.lookup(over="10s", above=0, at=instant(30)).num_rows == 0


def test_ties_and_one_row() -> None:
    index = Indexed(pn.count(), by="k", at="ts", keep="10s", p=1)
    index.update(table_of([("a", 5, 0)], pa.int64()))
    assert index.lookup(over="1s", above=0).to_pylist() == [{"k": "a", "value": 1}]
    index.update(table_of([("a", 5, 0)] * 99, pa.int64()))
    assert index.lookup(over="1s", above=99).to_pylist() == [{"k": "a", "value": 100}]
    assert index.lookup(over="1s", above=100).num_rows == 0


def test_integer_sums_beyond_64_bits() -> None:
    big = 2**62
    index = Indexed(pn.sum("x"), by="k", at="ts", keep="10s")
    index.update(table_of([("a", 5, big), ("b", 5, 1)], pa.int64()))
    index.update(table_of([("a", 6, big - 1), ("b", 6, -big), ("c", 6, -(2**63))], pa.int64()))
    found = index.lookup(over="10s", above=-(2**70)).to_pylist()
    assert [row["value"] for row in found] == [2 * big - 1, 1 - big, -(2**63)]
    index.update(table_of([("a", 7, 1)], pa.int64()))
    with pytest.raises(AnswerOverflowError, match="does not fit a BIGINT"):
        index.lookup(over="10s", above=0)
    with pytest.raises(AnswerOverflowError, match="does not fit a BIGINT"):
        index.lookup(over="10s", below=0)


def test_decimals_beyond_64_bits() -> None:
    index = Indexed(pn.sum("x"), by="k", at="ts", keep="10s")
    large = Decimal("12345678901234567890123.25")
    index.update(table_of([("a", 5, large), ("b", 5, Decimal("0.75"))], pa.decimal128(28, 2)))
    found = index.lookup(over="10s", above=Decimal("12345678901234567890123.24"))
    assert found.to_pylist() == [{"k": "a", "value": large}]
    assert found["value"].type == pa.decimal128(38, 2)
    assert index.lookup(over="10s", above=0.5, below=1).to_pylist() == [{"k": "b", "value": Decimal("0.75")}]
    with pytest.raises(SchemaError, match="more than 18 digits"):
        Indexed(pn.max("x"), by="k", at="ts", keep="10s").update(table_of([("a", 5, large)], pa.decimal128(28, 2)))


def test_extremes_of_int64() -> None:
    low, high = -(2**63), 2**63 - 1
    rows = [("low", 5, low), ("high", 5, high), ("none", 5, None)]
    for aggregate in (pn.max("x"), pn.min("x")):
        index = Indexed(aggregate, by="k", at="ts", keep="10s")
        index.update(table_of(rows, pa.int64()))
        assert index.lookup(over="1s", above=low)["k"].to_pylist() == ["high"]
        assert index.lookup(over="1s", above=low - 1)["k"].to_pylist() == ["low", "high"]
        assert index.lookup(over="1s", above=high).num_rows == 0
        assert index.lookup(over="1s", below=high)["k"].to_pylist() == ["low"]
        assert index.lookup(over="1s", below=high + 1)["k"].to_pylist() == ["low", "high"]
        assert index.lookup(over="1s", below=low).num_rows == 0
        assert index.lookup(over="1s", above=1e40).num_rows == 0


def test_float_sums_do_not_cancel() -> None:
    index = Indexed(pn.sum("x"), by="k", at="ts", keep="10s")
    index.update(table_of([("a", 1, 1e17), ("a", 5, 0.1), ("a", 6, 0.2)], pa.float64()))
    assert index.lookup(over="3s", above=0.3)["value"].to_pylist() == [0.1 + 0.2]


def test_units_follow_the_values() -> None:
    """Values a million times larger than the first ones, then as small ones again: answers and errors stay."""
    index = Indexed(pn.sum("x"), by="k", at="ts", keep="1000s")
    rng, rows = np.random.default_rng(3), []  # type: ignore[var-annotated]
    for step, size in enumerate([1e-6, 1e6, 1e12, 1.0]):
        batch = [(f"k{i}", 100 * step + i, float(rng.uniform(0.5, 1) * size)) for i in range(100)]
        rows += batch
        index.update(table_of(batch, pa.float64()))
        wanted = expected(rows, "sum", 100 * step + 99, 90, 0.75 * size, None)
        found = index.lookup(over="90s", above=0.75 * size)
        assert same(dict(zip(found["k"].to_pylist(), found["value"].to_pylist(), strict=True)), wanted)
        some = index.lookup(over="90s", above=0.75 * size, exact=False)["k"].to_pylist()
        sums = expected(rows, "sum", 100 * step + 99, 90, None, math.inf)
        assert all(sums[key] > 0.74 * size * (1 - index.index.levels.epsilon) for key in some)


def test_keys_of_several_columns_and_types() -> None:
    rows = {
        "ts": pa.array([1, 2, 3, 4, 5], pa.int64()).view(pa.timestamp("us")),
        "a": pa.array([1, None, 1, None, 2]),
        "b": pa.array([math.nan, 0.0, math.nan, -0.0, None]),
        "c": [{"x": [0.0]}, None, {"x": [0.0]}, None, {"x": []}],
    }
    index = Indexed(pn.count(), by=["a", "b", "c"], at="ts", keep="1s")
    index.update(pa.table(rows))
    index.update(pa.table(rows).slice(3))
    other_zero = pa.table({**rows, "c": [{"x": [-0.0]}, None, None, None, None]}).slice(0, 1)
    index.update(other_zero.set_column(0, "ts", pa.array([6], pa.int64()).view(pa.timestamp("us"))))
    found = index.lookup(over="1s", above=1).to_pylist()
    assert [(row["a"], str(row["b"]), row["c"], row["value"]) for row in found] == [
        (1, "nan", {"x": [0.0]}, 3),
        (None, "0.0", None, 3),
        (2, "None", {"x": []}, 2),
    ]


def test_only_events_that_count_count() -> None:
    index = Indexed(pn.sum("x * 2"), by="k", at="ts", keep="10s", where="x > 1")
    index.update(table_of([("a", 1, 1), ("a", 2, 5), ("b", 3, 0), ("b", 4, None)], pa.int32()))
    assert index.lookup(over="10s", above=0).to_pylist() == [{"k": "a", "value": 10}]


def test_events_without_a_time_or_too_old_are_counted() -> None:
    index = Indexed(pn.count(), by="k", at="ts", keep="10s")
    times = pa.array([None, 100 * SECOND, 90 * SECOND, 91 * SECOND], pa.int64()).view(pa.timestamp("us", "UTC"))
    index.update(pa.table({"k": ["a", "b", "c", "d"], "ts": times}))
    assert (index.live.left_out, index.live.null_times) == (1, 1)
    assert index.lookup(over="10s", above=0)["k"].to_pylist() == ["b", "d"]


def test_a_batch_that_fails_changes_nothing() -> None:
    index = Indexed(pn.sum("10 / x"), by="k", at="ts", keep="10s")
    index.update(table_of([("a", 1, 5)], pa.int32()))
    with pytest.raises(ExpressionError, match="division by zero"):
        index.update(table_of([("a", 50, 0), ("b", 50, 1)], pa.int32()))
    assert index.lookup(over="10s", above=0).to_pylist() == [{"k": "a", "value": 2.0}]
    assert index.live.left_out == 0


def test_nothing_but_events_that_do_not_count() -> None:
    index = Indexed(pn.max("x"), by="k", at="ts", keep="10s")
    index.update(table_of([], pa.int32()))
    assert index.lookup(over="10s", above=0).schema == pa.schema({"k": pa.string(), "value": pa.int32()})
    index.update(table_of([("a", 1, None)], pa.int32()))
    assert index.lookup(over="10s", below=0).num_rows == 0


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_keys_that_come_and_go(aggregate: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ever new keys: old ones are forgotten, and answers stay right."""
    monkeypatch.setattr(staircase, "_SPARE", 64)
    monkeypatch.setattr(store, "_FEW_KEYS", 16)
    index = Indexed(AGGREGATES[aggregate], by="k", at="ts", keep=f"{KEEP}s")
    rng, rows = np.random.default_rng(4), []  # type: ignore[var-annotated]
    for step in range(150):
        batch = [(f"k{step - int(rng.integers(0, 5))}", 10 * step + i, int(rng.integers(0, 9))) for i in range(10)]
        index.update(table_of(batch, pa.int32()))
        rows = [row for row in rows + batch if row[1] > 10 * step + 9 - KEEP]
        found = index.lookup(over=f"{KEEP}s", above=3)
        got = dict(zip(found["k"].to_pylist(), found["value"].to_pylist(), strict=True))
        assert got == expected(rows, aggregate, 10 * step + 9, KEEP, 3, None)
    assert len(index.live._parts[0].dictionary) <= 60


def test_steps_that_expire_are_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each value is smaller than the one before it, so that all of them are steps."""
    monkeypatch.setattr(staircase, "_SPARE", 64)
    index = Indexed(pn.max("x"), by="k", at="ts", keep=f"{KEEP}s")
    for step in range(0, 1000, 10):
        index.update(table_of([("a", step + i, -step - i) for i in range(10)], pa.int32()))
        assert index.index.column._steps.sizes.sum() <= 2 * KEEP + 64
        assert index.lookup(over="3s", above=-step - 8)["value"].to_pylist() == [-step - 7]


@pytest.mark.parametrize("small", [False, True], ids=["usual", "small bounds"])
@pytest.mark.parametrize("aggregate", [*AGGREGATES, "sum of doubles"])
def test_many_keys(aggregate: str, small: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of keys and lookups between small updates, so that layers are built and merged; as in a scan."""
    if small:
        # Copies would overflow all the time, and are counted anew.
        monkeypatch.setattr(threshold_index, "_AT_ONCE", 50)
        monkeypatch.setattr(threshold_index, "_MOST_COPIES", 20)
    kind = "double" if aggregate == "sum of doubles" else "int"
    index = Indexed({**AGGREGATES, "sum of doubles": pn.sum("x")}[aggregate], by="k", at="ts", keep="200s")
    rng, now = np.random.default_rng(len(aggregate)), 0
    for step in range(20):
        count = int(rng.integers(1, 1200))
        now += int(rng.integers(0, 30))
        late = rng.integers(0, 5, count) * (rng.random(count) < 0.02)
        key = np.minimum(rng.geometric(0.002, count), 2000) + step // 5 * 40
        values = rng.lognormal(0, 3, count) * 10 ** (step % 3) if kind == "double" else rng.integers(0, 1000, count)
        times = pa.array((now - late) * SECOND).view(pa.timestamp("us"))
        x = pa.array(values, TYPES[kind][0], mask=rng.random(count) < 0.05)
        index.update(pa.table({"k": key, "ts": times, "x": x}))
        for _ in range(3):
            over, low = f"{rng.integers(1, 190)}s", int(rng.integers(0, 8 if "count" in aggregate else 4000))
            for condition in (f"value > {low}", f"value < {low}", f"value BETWEEN {low} AND {low * 1.5}"):
                found, scanned = (
                    index.live.find(text, over=over).sort_by("k")
                    for text in (condition, condition.replace("value", "value + 0"))
                )
                assert found["k"].equals(scanned["k"])
                # Sums of doubles may be added up in another order.
                assert np.allclose(found["value"], scanned["value"], rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("declared", "error", "says"),
    [
        ({"aggregate": pn.mean("x")}, DeclarationError, r"mean\(x\) cannot have an index.*pn.sum\(x\)"),
        ({"aggregate": "sum"}, DeclarationError, "selects no aggregate"),
        ({"by": ()}, DeclarationError, "has no key"),
        ({"by": "value"}, DeclarationError, "two output columns called 'value'"),
        ({"by": "ts"}, DeclarationError, "its own time column"),
        ({"keep": "0s"}, DurationError, "keep='0s' is not longer than zero"),
        ({"keep": pn.rows(5)}, PlanError, "looks back over a span of time"),
        ({"p": 0}, DeclarationError, "p=0"),
        ({"epsilon": 2}, DeclarationError, "epsilon=2"),
        ({"p": 2, "epsilon": 0.5}, DeclarationError, "Give one of them"),
        ({"aggregate": pn.max("x"), "p": 2}, DeclarationError, "exact. Leave"),
        ({"where": "x +"}, ExpressionError, "x +"),
    ],
)
def test_declarations_that_cannot_be(declared: dict[str, Any], error: type[Exception], says: str) -> None:
    arguments = {"aggregate": pn.sum("x"), "by": "k", "at": "ts", "keep": "10s", **declared}
    with pytest.raises(error, match=says):
        Indexed(arguments.pop("aggregate"), **arguments)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"condition": "value"}, "must be BOOLEAN"),
        ({"condition": "valeu > 1"}, "did you mean 'value'"),
        ({"condition": "x > 1"}, "neither a key nor an output column"),
        ({"over": "11s"}, "begins at"),
        ({"ago": "6s"}, "begins at"),
        ({"ago": "-1s"}, "ago='-1s' is negative"),
        ({"at": "yesterday"}, "not an instant"),
        ({"above": 1}, "write a condition"),
        ({"query": "other"}, "not in the plan"),
        ({"over": ("from", "to")}, "is not a window"),
    ],
)
def test_lookups_that_cannot_be(asked: dict[str, Any], says: str) -> None:
    index = Indexed(pn.count(), by="k", at="ts", keep="10s")
    index.update(table_of([("a", 100, 1)], pa.int32()))
    with pytest.raises(PanesError, match=says):
        index.live.find(**{"condition": "value > 1", "over": "5s", **asked})


def test_data_that_do_not_fit() -> None:
    index = Indexed(pn.sum("x"), by="k", at="ts", keep="10s")
    with pytest.raises(PlanError, match="no event has come"):
        index.lookup(over="1s", above=1)
    with pytest.raises(SchemaError, match="'k' is not a column"):
        index.update(table_of([], pa.int32()).rename_columns(["kk", "ts", "x"]))
    with pytest.raises(SchemaError, match="needs a number"):
        index.update(table_of([("a", 1, "much")], pa.string()))
    index.update(table_of([("a", 1, 1)], pa.int32()))
    with pytest.raises(PlanError, match="earlier"):
        index.update(table_of([("a", 1, 1)], pa.int64()))


@pytest.mark.parametrize("kind", ["int", "large", "double", "decimal"])
@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_saved_and_loaded(aggregate: str, kind: str, tmp_path: Path) -> None:
    type_, _ = TYPES[kind]
    values = {"int": [3, 4, 5], "large": [3, 2**40, 2**62], "double": [0.5, 1.5, 2.5]}
    some = values.get(kind, [Decimal("0.25"), Decimal("1.50"), Decimal("7.75")])
    query = pn.query(by="k", at="ts", select={"value": AGGREGATES[aggregate]}, over=pn.sliding("1 s"), where="k <> 'z'")
    plan = pn.plan(query)
    live = plan.live("40s")
    live.add_index("value")
    live.save(tmp_path / "empty")
    empty = plan.live(load=tmp_path / "empty")
    live.update(table_of([("a", 1, some[0]), (None, 1, some[1]), ("c", 2, None), ("c", 30, some[2])], type_))
    live.save(tmp_path / "some")
    loaded = plan.live(load=tmp_path / "some")
    indexes = [each._parts[0].indexes["query", "value"] for each in (live, loaded, empty)]
    assert len({index.p for index in indexes}) == 1
    later = table_of([("a", 40, some[1]), ("d", 41, some[0]), ("z", 41, some[0]), ("late", 1, some[0])], type_)
    for each in (live, loaded):
        each.update(later)
    empty.update(table_of([("a", 1, some[0]), ("b", 1, some[1]), ("c", 2, None), ("c", 30, some[2])], type_))
    for condition, ago in (("value > 0", None), ("value < 4", None), ("value > 1", "5s")):
        assert "the index of value" in loaded.explain(condition, over="30s", ago=ago)
        assert loaded.find(condition, over="30s", ago=ago).equals(live.find(condition, over="30s", ago=ago))
    assert loaded.left_out == live.left_out == 1
    assert empty.find("value > 0", over="40s").num_rows == 3


def test_days_beyond_the_calendar_are_keys():
    days = pa.array([10**7, 10**7, -(10**7)], pa.int32()).cast(pa.date32())
    found = Indexed(pn.count(), by="k", at="ts", keep="1 h")
    found.update(pa.table({"ts": pa.array([0, 1, 2], pa.timestamp("us")), "k": days}))
    answers = found.lookup(over="1 s", above=1)
    assert answers["k"].cast(pa.int32()).to_pylist() == [10**7]
    assert answers["value"].to_pylist() == [2]


@pytest.mark.parametrize("zeros", [(0.0, -0.0), ({"x": 0.0}, {"x": -0.0}), ([0.0], [-0.0])])
def test_both_zeros_are_one_key_over_batches(zeros: tuple[Any, Any]) -> None:
    found = Indexed(pn.count(), by="k", at="ts", keep="1 h")
    for instant, zero in enumerate(zeros):
        found.update(pa.table({"ts": pa.array([instant], pa.timestamp("us")), "k": [zero]}))
    assert found.lookup(over="1 s", above=0)["value"].to_pylist() == [2]


def test_one_thread_feeds_while_another_finds(tmp_path: Path) -> None:
    """Lookups, scans, indexes and saved files all see whole batches."""
    plan = pn.plan(pn.query(by="k", at="ts", select={"n": pn.count(), "total": pn.sum("x")}, over=pn.sliding("9 s")))
    live = plan.live("1 h")
    live.add_index("total")
    batch = table_of([(f"k{i % 4}", i, 1) for i in range(64)], pa.int64())
    live.update(batch)

    def feed() -> None:
        for _ in range(100):
            live.update(batch)

    feeder = Thread(target=feed)
    feeder.start()
    rounds = 0
    while feeder.is_alive() or not rounds:
        rounds += 1
        for found in (live.find("total > 0", over="64 s"), live.find("n > 0 OR n < 0", over="64 s"),
                      live.lookup(batch.select(["k"]).slice(0, 4), over="64 s")):  # fmt: skip
            seen = found["n"].to_pylist()
            assert found["total"].to_pylist() == seen
            assert len(set(seen)) == 1
            assert seen[0] % 16 == 0
        live.save(tmp_path / "live")
        assert plan.live(load=tmp_path / "live").rows % 64 == 0
    feeder.join()
    assert set(live.find("total > 0", over="64 s")["n"].to_pylist()) == {101 * 16}
