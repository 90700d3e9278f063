"""``aged`` by level: counts, sums and means of a nested window in which coarser levels weigh less."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from panes.algebra.aged import Kind
from panes.algebra.aggregates import Aggregate, Bound, brief
from panes.algebra.component import Component, numbers
from panes.algebra.counts import Count
from panes.algebra.operations import Array
from panes.algebra.sums import Sum


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
