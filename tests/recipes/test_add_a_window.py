"""Add a kind of window, as CONTRIBUTING.md says: windows that double in size, ``doubling("1 min", upto="4 min")``.

In the library, the class goes into ``queries/windows.py``, the constructor into ``queries/window_constructors.py``, and
the entry into the table of ``dialect/window_kinds.py``.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

import pyarrow as pa
import pytest

import panes as pn
from panes.dialect.window_kinds import WINDOW_KINDS, WindowFunction, WindowKind
from panes.errors import DeclarationError
from panes.queries.window_constructors import tumbling
from panes.queries.windows import DeclaredWindow, Window
from panes.testing import assert_same_answers, brute_force, brute_force_lookup
from panes.timeline import format_duration, parse_duration

# 1. The kind: its name, its arguments, and the windows on the clock that are computed for it.


@dataclass(frozen=True, slots=True, repr=False)
class Doubling(DeclaredWindow):
    size: int
    upto: int

    @property
    def kind(self):
        return "doubling"

    @property
    def arguments(self):
        return {"size": self.size, "upto": self.upto}

    @property
    def windows(self) -> tuple[Window, ...]:
        times = range((self.upto // self.size).bit_length())
        return tuple(tumbling(format_duration(self.size << n)) for n in times)

    @property
    def names(self):
        return tuple(window.name for window in self.windows)

    @property
    def suffixes(self):
        return tuple(window.suffix for window in self.windows)

    @property
    def name(self):
        return ", ".join(self.names)


# 2. The constructor, which checks what is declared.


def doubling(size, *, upto, name=None):
    shortest, longest = parse_duration(size), parse_duration(upto)
    times, rest = divmod(longest, shortest)
    if rest or times.bit_count() != 1:
        raise DeclarationError(f"upto={upto!r} is not {size!r} doubled some times. Write for example upto='4 min'.")
    return Doubling(shortest, longest)


# 3. Its spelling in SQL.


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    azure = WindowFunction("DoublingWindow", {"Duration": "size", "Upto": "upto"})
    monkeypatch.setitem(WINDOW_KINDS, "doubling", WindowKind(doubling, azure=azure, bounds=False))


# 4. The tests: the brute force of panes.testing knows nothing but ``windows``.

MINUTES = [0, 1, 1, 3, 6, 7, 11]
EVENTS = pa.table(
    {
        "ts": [dt.datetime(2026, 1, 1, 12, minute) for minute in MINUTES],
        "k": list("abababa"),
        "x": list(range(7)),
    }
)
REQUESTS = pa.table({"ts": [dt.datetime(2026, 1, 1, 12, minute) for minute in (0, 2, 5, 12)], "k": list("abab")})


def query():
    return pn.query(
        "q", by="k", at="ts", select={"n": pn.count(), "total": pn.sum("x")}, over=doubling("1 min", upto="4 min")
    )


def test_run():
    found = pn.plan(query()).run(EVENTS)
    assert set(found["window_name"].to_pylist()) == {"1m", "2m", "4m"}
    assert_same_answers(found, brute_force(query(), EVENTS))


def test_lookup():
    found = pn.plan(query()).lookup(EVENTS, REQUESTS)
    assert found.column_names == ["ts", "k", "n_1m", "total_1m", "n_2m", "total_2m", "n_4m", "total_4m"]
    assert found == brute_force_lookup(query(), EVENTS, REQUESTS)


def test_live():
    plan, known = pn.plan(query()), EVENTS.slice(0, 5)
    requests = pa.table({"ts": [dt.datetime(2026, 1, 1, 12, 6)] * 2, "k": ["a", "b"]})
    live = plan.live()
    live.update(known)
    assert live.lookup(requests) == plan.lookup(known, requests)


def test_apply():
    found = pn.apply(EVENTS, lambda key, window, rows: {"n": len(rows)}, over=query().over, by="k", at="ts")
    expected = pn.plan(query()).run(EVENTS)
    order = [(name, "ascending") for name in ("window_name", "k")]
    assert found.sort_by(order)["n"].to_pylist() == expected.sort_by(order)["n"].to_pylist()


def test_it_is_shown_as_it_is_written():
    assert repr(doubling("1 min", upto="4 min")) == "pn.doubling('1m', upto='4m')"


def test_sql():
    text = pn.to_sql(query())
    assert "DoublingWindow(minute, 1, 4)" in text
    assert pn.sql(text)[0].over == query().over


def test_mistakes():
    with pytest.raises(DeclarationError, match="upto='5 min' is not '1 min' doubled"):
        doubling("1 min", upto="5 min")
