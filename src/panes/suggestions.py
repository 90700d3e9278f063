"""Messages for wrong names and calls: they suggest the right keyword, or what replaces a name of another library."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar, cast

from panes.errors import DeclarationError

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
"""What to write for the names of other libraries, which are compared without underscores and case."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return which known name is closest to a misspelt one, or all known names.

    Examples
    --------
    >>> nearest("devcie", ["device", "temp"])
    "did you mean 'device'?"
    >>> nearest("zzz", ["device", "temp"])
    'known: device, temp'
    """
    known = list(known)
    close = difflib.get_close_matches(str(name), known, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known: {', '.join(known)}" if known else "there are none"


def missing(name: str, known: Iterable[str]) -> str:
    """Return the message for a name that ``panes`` does not have.

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
    return f"{said}: write {words[word[0]]}." if word else f"{said}; dir(panes) lists all names."


def attribute(owner: object, name: str, written: Mapping[str, str]) -> Any:
    """Raise what ``__getattr__`` raises for a missing attribute, with what to write instead if it is known.

    Examples
    --------
    >>> attribute(3, "plus", {"plus": "3 + 4"})
    Traceback (most recent call last):
    ...
    AttributeError: int has no attribute 'plus': write 3 + 4.
    """
    if name in written:
        raise AttributeError(f"{type(owner).__name__} has no attribute {name!r}: write {written[name]}.")
    # A property that raised an AttributeError also comes here, and raises it again.
    return object.__getattribute__(owner, name)


def _letters(name: str) -> str:
    return name.replace("_", "").lower()


F = TypeVar("F", bound=Callable[..., Any])
More: TypeAlias = "str | Callable[..., str | None]"

_SHORT = 100
"""The longest text of a value that a message quotes."""


def helpful(
    example: str | None = None, note: str | None = None, /, *, more: More | None = None, **renamed: str
) -> Callable[[F], F]:
    """Make a public function or class explain calls that do not match its parameters.

    Parameters
    ----------
    example
        A correct call.
    note
        How every message begins, for a function whose name means something else in other libraries.
    more
        What to say about one positional argument too many; or a function from all of them to the text, or None.
    renamed
        The names of parameters in other systems, each with its name here or a sentence that says what to write.

    Examples
    --------
    >>> @helpful("hop('1 hour', every='5 min')", slide="every")
    ... def hop(size, *, every): ...
    >>> hop("1 hour", slide="5 min")
    Traceback (most recent call last):
    ...
    panes.errors.DeclarationError: hop() has no slide=: it is called every=. Write for example hop('1 hour', ...
    """

    def wrap(function: F) -> F:
        if isinstance(function, type):
            made: Any = function
            made.__init__ = _checked(made.__init__, function.__name__, example, note, more, renamed)
            return function
        return cast(F, _checked(function, function.__name__, example, note, more, renamed))

    return wrap


def _checked(
    function: Any, name: str, example: str | None, note: str | None, more: More | None, renamed: dict[str, str]
) -> Any:
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            signature.bind(*args, **kwargs)
        except TypeError:
            message = _explained(name, signature, args, kwargs, renamed, example, more)
            raise DeclarationError(message if note is None else f"{note} {message}") from None
        return function(*args, **kwargs)

    return call


def arguments_of(function: Callable[..., object], owner: object, /, *args: object, **kwargs: object) -> dict[str, Any]:
    """Return the arguments of a method call, with defaults; a call that does not match raises what the method raises.

    Examples
    --------
    >>> class Hops:
    ...     @helpful(slide="every")
    ...     def hop(self, size, *, every="5 min"): ...
    >>> arguments_of(Hops.hop, Hops(), "1 hour")
    {'size': '1 hour', 'every': '5 min'}
    """
    signature = inspect.signature(function)
    try:
        bound = signature.bind(owner, *args, **kwargs)
    except TypeError:
        function(owner, *args, **kwargs)
        raise
    bound.apply_defaults()
    return {name: value for name, value in bound.arguments.items() if name != "self"}


def each_of(value: Any) -> tuple[Any, ...]:
    """Return the members of a list, or a single value as the only one.

    A Spark column looks iterable but is not, so it counts as a single value.

    Examples
    --------
    >>> each_of("card"), each_of(["card", "city"]), each_of(5)
    (('card',), ('card', 'city'), (5,))
    """
    if isinstance(value, str):
        return (value,)
    try:
        return tuple(value)
    except TypeError:
        return (value,)


def shown(value: object) -> str:
    """Return a value as messages quote it; a long one by its type.

    Examples
    --------
    >>> shown(["a", 5]), shown(range(3)), shown(dict.fromkeys(range(99)))
    ("['a', 5]", 'range(0, 3)', 'a dict')
    """
    if isinstance(value, (list, tuple)):
        text = f"[{', '.join(map(shown, value))}]"
    else:
        # Aggregates and windows have short names.
        text = str(value) if type(value).__module__.startswith("panes.") else repr(value)
    return text if len(text) <= _SHORT and "\n" not in text else f"a {type(value).__name__}"


def _explained(
    name: str,
    signature: inspect.Signature,
    args: tuple[object, ...],
    kwargs: dict[str, object],
    renamed: dict[str, str],
    example: str | None,
    more: More | None,
) -> str:
    parameters = {key: value for key, value in signature.parameters.items() if key != "self"}
    args = args[1:] if "self" in signature.parameters else args
    many = any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters.values())
    parameters = {key: p for key, p in parameters.items() if p.kind is not inspect.Parameter.VAR_POSITIONAL}
    positional = [key for key, p in parameters.items() if p.kind is not inspect.Parameter.KEYWORD_ONLY and not many]
    given = {*positional[: len(args)], *kwargs}
    missing = [key for key, p in parameters.items() if p.default is inspect.Parameter.empty and key not in given]
    write = "" if example is None else f" Write for example {example}."
    for key in kwargs:
        if key not in parameters:
            return f"{name}() has no {key}={_meant(key, parameters, renamed)}{write}"
    if len(args) > len(positional) and not many:
        extra = args[len(positional)]
        taken = f"{name}() takes {', '.join(positional) or 'nothing'} by position, and was also given {shown(extra)}"
        said = more(*args) if callable(more) else more
        if said is not None:
            return f"{taken}: {said}{write}"
        if len(missing) == 1:
            return f"{taken}: write it by name, as {missing[0]}={shown(extra)}.{write}"
        named = ", ".join(f"{key}=" for key in parameters if key not in positional)
        return f"{taken}: {'write it by name' if named else 'leave it out'}{f' ({named})' if named else ''}.{write}"
    twice = next((key for key in positional[: len(args)] if key in kwargs), None)
    if twice is not None:
        return f"{name}() is given {twice}= twice, by position and by name.{write}"
    return f"{name}() needs {' and '.join(f'{key}=' for key in missing)}{' too' if given else ''}.{write}"


def _meant(key: str, parameters: Collection[str], renamed: dict[str, str]) -> str:
    """Return what an unknown keyword stands for; ``groupBy`` and ``group_by`` are the same word."""
    found = {_letters(other): meant for other, meant in renamed.items()} | {_letters(own): own for own in parameters}
    meant = found.get(_letters(key))
    if meant is None or (" " not in meant and meant not in parameters):
        known = list(parameters)
        return f" ({nearest(key, known)})." if known else ": it takes nothing by name."
    return f": {meant}" if " " in meant else f": it is called {meant}=."
