"""What is called otherwise elsewhere: a name that Panes does not have is answered with the one that it has."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

_ELSEWHERE = {
    # Aggregates of Spark, SQL, pandas and polars.
    **dict.fromkeys(("avg", "average"), "pn.mean('temp')"),
    **dict.fromkeys(("stddev", "stddev_samp"), "pn.std('temp')"),
    "stddev_pop": "pn.std('temp', ddof=0)",
    **dict.fromkeys(("variance", "var_samp"), "pn.var('temp')"),
    "var_pop": "pn.var('temp', ddof=0)",
    **dict.fromkeys(("max_by", "argmax"), "pn.arg_max('city', 'amount')"),
    **dict.fromkeys(("min_by", "argmin"), "pn.arg_min('city', 'amount')"),
    **dict.fromkeys(("collect_set", "unique", "array_agg", "collect_list"), "pn.distinct('city')"),
    **dict.fromkeys(("nunique", "n_unique"), "pn.count_distinct('city')"),
    **dict.fromkeys(("size", "len"), "pn.count()"),
    "count_if": "pn.count('CASE WHEN amount > 5 THEN 1 END'), or where='amount > 5' of the query",
    **dict.fromkeys(("percentile", "median", "percentile_cont"), "pn.quantile('latency', 0.5)"),
    **dict.fromkeys(
        ("percentile_approx", "approx_percentile", "quantile_approx"), "pn.approx_quantile('latency', 0.99)"
    ),
    **dict.fromkeys(("approx_top_k", "value_counts", "mode"), "pn.top('page', 10)"),
    **dict.fromkeys(("first_value", "earliest"), "pn.first('temp')"),
    **dict.fromkeys(("last_value", "latest"), "pn.last('temp')"),
    **dict.fromkeys(("regr_slope", "linregress", "slope"), "pn.trend('temp')"),
    **dict.fromkeys(("ewm", "ewm_mean", "decay"), "pn.aged(pn.mean('temp'), half_life='1 hour')"),
    **dict.fromkeys(("udaf", "udf", "reduce", "fold"), "pn.aggregate(...) for an aggregate of your own"),
    # Windows of Spark, Flink, Beam, pandas and polars.
    **dict.fromkeys(
        ("window", "windows", "time_window"),
        "pn.tumbling('1 hour'), pn.hopping('1 hour', every='5 min') or pn.sliding('1 hour')",
    ),
    **dict.fromkeys(("tumble", "fixed_window", "fixed_windows", "tumbling_window"), "pn.tumbling('1 hour')"),
    **dict.fromkeys(("hop", "hopping_window", "slide"), "pn.hopping('1 hour', every='5 min')"),
    **dict.fromkeys(("rolling", "sliding_window", "range", "range_between"), "pn.sliding('1 hour')"),
    **dict.fromkeys(("rows_between", "last_rows", "count_window", "tail"), "pn.sliding(pn.rows(10))"),
    **dict.fromkeys(("session_window", "sessions", "session_windows"), "pn.session('30 min')"),
    **dict.fromkeys(("expanding", "cumulative", "cumulate_window"), "pn.cumulate('1 hour', upto='1 day')"),
    # Verbs.
    **dict.fromkeys(("run", "aggregate_by", "group_by", "groupby", "execute"), "pn.plan(query).run(data)"),
    **dict.fromkeys(("stream", "start", "read_stream"), "pn.plan(query).stream(events)"),
    **dict.fromkeys(("watermark", "with_watermark"), "events.withWatermark('ts', '10 minutes') before plan.stream"),
    **dict.fromkeys(
        ("lookup", "asof", "asof_join", "join_asof", "merge_asof", "point_in_time_join", "get_historical_features"),
        "pn.plan(query).lookup(events, requests)",
    ),
    **dict.fromkeys(("live", "online", "get_online_features"), "pn.plan(query).live()"),
    **dict.fromkeys(("col", "column", "expr", "lit"), "a string: columns and expressions are SQL, as 'price * qty'"),
    **dict.fromkeys(("feature", "feature_view", "aggregation", "features"), "pn.query(by=..., at=..., ...)"),
    **dict.fromkeys(("trigger", "pace"), "pn.hopping(pn.rows(100), every='1 min'): the pace of a window"),
    **dict.fromkeys(("evictor", "ttl"), "pn.evict(keys=1000), or pn.Limits(...) of a stream"),
    "interval_join": "pn.join(left, right, on=..., at=..., over=['5 min'])",
}
"""By the word without underscores and case."""


def missing(name: str, known: Iterable[str]) -> str:
    """What to say of a name that ``panes`` does not have.

    Examples
    --------
    >>> missing("avg", ["mean", "max"])
    "module 'panes' has no attribute 'avg': write pn.mean('temp')."
    >>> missing("tumblin", ["tumbling"])
    "module 'panes' has no attribute 'tumblin': did you mean pn.tumbling?"
    """
    said = f"module 'panes' has no attribute {name!r}"
    if name.startswith("_"):
        return said
    words = {_letters(word): write for word, write in _ELSEWHERE.items()}
    own = difflib.get_close_matches(name, list(known), n=1)
    if own and _letters(name) not in words:
        return f"{said}: did you mean pn.{own[0]}?"
    word = difflib.get_close_matches(_letters(name), words, n=1, cutoff=0.8)
    return f"{said}: write {words[word[0]]}." if word else f"{said}; dir(panes) lists what there is."


def attribute(owner: object, name: str, written: Mapping[str, str]) -> Any:
    """For ``__getattr__``: what to write instead of an attribute that is not there; others fail as they always do.

    Examples
    --------
    >>> attribute(3, "plus", {"plus": "3 + 4"})
    Traceback (most recent call last):
    ...
    AttributeError: int has no attribute 'plus': write 3 + 4.
    """
    if name in written:
        raise AttributeError(f"{type(owner).__name__} has no attribute {name!r}: write {written[name]}.")
    # A property that failed with an AttributeError comes here, too, and says so once more.
    return object.__getattribute__(owner, name)


def _letters(name: str) -> str:
    return name.replace("_", "").lower()
