"""A query printed as SQL reads back as an equal query."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes as pn
from panes.errors import DeclarationError
from panes.queries.measures import Delta, Punctuation
from panes.queries.windows import Nested, RowWindow, Sliding
from tests.model.drawing import WINDOWS

names = st.sampled_from(["a", "b", "Order", "my col", "it`s", "é", "select", "window_start", "from", "x.y", "end"])
durations = st.integers(1, 10**10).map(lambda n: f"{n}us") | st.sampled_from(["1 s", "5 min", "1 h", "36 h", "7 d"])
labels = st.none() | st.sampled_from(["hourly", "it's \\ a 'name'", "1 h", "日"])
bounds = st.sampled_from(["[)", "(]"])


@st.composite
def windows(draw):
    kind = draw(st.sampled_from(["tumbling", "hopping", "cumulate"]))
    shape = {"offset": draw(st.just("0s") | durations), "bounds": draw(bounds), "name": draw(labels)}
    if kind == "cumulate":
        step = draw(st.integers(1, 10**7))
        return pn.cumulate(f"{step}us", upto=f"{step * draw(st.integers(1, 50))}us", **shape)
    size = draw(durations)
    return pn.hopping(size, every=size if kind == "tumbling" else draw(durations), **shape)


arguments = names.map(lambda name: "`" + name.replace("`", "``") + "`") | st.sampled_from(
    ["x * 2 + 1", "CASE WHEN k = 'it''s' THEN x END", "CAST(x AS BIGINT)", "-x", "CONCAT(k, '`', \"q\")"]
)
aggregates = st.one_of(
    st.just(pn.count()),
    st.sampled_from([pn.count, pn.sum, pn.mean, pn.min, pn.max, pn.var, pn.std, pn.first, pn.last]).flatmap(
        lambda make: arguments.map(make)
    ),
    arguments.map(lambda a: pn.std(a, ddof=0)),
    arguments.map(lambda a: pn.var(a, ddof=0)),
    st.builds(pn.arg_min, arguments, arguments),
    st.builds(pn.arg_max, arguments, arguments),
    arguments.map(pn.approx_count_distinct),
    st.builds(pn.approx_quantile, arguments, st.floats(0, 1)),
    st.builds(pn.top, arguments, st.integers(1, 768)),
)


@st.composite
def queries(draw):
    by = draw(st.lists(names, unique_by=str.lower, max_size=2))
    taken = {"window", "window_name", "query", "ts", *(key.lower() for key in by)}
    free = names.filter(lambda name: name.lower() not in taken)
    aliases = draw(st.lists(free, min_size=1, max_size=3, unique_by=str.lower))
    select = {alias: draw(aggregates) for alias in aliases}
    hidden, having = {}, None
    if draw(st.booleans()):
        select["derived"] = f"{pn_column(aliases[0])} IS NULL OR window.end > window.start"
    if draw(st.booleans()):
        having = f"{pn_column(aliases[-1])} IS NOT NULL AND `count(*)` > 1"
        if pn.count() in select.values():
            having = "window_name <> 'x'"
        else:
            hidden = {"count(*)": pn.count()}
    return pn.query(
        draw(st.sampled_from(["q", "it's -- a name", "日本", "a: b"])),
        at="ts",
        by=by,
        select=select,
        hidden=hidden,
        over=draw(st.lists(windows(), min_size=1, max_size=3, unique_by=lambda window: window.name)),
        where=draw(st.none() | st.sampled_from(["x > 1", "`my col` LIKE 'a%' OR k IS NULL", "NOT (a AND b)"])),
        having=having,
    )


def pn_column(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@settings(max_examples=150)
@given(queries())
def test_what_is_printed_reads_back_as_an_equal_query(query):
    assert pn.sql(pn.to_sql(query)) == [query]


def test_what_would_be_read_as_another_query_is_refused():
    for select in ({"d": "`sum(x)`"}, {"s": pn.sum("x"), "d": "`sum(x)` + 1"}):
        query = pn.query("q", at="ts", select=select, hidden={"sum(x)": pn.sum("x")}, over=pn.tumbling("1h"))
        with pytest.raises(DeclarationError, match="reads back as another"):
            pn.to_sql(query)


def test_what_sql_cannot_say_is_refused():
    product = pn.aggregate(
        "x",
        name="product",
        state={"p": float},
        identity=(1.0,),
        lift=lambda x: (x,),
        combine=lambda a, b: (a[0] * b[0],),
        lower=lambda p: p,
    )
    own = pn.query("q", at="ts", select={"p": product}, over=pn.tumbling("1h"))
    with pytest.raises(DeclarationError, match="SQL has no product"):
        pn.to_sql(own)
    named = pn.query("q", at="ts", select={"d": "t * 2"}, hidden={"t": pn.sum("x")}, over=pn.tumbling("1h"))
    with pytest.raises(DeclarationError, match=r"Call it 'sum\(x\)'"):
        pn.to_sql(named)
    before = pn.query("q", at="ts", select={"n": pn.count()}, over=pn.sliding(pn.rows(1), bounds="[)"))
    with pytest.raises(DeclarationError, match=r"bounds='\[\)'; a frame of rows ends with a row, and not before an"):
        pn.to_sql(before)


LABELS = st.none() | st.sampled_from(["ten", "it's \\ a 'name'"])


@st.composite
def of_every_kind(draw):
    """Windows of the model's tests, under their names or others."""
    found = draw(st.lists(st.sampled_from(WINDOWS), min_size=1, max_size=4, unique_by=str))
    label = draw(LABELS)
    if label is not None:
        found[0] = replace(found[0], **{"given_name" if isinstance(found[0], Nested) else "name": label})
    return found


@settings(max_examples=120)
@given(over=of_every_kind(), by=st.sampled_from([(), "k"]))
def test_every_window_reads_back_or_is_refused_by_name(over, by):
    query = pn.query("q", by=by, at="ts", select={"n": pn.count()}, over=over)
    unsayable = next((window for window in over if not sayable(window)), None)
    if unsayable is None:
        assert pn.sql(pn.to_sql(query)) == [query]
    else:
        with pytest.raises(DeclarationError, match=re.escape(f"no words for the window {str(unsayable)!r}, for ")):
            pn.to_sql(query)


def sayable(window):
    """Whether some dialect has such a window."""
    if isinstance(window, Sliding):
        return window.bounds == "[]" or (window.bounds == "(]" and not window.ago)
    if not isinstance(window, RowWindow):
        return True
    in_column = any(isinstance(each, (Delta, Punctuation)) for each in (window.size, window.every))
    usual = window.partial and window.origin == "epoch" and not window.offset and window.bounds is None
    return usual and not in_column and window.size != window.every


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"at": None}, r"has no time \(at=\)"),
        ({"groups": "g"}, "has groups="),
        ({"ties": "id"}, "has ties="),
        ({"evict": pn.evict(keys=5)}, "has evict="),
    ],
)
def test_what_only_python_can_declare_is_refused(changes, what):
    asked = {"by": "k", "at": "ts", "select": {"n": pn.count()}, "over": pn.sliding(pn.rows(3))}
    with pytest.raises(DeclarationError, match=what + ", for which SQL has no words"):
        pn.to_sql(pn.query("q", **asked | changes))
