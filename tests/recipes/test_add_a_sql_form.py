"""The recipe "Add a SQL form" of CONTRIBUTING.md, followed: a window function and a window in brackets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

import panes as pn
from panes.dialect.intervals import read_whole
from panes.dialect.tokens import Cursor
from panes.dialect.window_brackets import Bracket, Declaration
from panes.dialect.window_kinds import WINDOW_KINDS, WindowFunction
from panes.errors import SqlError
from panes.queries.measures import Rows, rows
from panes.queries.windows import AnyWindow, Bounds

ROLLING = WindowFunction("RollingWindow", {"Duration": "size"}, {"Ago": "ago"})
"""``RollingWindow(minute, 5)`` in ``GROUP BY``: a sliding window of five minutes."""


def read_last(words: Cursor, begun: tuple[str, ...], bounds: Bounds) -> Declaration:
    number = read_whole(words, "the number of rows")
    words.expect("ROWS", "Write [LAST 10 ROWS].")
    return "sliding", {"size": rows(number)}


def write_last(kind: str, arguments: Mapping[str, Any]) -> str | None:
    size = arguments["size"]
    return f"[LAST {size.n} ROWS]" if isinstance(size, Rows) and len(arguments) == 1 else None


LAST = Bracket((("LAST",),), read_last, write_last)
"""``[LAST 10 ROWS]`` behind the stream."""


@pytest.fixture(autouse=True)
def new_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    """The entry of the kind, with both forms. The bounds of other window functions are not those of a sliding one."""
    sliding = WINDOW_KINDS["sliding"]
    changed = replace(sliding, azure=ROLLING, brackets=(LAST, *sliding.brackets), bounds=False)
    monkeypatch.setitem(WINDOW_KINDS, "sliding", changed)


def query(window: AnyWindow) -> pn.Query:
    return pn.query("query1", by="card", at="ts", select={"n": pn.count()}, over=window)


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("FROM ev TIMESTAMP BY ts GROUP BY card, RollingWindow(minute, 5)", pn.sliding("5 min")),
        ("FROM ev TIMESTAMP BY ts GROUP BY card, Rolling(minute, 5, 60)", pn.sliding("5 min", ago="1 hour")),
        ("FROM ev TIMESTAMP BY ts [LAST 10 ROWS] GROUP BY card", pn.sliding(pn.rows(10))),
    ],
)
def test_new_forms_are_read_and_written(text: str, window: AnyWindow) -> None:
    assert pn.sql(f"SELECT card, COUNT(*) AS n {text}") == [query(window)]
    assert pn.sql(pn.to_sql(query(window))) == [query(window)]


def test_new_forms_come_first() -> None:
    assert "RollingWindow(minute, 5)" in pn.to_sql(query(pn.sliding("5 min")))
    assert "[LAST 10 ROWS]" in pn.to_sql(query(pn.sliding(pn.rows(10))))


def test_mistakes_name_the_form() -> None:
    with pytest.raises(SqlError, match=r"write RollingWindow\(minute, 60, 5\): a unit, Duration, Ago"):
        pn.sql("SELECT COUNT(*) AS n FROM ev TIMESTAMP BY ts GROUP BY RollingWindow(minute)")
    with pytest.raises(SqlError, match=r"TumblingWindow, .*, RollingWindow"):
        pn.sql("SELECT COUNT(*) AS n FROM ev TIMESTAMP BY ts GROUP BY Windows(RolingWindow(minute, 5))")
