"""``corr`` and ``trend``: how two values, or a value and time, go together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from panes.aggregates.aggregates import Aggregate, Bound
from panes.aggregates.component import parts_of, validity
from panes.aggregates.lines import LINE, Lines, Series, fitted, fitted_sql
from panes.aggregates.moments import COMOMENTS, CoMoments
from panes.aggregates.operations import Array
from panes.timeline import Geometry, format_duration


@dataclass(frozen=True)
class CorrelationOf(Aggregate):
    """``corr(x, y)``: Pearson's correlation of the pairs in which neither is null."""

    name: ClassVar[str] = "corr"
    weight: ClassVar[int] = 8

    def bind(self, arguments: tuple[str, ...], types: tuple[pa.DataType, ...]) -> Bound:  # noqa: D102
        for type_ in types:
            self._require_number(type_)
        return Bound((CoMoments(arguments, types),), pa.float64(), _correlation, _correlation_sql)

    def native(self, arguments: tuple[str, ...]) -> str:  # noqa: D102
        return f"corr({', '.join(arguments)})"


@dataclass(frozen=True)
class TrendOf(Aggregate):
    """``trend(x)``: the line of least squares through a value over event time, or over ticks of ``every`` µs."""

    every: int = 0

    name: ClassVar[str] = "trend"
    by_time: ClassVar[bool] = True
    weight: ClassVar[int] = 8

    @property
    def in_jvm(self) -> bool:  # noqa: D102
        return not self.every

    @property
    def in_order(self) -> bool:  # noqa: D102
        return bool(self.every)

    def misfit(self, window: Geometry) -> str | None:  # noqa: D102
        if not self.every or all(part % self.every == 0 for part in (window.range, window.slide, window.offset)):
            return None
        return (
            f"{self} has a value per tick of {format_duration(self.every)}, and the window begins or ends within one. "
            "Write an every= that divides its size, step and offset, and windows with bounds '[)'."
        )

    def bind(self, arguments: tuple[str, ...], types: tuple[pa.DataType, ...]) -> Bound:  # noqa: D102
        self._require_number(types[1])
        if self.every:
            series = Series(arguments, types, every=self.every)
            return Bound((series,), LINE, series.fitted, by_window=True)
        return Bound((Lines(arguments, types),), LINE, _line, _line_sql, by_window=True)

    def native(self, arguments: tuple[str, ...]) -> None:  # noqa: D102
        # Spark's regr_slope and its sisters would need times from the start of each window.
        return None

    def __str__(self) -> str:
        every = f", every={format_duration(self.every)}" if self.every else ""
        return f"trend({self.arguments[0]}{every})"


def _correlation(stored: pa.Array) -> pa.Array:
    n, _, _, xx, yy, xy = parts_of(stored, validity(stored), COMOMENTS.identity)
    # As in Spark, what does not vary correlates with nothing. Roots before the product: it could be out of range.
    missing = (n < 2) | (xx == 0) | (yy == 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return pa.array(xy / (np.sqrt(xx) * np.sqrt(yy)), mask=missing)


def _correlation_sql(stored: str) -> str:
    varies = f"{stored}.n > 1 AND {stored}.xx <> 0D AND {stored}.yy <> 0D"
    return f"CASE WHEN {varies} THEN {stored}.xy / (sqrt({stored}.xx) * sqrt({stored}.yy)) END"


def _line(stored: pa.Array, *, start: Array, end: Array) -> pa.Array:
    return fitted(stored, start)


def _line_sql(stored: str, *, start: str, end: str) -> str:
    return fitted_sql(stored, start)
