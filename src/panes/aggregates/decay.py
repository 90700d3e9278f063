"""The components behind ``aged``: counts and sums in which an event weighs less the older it is.

A weight depends on the end of a window, which a partial does not know. So partials keep what can be moved to any end:

- ``Decaying``: a weight that halves again and again, ``2^(-age / half-life)``. A total as seen at one instant is seen
  at a later one by a single factor.
- ``Fading``: a weight that reaches zero at a horizon H, ``(1 - age / H)^p``. By the binomial theorem, the sums of
  ``((t - at) / H)^k`` for k = 0 .. p are enough.

Both are arranged so that nothing is ever subtracted. What decays is counted from the latest event, where factors are at
most one and never all vanish; what fades is counted from the earliest one, where every term of the binomial theorem
has the sign of the value, as long as no event is older than the horizon. Rounding is then that of a plain sum.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from math import comb
from typing import ClassVar, Final

import numpy as np
import pyarrow as pa

from panes.aggregates.component import StructComponent, call, fold_sql, numbers, struct_sql
from panes.aggregates.operations import Array, Operations, State
from panes.aggregates.trend import micros_of

_NEVER: Final = 2**62
"""An instant that was never set: farther than any event."""


@dataclass(frozen=True, kw_only=True)
class _Aging(StructComponent):
    """Times and values weighed by time.

    Parameters
    ----------
    counted
        Whether events count one each, where they have a value, instead of their value.
    """

    counted: bool

    def lift(self, *values: pa.Array) -> pa.Array:
        time, value = values
        worth = np.ones(len(time)) if self.counted else numbers(value.cast(pa.float64(), safe=False), 0.0)
        return self.stored(self._single(micros_of(time), worth), value.is_null().to_numpy(zero_copy_only=False))

    @abstractmethod
    def _single(self, instants: Array, worth: Array) -> State:
        """The state of single events."""

    @property
    def _what(self) -> str:
        return f"{'count' if self.counted else 'sum'}, {', '.join(self.arguments)}"

    def _present(self, only: str | None) -> str:
        """SQL for the events that have a value, among those that fulfil a condition."""
        present = f"({self.arguments[1]}) IS NOT NULL"
        return present if only is None else f"{present} AND {only}"

    @property
    def _worth(self) -> str:
        """SQL for what an event is worth, before it is weighed."""
        return "1D" if self.counted else f"CAST({self.arguments[1]} AS DOUBLE)"


@dataclass(frozen=True, kw_only=True)
class Decaying(_Aging):
    """A total in which the weight of an event halves with every half-life (in µs) that passes.

    Stored is the total as seen at the instant ``at``: the sum of ``worth * 2^((t - at) / half_life)``.
    """

    half_life: int

    kind: ClassVar[str] = "decaying"

    @property
    def name(self) -> str:
        return f"decaying({self._what}, half_life={self.half_life})"

    @property
    def storage(self) -> pa.DataType:
        return pa.struct([("at", pa.int64()), ("total", pa.float64())])

    @property
    def operations(self) -> Operations:
        return _decaying(self.half_life)

    def _single(self, instants: Array, worth: Array) -> State:
        return instants, worth

    def build_from(self, instant: str, start: str, only: str | None = None) -> str:
        present = self._present(only)
        weight = f"power(2D, ({instant} - {start}) / {float(self.half_life)}D)"
        parts = {"at": call("min", start, present), "total": call("sum", f"{self._worth} * {weight}", present)}
        return f"CASE WHEN {call('count', '1', present)} > 0 THEN {struct_sql(parts)} END"

    def merge(self, stored: str) -> str:
        later = "greatest(a.at, b.at)"
        together = {"at": later, "total": " + ".join(self.seen_sql(side, later) for side in ("a", "b"))}
        return fold_sql(stored, struct_sql(together))

    def vantage(self, stored: pa.Array, end: Array) -> Array:
        """Where totals are compared: their quotient is the same at any instant, and here neither has vanished."""
        return self.state_of(stored)[0]

    def vantage_sql(self, stored: str, end: str) -> str:
        """The same in Spark SQL."""
        return f"{stored}.at"

    def seen(self, stored: pa.Array, end: Array) -> Array:
        """Totals as seen at the end of windows; zero where there were no values."""
        at, total = self.state_of(stored)
        return _decayed(total, end - at, self.half_life)

    def seen_sql(self, stored: str, end: str) -> str:
        """The same in Spark SQL, for one stored value; null where there were no values."""
        return f"{stored}.total * power(2D, ({stored}.at - {end}) / {float(self.half_life)}D)"


@dataclass(frozen=True, kw_only=True)
class Fading(_Aging):
    """A total in which the weight of an event of some age is ``(1 - age / horizon)^power``; the horizon is in µs.

    Stored are the sums ``m0 .. mp`` of ``worth * ((t - at) / horizon)^k``.
    """

    horizon: float
    power: int

    kind: ClassVar[str] = "fading"

    @property
    def name(self) -> str:
        return f"fading({self._what}, horizon={self.horizon}, power={self.power})"

    @property
    def storage(self) -> pa.DataType:
        return pa.struct([("at", pa.int64()), *((f"m{k}", pa.float64()) for k in range(self.power + 1))])

    @property
    def operations(self) -> Operations:
        return _fading(self.horizon, self.power)

    def _single(self, instants: Array, worth: Array) -> State:
        return (instants, worth, *(np.zeros(len(worth)) for _ in range(self.power)))

    def build_from(self, instant: str, start: str, only: str | None = None) -> str:
        present = self._present(only)
        since = f"(({instant} - {start}) / {self.horizon}D)"
        parts = {"at": call("min", start, present), "m0": call("sum", self._worth, present)}
        for k in range(1, self.power + 1):
            # An infinite value that has not moved from the start would be no number.
            moved = f"CASE WHEN {since} > 0D THEN {self._worth} * power({since}, {k}D) ELSE 0D END"
            parts[f"m{k}"] = call("sum", moved, present)
        return f"CASE WHEN {call('count', '1', present)} > 0 THEN {struct_sql(parts)} END"

    def merge(self, stored: str) -> str:
        together = {"at": "least(a.at, b.at)"}
        for k in range(self.power + 1):
            together[f"m{k}"] = " + ".join(self._moved_sql(*sides, k) for sides in (("a", "b"), ("b", "a")))
        return fold_sql(stored, struct_sql(together))

    def _moved_sql(self, side: str, other: str, k: int) -> str:
        """The k-th sum of one side, counted from where the earlier of two begins."""
        distance = f"(({side}.at - {other}.at) / {self.horizon}D)"
        terms = [f"{comb(k, j)}D * power({distance}, {k - j}D) * {side}.m{j}" for j in range(k + 1)]
        return f"CASE WHEN {side}.at > {other}.at THEN {' + '.join(terms)} ELSE {side}.m{k} END"

    def vantage(self, stored: pa.Array, end: Array) -> Array:
        """Where totals are compared: weights fade at different speeds, so only at the end of windows."""
        return end

    def vantage_sql(self, stored: str, end: str) -> str:
        """The same in Spark SQL."""
        return end

    def seen(self, stored: pa.Array, end: Array) -> Array:
        """Totals as seen at the end of windows no longer than the horizon; zero where there were no values."""
        at, *sums = self.state_of(stored)
        left, p = (self.horizon - (end - at)) / self.horizon, self.power
        with np.errstate(invalid="ignore", over="ignore"):
            terms = [comb(p, k) * left ** (p - k) * sums[k] for k in range(p + 1)]
        total: Array = np.where(left == 0, sums[p], sum(terms))
        return total

    def seen_sql(self, stored: str, end: str) -> str:
        """The same in Spark SQL, for one stored value; null where there were no values."""
        left, p = f"(({self.horizon}D - ({end} - {stored}.at)) / {self.horizon}D)", self.power
        terms = [f"{comb(p, k)}D * power({left}, {p - k}D) * {stored}.m{k}" for k in range(p + 1)]
        return f"CASE WHEN {left} = 0D THEN {stored}.m{p} ELSE {' + '.join(terms)} END"


def horizon_of(half_life: int, power: int) -> float:
    """The age at which a fading weight is zero, where it is one half at the half-life.

    Examples
    --------
    >>> horizon_of(30, 1), round(horizon_of(30, 2), 3)
    (60.0, 102.426)
    """
    return half_life / (1 - 2 ** (-1 / power))


def _decayed(total: Array, micros: Array, half_life: int) -> Array:
    """Totals some time later. What is infinite stays so, however small its weight has become."""
    with np.errstate(invalid="ignore", under="ignore"):
        later: Array = np.where(np.isfinite(total), total * np.exp2(-(micros / half_life)), total)
    return later


@lru_cache(maxsize=64)
def _decaying(half_life: int) -> Operations:
    def combine(left: State, right: State) -> State:
        at = np.maximum(left[0], right[0])
        earlier, later = (_decayed(total, at - own, half_life) for own, total in (left, right))
        return at, earlier + later

    return Operations(identity=(-_NEVER, 0.0), combine=combine)


@lru_cache(maxsize=64)
def _fading(horizon: float, power: int) -> Operations:
    def moved(state: State, at: Array) -> list[Array]:
        """The sums counted from an earlier instant."""
        own, *sums = state
        distance = (own - at) / horizon
        with np.errstate(invalid="ignore", over="ignore"):
            return [
                np.where(distance == 0, sums[k], sum(comb(k, j) * distance ** (k - j) * sums[j] for j in range(k + 1)))
                for k in range(power + 1)
            ]

    def combine(left: State, right: State) -> State:
        at = np.minimum(left[0], right[0])
        return at, *(a + b for a, b in zip(moved(left, at), moved(right, at), strict=True))

    return Operations(identity=(_NEVER, *(0.0,) * (power + 1)), combine=combine)
