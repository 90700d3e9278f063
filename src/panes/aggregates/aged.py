"""``aged``: counts, sums and means in which an event weighs less the older it is, by its age or by its level."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf
from numbers import Real
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa

from panes.aggregates.aggregate import Aggregate, Bound, brief
from panes.aggregates.component import Component, numbers
from panes.aggregates.decay import Decaying, Fading, horizon_of
from panes.aggregates.operations import Array
from panes.aggregates.registry import ELSEWHERE
from panes.aggregates.sums import Count, Sum, float_sum
from panes.errors import DeclarationError, DurationError
from panes.suggestions import helpful
from panes.timeline import MINUTE, SECOND, DurationLike, Geometry, format_duration, parse_duration

POWERS: Final = (1, 2, 3, 4)
"""The powers of a fading weight: each needs one number more per pane."""

_MOST_HALF_LIVES: Final = 512
"""The JVM weighs events of a window by how much later than its start they are: 2^512 is as much as doubles bear."""


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
    >>> from panes.aggregates.sums import count, sum
    >>> print(aged(sum("amount"), half_life="1 hour"), aged(count(), half_life="5 min", power=2))
    aged(sum(amount), half_life=1h) aged(count(), half_life=5m, power=2)
    >>> print(aged(sum("amount"), weights=[1, 0.5, 0.25]))
    aged(sum(amount), weights=1, 0.5, 0.25)
    >>> aged(sum("amount"), half_life="0s")
    Traceback (most recent call last):
    ...
    panes.errors.DurationError: half_life='0s' is not positive: ... Write for example '1 hour'.
    """
    if not getattr(aggregate, "ages", False):
        raise DeclarationError(
            f"{aggregate} cannot be aged: only counts, sums and means are sums of weights. Write for example "
            "pn.aged(pn.sum('amount'), half_life='1 hour')."
        )
    if weights is not None:
        if half_life is not None or power is not None:
            raise DeclarationError("weights= is a weight per level, half_life= one per age. Give one of them.")
        return LevelledOf(aggregate.arguments, kind=aggregate.name, weights=_weights(weights))
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
    return AgedOf(aggregate.arguments, kind=aggregate.name, half_life=micros, power=power or 0)


def _weights(weights: Iterable[float]) -> tuple[float, ...]:
    listed = list(weights) if isinstance(weights, Iterable) else []
    if not listed or any(isinstance(w, bool) or not isinstance(w, Real) or not 0 <= float(w) < inf for w in listed):
        raise DeclarationError(f"weights={weights!r}: write a number from 0 on for each level, the finest first.")
    return tuple(map(float, listed))


@dataclass(frozen=True, kw_only=True)
class AgedOf(Aggregate):
    """A ``count``, ``sum`` or ``mean`` with weights at the end of each window; ``power`` 0 is exponential decay."""

    kind: str
    half_life: int
    power: int = 0

    name: ClassVar[str] = "aged"
    by_time: ClassVar[bool] = True

    @property
    def weight(self) -> int:  # type: ignore[override]
        return (3 + self.power) * (2 if self.kind == "mean" else 1)

    def builds_in_jvm(self, widest: int) -> bool:
        return bool(self.power) or widest <= _MOST_HALF_LIVES * self.half_life

    def misfit(self, window: Geometry) -> str | None:
        if not self.power or window.range <= (horizon := horizon_of(self.half_life, self.power)):
            return None
        # The least half-life whose horizon is as far as the window is long, in whole seconds if it is not tiny.
        unit = SECOND if window.range > MINUTE else 1
        enough = (int(window.range / horizon * self.half_life) // unit + 1) * unit
        return (
            f"{self} weighs nothing from an age of {format_duration(round(horizon))} on, and a window of "
            f"{format_duration(window.range)} holds older events. Write half_life={format_duration(enough)!r} or more, "
            "a shorter window, or leave power= out: exponential decay has no such end."
        )

    def bind(self, arguments: tuple[str, ...], types: tuple[pa.DataType, ...]) -> Bound:
        if self.kind != "count":
            self._require_number(types[1])
        count, total = (self._component(arguments, types, counted=counted) for counted in (True, False))
        if self.kind == "count":
            return _bound((count,), count.seen, lambda n, end: f"coalesce({count.seen_sql(n, end)}, 0D)")
        if self.kind == "sum":
            return _bound((total,), lambda x, end: _or_null(total.seen(x, end), x), total.seen_sql)

        def mean(x: pa.Array, n: pa.Array, end: Array) -> pa.Array:
            at = count.vantage(n, end)
            weight = count.seen(n, at)
            with np.errstate(divide="ignore", invalid="ignore"):
                return pa.array(total.seen(x, at) / weight, mask=weight == 0)

        def mean_sql(x: str, n: str, end: str) -> str:
            at = count.vantage_sql(n, end)
            weight = count.seen_sql(n, at)
            return f"CASE WHEN {weight} > 0D THEN ({total.seen_sql(x, at)}) / ({weight}) END"

        return _bound((total, count), mean, mean_sql)

    def native(self, arguments: tuple[str, ...]) -> None:
        return None

    def reference(self, rows: Sequence[Any], **window: Any) -> float | None:
        if not rows:
            return 0.0 if self.kind == "count" else None
        ages = [window["end"] - when[0] for when, _ in rows]
        # A decaying mean is the same in any unit of weights: seen from the youngest event, not all of them vanish.
        youngest = min(ages) if self.kind == "mean" and not self.power else 0
        weights = [self._weight(age - youngest) for age in ages]
        if self.kind == "count":
            return math.fsum(weights)
        # What decays never weighs nothing, so that infinity stays; what has faded counts no more.
        pairs = zip(weights, (float(x) for _, x in rows), strict=True)
        total = float_sum(
            [weight * x if math.isfinite(x) else x for weight, x in pairs if weight > 0 or not self.power]
        )
        if self.kind == "sum":
            return total
        return total / math.fsum(weights) if any(weights) else None

    def _weight(self, age: int) -> float:
        if not self.power:
            return math.pow(2.0, -age / self.half_life)
        horizon = self.half_life / (1 - 2 ** (-1 / self.power))
        return math.pow((horizon - age) / horizon, self.power)

    def _component(
        self, arguments: tuple[str, ...], types: tuple[pa.DataType, ...], *, counted: bool
    ) -> Decaying | Fading:
        if not self.power:
            return Decaying(arguments, types, counted=counted, half_life=self.half_life)
        horizon = horizon_of(self.half_life, self.power)
        return Fading(arguments, types, counted=counted, horizon=horizon, power=self.power)

    def __str__(self) -> str:
        what = "" if self.arguments == ("1",) and self.kind == "count" else ", ".join(self.arguments)
        power = f", power={self.power}" if self.power else ""
        return f"aged({self.kind}({what}), half_life={format_duration(self.half_life)}{power})"


def _bound(components: tuple[Component, ...], seen: Callable[..., Any], seen_sql: Callable[..., str]) -> Bound:
    """An aggregate that is read at the end of each window."""
    return Bound(
        components,
        pa.float64(),
        lambda *stored, start, end: pa.array(seen(*stored, end)),
        lambda *stored, start, end: seen_sql(*stored, end),
        by_window=True,
    )


def _or_null(values: Array, stored: pa.Array) -> pa.Array:
    return pa.array(values, mask=stored.is_null().to_numpy(zero_copy_only=False))


@dataclass(frozen=True, kw_only=True)
class LevelledOf(Aggregate):
    """A ``count``, ``sum`` or ``mean`` with a weight for what each level adds to those below it, the finest first."""

    kind: str
    weights: tuple[float, ...]

    name: ClassVar[str] = "aged"
    levels: ClassVar[bool] = True
    weight: ClassVar[int] = 2

    def bind(self, arguments: tuple[str, ...], types: tuple[pa.DataType, ...]) -> Bound:
        if self.kind != "count":
            self._require_number(types[0])
        count = Count(arguments, types)
        # As doubles, since weights are.
        total = Sum((f"CAST({arguments[0]} AS DOUBLE)",), (pa.float64(),))
        components: dict[str, tuple[Component, ...]] = {
            "count": (count,),
            "sum": (total, count),
            "mean": (total, count),
        }
        return Bound(components[self.kind], pa.float64(), self._lower, by_level=True)

    @property
    def needs_levels(self) -> int:
        return len(self.weights)

    def native(self, arguments: tuple[str, ...]) -> None:
        return None

    def _lower(self, *levels: Sequence[pa.Array]) -> pa.Array:
        if self.kind == "count":
            return pa.array(self._weighed(levels[0]))
        total, n = (self._weighed(parts) for parts in levels)
        some = np.logical_or.reduce([numbers(part) > 0 for part in levels[1]])
        if self.kind == "sum":
            return pa.array(total, mask=~some)
        with np.errstate(divide="ignore", invalid="ignore"):
            return pa.array(total / n, mask=~some | (n == 0))

    def reference(self, rows: Sequence[Any], **window: Any) -> float | None:
        pairs = zip(self.weights, rows, strict=False)
        weighed = [(weight, float(x) if self.kind != "count" else 1.0) for weight, level in pairs for (x,) in level]
        n = math.fsum(weight for weight, _ in weighed)
        if self.kind == "count":
            return n
        if not weighed or (self.kind == "mean" and n == 0):
            return None
        finite = all(math.isfinite(x) for _, x in weighed)
        with np.errstate(invalid="ignore"):
            total = math.fsum(w * x for w, x in weighed) if finite else float(np.sum([w * x for w, x in weighed]))
        return total / n if self.kind == "mean" else total

    def _weighed(self, parts: Sequence[pa.Array]) -> Array:
        with np.errstate(invalid="ignore"):
            weighed: Array = np.sum([w * numbers(part) for w, part in zip(self.weights, parts, strict=False)], axis=0)
        return weighed

    def __str__(self) -> str:
        what = "" if self.arguments == ("1",) and self.kind == "count" else self.arguments[0]
        return f"aged({self.kind}({what}), weights={', '.join(map(brief, self.weights))})"
