"""Add a measure of windows of rows, as CONTRIBUTING.md says: ``tumbling(instants(2))`` holds the rows of two instants.

In the library, the value and its constructor go into ``queries/measures.py``, each patch into what it replaces.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

import panes as pn
from panes.frames import order, row_tumbling
from panes.frames.row_frame import key_of_rows
from panes.operators import policies
from panes.operators.tumbling_window import TumblingWindow
from panes.queries import window_constructors
from panes.row_windows import framing
from panes.testing import assert_same_answers, brute_force, rows_reference

# 1. Its value, its constructor, its kind and its text.


@dataclass(frozen=True, slots=True, repr=False)
class Instants:
    n: int

    def __str__(self):
        return f"{self.n}instants"

    def __repr__(self):
        return f"pn.instants({self.n})"


def instants(n):
    return Instants(n)


# 3. Its index pairs. 4. Its step, one tuple after another. 5. Its definition.
def tumbling_by_instants(events, n):
    """Frame windows of n instants: the first row of another instant ends the window."""
    key = key_of_rows(events)
    begins = np.append(True, (np.diff(key) != 0) | (np.diff(events.start) != 0))[: len(key)]
    place = np.cumsum(begins)
    lo, hi = row_tumbling._neighbours(key, (place - place[events.key_starts[key]]) // n)
    ended = hi < events.key_starts[key[lo] + 1]
    return row_tumbling._flushed_by_a_row("instants", events, key[lo[ended]], lo[ended], hi[ended])


def evict_by_instants(window, subwindow, item, now):
    if not subwindow.size or now != subwindow.latest_evict:
        if subwindow.received == window.declared.evict.n:
            window._flush(subwindow)
            subwindow.received = 0
        subwindow.received += 1
        subwindow.latest_evict = now


def by_definition(size, came):
    held = []
    for row in came.rows:
        if len({came.instants[other] for other in [*held, row]}) > size.n:
            yield came.instants[row], held
            held = []
        held.append(row)


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    def extend(owner, name, takes, extension):
        """Let a function do something else for what is measured in instants."""
        known = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *given: (extension if takes(given[0]) else known)(*given))

    in_order = TumblingWindow._in_order

    def in_order_of_instants(window):
        window.stay()  # the row that ends a window is the first of the next one
        window._asks_clock = True
        window._evict = partial(evict_by_instants, window)
        return in_order(window)

    extend(window_constructors, "measure", lambda value: isinstance(value, Instants), lambda value, _: value)
    monkeypatch.setitem(policies._KINDS, Instants, "instants")
    extend(policies, "policy_text", lambda policy: isinstance(policy, Instants), repr)
    monkeypatch.setitem(order.ORDER, ("instants", None), order.Order((order.EVICT, order.INSERT)))  # 2. what is first
    of_instants = lambda window: isinstance(window.evict, Instants)  # noqa: E731
    extend(framing, "_tumbling", of_instants, lambda window, came, _: tumbling_by_instants(came.events, window.evict.n))
    extend(TumblingWindow, "_in_order", lambda window: of_instants(window.declared), in_order_of_instants)
    sized = lambda window: isinstance(window.size, Instants)  # noqa: E731
    extend(rows_reference, "_tumbling", sized, lambda window, came: by_definition(window.size, came))


# The tests: the definition is compared with index pairs and, where keys are evicted, with steps tuple by tuple.

MINUTES = [0, 1, 1, 1, 3, 3, 6, 7, 7, 11, 12]
EVENTS = pa.table({"ts": [dt.datetime(2026, 1, 1, 12, m) for m in MINUTES], "k": list("abaabbaabab"), "x": range(11)})
SELECT = {"n": pn.count(), "total": pn.sum("x")}


def query(size, **more):
    return pn.query("q", by="k", at="ts", select=SELECT, over=pn.tumbling(size), **more)


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("evict", [None, pn.evict(keys=5)])
def test_run(size, evict):
    declared = query(instants(size), evict=evict)
    found = pn.plan(declared).run(EVENTS)
    assert found.num_rows >= 2
    assert_same_answers(found, brute_force(declared, EVENTS))


def test_apply():
    found = pn.apply(EVENTS, lambda *given: {"n": len(given[2])}, by="k", at="ts", over=pn.tumbling(instants(2)))
    assert found["n"].to_pylist() == pn.plan(query(instants(2))).run(EVENTS)["n"].to_pylist()


def test_it_is_shown_as_it_is_written():
    assert repr(pn.tumbling(instants(2))) == "pn.tumbling(pn.instants(2))"
