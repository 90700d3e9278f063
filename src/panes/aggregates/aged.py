"""``aged`` by level: counts, sums and means of a nested window in which coarser levels weigh less."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from panes.aggregates.aggregates import Aggregate, Bound, CountOf, MeanOf, SumOf, brief
from panes.aggregates.aging import Decaying, Fading, horizon_of
from panes.aggregates.component import Component, numbers
from panes.aggregates.operations import Array
from panes.aggregates.sums import Count, Sum
from panes.timeline import MINUTE, SECOND, Geometry, format_duration

# ``aged``: counts, sums and means in which what is older weighs less.


Kind: TypeAlias = Literal["count", "sum", "mean"]

POWERS: Final = (1, 2, 3, 4)
"""The powers of a fading weight: each needs one number more per pane."""

KINDS: Final[dict[type[Aggregate], Kind]] = {CountOf: "count", SumOf: "sum", MeanOf: "mean"}
"""The aggregates that can be aged: sums of weights, and of weighed values."""

_MOST_HALF_LIVES: Final = 512
"""The JVM weighs events of a window by how much later than its start they are: 2^512 is as much as doubles bear."""


@dataclass(frozen=True, kw_only=True)
class AgedOf(Aggregate):
    """A count, sum or mean with weights at the end of each window, by half-life; ``power`` 0 is exponential decay."""

    kind: Kind
    half_life: int
    power: int = 0

    name: ClassVar[str] = "aged"
    by_time: ClassVar[bool] = True

    @property
    def weight(self) -> int:  # type: ignore[override]  # noqa: D102
        return (3 + self.power) * (2 if self.kind == "mean" else 1)

    def builds_in_jvm(self, widest: int) -> bool:  # noqa: D102
        return bool(self.power) or widest <= _MOST_HALF_LIVES * self.half_life

    def misfit(self, window: Geometry) -> str | None:  # noqa: D102
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

    def bind(self, arguments: tuple[str, ...], types: tuple[pa.DataType, ...]) -> Bound:  # noqa: D102
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

    def native(self, arguments: tuple[str, ...]) -> None:  # noqa: D102
        return None

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
    """A count, sum or mean with a fixed weight for what each level adds to those below it, the finest first."""

    kind: Kind
    weights: tuple[float, ...]

    name: ClassVar[str] = "aged"
    levels: ClassVar[bool] = True
    weight: ClassVar[int] = 2

    def bind(self, arguments: tuple[str, ...], types: tuple[pa.DataType, ...]) -> Bound:  # noqa: D102
        if self.kind != "count":
            self._require_number(types[0])
        count = Count(arguments, types)
        # As doubles, since weights are.
        total = Sum((f"CAST({arguments[0]} AS DOUBLE)",), (pa.float64(),))
        components: dict[Kind, tuple[Component, ...]] = {
            "count": (count,),
            "sum": (total, count),
            "mean": (total, count),
        }
        return Bound(components[self.kind], pa.float64(), self._lower, by_level=True)

    def native(self, arguments: tuple[str, ...]) -> None:  # noqa: D102
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

    def _weighed(self, parts: Sequence[pa.Array]) -> Array:
        with np.errstate(invalid="ignore"):
            weighed: Array = np.sum([w * numbers(part) for w, part in zip(self.weights, parts, strict=False)], axis=0)
        return weighed

    def __str__(self) -> str:
        what = "" if self.arguments == ("1",) and self.kind == "count" else self.arguments[0]
        return f"aged({self.kind}({what}), weights={', '.join(map(brief, self.weights))})"
