"""What explain shows is what runs in this process: the steps it lists are those that are carried out, on these data.

Catches a verb that does something beside its steps, or an explanation that answers something or uses up its input.
"""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

import panes as pn
from panes.errors import DeclarationError, PlanError
from panes.local import lookup as lookups
from panes.local import rows as windows_of_rows
from panes.local import run as runs

SELECT = {"n": pn.count(), "total": pn.sum("x")}
CLOCK = [pn.tumbling("20 min"), pn.tumbling("30 min"), pn.tumbling("40 min")]
ROWS = [pn.sliding(pn.rows(3)), pn.session("5 min"), pn.hopping(pn.rows(3), every=pn.rows(2))]


def events(rows: int = 60) -> pa.Table:
    times = [dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(minutes=i) for i in range(rows)]
    return pa.table({"ts": times, "k": ["a", "b", "c"] * (rows // 3), "x": list(range(rows))})


def query(over, name="q", by="k", **more):
    return pn.query(name, at="ts", by=by, select=SELECT, over=over, **more)


def listed(text: str) -> list[str]:
    """The names of the steps of an explanation."""
    return [line.split()[1] for line in text.splitlines()[1:] if line.split()[:1] and line.split()[0].isdigit()]


def done(monkeypatch, verb) -> list[str]:
    """What was sorted and answered while a verb ran, as the functions that do it tell."""
    found = []

    def watch(module, name, told):
        own = getattr(module, name)

        def watched(*args, **kwargs):
            found.append(told)
            return own(*args, **kwargs)

        monkeypatch.setattr(module, name, watched)

    watch(runs, "sorted_events", "sort")
    watch(runs, "answer_tables", "answer")
    watch(windows_of_rows, "sorted_rows", "sort")
    watch(windows_of_rows, "_answered", "answer")
    watch(lookups, "counting", "sort")
    watch(lookups, "answers_of", "answer")
    verb()
    monkeypatch.undo()
    return found


PLANS = {
    "clock": [query(CLOCK)],
    "rows": [query(ROWS)],
    "mixed": [query([*CLOCK, *ROWS, pn.sliding("1 hour")]), query([pn.session("9 min")], "all", ())],
    "several keys": [query(CLOCK), query([pn.hopping("1 hour", every="5 min")], "all", ())],
}


@pytest.mark.parametrize("name", PLANS)
def test_what_is_sorted_and_answered(monkeypatch, name):
    plan, table = pn.plan(PLANS[name]), events()
    told = [step for step in listed(plan.explain(table)) if step in ("sort", "answer")]
    assert done(monkeypatch, lambda: plan.run(table)) == told
    assert len(told) >= 2


def test_the_steps_that_are_shown_give_the_answers():
    plan, table = pn.plan(PLANS["mixed"]), events()
    steps = plan._steps(table, None, {})
    assert [step.name for step in steps] == listed(plan.explain(table))
    assert steps.carry_out().equals(plan.run(table))


def test_explaining_answers_nothing(monkeypatch):
    plan, table = pn.plan(PLANS["mixed"]), events()
    asked = pn.plan(query([pn.sliding("1 hour"), pn.sliding(pn.rows(3))]))
    assert done(monkeypatch, lambda: plan.explain(table)) == []
    assert done(monkeypatch, lambda: asked.explain(table, table.select(["ts", "k"]))) == []


def test_windows_read_each_other_as_shown():
    """Factor windows are those of the program that runs; empty=True reads all windows from panes."""
    over = [pn.tumbling("1 min"), *(pn.hopping(size, every="1 hour") for size in ("10 hours", "5 hours"))]
    plan, table = pn.plan(query(over)), events()
    tree = ["1m", "factor window 1h", "10h/1h ← factor window 1h", "5h/1h ← factor window 1h"]
    assert [line.strip() for line in plan.explain(table).splitlines() if line.startswith("      ")] == tree
    alone = pn.plan(query(over), factor_windows=False)
    for text in (plan.explain(table, empty=True), alone.explain(table)):
        assert sorted(line.strip() for line in text.splitlines() if line.startswith("      ")) == [
            "10h/1h",
            "1m",
            "5h/1h",
        ]
        assert text.startswith("plan.run on a table: 3 windows, 1 pass")


def test_windows_of_a_key_set_share_a_column():
    one = query([pn.sliding(pn.rows(3)), pn.session("5 min")], "one")
    two, all_ = query([pn.sliding(pn.rows(9))], "two"), query([pn.session("1 min")], "all", ())
    plan, table = pn.plan([one, two, all_]), events()
    text = plan.explain(table)
    assert listed(text) == ["read", "sort", "answer", "sort", "answer", "union"]
    assert text.startswith("plan.run on a table: 4 windows, 2 passes over the events")
    assert "2 passes" in str(plan)
    shown = plan.explain().split("\n\n")[1:]
    assert [[line[5:] for line in part.splitlines()[1:]] for part in shown] == [
        ["one: 3rows/event", "one: session 5m", "two: 9rows/event"],
        ["all: session 1m"],
    ]
    assert [some["column"] for some in plan.to_dict()["row_windows"]] == [0, 0, 1]


def test_a_lookup_has_its_own_steps(monkeypatch):
    over = [pn.sliding("1 hour"), pn.tumbling("10 min"), pn.sliding(pn.rows(3))]
    plan, table = pn.plan([query(over), query([pn.sliding("2 hours")], "all", ())]), events()
    requests = table.select(["ts", "k"])
    for layout in ("wide", "long"):
        text = plan.explain(table, requests, layout=layout)
        assert text.startswith("plan.lookup in tables: 4 windows, 2 passes over the events")
        assert listed(text) == ["read", "read", "sort", "answer", "sort", "answer", "union"]
        told = [step for step in listed(text) if step in ("sort", "answer")]
        assert done(monkeypatch, lambda layout=layout: plan.lookup(table, requests, layout=layout)) == told


def test_a_reader_is_not_used_up():
    plan, reader = pn.plan(query(CLOCK)), events().to_reader()
    assert plan.explain(reader) == plan.explain(events())
    assert plan.run(reader).equals(plan.run(events()))


def test_a_lookup_uses_up_no_reader():
    requests = events(6).select(["ts", "k"])
    readers = events(6).to_reader(), requests.to_reader()
    plan = pn.plan(query(pn.sliding("20 min")))
    shown = plan.explain(*readers)
    assert shown == plan.explain(events(6), requests)
    assert plan.lookup(*readers)["n_20m"].to_pylist() == [1] * 3 + [2] * 3


def test_options_are_those_of_the_verb():
    plan, table = pn.plan(query([*CLOCK])), events()
    assert "a row per key and window end" in plan.explain(table, layout="wide")
    with pytest.raises(DeclarationError, match=r"run\(\) has no mode=: it is for streams"):
        plan.explain(table, mode="update")
    with pytest.raises(DeclarationError, match=r"lookup\(\) has no lag=: it is called delay="):
        plan.explain(table, table, lag="1 min")
    with pytest.raises(PlanError, match="for Spark DataFrames only"):
        plan.explain(table, strategy="native")
    with pytest.raises(PlanError, match=r"layout= says how a plan runs on data: write plan.explain\(events, ...\)"):
        plan.explain(layout="wide")
    with pytest.raises(PlanError, match="cannot run on a int"):
        plan.explain(3)


def test_mistakes_are_those_of_the_verb():
    plan, table = pn.plan(query(CLOCK)), events().rename_columns(["ts", "k", "y"])
    with pytest.raises(pn.PanesError) as ran:
        plan.run(table)
    with pytest.raises(pn.PanesError) as explained:
        plan.explain(table)
    assert str(explained.value) == str(ran.value)


def test_results_go_when_nobody_reads_them_any_more():
    from panes.planning.steps import Steps

    class Large:
        alive = 0

        def __init__(self):
            Large.alive += 1

        def __del__(self):
            Large.alive -= 1

    steps, most = Steps("many"), []
    for _ in range(3):
        made = steps.add("sort", "rows", Large)
        steps.add("answer", "them", lambda rows: most.append(Large.alive), made)
    steps.carry_out()
    assert most == [1, 1, 1]
