"""What users of other systems write first: the answer names the word that Panes has for it."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import panes as pn
from panes.errors import DeclarationError, DurationError, PlanError, SchemaError, StateError
from panes.suggestions import helpful

OVER = pn.tumbling("1 hour")


def query(**changes: Any) -> pn.Query:
    return pn.query("q", **{"at": "ts", "select": {"n": pn.count()}, "over": OVER, **changes})


class Column:
    """Stands for Spark's, which says that it is iterable, and raises when somebody iterates."""

    def __iter__(self) -> Iterator[object]:
        raise TypeError("[NOT_ITERABLE] Column is not iterable.")

    def __repr__(self) -> str:
        return "Column<'user'>"


COLUMN: Any = Column()
MINUTES = [datetime(2026, 1, 1, 9, minute) for minute in (0, 5, 14)]
EVENTS = pa.table({"ts": MINUTES, "k": ["a", "b", "a"], "x": [5, 9, 6]})
ONE = pa.table({"k": ["a"]})


def live() -> Any:
    """A live plan that has begun."""
    made = pn.plan(pn.query(by="k", at="ts", select={"total": pn.sum("x")}, over=pn.sliding("1 hour"))).live()
    made.update(EVENTS)
    return made


def applied(**changes: Any) -> Any:
    return pn.apply(EVENTS, lambda key, window, rows: None, **{"at": "ts", "over": OVER, **changes})


ROWS = r"write over=pn.hopping\(pn.rows\(100\), every='1 min'\), or over=pn.sliding\(pn.rows\(100\)\)"

CALLS: dict[str, tuple[Callable[[], object], str]] = {
    # An aggregate that is a window elsewhere.
    "last n rows at a pace": (lambda: pn.last(100, every="1 min"), ROWS),
    "last n rows": (lambda: pn.last(100), ROWS),
    "last rows": (lambda: pn.last(pn.rows(100)), ROWS),
    "last of a column, n": (lambda: pn.last("temp", 100), ROWS),
    "first n rows": (lambda: pn.first(10), ROWS),
    "count of a number": (lambda: pn.count(100), r"over=pn.sliding\(pn.rows\(100\)\)"),
    "count of a star": (lambda: pn.count("*"), r"pn.count\(\)"),
    # What an aggregate is told elsewhere.
    "an aggregate over": (lambda: pn.sum("x", over="1 hour"), r"windows belong to the query"),
    "an aggregate by": (lambda: pn.mean("x", groupBy="k"), "keys belong to the query, as by='card'"),
    "an aggregate of some": (lambda: pn.sum("x", filter="x > 1"), "where= of the query"),
    "its name": (lambda: pn.sum("x", name="total"), r"select=\{'total'"),
    "its column": (lambda: pn.max(column="x"), "called value="),
    "distinct": (lambda: pn.count("x", distinct=True), r"pn.count_distinct\('user'\)"),
    "no column": (lambda: pn.sum(), r"sum\(\) needs value=. Write for example pn.sum\('amount'\)"),
    "too many": (lambda: pn.sum("x", "y"), r"was also given 'y': leave it out"),
    "one of two": (lambda: pn.arg_max("x"), r"needs by= too. Write for example pn.arg_max\('city', 'amount'\)"),
    "max by ord": (lambda: pn.arg_max("x", ord="y"), "called by="),
    "percentile": (lambda: pn.quantile("x", percentile=0.5), "called q="),
    "top k": (lambda: pn.top("x", k=3), "called n="),
    "accuracy": (lambda: pn.approx_quantile("x", 0.5, accuracy=100), "k=, the size of the sketch"),
    "rsd": (lambda: pn.approx_count_distinct("x", rsd=0.05), "set by lg_k="),
    "col1": (lambda: pn.corr(col1="x", col2="y"), "called x="),
    "halflife": (lambda: pn.aged(pn.count(), halflife="1 hour"), "called half_life="),
    "zero": (lambda: pn.aggregate("x", zero=0), "called identity="),
    "half an aggregate": (lambda: pn.aggregate("x", name="p"), r"needs state= and identity= and lift= and combine="),
    # Windows.
    "Spark's window": (lambda: pn.hopping("1 hour", "5 min"), "as every='5 min'. Write for example pn.hopping"),
    "slide": (lambda: pn.hopping("1 hour", slide="5 min"), "called every="),
    "slideDuration": (lambda: pn.hopping("1 hour", slideDuration="5 min"), "called every="),
    "no pace": (lambda: pn.hopping("1 hour"), "needs every= too"),
    "timedelta's words": (lambda: pn.tumbling(minutes=5), "write a duration, as '5 min'"),
    "a pace beside tumbling": (lambda: pn.tumbling("5 min", "1 min"), r"pn.hopping\(size, every="),
    "a pace beside sliding": (lambda: pn.sliding("1 hour", "5 min"), r"pn.hopping\(size, every="),
    "rows by name": (lambda: pn.sliding(rows=10), r"pn.rows\(100\) for the size"),
    "keys of a window": (lambda: pn.tumbling("5 min", by="k"), "keys go in the query"),
    "closed": (lambda: pn.tumbling("5 min", closed="left"), "called bounds="),
    "two gaps": (lambda: pn.session("1 hour", "2 hours"), "no other size"),
    "rows of a session": (lambda: pn.session(pn.rows(3)), r"Write pn.session\('30 min'\)"),
    "cumulate of two": (lambda: pn.cumulate("1 hour", "1 day"), "as upto='1 day'"),
    "no rows": (lambda: pn.rows(), r"Write for example pn.rows\(100\)"),
    "no distance": (lambda: pn.delta("x"), "needs by= too. Write for example pn.delta"),
    "evict n": (lambda: pn.evict(1000), r"write it by name \(keys=, rows=, age=, choose=\)"),
    # Queries.
    "group_by": (lambda: query(group_by="k"), "keys are called by="),
    "groupBy": (lambda: query(groupBy="k"), "keys are called by="),
    "on": (lambda: query(on="k"), "called by="),
    "keys": (lambda: query(keys=["k"]), "called by="),
    "window": (lambda: query(window=OVER), "called over="),
    "timestamp": (lambda: query(timestamp="ts"), "called at="),
    "aggs": (lambda: query(aggs={}), "called select="),
    "watermark": (lambda: query(watermark="10 min"), r"events.withWatermark\('ts', '10 minutes'\)"),
    "its pace": (lambda: query(every="1 min"), r"over=pn.hopping\('1 hour', every='5 min'\)"),
    "its data": (lambda: query(data=[]), r"pn.plan\(query\).run\(data\)"),
    "all by position": (lambda: pn.query("q", "k", "ts"), "everything but the name of the query is written by name"),  # type: ignore[call-arg, misc]
    "a list of aggregates": (lambda: query(select=[pn.count()]), r"select=\[count\(\)\] names no columns"),
    "an aggregate that was not called": (lambda: query(select={"n": pn.count}), r"Write pn.count\(...\) with paren"),
    "a duration": (lambda: query(over="1 hour"), r"pn.sliding\('1 hour'\) for one up to each event"),
    "a timedelta": (lambda: query(over=timedelta(hours=1)), r"Write pn.tumbling\('1h'\)"),
    "a number": (lambda: query(over=10), r"pn.sliding\(pn.rows\(10\)\) for the last 10 rows"),
    "rows": (lambda: query(over=pn.rows(10)), r"Write pn.sliding\(pn.rows\(10\)\) for the last rows"),
    "a column's distance": (lambda: query(over=pn.delta("km", 10)), r"Write pn.tumbling\(pn.delta\('km', 10\)\)"),
    "an aggregate": (lambda: query(over=pn.last("x")), "over=last\\(x\\) is an aggregate, which goes into select="),
    "durations by name": (lambda: query(over={"h": "1 hour"}), r"over=\[pn.sliding\('1 hour', name='h'\)\]"),
    "rows by their name": (
        lambda: query(over={"few": pn.sliding(pn.rows(3))}),
        r"over=\[pn.sliding\(pn.rows\(3\), name='few'\)\]",
    ),
    # Plans and the rest.
    "a plan of data": (lambda: pn.plan(query(), data=[]), r"pn.plan\(query\).run\(data\)"),  # type: ignore[call-arg]
    "a plan of a number": (lambda: pn.plan(5), "5 is not a query"),  # type: ignore[arg-type]
    "a plan of an aggregate": (lambda: pn.plan(pn.count()), r"count\(\) is not a query"),  # type: ignore[arg-type]
    "join by": (lambda: pn.join([], [], by="k", at="ts", over="1 min"), "called on="),  # type: ignore[call-arg]
    "join within": (lambda: pn.join([], [], on="k", at="ts", within="1 min"), "called over="),  # type: ignore[call-arg]
    "join left_on": (lambda: pn.join([], [], left_on="k", right_on="l"), "equal names on both sides"),  # type: ignore[call-arg]
    "a join over rows": (
        lambda: pn.join([], [], on="k", at="ts", over=pn.rows(3)),  # type: ignore[arg-type]
        r"over=3rows is a measure.*Write over=pn.sliding\(pn.rows\(3\)\)",
    ),
    "a join over a window": (
        lambda: pn.join([], [], on="k", at="ts", over=pn.tumbling("1 min")),  # type: ignore[arg-type]
        r"looks back from each row.*over=\['10 s', '1 min'\].*pn.sliding\(pn.rows\(10\)\)",
    ),
    "a join over names": (
        lambda: pn.join([], [], on="k", at="ts", over={"short": "10 s"}),  # type: ignore[arg-type]
        r"over=\[pn.sliding\('10 s', name='short'\), ...\]",
    ),
    # Columns of Spark, where names are meant.
    "a column as a key": (lambda: query(by=COLUMN), r"by=Column<'user'> is not the name of a column. Write it as a st"),
    "columns as keys": (lambda: query(by=[COLUMN]), r"by=Column<'user'> is not the name of a column. Write it as a st"),
    "a column of windows": (lambda: query(over=COLUMN), r"Column<'user'> is not a window. Write pn.tumbling"),
    "a column as a condition": (lambda: query(where=COLUMN), r"Column<'user'> is not an expression: .*'temp > -60'\.$"),
    "a join of columns": (
        lambda: pn.join(EVENTS, EVENTS, on=COLUMN, at="ts", over="1 min"),
        r"on=Column<'user'> is not the name of a column. Write it as a string",
    ),
    "a join over a column": (
        lambda: pn.join(EVENTS, EVENTS, on="k", at="ts", over=COLUMN),
        r"over= has Column<'user'>, which is not a window. Write durations",
    ),
    "a function by a column": (lambda: applied(by=COLUMN), r"by=Column<'user'> is not the name of a column"),
    "an operator by a column": (
        lambda: pn.sort(EVENTS, order="x", by=COLUMN, over=OVER, at="ts"),
        r"by=Column<'user'> is not the name of a column",
    ),
    "sorted by a column": (
        lambda: pn.sort(EVENTS, order=COLUMN, over=OVER, at="ts"),
        r"order=Column<'user'> is not a column. Write order='price'",
    ),
    # What would fill a screen.
    "a window that is a table": (lambda: query(over=[EVENTS]), r"query 'q': a Table is not a window"),
    "a window that is a query": (lambda: query(over=query()), r"query 'q': a Query is not a window"),
    "a plan of a table": (lambda: pn.plan(EVENTS), r"^a Table is not a query"),  # type: ignore[arg-type]
    "a function of rows alone": (
        lambda: pn.apply(EVENTS, lambda rows: rows, over=OVER, at="ts"),  # type: ignore[arg-type, misc]
        r"<lambda>\(rows\) is called with a key, a window and its rows .*Write for example lambda key, window, rows:",
    ),
    "a plan of two": (lambda: pn.plan(query(), query()), r"given a Query: .*into a list, as pn.plan\(\[query, another"),  # type: ignore[call-arg, misc]
    "the class of plans": (lambda: pn.Plan(query()), r"Plans are made by pn.plan\."),  # type: ignore[call-arg, arg-type]
    # Windows as others write them.
    "tumbling a column": (lambda: pn.tumbling("ts", "1 hour"), "the time column goes in the query, as at='ts'"),
    "hopping a column": (
        lambda: pn.hopping("ts", "1 hour", "5 min"),
        "the time column goes in the query, as at='ts'",
    ),
    "sliding a column": (lambda: pn.sliding("ts", "1 hour"), "the time column goes in the query, as at='ts'"),
    "a session of a column": (lambda: pn.session("ts", "1 hour"), "the time column goes in the query, as at='ts'"),
    "cumulate, swapped": (
        lambda: pn.cumulate("1 day", "1 hour"),
        r"the step comes first, as pn.cumulate\('1 hour', upto='1 day'\)",
    ),
    "cumulate, swapped by name": (
        lambda: pn.cumulate("1 day", upto="1 hour"),
        r"longer than upto='1 hour'. Write pn.cumulate\('1 hour', upto='1 day'\)",
    ),
    "rows as text": (lambda: pn.sliding("100 rows"), r"'100 rows' is not a duration. Write pn.rows\(100\)"),
    "rows as text, live": (lambda: live().lookup(ONE, over="10 rows"), r"Write pn.rows\(10\) for a number of rows"),
    "rows as text, alone": (lambda: query(over="10 rows"), r"Write pn.rows\(10\) for a number of rows"),
    "a time zone": (
        lambda: pn.tumbling("1 day", tz="Europe/Berlin"),
        "the clock is that of UTC; shift it with offset=",
    ),
    "a start": (lambda: pn.tumbling("1 day", start="2 hours"), "it is called offset="),
    "a start of each event": (lambda: pn.sliding("1 day", start="2 hours"), r"has no start= \(known: size"),
    "a start of a session": (lambda: pn.session("1 day", start="2 hours"), "a session starts with its first event"),
    "a period": (lambda: pn.tumbling(period="1 day"), "it is called size="),
    # Aggregates as numbers.
    "a quotient": (lambda: pn.sum("x") / pn.count(), r"sum\(x\) is not a number yet. .*'average': 'total / n'"),
    "a comparison": (lambda: pn.sum("x") > 3, "having='total > 3'"),
    "one minus": (lambda: 1 - pn.mean("x"), r"mean\(x\) is not a number yet"),
    "and": (lambda: query(having="n > 1 & n < 2"), "conditions are joined by AND, not by &"),
    "and and": (lambda: query(having="n > 1 && n < 2"), "conditions are joined by AND, not by &&"),
    "or": (lambda: query(where="x > 1 | x < 2"), r"conditions are joined by OR, not by \|"),
    "or or": (lambda: query(where="x > 1 || x < 2"), "join them by AND or OR"),
    "a column": (lambda: query(select="amount"), r"Write select=\{'total': pn.sum\('amount'\)\}"),
    "a list of sums": (lambda: query(select=[pn.sum("x")]), r"Write select=\{'sum': pn.sum\(...\)\}"),
    "the key": (lambda: query(by="k", select={"k": "k", "n": pn.count()}), "the key, which results always show"),
    # What is kept in this process.
    "live of a query": (lambda: import_module("panes.live")(query()), r"write pn.plan\(query\).live\(\)"),
    "live over two windows": (
        lambda: live().lookup(ONE, over=["5 min", "10 min"]),
        "neither one window nor .*Call lookup once for each of several windows, or declare them in the query",
    ),
    "find over two windows": (lambda: live().find(over=["5 min", "10 min"]), "It takes one: make a call for each"),
    "live over a window by name": (
        lambda: live().lookup(ONE, over="15m/event"),
        "over='15m/event' is the name of a window. Write over='15 min'",
    ),
    "live over sessions": (
        lambda: pn.plan(query(over=pn.session("30 min"))).live(),
        r"plan.live\(\) answers what plan.lookup does. .* plan.run and plan.stream take it as it is",
    ),
    "find before any event": (
        lambda: pn.plan(query()).live().find("m > 1", over="1 hour"),
        r"refers to 'm', which is neither a key nor an output column of query 'q' \(known: n\)",
    ),
    "sorted by": (
        lambda: pn.sort(EVENTS, by="x"),  # type: ignore[call-arg]
        r"needs order= and over= too. Write for example pn.sort\(events, order='price desc', by='stock', over=",
    ),
    "Flink's groups": (
        lambda: pn.sql("SELECT COUNT(*) AS n FROM ev GROUP BY TUMBLE(ts, INTERVAL '1' HOUR)"),
        r"this belongs in FROM, as FROM TABLE\(TUMBLE\(TABLE ev",
    ),
    # Advice for windows of rows.
    "the last rows but those of a minute": (
        lambda: pn.sliding(pn.rows(3), ago="1 min"),
        r"leaves out rows. Write pn.sliding\(pn.rows\(3\), ago=pn.rows\(1\)\)",
    ),
    "the last rows and both bounds": (
        lambda: pn.sliding(pn.rows(3), bounds="[]"),
        r"Write '\(\]' \(up to the event itself\) or '\[\)' \(the last rows before its instant\)",
    ),
    "the last rows and no bounds": (
        lambda: pn.sliding(pn.rows(3), bounds="()"),
        "only the end can be left out",
    ),
    "a sliding window by a column and its bounds": (
        lambda: pn.sliding(pn.delta("odometer", 3), bounds="[)"),
        "is measured in a column holds all rows near enough",
    ),
    "the last rows before an instant and eviction": (
        lambda: query(by="k", over=pn.sliding(pn.rows(3), bounds="[)"), evict=pn.evict(keys=1)),
        "leaves out all rows of an instant at once",
    ),
    "groups of a sliding window": (
        lambda: query(over=pn.sliding("1 hour"), groups="kind"),
        r"pn.hopping\('1h', every=pn.rows\(1\)\) for all groups with each event",
    ),
    "when answers of rows expire": (
        lambda: query(over=pn.sliding(pn.rows(3)), select={"n": pn.count(), "until": "expires"}),
        "Declare that window in a query of its own",
    ),
    "ttl": (lambda: pn.Limits(ttl="1 hour"), "called age="),  # type: ignore[call-arg]
    "retention": (lambda: pn.Catalogue("x", retention="1 day"), "called history="),  # type: ignore[call-arg]
    "sizes of nested": (lambda: pn.nested(sizes=["1 h"], slides=["1 min"]), "called ranges="),  # type: ignore[call-arg]
    "sql query": (lambda: pn.sql(query="SELECT 1"), "called text="),  # type: ignore[call-arg]
}


@pytest.mark.parametrize("case", CALLS)
def test_a_call_that_does_not_fit_says_which_does(case: str) -> None:
    call, message = CALLS[case]
    with pytest.raises(DeclarationError, match=message):
        call()


@pytest.mark.parametrize("size", [5, 5.0])
def test_a_bare_number_could_be_minutes_or_rows(size: Any) -> None:
    with pytest.raises(DurationError, match=r"has no unit. Write it with one, as '5 minutes', or pn.rows\(100\)"):
        pn.tumbling(size)


@pytest.mark.parametrize(
    ("word", "write"),
    [
        ("avg", "pn.mean('temp')"),
        ("average", "pn.mean('temp')"),
        ("stddev", "pn.std('temp')"),
        ("max_by", "pn.arg_max('city', 'amount')"),
        ("maxBy", "pn.arg_max('city', 'amount')"),
        ("collect_set", "pn.distinct('city')"),
        ("countDistinct", "did you mean pn.count_distinct?"),
        ("window", "pn.hopping('1 hour', every='5 min')"),
        ("Window", "pn.hopping('1 hour', every='5 min')"),
        ("Tumble", "pn.tumbling('1 hour')"),
        ("rolling", "pn.sliding('1 hour')"),
        ("lookup", "pn.plan(query).lookup(events, requests)"),
        ("asof_join", "pn.plan(query).lookup(events, requests)"),
        ("watermark", "events.withWatermark('ts', '10 minutes')"),
        ("run", "pn.plan(query).run(data)"),
        ("col", "a string"),
        ("tumblng", "did you mean pn.tumbling?"),
        ("nothing_at_all", "dir(panes) lists all names"),
    ],
)
def test_a_name_that_is_called_otherwise_elsewhere(word: str, write: str) -> None:
    with pytest.raises(AttributeError) as raised:
        getattr(pn, word)
    assert f"no attribute {word!r}" in str(raised.value)
    assert write in str(raised.value)


def test_every_word_from_elsewhere_is_answered_with_what_exists() -> None:
    import re

    from panes.suggestions import _ELSEWHERE

    assert not set(_ELSEWHERE) & set(pn.__all__)
    assert {name for text in _ELSEWHERE.values() for name in re.findall(r"pn\.(\w+)", text)} <= set(pn.__all__)


def test_methods_of_columns_that_aggregates_do_not_have() -> None:
    with pytest.raises(AttributeError, match=r"select=\{'total': pn.sum"):
        pn.sum("x").alias("total")
    assert not hasattr(pn.sum("x"), "__array__")


@pytest.mark.parametrize(
    ("made", "name", "write"),
    [
        (query, "run", r"pn.plan\(query\).run\(data\)"),
        (lambda: pn.plan(query()), "collect", r"plan.run\(data\)"),
        (lambda: pn.plan(query()), "load", r"plan.live\(load=path\)"),
        (live, "append", r"live.update\(batch\)"),
        (live, "filter", "live.find"),
        (live, "load", r"plan.live\(load=path\)"),
        (live, "nothing_at_all", "'Live' object has no attribute 'nothing_at_all'"),
    ],
)
def test_a_method_that_is_called_otherwise_elsewhere(made: Callable[[], object], name: str, write: str) -> None:
    with pytest.raises(AttributeError, match=write):
        getattr(made(), name)


def test_queries_and_plans_can_be_copied() -> None:
    plan = pn.plan(query())
    assert copy.deepcopy(plan) == plan
    assert pickle.loads(pickle.dumps(plan)) == plan


def test_what_a_function_raises_itself_is_left_alone() -> None:
    @helpful()
    def picky(value: int) -> int:
        raise TypeError(f"{value} it is")

    with pytest.raises(TypeError, match="5 it is"):
        picky(5)
    with pytest.raises(DeclarationError, match=r"picky\(\) is given value= twice"):
        picky(5, value=6)  # type: ignore[call-arg]


def test_a_catalogue_takes_no_windows_of_rows(tmp_path: Path) -> None:
    with pytest.raises(DeclarationError, match="3rows/event depends on rows, and a running stream keeps only"):
        pn.Catalogue(str(tmp_path)).register(query(over=pn.sliding(pn.rows(3))))


def test_advice_of_the_wide_layout_works() -> None:
    table = pa.table({"ts": [datetime(2026, 1, 1, minute) for minute in (1, 2, 3)], "x": [1, 2, 3]})
    plan = pn.plan(query(over=[pn.sliding(pn.rows(2)), pn.sliding("1 hour")]))
    with pytest.raises(PlanError, match=r"Take layout='long'. plan.lookup\(data, data\) has a row per event"):
        plan.run(table, layout="wide")
    assert plan.lookup(table, table).select(["n_2rows", "n_1h"]).to_pylist() == [
        {"n_2rows": n, "n_1h": 1} for n in (1, 2, 2)
    ]
    with pytest.raises(PlanError, match=r"Take layout='long'\.$"):
        pn.plan(query(over=pn.tumbling(pn.rows(2)))).run(table, layout="wide")


DATA: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "no such column, first": (
        lambda: pn.plan(query(select={"n": pn.sum("y")})).live().update(EVENTS),
        SchemaError,
        "the data have no column 'y': known: ts, k, x",
    ),
    "no such column, later": (
        lambda: live().update(EVENTS.rename_columns(["ts", "k", "xx"])),
        SchemaError,
        r"the data have no column 'x': did you mean 'xx'\?",
    ),
    "other types": (
        lambda: live().update(EVENTS.set_column(2, "x", pa.array([1.0, 2.0, 3.0]))),
        PlanError,
        r"the first batch fixes the types of all, and in this one 'x' is double \(int64 in earlier ones\). Cast it",
    ),
    "requests as text": (lambda: live().lookup("a"), PlanError, "live.lookup cannot read a str: give a pyarrow Table"),
    "requests as rows": (lambda: live().lookup([{"k": "a"}]), PlanError, "live.lookup cannot read a list"),
    "nothing": (lambda: live().update(None), PlanError, "live.update cannot read a NoneType: give a pyarrow Table"),
    "batches": (lambda: live().update(EVENTS.to_batches()), PlanError, "live.update cannot read a list"),
    "a dict of events": (lambda: live().update(EVENTS.to_pydict()), PlanError, "live.update cannot read a dict"),
    "a dict, run": (lambda: pn.plan(query()).run(EVENTS.to_pydict()), PlanError, "cannot run on a dict"),
    "a DataFrame of Spark's": (
        lambda: live().update(spark_frame(streaming=False)),
        PlanError,
        r"was given a Spark DataFrame. Write live.update\(batch.toArrow\(\)\)",
    ),
    "requests of Spark's": (
        lambda: live().lookup(spark_frame(streaming=False)),
        PlanError,
        r"Write live.lookup\(requests.toArrow\(\)\)",
    ),
    "a time that is a number": (
        lambda: pn.plan(query()).run(pa.table({"ts": [1, 2]})),
        SchemaError,
        r"in pyarrow with table\['ts'\].cast\(pa.timestamp\('ms'\)\)",
    ),
    "a key of another name": (
        lambda: live().lookup(pa.table({"k_id": ["a"]})),
        SchemaError,
        r"by='k' is not a column of the requests \(known: k_id\). Rename the column that holds it to 'k'",
    ),
    "another format": (
        lambda: pn.plan(query()).explain(format="mermaid"),
        PlanError,
        r"plan.to_mermaid\(\), plan.to_svg\(\)",
    ),
    "a folder that is not there": (
        lambda: live().save("/nowhere/x.live"),
        PlanError,
        "there is no folder '/nowhere'. Make it first",
    ),
    "an alert before any event": (
        lambda: pn.plan(query()).live().find("n > 1", over="1 hour"),
        PlanError,
        r"Call update\(batch\) first; the batch may have no rows",
    ),
    "a stream": (
        lambda: live().update(spark_frame(streaming=True)),
        PlanError,
        r"foreachBatch\(lambda batch, number: live.update\(batch.toArrow\(\)\)\)",
    ),
}


def spark_frame(*, streaming: bool) -> Any:
    """What passes for a DataFrame of Spark's, without Spark."""
    return type("DataFrame", (), {"__module__": "pyspark.sql.dataframe", "isStreaming": streaming})()


@pytest.mark.parametrize("case", DATA)
def test_data_that_do_not_fit_say_which_do(case: str) -> None:
    call, error, message = DATA[case]
    with pytest.raises(error, match=message):
        call()


def test_a_batch_without_rows_fixes_the_types() -> None:
    made = pn.plan(pn.query(by="k", at="ts", select={"n": pn.count()}, over=pn.sliding("1 hour"))).live()
    made.update(EVENTS.schema.empty_table())
    assert made.find("n > 1", over="1 hour").to_pylist() == []
    assert made.lookup(ONE)["n_1h"].to_pylist() == [0]


def test_a_live_plan_shows_what_it_holds(tmp_path: Path) -> None:
    made = pn.plan(query(by="k")).live(keep="3 hours")
    made.update(EVENTS)
    assert repr(made) == "<Live q: 3h, 3 events held>"
    made.save(tmp_path / "q.live")
    with pytest.raises(StateError, match=r"keep= is '3h' in the file, and was given as pn.rows\(9\)"):
        pn.plan(query(by="k")).live(keep=pn.rows(9), load=tmp_path / "q.live")
