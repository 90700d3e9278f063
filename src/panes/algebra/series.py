"""The component behind ``trend(x, every=...)``: a value at every tick, as the multi-granular paper assumes it.

Several values in a tick are averaged, and a tick without any has the value of the one before (Patroumpas and Sellis
2010, section IV-B). A partial never lists its ticks: a value that holds over many of them is a *run*, whose moments
have a closed form. Only the ends of a partial stay open, since its neighbours may have more events in the same tick:

::

    first .. next | runs that are closed | last ..
      3    3    3 |  5  5  2  2  2  4    |  6

Partials are combined in the order of time. A stream brings events late, but those of one tick make the same sum in any
order; so its panes are no longer than ticks, and stay so however old they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
import pyarrow as pa

from panes.algebra.comoments import no_spread
from panes.algebra.component import Component, Decoded, numbers, validity
from panes.algebra.lines import LINES, combine_lines, line_through, micros_of
from panes.algebra.operations import Array, Operations, State
from panes.algebra.structs import as_struct, parts_of

_OPEN: Final = {
    "first": pa.int64(),
    "first_sum": pa.float64(),
    "first_n": pa.int64(),
    "next": pa.int64(),
    "last": pa.int64(),
    "last_sum": pa.float64(),
    "last_n": pa.int64(),
}
_CLOSED: Final = {"n": pa.int64(), "at": pa.int64()} | dict.fromkeys(
    ("mean_t", "mean_y", "tt", "yy", "ty"), pa.float64()
)
_STORAGE: Final = pa.struct([*_OPEN.items(), *_CLOSED.items()])
_OPEN_PARTS: Final = len(_OPEN)


@dataclass(frozen=True, kw_only=True)
class Series(Component):
    """A value per tick of ``every`` µs since the epoch: the first and the last tick as they are, the rest as moments.

    ``next`` is the tick where the run of the first one ends; where there is only one tick, first and last are the same.
    """

    every: int

    kind: ClassVar[str] = "series"
    in_jvm: ClassVar[bool] = False

    @property
    def ticks(self) -> int:  # noqa: D102
        return self.every

    @property
    def name(self) -> str:  # noqa: D102
        return f"series({', '.join(self.arguments)}, every={self.every})"

    @property
    def storage(self) -> pa.DataType:  # noqa: D102
        return _STORAGE

    def lift(self, *values: pa.Array) -> pa.Array:  # noqa: D102
        tick, value = micros_of(values[0]) // self.every, values[1].cast(pa.float64(), safe=False)
        x, one = numbers(value, 0.0), np.ones(len(value), dtype=np.int64)
        closed = LINES.identities((one, one, x, x, x, x, x), len(value))
        missing = value.is_null().to_numpy(zero_copy_only=False)
        return _stored((tick, x, one, tick, tick, x, one, *closed), missing)

    def decode(self, stored: pa.Array) -> Decoded:  # noqa: D102
        valid = validity(stored)
        return Decoded(SERIES, parts_of(stored, valid, SERIES.identity), valid, _stored)

    def fitted(self, stored: pa.Array, start: Array, end: Array) -> pa.Array:
        """The lines through all ticks from the first one with a value to the end of each window."""
        state = parts_of(stored, validity(stored), SERIES.identity)
        first, first_sum, first_n, next_, last, last_sum, last_n = state[:_OPEN_PARTS]
        end_tick, several = end // self.every, first < last
        head = _run(first, np.where(several, next_, end_tick), first_sum, first_n)
        tail = _run(last, end_tick, last_sum, np.where(several, last_n, 0))
        whole = combine_lines(combine_lines(head, state[_OPEN_PARTS:]), tail)
        return line_through(whole, start // self.every, tick=self.every)


def _stored(state: State, nulls: Array | None) -> pa.Array:
    return as_struct(state, nulls, _STORAGE)


def _run(first: Array, end: Array, total: Array, n: Array) -> State:
    """Moments of the ticks from one to another (without it) that all have one mean value; none where n is zero."""
    ticks = np.where(n > 0, np.maximum(end - first, 0), 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.where(ticks > 0, total / n, 0.0)
    length, spread = ticks.astype(np.float64), no_spread(value)
    return ticks, first, np.maximum(length - 1, 0) / 2, value, length * (length * length - 1) / 12, spread, spread


def _combine(left: State, right: State) -> State:
    first_l, first_sum_l, first_n_l, next_l, last_l, last_sum_l, last_n_l = left[:_OPEN_PARTS]
    first_r, first_sum_r, first_n_r, next_r, last_r, last_sum_r, last_n_r = right[:_OPEN_PARTS]
    none_l, none_r = first_n_l == 0, first_n_r == 0
    single_l, single_r = first_l == last_l, first_r == last_r
    # Both sides may have events in the tick where they meet.
    shared = last_l == first_r
    met_sum, met_n = last_sum_l + np.where(shared, first_sum_r, 0.0), last_n_l + np.where(shared, first_n_r, 0)
    # What is neither the first tick of the left side nor the last one of the right side is known now.
    ends_left = ~single_l & ~(shared & single_r)
    left_run = _run(last_l, np.where(shared, next_r, first_r), met_sum, np.where(ends_left, met_n, 0))
    right_run = _run(first_r, next_r, first_sum_r, np.where(~shared & ~single_r, first_n_r, 0))
    closed = left[_OPEN_PARTS:]
    for more in (left_run, right_run, right[_OPEN_PARTS:]):
        closed = combine_lines(closed, more)
    grown, reached = single_l & shared, single_r & shared
    together = (
        first_l,
        np.where(grown, met_sum, first_sum_l),
        np.where(grown, met_n, first_n_l),
        np.where(single_l, np.where(shared, next_r, first_r), next_l),
        last_r,
        np.where(reached, met_sum, last_sum_r),
        np.where(reached, met_n, last_n_r),
        *closed,
    )
    return tuple(np.where(none_l, b, np.where(none_r, a, c)) for a, b, c in zip(left, right, together, strict=True))


SERIES: Final = Operations(identity=(0, 0.0, 0, 0, 0, 0.0, 0, *LINES.identity), combine=_combine)
