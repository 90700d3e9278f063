"""What a user writes for an aggregate: ``pn.sum("price * qty")``, ``pn.aggregate(...)``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import inf
from numbers import Real
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from panes.aggregates.aged import KINDS, POWERS, AgedOf, LevelledOf
from panes.aggregates.aggregates import (
    Aggregate,
    CountOf,
    CustomOf,
    MaxOf,
    MeanOf,
    MinOf,
    PickOf,
    SumOf,
    VarianceOf,
)
from panes.aggregates.collecting import CountDistinctOf, DistinctOf, QuantileOf, RecurringOf
from panes.aggregates.custom import as_state, state_types
from panes.aggregates.fits import CorrelationOf, TrendOf
from panes.aggregates.operations import Operations, State
from panes.errors import DeclarationError, DurationError
from panes.suggestions import helpful
from panes.timeline import MILLISECOND, DurationLike, parse_duration

# What users of other systems give to an aggregate, and where it stands here.
ELSEWHERE = {
    **dict.fromkeys(("column", "col", "x", "field", "expr", "expression", "on", "arg"), "value"),
    **dict.fromkeys(
        ("over", "window", "windows", "every", "period", "rolling"),
        "windows stand in the query, as pn.query(..., over=pn.hopping('1 hour', every='1 min')).",
    ),
    **dict.fromkeys(("by", "key", "keys", "group_by", "partition_by"), "keys stand in the query, as by='card'."),
    **dict.fromkeys(
        ("where", "filter", "condition"),
        "write where= of the query, or 'CASE WHEN ok THEN amount END' for one aggregate alone.",
    ),
    **dict.fromkeys(("name", "alias"), "columns are named where they are selected, as select={'total': ...}."),
    **dict.fromkeys(("at", "order_by", "time", "ts"), "event time stands in the query, as at='ts'."),
    "distinct": "write pn.count_distinct('user') or pn.distinct('user').",
    **dict.fromkeys(("ignore_nulls", "skipna", "nulls"), "nulls never count; leave it out."),
}
_OF_ROWS = (
    "it is an aggregate, one value of each window. For windows of the last rows write "
    "over=pn.hopping(pn.rows(100), every='1 min'), or over=pn.sliding(pn.rows(100)) for one up to each event."
)


@helpful("pn.count(), or pn.count('temp')", **ELSEWHERE)
def count(value: str | None = None) -> Aggregate:
    """How many events, or how many where ``value`` is not null.

    Examples
    --------
    >>> print(count(), count("temp"))
    count() count(temp)
    """
    if value == "*":
        raise DeclarationError("pn.count('*') is written pn.count() here: how many events there are.")
    return CountOf(("1",) if value is None else _arguments(value))


@helpful("pn.sum('amount')", **ELSEWHERE)
def sum(value: str) -> Aggregate:
    """The sum of a column or expression, with the type of Spark's ``sum``.

    Examples
    --------
    >>> print(sum("amount"), sum("price * qty"))
    sum(amount) sum(price * qty)
    """
    return SumOf(_arguments(value))


@helpful("pn.mean('temp')", **ELSEWHERE)
def mean(value: str) -> Aggregate:
    """The arithmetic mean, with the type of Spark's ``avg``.

    Examples
    --------
    >>> print(mean("temp"))
    mean(temp)
    """
    return MeanOf(_arguments(value))


@helpful("pn.min('temp')", **ELSEWHERE)
def min(value: str) -> Aggregate:
    """The smallest value, of any ordered type; NaN is larger than every number, as in Spark.

    Examples
    --------
    >>> print(min("temp"))
    min(temp)
    """
    return MinOf(_arguments(value))


@helpful("pn.max('temp')", **ELSEWHERE)
def max(value: str) -> Aggregate:
    """The largest value, of any ordered type; NaN is larger than every number, as in Spark.

    Examples
    --------
    >>> print(max("temp"))
    max(temp)
    """
    return MaxOf(_arguments(value))


@helpful("pn.var('temp')", **ELSEWHERE)
def var(value: str, *, ddof: int = 1) -> Aggregate:
    """The variance: of the sample (``ddof=1``, Spark's ``variance``) or of the population (``ddof=0``).

    Examples
    --------
    >>> print(var("temp"), var("temp", ddof=0))
    var(temp) var_pop(temp)
    """
    return VarianceOf(_arguments(value), root=False, ddof=_ddof(ddof))


@helpful("pn.std('temp')", **ELSEWHERE)
def std(value: str, *, ddof: int = 1) -> Aggregate:
    """The standard deviation: of the sample (``ddof=1``, Spark's ``stddev``) or of the population.

    Examples
    --------
    >>> print(std("temp"), std("temp", ddof=0))
    std(temp) std_pop(temp)
    """
    return VarianceOf(_arguments(value), root=True, ddof=_ddof(ddof))


@helpful("pn.first('temp')", f"pn.first: {_OF_ROWS}", **ELSEWHERE)
def first(value: str) -> Aggregate:
    """The earliest value by event time; of one instant the first by the query's ``ties=``, or else the smallest.

    Examples
    --------
    >>> print(first("temp"))
    first(temp)
    """
    return PickOf(_column("first", value), largest=False, timed=True)


@helpful("pn.last('temp')", f"pn.last: {_OF_ROWS}", **ELSEWHERE)
def last(value: str) -> Aggregate:
    """The latest value by event time; of one instant the last by the query's ``ties=``, or else the largest.

    Examples
    --------
    >>> print(last("temp"))
    last(temp)
    """
    return PickOf(_column("last", value), largest=True, timed=True)


@helpful("pn.arg_min('city', 'amount')", **{**ELSEWHERE, "ord": "by", "order_by": "by"})
def arg_min(value: str, by: str) -> Aggregate:
    """The value where ``by`` is smallest; the smallest of them if several are.

    Examples
    --------
    >>> print(arg_min("city", "amount"))
    arg_min(city, amount)
    """
    return PickOf(_arguments(value, by), largest=False, timed=False)


@helpful("pn.arg_max('city', 'amount')", **{**ELSEWHERE, "ord": "by", "order_by": "by"})
def arg_max(value: str, by: str) -> Aggregate:
    """The value where ``by`` is largest; the largest of them if several are.

    Examples
    --------
    >>> print(arg_max("city", "amount"))
    arg_max(city, amount)
    """
    return PickOf(_arguments(value, by), largest=True, timed=False)


@helpful("pn.count_distinct('user')", **ELSEWHERE)
def count_distinct(value: str) -> Aggregate:
    """How many different values there are, exactly, as Spark's ``count(DISTINCT ...)``.

    A stream keeps every different value of each granule; ``approx_count_distinct`` keeps a sketch.

    Examples
    --------
    >>> print(count_distinct("user"))
    count_distinct(user)
    """
    return CountDistinctOf(_arguments(value))


@helpful("pn.distinct('user')", **ELSEWHERE)
def distinct(value: str) -> Aggregate:
    """The different values, in order: a list, empty where all are null.

    Examples
    --------
    >>> print(distinct("user"))
    distinct(user)
    """
    return DistinctOf(_arguments(value))


@helpful(
    "pn.quantile('latency', 0.5)", **ELSEWHERE, **dict.fromkeys(("p", "percentile", "percentage", "quantile"), "q")
)
def quantile(value: str, q: float, *, method: Literal["interpolated", "element"] = "interpolated") -> Aggregate:
    """The value below which a part ``q`` of the values lies, exactly.

    Parameters
    ----------
    q
        From 0 (the smallest value) to 1 (the largest); 0.5 is the median.
    method
        ``interpolated``: between the two nearest values, a double, as Spark's ``percentile``. ``element``: the value
        at place ⌊q·N⌋ of the N sorted values, of any ordered type.

    Examples
    --------
    >>> print(quantile("price", 0.5), quantile("name", 0.9, method="element"))
    quantile(price, 0.5) quantile(name, 0.9, element)
    """
    if isinstance(q, bool) or not isinstance(q, (int, float)) or not 0 <= q <= 1:
        raise DeclarationError(f"q={q!r} is no part of a whole: write a number from 0 to 1, as 0.5 for the median.")
    if method not in ("interpolated", "element"):
        raise DeclarationError(f"method={method!r}: write 'interpolated' (as Spark's percentile) or 'element'.")
    return QuantileOf(_arguments(value), q=float(q), element=method == "element")


@helpful("pn.recurring('protocol')", **ELSEWHERE)
def recurring(value: str, *, ranked: bool = False) -> Aggregate:
    """The values that come again and again: present in every level of a nested window, beyond the levels below it.

    Parameters
    ----------
    ranked
        Whether a value comes with how often it occurred, the most frequent first; otherwise values are in order.

    Examples
    --------
    >>> print(recurring("protocol"))
    recurring(protocol)
    """
    return RecurringOf(_arguments(value), ranked=bool(ranked))


@helpful("pn.corr('price', 'volume')", **{**ELSEWHERE, "col1": "x", "col2": "y"})
def corr(x: str, y: str) -> Aggregate:
    """Pearson's correlation of two columns or expressions, as Spark's ``corr``; pairs with a null are passed over.

    Examples
    --------
    >>> print(corr("price", "volume"))
    corr(price, volume)
    """
    return CorrelationOf(_arguments(x, y))


@helpful("pn.trend('temp')", **ELSEWHERE)
def trend(value: str, *, every: DurationLike | None = None) -> Aggregate:
    """The line of least squares through a value over event time: a struct of ``slope``, ``intercept`` and ``r2``.

    The slope is per second, the intercept is the fitted value where the window starts, and R² the share of the
    variance that the line explains (1 for a value that never changes). Null where no two events differ in time.

    Parameters
    ----------
    value
        A column or expression.
    every
        Fit a regular series instead of the events: one value per tick, the mean of those in it, or that of the tick
        before where it has none, from the first event to the end of the window. Windows have to begin and end with
        ticks; a stream keeps a granule for every tick.

    Examples
    --------
    >>> import panes as pn
    >>> rising = pn.query("rising", by="device", at="ts", over=pn.tumbling("1 hour"),
    ...     select={"line": pn.trend("temp"), "per_minute": "line.slope * 60", "fit": "line.r2"})
    >>> print(pn.trend("temp"), pn.trend("temp", every="1 min"))
    trend(temp) trend(temp, every=1m)
    """
    ticks = 0 if every is None else parse_duration(every)
    if every is not None and ticks < MILLISECOND:
        raise DurationError(
            f"every={every!r} is too short: a tick has a millisecond or more. Write for example '1 min', or leave "
            "every= out to fit the events as they are."
        )
    return TrendOf(_arguments(value), every=ticks)


@helpful(
    "pn.aged(pn.sum('amount'), half_life='1 hour')",
    value="aggregate",
    halflife="half_life",
    **{k: v for k, v in ELSEWHERE.items() if " " in v},
)
def aged(
    aggregate: Aggregate,
    *,
    half_life: DurationLike | None = None,
    power: int | None = None,
    weights: Iterable[float] | None = None,
) -> Aggregate:
    """A count, sum or mean in which an event weighs less the older it is at the end of the window.

    Parameters
    ----------
    aggregate
        ``count()``, ``count(x)``, ``sum(x)`` or ``mean(x)``. The answer is a double.
    half_life
        The age at which an event weighs one half.
    power
        Without it, weights decay exponentially: ``2^(-age / half_life)``. With 1, 2, 3 or 4 they fade as
        ``(1 - age / H)^power``, to nothing at the horizon H that gives one half at the half-life; windows may be no
        longer than H.
    weights
        Instead of a half-life, over nested windows: one weight per level, the finest first, for what the level adds to
        those below it.

    Examples
    --------
    >>> print(aged(sum("amount"), half_life="1 hour"), aged(count(), half_life="5 min", power=2))
    aged(sum(amount), half_life=1h) aged(count(), half_life=5m, power=2)
    >>> print(aged(sum("amount"), weights=[1, 0.5, 0.25]))
    aged(sum(amount), weights=1, 0.5, 0.25)
    >>> aged(sum("amount"), half_life="0s")
    Traceback (most recent call last):
    ...
    panes.errors.DurationError: half_life='0s' is not positive: ... Write for example '1 hour'.
    """
    kind = KINDS.get(type(aggregate))
    if kind is None:
        raise DeclarationError(
            f"{aggregate} cannot be aged: only counts, sums and means are sums of weights. Write for example "
            "pn.aged(pn.sum('amount'), half_life='1 hour')."
        )
    if weights is not None:
        if half_life is not None or power is not None:
            raise DeclarationError("weights= is a weight per level, half_life= one per age. Give one of them.")
        return LevelledOf(aggregate.arguments, kind=kind, weights=_weights(weights))
    if half_life is None:
        raise DeclarationError(
            f"nothing says how {aggregate} ages. Give half_life='1 hour', or over a nested window weights=[1, 0.5]."
        )
    micros = parse_duration(half_life)
    if micros <= 0:
        raise DurationError(
            f"half_life={half_life!r} is not positive: it is the age at which an event weighs one half. Write for "
            "example '1 hour'."
        )
    if power is not None and (not isinstance(power, int) or isinstance(power, bool) or power not in POWERS):
        raise DeclarationError(
            f"power={power!r}: write 1, 2, 3 or 4 for weights that fade to nothing, or leave it out for exponential "
            "decay. Other powers have no partials that could be merged."
        )
    return AgedOf(aggregate.arguments, kind=kind, half_life=micros, power=power or 0)


def _weights(weights: Iterable[float]) -> tuple[float, ...]:
    listed = list(weights) if isinstance(weights, Iterable) else []
    if not listed or any(isinstance(w, bool) or not isinstance(w, Real) or not 0 <= float(w) < inf for w in listed):
        raise DeclarationError(f"weights={weights!r}: write a number from 0 on for each level, the finest first.")
    return tuple(map(float, listed))


@helpful(
    "pn.aggregate('factor', name='product', state={'log': float}, identity=(0.0,), lift=..., combine=..., lower=...)",
    **dict.fromkeys(("column", "value"), "columns come first, by position."),
    zero="identity",
    init="identity",
    merge="combine",
    finish="lower",
    evaluate="lower",
    add="lift",
)
def aggregate(
    *arguments: str,
    name: str,
    state: Mapping[str, Any],
    identity: tuple[Any, ...],
    lift: Callable[..., Any],
    combine: Callable[[State, State], Any],
    lower: Callable[..., Any],
    output: Any = np.float64,
    subtract: Callable[[State, State], Any] | None = None,
    idempotent: bool = False,
) -> Aggregate:
    """Define an aggregate of your own by lift, combine and lower over NumPy arrays.

    Parameters
    ----------
    *arguments
        Columns or expressions; rows where one is null are passed over.
    name
        What plans and errors call it.
    state
        The parts of its state with their NumPy or Arrow types.
    identity
        One scalar per part; combining with it changes nothing.
    lift
        From the arguments' arrays to a tuple of state arrays, one element per event.
    combine
        From two states to one, elementwise; associative, the left one earlier. Not in place.
    lower
        From the state arrays to the answers.
    output
        The NumPy or Arrow type of the answers.
    subtract
        Only if ``subtract(combine(a, b), a) == b`` exactly.
    idempotent
        Only if ``combine(a, a) == a`` and order does not matter.

    See Also
    --------
    panes.testing.check_aggregate : checks an aggregate against the laws that it claims.

    Examples
    --------
    >>> product = aggregate(
    ...     "factor", name="product", state={"log": np.float64}, identity=(0.0,),
    ...     lift=lambda x: (np.log(x),), combine=lambda a, b: (a[0] + b[0],), lower=np.exp,
    ... )
    >>> print(product)
    product(factor)
    """
    parts = state_types(state)
    if not arguments:
        raise DeclarationError(f"the aggregate {name!r} has no argument. Name at least one column.")
    if len(identity) != len(parts):
        raise DeclarationError(
            f"the aggregate {name!r} has {len(parts)} parts of state but {len(identity)} identities. "
            "Give one identity per part."
        )

    def checked(function: Callable[[State, State], Any]) -> Callable[[State, State], State]:
        return lambda a, b: as_state(function(a, b), name, len(parts), len(a[0]))

    operations = Operations(
        identity=tuple(identity),
        combine=checked(combine),
        subtract=None if subtract is None else checked(subtract),
        idempotent=idempotent,
    )
    type_ = output if isinstance(output, pa.DataType) else pa.from_numpy_dtype(np.dtype(output))
    return CustomOf(
        _arguments(*arguments),
        label=name,
        state=parts,
        output=type_,
        lift=lift,
        operations=operations,
        lowered=lower,
    )


def _column(name: str, value: str) -> tuple[str, ...]:
    """The argument of an aggregate that is called as windows of rows are elsewhere."""
    if not isinstance(value, str):
        raise DeclarationError(f"pn.{name}({value!r}): {_OF_ROWS} Write pn.{name}('temp') for one value of a window.")
    return _arguments(value)


def _arguments(*values: str) -> tuple[str, ...]:
    for value in values:
        if not isinstance(value, str):
            rows = " The rows of a window are its size, as over=pn.sliding(pn.rows(100))." if _whole(value) else ""
            raise DeclarationError(
                f"{value!r} is not a column or expression. Write its name or SQL as a string, as 'price * qty'.{rows}"
            )
    return values


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _ddof(ddof: int) -> int:
    if ddof not in (0, 1):
        raise DeclarationError(f"ddof={ddof!r}: write 1 for the sample or 0 for the population.")
    return ddof
