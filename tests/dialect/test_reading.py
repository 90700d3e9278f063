"""SQL of several systems becomes the queries that one would declare in Python; mistakes are shown where they are."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import panes as pn
from panes.errors import PanesError, SqlError

AZURE = """
SELECT DeviceID, System.Window().Id, MIN(T) AS MinTemp
FROM Input TIMESTAMP BY EntryTime
GROUP BY DeviceID, Windows(
    Window('20 min', TumblingWindow(minute, 20)),
    Window('1 h', HoppingWindow(minute, 60, 5)))
"""
SECOND = 1_000_000
SAME = {
    "Azure": (
        AZURE,
        pn.query(
            "query1",
            by="DeviceID",
            at="EntryTime",
            select={"MinTemp": pn.min("T")},
            over=[pn.tumbling("20 min", name="20 min"), pn.hopping("1h", every="5 min", name="1 h")],
        ),
    ),
    "Azure, one window with parts": (
        "SELECT COUNT(*) AS n, System.Timestamp() AS t FROM i TIMESTAMP BY ts GROUP BY "
        "HoppingWindow(Duration(hour, 1), Hop(minute, 5), Offset(second, 10), Bounds('(]'))",
        pn.query(
            "query1",
            at="ts",
            select={"n": pn.count(), "t": "window.end"},
            over=pn.hopping("1h", every="5 min", offset="10s", bounds="(]"),
        ),
    ),
    "Azure, offset behind": (
        "SELECT STDEV(x) AS s, VARP(x) AS v FROM i TIMESTAMP BY ts GROUP BY Tumbling(second, 10, 3)",
        pn.query(
            "query1",
            at="ts",
            select={"s": pn.std("x"), "v": pn.var("x", ddof=0)},
            over=pn.tumbling("10s", offset="3s"),
        ),
    ),
    "CQL": (
        "SELECT K, SUM(A) FROM S TIMESTAMP BY ts [RANGE 300 SECONDS SLIDE 60 SECONDS] GROUP BY K HAVING SUM(A) > 1000",
        pn.query(
            "query1",
            by="K",
            at="ts",
            select={"sum(A)": pn.sum("A")},
            over=pn.hopping("5 min", every="1 min"),
            having="`sum(A)` > 1000",
        ),
    ),
    "table function": (
        "SELECT window_start, k, AVG(x) AS m FROM TABLE(TUMBLE(TABLE ev, DESCRIPTOR(ts), INTERVAL '10' MINUTES)) "
        "GROUP BY window_start, window_end, k",
        pn.query(
            "query1",
            by="k",
            at="ts",
            select={"window_start": "window.start", "m": pn.mean("x")},
            over=pn.tumbling("10 min"),
        ),
    ),
    "table function, step first": (
        "SELECT COUNT(x) n FROM TABLE(HOP(TABLE ev, DESCRIPTOR(ts), INTERVAL '5' MINUTES, INTERVAL '1' HOUR))",
        pn.query("query1", at="ts", select={"n": pn.count("x")}, over=pn.hopping("1h", every="5 min")),
    ),
    "table function, named arguments": (
        "SELECT COUNT(x) n FROM TABLE(CUMULATE(DATA => TABLE ev, TIMECOL => DESCRIPTOR(ts), "
        "SIZE => INTERVAL '1' DAY, STEP => INTERVAL '2' HOURS))",
        pn.query("query1", at="ts", select={"n": pn.count("x")}, over=pn.cumulate("2h", upto="1d")),
    ),
    "Spark": (
        "SELECT window, k, MAX(x) - MIN(x) AS spread FROM ev WHERE x > 0 AND k <> 'it''s' "
        "GROUP BY k, window(ts, '1 hour', '5 minutes', '1 minute') HAVING COUNT(*) > 3",
        pn.query(
            "query1",
            by="k",
            at="ts",
            select={"spread": "`max(x)` - `min(x)`"},
            hidden={"max(x)": pn.max("x"), "min(x)": pn.min("x"), "count(*)": pn.count()},
            over=pn.hopping("1h", every="5 min", offset="1 min"),
            where="x > 0 AND k <> 'it''s'",
            having="`count(*)` > 3",
        ),
    ),
    "values": (
        "SELECT COUNT(DISTINCT u) AS d, PERCENTILE(x + 1, 0.95) AS p, MEDIAN(x) AS m, COLLECT_SET(k) AS k_s FROM ev "
        "GROUP BY window(ts, '1 hour')",
        pn.query(
            "query1",
            at="ts",
            select={
                "d": pn.count_distinct("u"),
                "p": pn.quantile("x + 1", 0.95),
                "m": pn.quantile("x", 0.5),
                "k_s": pn.distinct("k"),
            },
            over=pn.tumbling("1h"),
        ),
    ),
    "sketches": (
        "SELECT APPROX_COUNT_DISTINCT(u) AS d, APPROX_PERCENTILE(x + 1, 0.95) AS p, PERCENTILE_APPROX(x, 1) AS m, "
        "APPROX_TOP_K(k, 3) AS t FROM ev GROUP BY window(ts, '1 hour')",
        pn.query(
            "query1",
            at="ts",
            select={
                "d": pn.approx_count_distinct("u"),
                "p": pn.approx_quantile("x + 1", 0.95),
                "m": pn.approx_quantile("x", 1),
                "t": pn.top("k", 3),
            },
            over=pn.tumbling("1h"),
        ),
    ),
}


SAME_WINDOW = {
    "INTERVAL '1' WEEK": "7 d",
    "INTERVAL '1 week'": "7 d",
    "INTERVAL '1.5' HOURS": "90 min",
    "INTERVAL 1.5 HOURS": "90 min",
    "INTERVAL '+5' MINUTES": "5 min",
}


@pytest.mark.parametrize("length", SAME_WINDOW)
def test_lengths(length):
    (query,) = pn.sql(f"SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE a.b.c, DESCRIPTOR(ts), {length}))")
    assert query.over == (pn.tumbling(SAME_WINDOW[length]),)


def test_an_offset_may_be_negative():
    (query,) = pn.sql("SELECT COUNT(*) FROM s GROUP BY window(ts, '1 hour', '1 hour', INTERVAL '-5' MINUTES)")
    assert query.over == (pn.tumbling("1 hour", offset="55 min"),)


def test_the_call_of_group_by_is_the_window_of_an_answer():
    text = "SELECT window(ts, '1 hour'), window(ts,'1 hour').start, WINDOW(ts, '1 hour') w, COUNT(*) AS n FROM s "
    text += "GROUP BY window(ts, '1 hour') HAVING window(ts, '1 hour').end > window.start"
    select = {"window_start": "window.start", "w": "window", "n": pn.count()}
    having = "window.end > window.start"
    assert pn.sql(text) == [pn.query("query1", at="ts", select=select, over=pn.tumbling("1h"), having=having)]


@pytest.mark.parametrize("name", SAME)
def test_the_same_query_as_in_python(name):
    text, expected = SAME[name]
    assert pn.sql(text) == [expected]


def test_columns_may_be_qualified_by_the_stream_and_keys_named_again():
    text = "SELECT ev.k AS k, SUM(ev.x) AS s FROM ev WHERE ev.x > 1 GROUP BY k, window(ts, '1h') HAVING ev.k <> 'a'"
    asked = {"select": {"s": pn.sum("x")}, "where": "x > 1", "having": "k <> 'a'"}
    assert pn.sql(text) == [pn.query("query1", by="k", at="ts", over=pn.tumbling("1h"), **asked)]


def test_statements_are_named_by_comments_or_by_position():
    one = "SELECT COUNT(*) FROM s GROUP BY window(ts, '1 hour')"
    text = f"-- name: first one\n{one};\n{one}; -- name: third\n\n{one};"
    assert [query.name for query in pn.sql(text)] == ["first one", "query2", "third"]


def test_windows_of_rows_and_sliding_ones():
    kinds = {
        "[ROWS 100 SLIDE 10]": pn.hopping(pn.rows(100), every=pn.rows(10)),
        "[ROWS 100 SLIDE 10 ROWS]": pn.hopping(pn.rows(100), every=pn.rows(10)),
        "[ROWS 100 SLIDE 1 MINUTE]": pn.hopping(pn.rows(100), every="1 min"),
        "[RANGE 1 HOUR SLIDE 10 ROWS]": pn.hopping("1 hour", every=pn.rows(10)),
        "[RANGE 1 HOUR SLIDE 1 ROW]": pn.hopping("1 hour", every=pn.rows(1)),
        "[ROWS 100 SLIDE 100]": pn.tumbling(pn.rows(100)),
        "[ROWS 5 SLIDE 1]": pn.sliding(pn.rows(5)),
        "[ROWS 5]": pn.sliding(pn.rows(5)),
        "[ROWS BETWEEN 4 PRECEDING AND CURRENT ROW]": pn.sliding(pn.rows(5)),
        "[ROWS BETWEEN 4 PRECEDING AND 1 PRECEDING]": pn.sliding(pn.rows(4), ago=pn.rows(1)),
        "[RANGE 1 HOUR]": pn.sliding("1 hour"),
        "[RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW]": pn.sliding("1 hour", bounds="[]"),
        "[RANGE BETWEEN 3 HOURS PRECEDING AND 1 HOUR PRECEDING]": pn.sliding("2 hours", ago="1 hour", bounds="[]"),
        "GROUP BY Windows(Window('few', [ROWS 3]))": pn.sliding(pn.rows(3), name="few"),
        "GROUP BY session_window(ts, '5 minutes')": pn.session("5 min"),
        "GROUP BY SessionWindow(minute, 5)": pn.session("5 min"),
        "GROUP BY Windows(Window('visit', SessionWindow(minute, 5)))": pn.session("5 min", name="visit"),
    }
    for text, window in kinds.items():
        query = pn.sql(f"SELECT SUM(a) FROM s {text}", at="ts")[0]
        assert query.over == (window,)
        assert pn.sql(pn.to_sql(query))[0].over == query.over
        pn.plan(query)


def test_a_session_with_a_longest_duration_is_refused():
    with pytest.raises(SqlError, match="no longest duration here"):
        pn.sql("SELECT SUM(a) FROM s GROUP BY SessionWindow(minute, 5, 60)", at="ts")


def test_windows_of_all_kinds_stand_in_one_list():
    text = (
        "SELECT SUM(a) FROM s GROUP BY Windows(TumblingWindow(day, 1), [RANGE 7 DAYS], Window('ten', [ROWS 10]), "
        "[RANGES 1 HOUR, 10 MINUTES SLIDES 5 MINUTES, 1 MINUTE])"
    )
    nested = pn.nested(["1 hour", "10 min"], ["5 min", "1 min"])
    over = (pn.tumbling("1 day"), pn.sliding("7 days"), pn.sliding(pn.rows(10), name="ten"), nested)
    query = pn.sql(text, at="ts")[0]
    assert query.over == over
    assert pn.sql(pn.to_sql(query)) == [query]


def test_bounds_and_event_time_may_be_given_beside():
    query = pn.sql("SELECT COUNT(*) n FROM s GROUP BY TumblingWindow(second, 2)", at="ts", bounds="(]")[0]
    assert query == pn.query("query1", at="ts", select={"n": pn.count()}, over=pn.tumbling("2s", bounds="(]"))


def test_explain_is_a_statement():
    text = "EXPLAIN SELECT COUNT(*) FROM ev GROUP BY window(ts, '1 hour')"
    assert "1h" in pn.explain(text)
    with pytest.raises(SqlError, match=r"pn\.explain"):
        pn.sql(text)


WRONG = {
    "SELECT a, SUM(x) FROM s\nGROUP BY k, TumblingWindow(minute, 5)": (
        "line 1, column 8: 'a' is neither an aggregate nor in GROUP BY",
        "  SELECT a, SUM(x) FROM s\n         ^",
    ),
    "SELECT SUM(x) FROM s\nGROUP BY k, TumblingWindow(fortnight, 5)": (
        "line 2, column 28: 'fortnight' is not a unit of time",
        "  GROUP BY k, TumblingWindow(fortnight, 5)\n                             ^^^^^^^^^",
    ),
    "SELECT SUM(x) FROM s GROUP BY TumblingWindow(minute, 0)": ("is not positive",),
    "SELECT SUM(x) FROM s GROUP BY SlidingWindow(minute, 5)": ("also when one leaves", "HoppingWindow"),
    "SELECT SUM(x) FROM s GROUP BY Tumblewindow(minute, 5)": ("a group is a column or a window",),
    "SELECT SUM(x) FROM s": ("has no window",),
    "SELECT SUM(x) FROM s ORDER BY x": ("have no order",),
    "SELECT SUM(x) FROM s JOIN t ON a = b": ("reads one stream",),
    "SELECT SUM(x) FROM (SELECT 1)": ("not another query",),
    "SELECT DISTINCT SUM(x) FROM s": ("always distinct",),
    "SELECT SUM(x) OVER (PARTITION BY k) FROM s [RANGE 5 SECONDS SLIDE 1 SECOND]": ("OVER after an aggregate",),
    "SELECT COUNT(DISTINCT x, y) FROM s [RANGE 5 SECONDS SLIDE 1 SECOND]": ("write COUNT(DISTINCT x)",),
    "SELECT PERCENTILE(x, 2) FROM s GROUP BY Tumbling(day, 1)": (
        "column 8: q=2.0: a quantile is a number from 0 to 1",
    ),
    "SELECT PERCENTILE(x, y) FROM s GROUP BY Tumbling(day, 1)": ("write PERCENTILE(x, 0.5)",),
    "SELECT 1 + PERCENTILE(x, 0.5, n) AS p FROM s GROUP BY Tumbling(day, 1)": ("write PERCENTILE(x, 0.5)",),
    "SELECT SUM(DISTINCT x) FROM s GROUP BY Tumbling(day, 1)": ("DISTINCT is supported only in COUNT(DISTINCT x)",),
    "SELECT SUM(SUM(x)) FROM s [RANGE 5 SECONDS SLIDE 1 SECOND]": ("cannot be nested",),
    "SELECT RAND() + SUM(x) FROM s [RANGE 5 SECONDS SLIDE 1 SECOND]": ("deterministic",),
    "SELECT SUM(x) FROM s [RANGE 5 SECONDS SLIDE 1 SECOND] WHERE SUM(x) > 1": ("or appear in WHERE",),
    "SELECT MAX(x) + 1 AS y, SUM(x) AS `max(x)` FROM s [RANGE 5 SECONDS SLIDE 1 SECOND]": ("another aggregate",),
    "SELECT window(a, '1 day').start AS d, SUM(x) FROM s [RANGE 5 SECONDS SLIDE 1 SECOND]": ("d, SUM",),
    "SELECT System.Timestamp(5) AS t, SUM(x) FROM s [RANGE 5 SECONDS SLIDE 1 SECOND]": ("Timestamp(5)",),
    "SELECT other.k, SUM(x) FROM s [RANGE 5 SECONDS SLIDE 1 SECOND] GROUP BY k": ("'other.k' is not a key",),
    """SELECT SUM(x) FROM s [RANGE 5 SECONDS SLIDE 1 SECOND] WHERE "k" = 'a'""": ("write `k` for a column",),
    "SELECT SUM(x) FROM s [RANGE 5 SECONDS SLIDE 1 SECOND] GROUP BY Tumbling(minute, 5)": ("already has a window",),
    "SELECT SUM(x) FROM s GROUP BY Tumbling(minute, 5), Tumbling(minute, 10)": ("Write Windows(",),
    "SELECT FIRST(x, y) FROM s [RANGE 5 SECONDS SLIDE 1 SECOND]": ("write FIRST(x), and nothing after it",),
    "SELECT SUM(x) FROM s GROUP BY SessionWindow(Timeout(minute, 5), Bounds('(]'))": ("leave Bounds out",),
    "SELECT SUM(x) FROM s GROUP BY Tumbling(Duration(minute, 5), Bounds('(]'), Bounds('[)'))": ("Bounds('[)')",),
    "SELECT SUM(x) AS FROM s [RANGE 5 SECONDS SLIDE 1 SECOND]": ("missing after AS",),
    "SELECT SUM(x) AS + FROM s [RANGE 5 SECONDS SLIDE 1 SECOND]": ("expected a name",),
    "SELECT SUM(x) -- name: a\nFROM s [RANGE 5 SECONDS SLIDE 1 SECOND]": ("is one line before the statement",),
    "SELECT SUM(x) FROM s [RANGE 5 SECONDS SLIDE 1 SECOND] WHERE x > 1, y > 2": ("write AND or OR",),
    "SELECT SUM(x) FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' HOUR)) WHERE window_start > ts": ("HAVING",),
    "SELECT SUM(x) FROM s GROUP BY window(ts, INTERVAL '\u00b2' MINUTES)": ("\u00b2",),
    "SELECT SUM(x) FROM s [ROWS 10 SLIDE 5 PARSECS]": ("not a unit of time",),
    "SELECT SUM(x) FROM s [RANGE 5 MINUTES SLIDE 5]": ("the pace has no unit", "SLIDE 10 ROWS"),
    "SELECT SUM(x) FROM s [RANGE 0 MINUTES]": ("must be positive",),
    "SELECT SUM(x) FROM s [ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW]": ("a window has a size here",),
    "SELECT SUM(x) FROM s [ROWS BETWEEN 1 PRECEDING AND 2 PRECEDING]": ("ends before it begins",),
    "SELECT SUM(x) FROM s [RANGE BETWEEN 1 DAY PRECEDING AND 1 DAY PRECEDING]": ("ends before it begins",),
    "SELECT SUM(x) FROM s [ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING]": ("expected PRECEDING",),
    f"SELECT SUM(x) FROM s [ROWS {'1' * 5000}]": ("at most 15 digits",),
    "SELECT SUM(CAST(x AS DECIMAL(a))) FROM s [RANGE 5 SECONDS SLIDE 1 SECOND]": ("DECIMAL",),
    "SELECT SUM(x FROM s": ("never closed",),
    "SELECT 'abc FROM s": ("never closed",),
    "SELECT SUM(x) AS total FROM s [RANGE 5 SECONDS SLIDE 1 SECOND]\nHAVING totl > 1": (
        "line 2, column 8: 'totl' is neither a key nor a selected column (did you mean 'total'?)",
    ),
    "DELETE FROM s": ("expected SELECT",),
    "": ("there is no statement",),
    "SELECT SUM(x) FROM s GROUP BY window(ts, '1 month')": ("month",),
    "SELECT SUM(x) FROM s [ROWS 0]": ("positive",),
    "SELECT SUM(x), SUM(x) FROM s [RANGE 5 SECONDS SLIDE 1 SECOND]": ("two columns are called 'sum(x)'",),
    "SELECT COUNT(*) FROM s GROUP BY window(a, '1 hour'), window(b, '1 hour')": ("event time is both 'a' and 'b'",),
    "SELECT k, MAX(x) AS a, MIN(x) AS A FROM s GROUP BY k, Tumbling(day, 1)": (
        "column 34: two columns",
        f"{' ' * 33}^",
    ),
    "SELECT k, MAX(x) AS k FROM s GROUP BY k, Tumbling(day, 1)": ("column 21: 'k' is already a key",),
    "SELECT k, MAX(x) AS query FROM s GROUP BY k, Tumbling(day, 1)": ("column 21: every answer already has", " ^^^^^"),
    "SELECT k, MAX(x) AS __q FROM s GROUP BY k, Tumbling(day, 1)": ("column 21: names that begin with '__'",),
    "SELECT k FROM s GROUP BY k, Tumbling(day, 1)": ("column 8: there is no aggregate",),
    "SELECT MAX(x) FROM s GROUP BY k, K, Tumbling(day, 1)": ("column 34: the statement already groups by 'K'",),
    "SELECT MAX(x) FROM s GROUP BY ts, Tumbling(day, 1)": ("column 31: this is the event time",),
    "SELECT MAX(x) FROM s GROUP BY Windows(Tumbling(minute, 5), Tumbling(second, 300))": (
        "column 60: two windows are called '5m'",
        " ^^^^^^^^^^^^^^^^^^^^^",
    ),
    "SELECT MAX(x) - SUM(rand(y) + 1) + 1 AS d FROM s GROUP BY Tumbling(day, 1)": ("column 21: cannot", " ^^^^^^^^^^^"),
    "SELECT MAX(x) - COUNT(DISTINCT y, z) + 1 AS d FROM s GROUP BY Tumbling(day, 1)": (
        "column 17: write COUNT(DISTINCT x)",
        f" {'^' * 17}",
    ),
    "SELECT APPROX_PERCENTILE(x, 2) FROM s GROUP BY Tumbling(day, 1)": ("column 26:", "a number from 0 to 1"),
    "SELECT APPROX_PERCENTILE(x, y) FROM s GROUP BY Tumbling(day, 1)": ("write APPROX_PERCENTILE(x, 0.5)",),
    "SELECT APPROX_PERCENTILE(x, 0.5, 9) FROM s GROUP BY Tumbling(day, 1)": ("nothing after it",),
    "SELECT APPROX_TOP_K(x, 0) FROM s GROUP BY Tumbling(day, 1)": ("n=0: write a whole number of at least 1",),
    "SELECT APPROX_TOP_K(x, 1.5) FROM s GROUP BY Tumbling(day, 1)": ("write APPROX_TOP_K(x, 10)",),
    "SELECT APPROX_TOP_K(x) FROM s GROUP BY Tumbling(day, 1)": ("write APPROX_TOP_K(x, 10)",),
    "SELECT APPROX_COUNT_DISTINCT(x, 0.1) FROM s GROUP BY Tumbling(day, 1)": ("write APPROX_COUNT_DISTINCT(x)",),
    "SELECT MAX(x) FROM s GROUP BY window(ts, INTERVAL '-1' HOUR)": ("column 31: size='-1h' is not positive",),
    "SELECT MAX(x) FROM s GROUP BY window(ts, INTERVAL '0.0000001' SECOND)": ("finer than a microsecond",),
    "SELECT MAX(x) FROM s GROUP BY session_window(ts, INTERVAL '-1' HOUR)": ("is not positive",),
    "SELECT window(ts, '2 hours'), MAX(x) FROM s GROUP BY window(ts, '1 hour')": ("column 8: this is not the window",),
    "-- name: a\nSELECT MAX(x) FROM s GROUP BY window(ts, '1h');\n-- name: a\nSELECT MAX(x) FROM s": (
        "line 4, column 1: two statements are called 'a'",
    ),
    "SELECT COUNT(*) FROM s GROUP BY window(a, '1h'); SELECT COUNT(*) FROM t GROUP BY window(a, '1h')": (
        "several streams (s, t)",
    ),
}


@pytest.mark.parametrize("text", WRONG)
def test_mistakes_say_where_they_are_and_what_to_write(text):
    with pytest.raises(SqlError) as error:
        pn.sql(text, at=None if "window(" in text else "ts")
    for part in WRONG[text]:
        assert part in str(error.value)


def test_a_statement_without_event_time_says_how_to_name_it():
    with pytest.raises(SqlError, match="TIMESTAMP BY ts"):
        pn.sql("SELECT COUNT(*) FROM s [RANGE 5 SECONDS SLIDE 1 SECOND]")


_SPACED = """
    SELECT FROM WHERE GROUP BY HAVING AS AND NOT IN CASE WHEN THEN END NULL INTERVAL TABLE EXPLAIN DISTINCT TIMESTAMP
    RANGE RANGES ROWS SLIDE SLIDES TUMBLE HOP CUMULATE DESCRIPTOR Windows Window TumblingWindow HoppingWindow
    SessionWindow Duration Hop Offset Bounds System.Window().Id window session_window minute second SECONDS HOUR SUM
    WEEK COUNT MIN AVG FIRST CAST DECIMAL(a) DECIMAL(10,2) ² 11111111111111111111
    k x ts ev ( ) [ ] , ; . * + - > = => 0 1 5 60 1e9 1.5 -- /* */ '10' '-1' '1.5' '(]' ' ` $$ :: @ ? é
"""
WORDS = [*_SPACED.split(), "'5 minutes'", "`a b`", '"q"', "\n", "\\", "\x00"]
STATEMENTS = st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join)
BROKEN = st.builds(
    lambda text, at, more, drop: text[:at] + more + text[at + drop :],
    st.sampled_from([text for text, _ in SAME.values()]),
    st.integers(0, 300),
    st.sampled_from(["", *WORDS]) | st.text(max_size=3),
    st.integers(0, 12),
)


def read_or_refuse(text: str) -> None:
    with contextlib.suppress(PanesError):
        assert pn.sql(text, at="ts")


@settings(max_examples=250)
@given(STATEMENTS | BROKEN | st.text(max_size=40))
@example("SELECT " + "(" * 3000)
@example("SELECT SUM(" + "-" * 3000 + "x) FROM s [RANGE 1 SECOND SLIDE 1 SECOND]")
@example("SELECT SUM(" + "(" * 400 + "x" + ")" * 400 + ") FROM s [RANGE 1 SECOND SLIDE 1 SECOND]")
def test_any_text_is_read_or_refused(text):
    read_or_refuse(text)


@pytest.mark.soak
@settings(max_examples=300_000)
@given(STATEMENTS | BROKEN | st.text(max_size=40))
def test_any_text_is_read_or_refused_for_a_long_time(text):
    read_or_refuse(text)
