"""Nested windows: what is declared, what is refused, what is answered, and how SQL says it."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pyarrow as pa
import pytest

import panes as pn
from panes.errors import DeclarationError, DurationError, PanesError, PlanError, SqlError
from panes.queries.catalogue_entries import read_entry, registration
from panes.testing import assert_same_answers, brute_force

PAPER = "[RANGES 1 HOUR, 10 MINUTES, 1 MINUTE SLIDES 5 MINUTES, 1 MINUTE, 1 SECOND]"


def counting(over: Any, **more: Any) -> pn.Query:
    return pn.query("q", **{"at": "ts", "select": {"n": pn.count(), "xs": pn.sum("x")}, "over": over, **more})


def at(seconds: int) -> dt.datetime:
    return dt.datetime(1970, 1, 1) + dt.timedelta(seconds=seconds)


def ticks(*seconds: int) -> pa.Table:
    return pa.table({"ts": [at(second) for second in seconds], "x": list(seconds)})


def test_the_paper_s_window_is_three_sliding_ones_in_any_order() -> None:
    levels = [pn.hopping("1 min", every="1 s"), pn.hopping("10 min", every="1 min"), pn.hopping("1 h", every="5 min")]
    down = pn.nested(ranges=["1 hour", "10 min", "1 min"], slides=["5 min", "1 min", "1 s"])
    up = pn.nested(ranges=["1 min", "10 min", "1 hour"], slides=["1 s", "1 min", "5 min"], symmetric=True)
    assert down == up
    assert [w.geometry for w in up.windows] == [w.geometry for w in levels]
    assert [w.name for w in up.windows] == [w.name for w in levels]
    assert [w.finer for w in up.windows] == [(), (60_000_000,), (60_000_000, 600_000_000)]
    assert all(w.finer == () and w.since is None for w in levels)


@pytest.mark.parametrize(
    ("ranges", "slides", "more", "message"),
    [
        (["1m", "1h", "10m"], ["1s", "1m", "5m"], {}, r"ranges=\['1m', '1h', '10m'\] are out of order"),
        (["1m", "1m"], ["1s", "1s"], {}, "all different"),
        (["1m", "1h"], ["5s", "1s"], {}, "1h would slide every 1s, more often than the narrower 1m, every 5s"),
        (["1h", "1m"], ["1s", "5s"], {}, "out of order"),
        (["1m", "1h"], ["1s"], {}, "ranges has 2 members and slides has 1"),
        (["1m", "1h"], ["7s", "10s"], {}, "1m is not a multiple of its slide 7s"),
        (["1m", "1h"], ["4s", "10s"], {"symmetric": True}, "10s is not a multiple of 4s"),
        ([], [], {}, "at least one level"),
        ("1m", ["1s"], {}, r"Write ranges=\['1m'\]"),
        (["1m"], 5, {}, r"slides=5 is not a list"),
        (["1m"], ["1s"], {"since": "soon"}, "'soon' is not an instant"),
        (["1m"], ["1s"], {"since": 5}, "5 is not an instant"),
        (["1m"], ["1s"], {"since": "2026-01-01", "offset": "1s"}, "Leave offset= out"),
        (["1m"], ["1s"], {"bounds": "[]"}, "bounds"),
        (["1m"], ["1s"], {"name": " "}, "cannot name a window"),
    ],
)
def test_what_is_no_nested_window(ranges: Any, slides: Any, more: dict[str, Any], message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        pn.nested(ranges, slides, **more)


def test_lengths_have_to_be_positive() -> None:
    with pytest.raises(DurationError, match="a slide='0s' is not positive"):
        pn.nested(["1m"], ["0s"])


def test_slides_need_not_be_multiples_or_differ() -> None:
    assert len(pn.nested(["4s", "9s", "12s"], ["2s", "3s", "3s"]).windows) == 3


def test_names_tell_levels_apart() -> None:
    named = pn.nested(["1m", "1h"], ["1s", "5m"], name="load")
    assert (named.name, named.names) == ("load", ("load 1m", "load 1h"))
    shifted = pn.nested(["1m", "1h"], ["1s", "5m"], offset="90s")
    assert shifted.names == ("1m/1s", "1h/5m+1m30s")
    with pytest.raises(DeclarationError, match="two windows called '1h/5m'"):
        counting([pn.nested(["1m", "1h"], ["1s", "5m"]), pn.hopping("1h", every="5m")])
    both = counting([pn.nested(["2s", "4s"], ["1s", "2s"]), pn.nested(["2s", "8s"], ["1s", "4s"], name="more")])
    wide = pn.plan(both).run(ticks(1, 2, 7), layout="wide")
    assert set(wide.column_names) >= {"n_2s_by_1s", "n_4s_by_2s", "n_more 2s", "n_more 8s"}
    assert "more 8s" in pn.plan(both).explain()
    assert "first" not in pn.plan(both).explain()


def test_scopes_after_an_initiation_time() -> None:
    """⟨4, 1⟩ and ⟨6, 3⟩ since 5: ``[max(τ0, t_k), τ - mod(τ - τ0, β_k))``."""
    over = pn.nested(["4s", "6s"], ["1s", "3s"], since=at(5))
    answers = pn.plan(counting(over)).run(ticks(3, 4, 5, 6, 9, 12))
    found = {
        (row["window_name"], *((row["window"][edge] - at(0)).seconds for edge in ("start", "end"))): row["xs"]
        for row in answers.to_pylist()
    }
    narrow = {(start, end): xs for (name, start, end), xs in found.items() if name == "4s/1s"}
    wide = {(start, end): xs for (name, start, end), xs in found.items() if name == "6s/3s"}
    assert narrow == {
        # Not all of the range has passed since then.
        (5, 6): 5,
        (5, 7): 11,
        (5, 8): 11,
        (5, 9): 11,
        (6, 10): 15,
        (7, 11): 9,
        (8, 12): 9,
        (9, 13): 21,
        (10, 14): 12,
        (11, 15): 12,
        (12, 16): 12,
    }
    assert wide == {(5, 8): 11, (5, 11): 20, (8, 14): 21, (11, 17): 12}


def test_an_initiation_time_is_of_the_window_and_not_of_the_query() -> None:
    """One geometry, three beginnings, in one plan; and events at the instant itself, whichever bound belongs."""
    shape = {"ranges": ["2s", "6s"], "slides": ["1s", "3s"]}
    queries = [
        pn.query(f"q{i}", at="ts", select={"n": pn.count()}, over=pn.nested(**shape, **more), where=where)
        for i, (more, where) in enumerate(
            [
                ({}, None),
                ({"since": at(3)}, None),
                ({"since": at(6)}, "x > 4"),
                ({"since": at(3), "bounds": "(]"}, None),
            ]
        )
    ]
    events = ticks(0, 2, 3, 4, 6, 7, 11)
    assert_same_answers(pn.plan(queries).run(events), brute_force(queries, events))
    every = pn.plan(queries[1]).run(ticks(0, 2, 9), empty=True)
    assert min(row["window"]["end"] for row in every.to_pylist()) == at(10)


def test_an_instant_may_have_a_zone() -> None:
    zone = dt.timezone(dt.timedelta(hours=2))
    aware = pn.nested(["1m"], ["1s"], since=dt.datetime(2026, 1, 1, 2, tzinfo=zone))
    assert (
        aware == pn.nested(["1m"], ["1s"], since="2026-01-01") == pn.nested(["1m"], ["1s"], since="2026-01-01 00:00Z")
    )


@pytest.mark.parametrize("strategy", ["native", "rewrite"])
def test_an_initiation_time_runs_in_columns(strategy: Any) -> None:
    query = counting(pn.nested(["1m"], ["1m"], since="2026-01-01"))
    assert pn.plan(query).physical_plan().stores[0].strategy == "columnar"
    with pytest.raises(PlanError, match="run in columns only"):
        pn.plan(query, strategy=strategy)


@pytest.mark.parametrize("ending", ["", " SINCE '2026-01-01 09:30:00'", " SINCE '1969-12-31 23:59:59.500000'"])
def test_sql_reads_and_prints_them(ending: str) -> None:
    text = f"SELECT SUM(x) AS xs FROM s {PAPER[:-1]}{ending}]"
    [query] = pn.sql(text, at="ts")
    since = ending.split("'")[1] if ending else None
    over = pn.nested(["1h", "10m", "1m"], ["5m", "1m", "1s"], since=since)
    assert query == pn.query("query1", at="ts", select={"xs": pn.sum("x")}, over=over)
    assert f"{PAPER[:-1]}{ending}]" in pn.to_sql(query)
    assert pn.sql(pn.to_sql(query)) == [query]
    ascending = text.replace(PAPER[:-1], "[RANGES 1 MINUTE, 10 MINUTES, 1 HOUR SLIDES 1 SECOND, 1 MINUTE, 5 MINUTES")
    assert pn.sql(ascending, at="ts") == [query]
    # All of one statement has these bounds.
    assert pn.sql(text, at="ts", bounds="(]")[0].windows[0].bounds == "(]"
    plain = pn.nested(["1m"], ["1s"])
    for other in ({"offset": "500ms"}, {"bounds": "(]"}):
        with pytest.raises(DeclarationError, match="SQL has no words for the window"):
            pn.to_sql(counting(pn.nested(["1m"], ["1s"], **other)))
    for said in (pn.nested(["1m"], ["1s"], name="named"), [plain, pn.tumbling("1m", name="a minute")]):
        assert pn.sql(pn.to_sql(counting(said))) == [counting(said)]


@pytest.mark.parametrize(
    ("window", "message"),
    [
        ("[RANGES 1 HOUR, 10 MINUTES SLIDES 1 MINUTE, 5 MINUTES]", "column 24: slides=.* are out of order"),
        (
            "[RANGES 1 HOUR, 1 DAY, 1 MINUTE SLIDES 1 MINUTE, 1 MINUTE, 1 MINUTE]",
            "column 24: ranges=.* are out of order",
        ),
        ("[RANGES 1 HOUR, 10 MINUTES SLIDES 1 MINUTE]", "ranges has 2 members and slides has 1"),
        ("[RANGES 1 HOUR SLIDES 7 MINUTES]", "not a multiple of its slide"),
        ("[RANGES 1 HOUR SLIDE 1 MINUTE]", "SLIDES"),
        ("[RANGES 1 HOUR SLIDES 1 MINUTE SINCE 5]", "column 61: expected an instant"),
        ("[RANGES 1 HOUR SLIDES 1 MINUTE SINCE 'soon']", "column 61: 'soon' is not an instant"),
    ],
)
def test_mistakes_in_sql_are_shown_where_they_are(window: str, message: str) -> None:
    with pytest.raises(SqlError, match=message):
        pn.sql(f"SELECT COUNT(*) FROM s {window}", at="ts")


def test_a_catalogue_carries_them() -> None:
    query = counting(pn.nested(["2s", "6s"], ["1s", "3s"], since=at(4), bounds="(]"))
    entry = registration(query)
    assert read_entry(entry.to_json()) == entry
    assert entry.over == query.windows
    data = json.loads(entry.to_json())
    del data["checksum"]
    by_hand = json.dumps(data)
    assert read_entry(by_hand) == entry
    with pytest.raises(PanesError, match="since is not an edge of the window"):
        read_entry(by_hand.replace('"since": 4000001', '"since": 4000002'))


def test_answers_say_when_they_expire() -> None:
    """Section III-B: until the level slides next."""
    over = [pn.nested(["2s", "6s"], ["1s", "3s"], bounds="(]"), pn.tumbling("5s")]
    select = {"n": pn.count(), "until": "expires", "expires": "expires", "open": "expires > window.end"}
    query = counting(over, select=select, having="expires IS NOT NULL")
    answers = pn.plan(query).run(ticks(0, 4, 5))
    slides = {"2s/1s": 1, "6s/3s": 3, "5s": 5}
    for row in answers.to_pylist():
        assert row["until"] == row["expires"] == row["window"]["end"] + dt.timedelta(seconds=slides[row["window_name"]])
    assert_same_answers(answers, brute_force(query, ticks(0, 4, 5)))
    own = counting(pn.tumbling("5s"), select={"expires": pn.max("x")}, having="expires > 4")
    assert pn.plan(own).run(ticks(0, 4, 5))["expires"].to_pylist() == [5]
    with pytest.raises(DeclarationError, match="'other' has a column 'expires' of its own"):
        pn.plan([query, pn.query("other", at="ts", select={"expires": pn.max("x")}, over=pn.tumbling("5s"))])
    assert pn.sql("SELECT expires, COUNT(*) AS n FROM s [RANGE 5 SECONDS SLIDE 5 SECONDS]", at="ts")[0].uses_expires


def test_the_status_of_a_stream_tells_the_first_scope() -> None:
    from panes.spark.progress import status

    query = counting(pn.nested(["4s", "6s"], ["1s", "3s"], since=at(5)))
    progress = {"batchId": 0, "observedMetrics": {"panes": {"watermark": 2_000_000}}}
    told = status([query], [], progress)
    assert "4s/1s: [1970-01-01 00:00:05, 1970-01-01 00:00:06) is next" in told
    assert "6s/3s: [1970-01-01 00:00:05, 1970-01-01 00:00:08) is next" in told
