"""Windows, aggregates and events of all kinds, for the properties that every verb has to have."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import strategies as st

import panes as pn

TIME = pa.timestamp("us", "UTC")
SCHEMA = pa.schema(
    [
        ("ts", TIME),
        ("k", pa.string()),
        ("g", pa.string()),
        ("odometer", pa.int64()),
        ("x", pa.int64()),
        ("y", pa.int64()),
        ("z", pa.float64()),
        ("stop", pa.bool_()),
    ]
)
SIZES = ["6 us", pn.rows(3), pn.delta("odometer", 5), pn.delta("ts", "4 us")]
PACES = ["4 us", "3 us", pn.rows(1), pn.rows(2), pn.delta("odometer", 3)]

CLOCK = [
    pn.tumbling("5 us"),
    pn.tumbling("5 us", offset="2 us", bounds="(]"),
    pn.hopping("7 us", every="3 us"),
    pn.hopping("2 us", every="5 us"),
    pn.cumulate("2 us", upto="8 us"),
    pn.nested(["8 us", "4 us"], ["4 us", "2 us"]),
]
SLIDING = [
    pn.sliding("5 us"),
    pn.sliding("5 us", ago="3 us"),
    *(pn.sliding("4 us", bounds=bounds) for bounds in ("[)", "[]", "()")),
]
LAST_ROWS = [
    pn.sliding(pn.rows(3)),
    pn.sliding(pn.rows(2), ago=pn.rows(2)),
    pn.sliding(pn.rows(3), bounds="[)"),
    pn.sliding(pn.rows(2), ago=pn.rows(1), bounds="[)"),
    pn.sliding(pn.rows(2), bounds="[)", partial=False, name="two before, full"),
]
OF_ROWS = [
    *LAST_ROWS,
    pn.sliding(pn.rows(3), partial=False, name="three, full"),
    pn.sliding(pn.delta("odometer", 4)),
    *(pn.tumbling(size) for size in SIZES[1:]),
    *(pn.tumbling("6 us", origin=origin) for origin in ("first", "row")),
    *(
        pn.hopping(size, every=pace)
        for size in SIZES
        for pace in PACES
        if isinstance(size, str) + isinstance(pace, str) < 2 and (size, pace) != (pn.rows(3), pn.rows(1))
    ),
    pn.hopping("6 us", every="4 us", origin="first"),
    pn.hopping("6 us", every=pn.rows(1), bounds="[]"),
    pn.hopping(pn.rows(3), every="4 us", offset="1 us"),
    pn.hopping(pn.rows(3), every="4 us", bounds="(]"),
    pn.hopping(pn.rows(3), every="4 us", origin="first"),
    pn.hopping(pn.rows(3), every=pn.rows(2), partial=False, name="three of two, full"),
    pn.hopping("6 us", every=pn.rows(2), partial=False, name="six of two, full"),
    pn.hopping(pn.delta("odometer", 5), every="4 us", partial=False, name="five of four, full"),
]
SESSIONS = [pn.session("2 us"), pn.session("6 us")]
MARKS = [pn.tumbling(pn.punctuation("stop")), pn.tumbling(pn.punctuation("stop", scope="key"))]
WINDOWS = [*CLOCK, *SLIDING, *OF_ROWS, *SESSIONS, *MARKS]

CLASSES = {
    "group": {"n": pn.count(), "total": pn.sum("x")},
    "idempotent": {"low": pn.min("x"), "top": pn.max("z"), "late": pn.last("y"), "early": pn.first("y")},
    "moments": {"mean": pn.mean("x"), "spread": pn.var("x")},
    "values": {"different": pn.count_distinct("x"), "middle": pn.quantile("x", 0.5)},
    "picks": {"at_top": pn.arg_max("y", "x")},
}
"""Aggregates, by what the algebra allows: one of each class stands for the others."""


@st.composite
def events(draw, *, least: int = 0, most: int = 24):
    """Rows in any order, with ties in time, nulls, gaps, and an odometer that never goes back."""
    steps = st.tuples(
        st.sampled_from([0, 0, 1, 1, 2, 3, 9]),
        st.integers(0, 3),
        st.sampled_from(["a", "b", None]),
        st.sampled_from(["u", "v", None]),
        st.one_of(st.none(), st.integers(-3, 3)),
        st.integers(0, 2),
        st.sampled_from([None, -1.5, 0.0, 2.5]),
        st.sampled_from([False, False, False, True, None]),
    )
    rows, now, odometer = [], 0, 0
    for waited, driven, *others in draw(st.lists(steps, min_size=least, max_size=most)):
        now, odometer = now + waited, odometer + driven
        rows.append((now, *others[:2], odometer, *others[2:]))
    return table_of(draw(st.permutations(rows)))


def table_of(rows) -> pa.Table:
    """Rows as a table."""
    columns = list(zip(*rows, strict=True)) if rows else [[] for _ in SCHEMA]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def micro_batches(draw, table: pa.Table) -> list[tuple[pa.Table, int]]:
    """Rows as they come, each batch with a watermark that no later row falls behind."""
    instants = table.column("ts").cast(pa.int64()).to_pylist()
    # In the order of time but for a few µs: otherwise no watermark passes before the end.
    order = sorted(range(len(table)), key=lambda i: instants[i] // 4)
    cuts = sorted(draw(st.lists(st.integers(0, len(order)), max_size=4)))
    parts = [order[a:b] for a, b in zip([0, *cuts], [*cuts, len(order)], strict=True)]
    last, found = max(instants, default=0) + 1, []
    for number, part in enumerate(parts):
        later = [instants[i] for rest in parts[number + 1 :] for i in rest]
        watermark = min([*later, last]) if draw(st.booleans()) or not later else 0
        found.append((table.take(pa.array(part, pa.int64())), watermark))
    return found


def in_time(over, batches: list[tuple[pa.Table, int]]) -> list[tuple[pa.Table, int]]:
    """The same, with no row at the very watermark where there are sessions.

    A session that ends where the watermark is has come out, as in Spark's own streams, and such a row would join it.
    """
    if not any(getattr(window, "kind", None) == "session" for window in (over if isinstance(over, list) else [over])):
        return batches
    end = batches[-1][1]
    return [(part, watermark if watermark == end else max(watermark - 1, 0)) for part, watermark in batches]


def rows_of(answers: pa.Table, *, floats: int = 9) -> list[str]:
    """Answers in an order of their own, floats rounded, to be compared."""
    found = []
    for row in answers.to_pylist():
        rounded = {name: round(v, floats) if isinstance(v, float) else v for name, v in row.items()}
        found.append(repr(rounded))
    return sorted(found)
