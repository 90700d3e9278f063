"""Names that would break out of SQL that was put together carelessly, and a table that has them."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa

import panes as pn

NAMES = (
    "back`tick",
    'double"quote',
    "quote' OR '1'='1",
    "dotted.name",
    "line\nbreak",
    "semi; DROP TABLE t; --",
    "back\\slash",
    "back\\`tick",
    "{0} %s",
    "*",
    "$0",
    "/* comment",
)
SUBSTITUTED = "${env:PATH}"
"""What Spark replaces in SQL, unless ``spark.sql.variable.substitute`` is false."""


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def table(names: tuple[str, ...] = NAMES, rows: int = 24) -> pa.Table:
    """Events with a key column and a value column for each name, and a time that is called like the first."""
    times = [dt.datetime(2026, 1, 1, 0, i, tzinfo=dt.UTC) for i in range(rows)]
    columns = {f"at {names[0]}": pa.array(times, pa.timestamp("us", "UTC"))}
    columns |= {f"k {name}": pa.array([f"{name}{i % 2}" for i in range(rows)]) for name in names}
    return pa.table(columns | {f"v {name}": [i + n for i in range(rows)] for n, name in enumerate(names)})


def query(names: tuple[str, ...] = NAMES, *over: pn.Query, label: str = "q'; `\"\\", lookup: bool = False) -> pn.Query:
    """A query with all of the names everywhere: keys, columns, conditions, answers, windows and itself."""
    select: dict[str, object] = {"n": pn.count()}
    select |= {f"s {name}": pn.sum(quoted(f"v {name}")) for name in names}
    select |= {f"d {name}": f"{quoted(f's {name}')} + 1" for name in names}
    conditions = [f"{quoted(f'v {name}')} >= 0 AND {quoted(f'k {name}')} != '{{}}'" for name in names]
    texts = [name.replace("\\", "\\\\").replace("'", "\\'") for name in names]
    where = " AND ".join(condition.replace("{}", text) for condition, text in zip(conditions, texts, strict=True))
    windows = over or tuple(pn.tumbling(f"{n + 1} min", name=f"w {name}") for n, name in enumerate(names))
    having = None if lookup else f"{quoted(f's {names[0]}')} > 0"
    return pn.query(
        label,
        by=[f"k {name}" for name in names],
        at=f"at {names[0]}",
        select=select,
        over=windows,
        where=where,
        having=having,
    )
