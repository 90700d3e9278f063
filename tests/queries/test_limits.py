"""How much a plan may ask for: long chains work, and what nobody can mean is refused with a sentence."""

from __future__ import annotations

import datetime as dt
import json
import pickle

import numpy as np
import pyarrow as pa
import pytest

import panes as pn
from panes.errors import DeclarationError, ExpressionError, PlanError, SqlError
from panes.expressions.depth import MOST_LEVELS, too_deep
from panes.expressions.evaluate import evaluate
from panes.expressions.expression import Expression
from panes.frames.positions import MOST_ANSWERS, Positions
from panes.frames.time_windows import frame
from panes.queries.catalogue_entries import name_in, read_entry, registration
from panes.queries.limits import MOST_COPIES, check_copies
from panes.timeline import Geometry

LONG = 2_000
"""Terms: far more than Python's stack has room for."""
TABLE = pa.table({"a": [1, 2, None], "b": [1.5, 2.5, 3.5], "s": ["x", None, "z"]})
CHAINS = {
    "or": (" OR ".join(f"a = {i}" for i in range(LONG)), [True, True, None]),
    "and of or": (" AND ".join(f"(a > {i} OR b < 0)" for i in range(LONG)), [False, False, None]),
    "plus": (" + ".join("ab"[i % 2] for i in range(LONG)), [LONG / 2 * 2.5, LONG / 2 * 4.5, None]),
    "precedences": ("a" + " / 1 - 2 * a" * LONG, [1.0 - 2 * LONG, 2.0 - 4 * LONG, None]),
    "concat": (" || ".join("s" for _ in range(LONG)), ["x" * LONG, None, "z" * LONG]),
    "in": (f"a IN ({', '.join(map(str, range(LONG)))})", [True, True, None]),
    "case": ("CASE " + " ".join(f"WHEN a = {i} THEN {i}" for i in range(300)) + " END", [1, 2, None]),
}


def at(*instants: dt.datetime) -> pa.Table:
    return pa.table({"ts": list(instants), "k": ["a"] * len(instants), "v": [1.0] * len(instants)})


FAR = at(dt.datetime(1970, 1, 1), dt.datetime(1998, 5, 1), dt.datetime(2026, 1, 1))
YEAR_BY_MICROSECOND = pn.hopping("365 days", every="1 us")


def plan(*over, **options):
    return pn.plan(pn.query("q", by="k", at="ts", select={"n": pn.count()}, over=list(over), **options))


# Expressions


@pytest.mark.parametrize(("text", "values"), CHAINS.values(), ids=CHAINS)
def test_chains_of_any_length_work(text, values):
    made = Expression(text)
    assert evaluate(made, TABLE).to_pylist() == values
    assert Expression(made.sql) == made == pickle.loads(pickle.dumps(made))
    assert set(made.columns) <= set(TABLE.column_names)


def test_a_long_condition_goes_to_sql_and_back():
    condition = " OR ".join(f"n = {i}" for i in range(LONG))
    query = pn.query("q", by="k", at="ts", select={"n": pn.count(), "y": condition}, over=pn.tumbling("1 min"))
    assert pn.sql(pn.to_sql(query), at="ts") == [query]


def test_a_long_condition_finds_keys():
    live = plan(pn.sliding("1 day")).live()
    live.update(FAR)
    condition = " AND ".join(f"n > {-i}" for i in range(LONG))
    assert live.find(condition, over="1 day").num_rows == 1


def test_doubles_round_to_as_many_decimals_as_they_have():
    assert evaluate("ROUND(b, 323)", pa.table({"b": [1.7e308, 5e-324]})).to_pylist() == [1.7e308, 1e-323]


def test_a_failing_step_of_a_chain_is_named():
    with pytest.raises(ExpressionError, match=r"fails on row 0 \(a = 0\): division by zero in '1 \+ 2 / a'|in '2 / a'"):
        evaluate("1 + 2 / a - 1", pa.table({"a": [0]}))
    # A divisor that is null keeps what is before it from being looked at.
    assert evaluate("1 / a / b", pa.table({"a": [0], "b": pa.array([None], pa.int64())})).to_pylist() == [None]


NESTED = {
    "parentheses": lambda levels: "(" * levels + "a" + ")" * levels,
    "calls": lambda levels: "ABS(" * levels + "a" + ")" * levels,
    "case": lambda levels: "CASE WHEN TRUE THEN " * levels + "a" + " END" * levels,
    "not": lambda levels: "NOT " * levels + "t",
    "minus": lambda levels: "- " * levels + "a",
}


@pytest.mark.parametrize("make", NESTED.values(), ids=NESTED)
def test_nesting_has_a_stated_limit(make):
    made = Expression(make(MOST_LEVELS))
    assert Expression(made.sql) == made
    for levels in (MOST_LEVELS + 1, 100, 5_000):
        with pytest.raises(ExpressionError, match=f"more than {MOST_LEVELS} levels deep, .* chains of AND, OR or"):
            Expression(make(levels))


def test_nesting_is_refused_in_statements_where_it_stands():
    deep = "(" * 40 + "a" + ")" * 40
    group = "GROUP BY TumblingWindow(minute, 5)"
    for text in (
        f"SELECT COUNT(*) AS n FROM ev TIMESTAMP BY ts WHERE {deep} > 1 {group}",
        f"SELECT SUM({deep}) AS n FROM ev TIMESTAMP BY ts {group}",
        f"SELECT COUNT(*) AS n FROM ev TIMESTAMP BY ts {group} HAVING COUNT(*) > {deep}",
    ):
        with pytest.raises(SqlError, match=r"line 1, column \d+: this is nested more than"):
            pn.sql(text)


def test_entries_that_parsers_read_in_different_ways_are_refused():
    text = registration(plan(pn.tumbling("1 min")).queries[0]).to_json()
    data = json.loads(text)
    data.pop("checksum", None)
    plain = json.dumps(data)
    assert read_entry(plain) == read_entry(text)
    wrong = {
        "the key 'name' is there twice": plain.replace('"name": "q"', '"name": "q", "name": "r"'),
        "NaN is not a number in JSON": plain.replace('"offset": 0', '"offset": NaN'),
        "nested too deeply": '{"format": 1, "by": ' + "[" * 100_000,
        "more than 1,000,000 characters": plain + " " * 1_000_000,
        "each event is in 60,000,000 instances of the window '1m'": plain.replace('"slide": 60000000', '"slide": 1'),
    }
    for reason, entry in wrong.items():
        with pytest.raises(DeclarationError, match=f"not a catalogue entry: .*{reason}"):
            read_entry(entry)
    assert [name_in(entry) for entry in wrong.values()] == ["r", "q", None, "q", "q"]


def test_nobody_registers_what_no_job_would_take(tmp_path):
    catalogue = pn.Catalogue(str(tmp_path))
    with pytest.raises(DeclarationError, match="instances of the window '1h/1us'"):
        catalogue.register(plan(pn.hopping("1 hour", every="1 us")).queries[0])
    long = pn.query("q", by="k", at="ts", select={"n": pn.count()}, over=pn.cumulate("1 s", upto="1 day"))
    with pytest.raises(DeclarationError, match="more than 1,000,000 characters"):
        catalogue.register(long)
    assert catalogue.list() == []
    good = plan(pn.tumbling("1 min")).queries[0]
    catalogue.register(good)
    for number, bad in enumerate((b"\xff\xfe", b"[" * 100_000, b"x" * 5_000_000, b'{"format": 1, "action": "drop"}')):
        (tmp_path / f"{number + 2:08}-bad.json").write_bytes(bad)
    assert [listed.name for listed in catalogue.list()] == ["q"]


def test_an_expression_is_read_wherever_it_is_called_from():
    """A caller that has used up the stack takes nothing from the stated depth."""

    def descend(levels):
        return Expression(NESTED["calls"](MOST_LEVELS - 1)) if levels == 0 else descend(levels - 1)

    assert descend(700).columns == ("a",)


def test_what_no_parser_takes_apart_is_a_sentence():
    for text in (
        "ROUND(b, 21474836481)",
        "UPPER(MAP(s))",
        "s LIKE '\ud800'",
        "a = b = c = " * 2_000 + "d",
        "a." * 500 + "b +",
    ):
        with pytest.raises(ExpressionError, match=r"cannot (use|read)") as caught:
            Expression(text)
        assert len(str(caught.value)) < 2_000
    assert too_deep([]) is None


# Windows


def test_a_window_of_too_many_windows_is_refused_where_it_is_declared():
    with pytest.raises(DeclarationError, match=r"31,536,000,000,000 windows, one per step, .* at most 100,000"):
        pn.cumulate("1 us", upto="365 days")
    with pytest.raises(DeclarationError, match="has 2,000 levels, and it may have 1,000"):
        pn.nested([f"{i} s" for i in range(1, 2001)], ["1 s"] * 2000)


def test_a_plan_of_too_many_windows_is_refused_with_their_number():
    day = pn.cumulate("1 s", upto="1 day")
    queries = [pn.query(f"q{i}", at="ts", select={"n": pn.count()}, over=day) for i in range(2)]
    with pytest.raises(PlanError, match=r"172,800 windows \(86,400 of them in the query 'q0'\), .* may have 100,000"):
        pn.plan(queries)


def test_thousands_of_windows_are_planned_and_run():
    many = plan(*(pn.tumbling(f"{i} s") for i in range(1, 2001)))
    assert many.run(at(dt.datetime(2026, 1, 1))).num_rows == 2000


# Answers


@pytest.mark.parametrize("verb", ["run", "stream"])
def test_too_many_instances_per_event_are_refused_before_anything_runs(verb):
    data = FAR if verb == "run" else None
    with pytest.raises(PlanError, match=r"each event is in 31,536,000,000,000 instances of the window '365d/1us'"):
        getattr(plan(YEAR_BY_MICROSECOND), verb)(data)


def test_windows_of_any_geometry_are_looked_up():
    requests = FAR.select(["ts", "k"])
    assert plan(YEAR_BY_MICROSECOND).lookup(FAR, requests).num_rows == 3
    live = plan(YEAR_BY_MICROSECOND).live()
    live.update(FAR)
    assert live.lookup(requests.slice(2)).num_rows == 1
    assert plan(pn.sliding("36000 days")).run(FAR)["n"].to_pylist() == [1, 2, 3]


def test_more_answers_than_fit_are_refused_before_they_are_allocated():
    many = at(*(dt.datetime(2026, 1, 1) + dt.timedelta(days=i) for i in range(100)))
    with pytest.raises(PlanError, match=r"window of 9s every 1us would give 900,000,000 rows, .*pn.sliding"):
        plan(pn.hopping("9 s", every="1 us")).run(many)
    with pytest.raises(PlanError, match="empty=True would give 1,767,225,600,001 rows for the window of 1ms every 1ms"):
        plan(pn.tumbling("1 ms")).run(FAR, empty=True)
    assert plan(pn.tumbling("1 us")).run(FAR).num_rows == 3


@pytest.mark.parametrize(
    "window",
    [
        pn.hopping("365 days", every="1 us", origin="first"),
        pn.hopping(pn.rows(10), every="1 us"),
        pn.hopping(pn.rows(10), every="1 us", partial=False),
        pn.hopping(pn.delta("v", 5), every="1 us"),
    ],
    ids=str,
)
def test_a_grid_over_a_long_gap_is_refused(window):
    with pytest.raises(PlanError, match=rf"every 1us would be answered [\d,]+ times, and at most {MOST_ANSWERS:,}"):
        plan(window).run(FAR)
    with pytest.raises(PlanError, match=r"would be answered [\d,]+ times"):
        pn.apply(FAR, lambda key, window, rows: {"n": rows.num_rows}, by="k", at="ts", over=window)


def test_cost_follows_what_is_due_and_not_the_geometry():
    """A micro-batch answers the instances that end in it, however many hold its events."""
    events = Positions.of_events(np.array([0, 1, 2]), np.array([0, 3]))
    due = frame(Geometry(10**12, 1), events, ending=(5, 9))
    assert due.start.tolist() == [start - 10**12 for start in range(6, 10)]
    with pytest.raises(PlanError, match="would give"):
        frame(Geometry(10**12, 1), events)


def test_forced_group_bys_copy_only_so_often():
    query = plan(pn.hopping("1 day", every="1 s")).queries
    with pytest.raises(PlanError, match=f"copies each event into the 86,400 instances .* about {MOST_COPIES:,}"):
        check_copies(query, "native")
    check_copies(query, "columnar")
