"""Queries over the last so many events and over sessions, against loops over sorted rows.

Catches windows of other keys' rows, events that a condition leaves out and a count does not, and sessions that are cut
where two rows lie exactly a gap apart.
"""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes as pn
from panes.engine.bind_program import types_in
from panes.engine.keys import END, START
from panes.errors import DeclarationError, PlanError, SchemaError, StateError
from panes.expressions.evaluate import evaluate, result_type
from panes.expressions.expression import expression
from panes.row_windows.arrival import tie_order
from panes.row_windows.bound_rows import bind_rows, needed
from panes.row_windows.key_set import KeySet, Own, SentColumns
from panes.row_windows.parts import over_rows
from panes.row_windows.rows_shard import RowsShard
from panes.state.held_rows import no_marks
from tests.state.memory_blob_store import MemoryBlobStore

EPOCH = dt.datetime(1970, 1, 1)
TIME = pa.timestamp("us")
SELECT = {"n": pn.count(), "total": pn.sum("x"), "low": pn.min("x"), "middle": pn.quantile("x", 0.5)}
ROWS = st.lists(
    st.tuples(
        st.integers(0, 40),
        st.sampled_from(["a", "b", None]),
        st.one_of(st.none(), st.integers(-3, 3)),
        st.integers(0, 1),
    ),
    max_size=25,
)


def table_of(rows):
    columns = list(zip(*rows, strict=True)) if rows else [[], [], [], []]
    types = {"ts": TIME, "k": pa.string(), "x": pa.int64(), "y": pa.int64()}
    return pa.table({name: pa.array(c, t) for (name, t), c in zip(types.items(), columns, strict=True)})


def _nulls_first(value):
    return (value is not None, value if value is not None else 0)


def by_key(rows, by):
    """The rows of each key by time; those of one instant by all columns, by their names."""
    keys = {}
    others = slice(2, 4) if by else slice(1, 4)
    for row in sorted(rows, key=lambda r: (r[0], [_nulls_first(value) for value in r[others]])):
        keys.setdefault(row[1] if by else None, []).append(row)
    return keys


def computed(rows):
    values = sorted(x for _, _, x, _ in rows if x is not None)
    middle = float(np.quantile(values, 0.5)) if values else None
    return {
        "n": len(rows),
        "total": sum(values) if values else None,
        "low": values[0] if values else None,
        "middle": middle,
    }


def of_last(rows, n, every):
    for end in range(every, len(rows) + 1, every):
        held = rows[max(end - n, 0) : end]
        yield held[0][0], held[-1][0], held


def of_sessions(rows, gap):
    session = []
    for row in rows:
        if session and row[0] - session[-1][0] > gap:
            yield session[0][0], session[-1][0] + gap, session
            session = []
        session.append(row)
    if session:
        yield session[0][0], session[-1][0] + gap, session


def micros(moment):
    return (moment - EPOCH) // dt.timedelta(microseconds=1)


def shown(table):
    found = []
    for row in table.to_pylist():
        start, end = (micros(row["window"][edge]) for edge in ("start", "end"))
        found.append((row["window_name"], row.get("k"), start, end, *(row[name] for name in SELECT)))
    return sorted(found, key=repr)


def wanted(name, keys, windows):
    return [
        (name, key, start, end, *computed(held).values())
        for key, rows in keys.items()
        for start, end, held in windows(rows)
    ]


@settings(max_examples=150)
@given(ROWS, st.booleans(), st.integers(1, 6), st.integers(1, 4), st.integers(1, 8), st.sampled_from([None, "y = 0"]))
def test_all_windows_of_a_query(rows, by, n, every, gap, where):
    over = [
        pn.hopping(pn.rows(n), every=pn.rows(every), name="last"),
        pn.session(f"{gap} us", name="session"),
        pn.sliding(pn.rows(2), name="two"),
    ]
    query = pn.query("q", at="ts", by="k" if by else (), select=SELECT, over=over, where=where)
    kept = [row for row in rows if where is None or row[3] == 0]
    keys = by_key(kept, by)
    expected = [
        *wanted("last", keys, lambda some: of_last(some, n, every)),
        *wanted("session", keys, lambda some: of_sessions(some, gap)),
        *wanted("two", keys, lambda some: of_last(some, 2, 1)),
    ]
    assert shown(pn.plan(query).run(table_of(rows))) == sorted(expected, key=repr)


def test_beside_windows_over_time():
    """Parts of one plan have one schema; a column that only one query has is null elsewhere."""
    rows = [(1, "a", 1, 0), (2, "a", 5, 0), (12, "a", 2, 0)]
    one = pn.query("one", at="ts", by="k", select={"n": pn.count(), "twice": "n * 2"}, over=[pn.tumbling("10 us")])
    two = pn.query(
        "two",
        at="ts",
        select={"high": pn.max("x")},
        over=[pn.sliding(pn.rows(2)), pn.tumbling("20 us")],
        having="high > 1",
    )
    found = pn.plan([one, two]).run(table_of(rows))
    assert found.column_names == ["query", "window_name", "window", "k", "n", "twice", "high"]
    assert sorted(
        (r["query"], r["window_name"], r["k"], r["n"], r["twice"], r["high"]) for r in found.to_pylist() if r["n"]
    ) == [
        ("one", "10us", "a", 1, 2, None),
        ("one", "10us", "a", 2, 4, None),
    ]
    assert [(r["window_name"], r["high"]) for r in found.to_pylist() if r["n"] is None] == [
        ("20us", 5),
        ("2rows/event", 5),
        ("2rows/event", 5),
    ]


def test_a_plan_tells_of_them():
    plan = pn.plan(
        pn.query("q", at="ts", select=SELECT, over=[pn.hopping(pn.rows(100), every=pn.rows(10)), pn.session("30 min")])
    )
    for text in (str(plan), plan.explain()):
        assert "100rows/10rows" in text
        assert "session 30m" in text
    assert plan.to_dict()["row_windows"][0]["windows"] == ("100rows/10rows", "session 30m")
    assert "session 30m" in plan.to_mermaid()
    assert "session 30m" in plan.to_svg()


class Sessions:
    """A shard that is opened again for every micro-batch."""

    def __init__(self, schema, gap, by):
        query = pn.query("q", at="ts", by="k" if by else (), select=SELECT, over=pn.session(f"{gap} us"))
        parts = over_rows([query])
        self.bound = bind_rows(parts[0], schema, types_in(schema))
        self.ties = tie_order(parts[0].input, schema, needed(parts))
        self.keys = ["k"] if by else []
        arguments = tuple(result_type(expression(sql), schema) for sql in self.bound.arguments)
        keys, ties = (tuple(schema.field(name).type for name in names) for names in (self.keys, self.ties))
        self.sent = SentColumns(keys, arguments, (), (), 0, ties)
        self.set = KeySet((self.bound,), (Own(tuple(range(len(arguments))), ()),), self.sent)
        self.gap, self.blob_store, self.found, self.late = gap, MemoryBlobStore(), [], 0

    def step(self, rows, watermark, declared="same"):
        table = table_of(rows)
        columns = [
            *(table.column(name) for name in self.keys),
            table.column("ts").cast(pa.int64()),
            *(evaluate(expression(sql), table) for sql in self.bound.arguments),
            *(table.column(name) for name in self.ties),
        ]
        batches = pa.Table.from_arrays(columns, schema=self.sent.schema).to_batches()
        shard = RowsShard(self.set, {"window": declared}, self.blob_store)
        found = pa.concat_tables(
            [table for answers in shard.steps(batches, no_marks(), watermark) for _, table in answers]
        )
        self.found += [(r.get("k"), micros(r[START]), micros(r[END]), r["n"], r["total"]) for r in found.to_pylist()]
        self.late += shard.metrics.late
        return shard.metrics


class AsSpark:
    """Sessions as Spark's operator has them: merged when rows come, let out when the watermark reaches their end."""

    def __init__(self, gap):
        self.gap, self.open, self.watermark, self.found, self.late = gap, {}, 0, [], 0

    def step(self, rows, watermark, by):
        for ts, k, x, _ in rows:
            if ts + self.gap <= self.watermark:
                self.late += 1
                continue
            sessions = self.open.setdefault(k if by else None, [])
            joined = [s for s in sessions if s[0] <= ts + self.gap and ts <= s[1] + self.gap]
            rest = [s for s in sessions if s not in joined]
            values = [v for s in joined for v in s[2]] + [x]
            self.open[k if by else None] = [
                *rest,
                (min([ts, *(s[0] for s in joined)]), max([ts, *(s[1] for s in joined)]), values),
            ]
        self.watermark = max(self.watermark, watermark)
        for key, sessions in self.open.items():
            ended = [s for s in sessions if s[1] + self.gap <= self.watermark]
            for first, last, values in ended:
                numbers = [v for v in values if v is not None]
                self.found.append((key, first, last + self.gap, len(values), sum(numbers) if numbers else None))
            self.open[key] = [s for s in sessions if s not in ended]


@settings(max_examples=150)
@given(st.lists(st.tuples(ROWS, st.integers(0, 45)), max_size=6), st.integers(1, 8), st.booleans())
def test_sessions_of_a_stream(batches, gap, by):
    """Rows in any order, late ones among them, and any watermarks that do not go back."""
    mine, spark, watermark = Sessions(table_of([]).schema, gap, by), AsSpark(gap), 0
    for rows, next_watermark in batches:
        watermark = max(watermark, next_watermark)
        mine.step(rows, watermark)
        spark.step(rows, watermark, by)
    assert sorted(mine.found, key=repr) == sorted(spark.found, key=repr)
    assert mine.late == spark.late


def test_state_of_sessions_is_bounded():
    sessions = Sessions(table_of([]).schema, 5, True)
    held = [sessions.step([(at, f"k{at}", 1, 0) for at in range(i, i + 100)], i + 90) for i in range(0, 10_000, 100)]
    assert max(counted.granules for counted in held) <= 120
    assert held[-1].keys < 3_000  # forgotten where most have no row
    with pytest.raises(StateError, match="written with window='same'"):
        sessions.step([], 20_000, declared="other")


def test_rows_of_sessions_are_not_written_again_and_again():
    """Sessions end in every micro-batch, while a long one goes on."""
    sessions = Sessions(table_of([]).schema, 5, True)
    sessions.step([(1_000, "long", x, 0) for x in range(4_000)], 0)
    before = sessions.blob_store.written
    for at in range(1_001, 1_201):
        counted = sessions.step([(at, "long", at, 0), (at, f"k{at}", 1, 0)], at)
    assert 4_200 <= counted.granules < 4_210
    assert len(sessions.found) == 195
    assert (sessions.blob_store.written - before) / 200 < 5_000


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: pn.hopping(pn.rows(3), every=pn.rows(0)), DeclarationError, "rows"),
        (lambda: pn.hopping(pn.rows(3), every=2), pn.PanesError, "has no unit"),
        (lambda: pn.session("-1 s"), pn.PanesError, "not positive"),
        (
            lambda: plan_of(pn.sliding(pn.rows(3))).run(table_of([]), layout="wide"),
            PlanError,
            "layout='wide' has a row per key and window end",
        ),
        (
            lambda: plan_of(pn.session("1 s")).run(table_of([]), empty=True),
            PlanError,
            "answers windows on the clock where they hold no event",
        ),
        (lambda: query_of(pn.sliding(pn.rows(3))).windows, PlanError, "only windows in time work here"),
        (lambda: plan_of(pn.session("1 s")).run(pa.table({"ts": [1], "x": [1]})), pn.PanesError, "timestamp"),
        (
            lambda: pn.query("q", at="ts", select={"n": pn.count(), "e": "expires"}, over=pn.sliding(pn.rows(3))),
            DeclarationError,
            "refers to the instant when answers expire",
        ),
    ],
)
def test_mistakes(make, error, says):
    with pytest.raises(error, match=says):
        make()


def query_of(window):
    return pn.query("q", at="ts", select={"n": pn.count()}, over=window)


def plan_of(window):
    return pn.plan(query_of(window))


@pytest.mark.parametrize("window", [pn.hopping(pn.rows(2), every="10 us"), pn.tumbling("30 us", origin="row")], ids=str)
def test_the_clock_stops_before_1970_too(window):
    table = pa.table({"ts": pa.array([-100, -93], TIME), "k": ["a", "b"], "x": [1, 2]})
    query = pn.query(by="k", at="ts", select=SELECT, over=window)
    later = pn.plan(query).run(table.set_column(0, "ts", pa.array([900, 907], TIME)))
    assert pn.plan(query).run(table).num_rows == later.num_rows == 0
    applied = pn.apply(table, lambda key, window, rows: {"n": rows.num_rows}, by="k", at="ts", over=window)
    assert applied.num_rows == 0


@pytest.mark.parametrize("over", [pn.sliding(pn.rows(2)), pn.session("5 us")], ids=str)
@pytest.mark.parametrize("by", ["k", "number"])
def test_columns_may_be_called_number(over, by):
    table = pa.table({"ts": pa.array([1, 2, 20], TIME), "k": ["a", "a", "a"], "number": [7, 7, 7], "x": [1, 2, 4]})
    called = "number" if by == "k" else "total"
    found = pn.plan(pn.query(by=by, at="ts", select={called: pn.sum("x")}, over=over)).run(table)
    assert found[by].to_pylist() == table[by].to_pylist()[: found.num_rows]
    assert found[called].to_pylist() == ([1, 3, 6] if over.kind == "sliding" else [3, 4])


def test_a_duration_is_no_distance_between_numbers():
    table = pa.table({"ts": pa.array([1], TIME), "x": [1]})
    query = pn.query(at="ts", select={"n": pn.count()}, over=pn.tumbling(pn.delta("x", "10 s")))
    with pytest.raises(SchemaError, match=r"is measured in time, and the column is of type int64\. Write a number"):
        pn.plan(query).run(table)


def test_keys_without_time_do_not_age():
    with pytest.raises(DeclarationError, match=r"evict=pn.evict\(age=...\) is measured in time, and rows have none"):
        pn.query(by="k", select={"n": pn.count()}, over=pn.sliding(pn.rows(2)), evict=pn.evict(age="1 h"))
