"""Check an aggregate against the laws that it claims, on examples.

A plan splits, merges and overlaps partials as it pleases; that is right only where the laws hold. A law that fails
here would show as an answer that changes with the plan.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from decimal import ROUND_HALF_UP, Decimal, localcontext
from functools import reduce
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from panes.aggregates.accumulator import Accumulator, restore, state_of
from panes.aggregates.aggregate import Aggregate, Bound
from panes.aggregates.component import Component, Decoded, numbers
from panes.aggregates.operations import Array, Operations, State, concatenate, take
from panes.engine.partials import partials_of
from panes.errors import AlgebraError
from panes.expressions.evaluate import evaluate

_TRIALS = 60
_NEAR = 1e-9


def check_aggregate(aggregate: Aggregate, *example_arrays: Any, seed: int = 0) -> None:
    """Fail with a counterexample where an aggregate does not have a law that it claims.

    The laws: ``lift`` makes one element of state per event, each from its own event alone; ``combine`` is
    associative, has the identity, and leaves its arguments as they are; merging after any split gives what no split
    gives; ``subtract`` takes away exactly; an idempotent ``combine`` may see a partial twice and in any order;
    ``lift`` and ``lower`` take empty arrays. Where operators take single tuples in another way, by ``accumulator`` or
    ``over_values``, that way gives the same answers: inserted one by one or many at once, merged, saved and loaded.

    Parameters
    ----------
    aggregate
        What ``pn.aggregate`` made, or any other aggregate.
    *example_arrays
        One array (or list) per argument, of some events in the order of time; for aggregates that ask for the time
        (``first``, ``last``, ``trend``, ``aged``) the times come before. More and stranger events (ties, extremes, NaN
        where it can occur) check more.
    seed
        Of the random splits.

    Raises
    ------
    AlgebraError
        Names the law, and shows where it fails.

    Examples
    --------
    >>> import panes as pn
    >>> def product(**laws):
    ...     return pn.aggregate("x", name="product", state={"p": np.float64}, identity=(1.0,), lift=lambda x: (x,),
    ...                         combine=lambda a, b: (a[0] * b[0],), lower=lambda p: p, **laws)
    >>> check_aggregate(product(), [1.0, 2.0, 3.0])
    >>> check_aggregate(product(idempotent=True), [1.0, 2.0, 3.0])
    Traceback (most recent call last):
    ...
    panes.errors.AlgebraError: 'product(x)' is not idempotent: combine(a, a) is (36.0,) for a = (6.0,). Leave ...
    """
    arrays = [a if isinstance(a, pa.Array) else pa.array(a) for a in example_arrays]
    if not arrays or not len(arrays[0]):
        raise AlgebraError(f"{str(aggregate)!r} cannot be checked without examples. Give an array per argument.")
    arguments = tuple(f"a{i}" for i in range(len(arrays)))
    bound = aggregate.bind(arguments, tuple(array.type for array in arrays))
    rng = np.random.default_rng(seed)
    for component in bound.components:
        _Laws(aggregate, component, _arguments(component, arrays), rng).check()
    _check_splits(str(aggregate), bound, arrays, rng)
    _check_empty(str(aggregate), bound, arrays)
    if not aggregate.by_time and not aggregate.levels:  # which operators cannot give it
        _Tuples(aggregate, bound, arrays, rng).check()


def _arguments(component: Component, arrays: list[pa.Array]) -> list[pa.Array]:
    """The arguments of a component, which may take them in another order, or cast."""
    table = pa.table({f"a{i}": array for i, array in enumerate(arrays)})
    return [evaluate(argument, table).combine_chunks() for argument in component.arguments]


class _Laws:
    """The laws of one component, on spans of the examples."""

    def __init__(
        self, aggregate: Aggregate, component: Component, arrays: list[pa.Array], rng: np.random.Generator
    ) -> None:
        self.what, self.in_order = str(aggregate), aggregate.in_order
        self.component, self.arrays, self.rng = component, arrays, rng
        self.decoded: Decoded = component.decode(component.lift(*arrays))
        self.operations: Operations = self.decoded.operations
        self.rows = len(arrays[0])

    def check(self) -> None:
        """Every law, the simplest first."""
        self._lift()
        with np.errstate(all="ignore"):
            # One law after another, so that the message names the first that fails on any example.
            trials = [self._spans() for _ in range(_TRIALS)]
            for law in (self._in_place, self._identity, self._associative, self._subtract, self._idempotent):
                for a, b, c in trials:
                    law(a, b, c)

    def _lift(self) -> None:
        whole = self.component.lift(*self.arrays)
        if len(whole) != self.rows:
            self._fail("does not lift every event", f"lift made {len(whole)} elements out of {self.rows} events")
        for i in self.rng.permutation(self.rows)[:20]:
            alone = self.component.lift(*(array.slice(int(i), 1) for array in self.arrays))
            if not alone.equals(whole.slice(int(i), 1)) and alone.to_pylist() != whole.slice(int(i), 1).to_pylist():
                if _nan(alone) and _nan(whole.slice(int(i), 1)):
                    continue
                event = tuple(array[int(i)].as_py() for array in self.arrays)
                self._fail(
                    "does not lift every event by itself",
                    f"the event {event} lifts to {alone[0].as_py()} alone and to {whole[int(i)].as_py()} among others",
                )

    def _spans(self) -> list[State]:
        """The states of three random spans of events, each as a state of one element; side by side if order matters."""
        if self.in_order:
            cuts = np.sort(self.rng.integers(0, self.rows + 1, size=4)).tolist()
            return [self._state(lo, hi) for lo, hi in pairwise(cuts)]
        starts = [int(self.rng.integers(self.rows)) for _ in range(3)]
        return [self._state(lo, int(self.rng.integers(lo, min(self.rows, lo + 6))) + 1) for lo in starts]

    def _state(self, lo: int, hi: int) -> State:
        return _fold(self.operations, take(self.decoded.state, slice(lo, hi)))

    def _in_place(self, a: State, b: State, _: State) -> None:
        before = tuple(array.copy() for array in (*a, *b))
        self.operations.combine(a, b)
        if not _same(before, (*a, *b), exact=True):
            self._fail("changes its arguments in place", f"combine wrote into a or b, which were {_shown(before)}")

    def _identity(self, a: State, b: State, c: State) -> None:
        identity = self.operations.identities(a, 1)
        for side, found in (
            ("combine(identity, a)", self.operations.combine(identity, a)),
            ("combine(a, identity)", self.operations.combine(a, identity)),
        ):
            if not _same(found, a):
                self._fail("has no such identity", f"{side} is {_shown(found)} for a = {_shown(a)}")

    def _associative(self, a: State, b: State, c: State) -> None:
        combine = self.operations.combine
        left, right = combine(combine(a, b), c), combine(a, combine(b, c))
        if not _same(left, right):
            self._fail(
                "is not associative",
                f"combine(combine(a, b), c) is {_shown(left)} and combine(a, combine(b, c)) is {_shown(right)} "
                f"for a = {_shown(a)}, b = {_shown(b)}, c = {_shown(c)}",
            )

    def _subtract(self, a: State, b: State, _: State) -> None:
        if self.operations.subtract is None:
            return
        rest = self.operations.subtract(self.operations.combine(a, b), a)
        if not _same(rest, b, exact=True):
            self._fail(
                "is not a group",
                f"subtract(combine(a, b), a) is {_shown(rest)} and not b for a = {_shown(a)}, b = {_shown(b)}",
                "Leave subtract= out (rounding counts: sums of floats are not a group).",
            )

    def _idempotent(self, a: State, b: State, _: State) -> None:
        if not self.operations.idempotent:
            return
        twice = self.operations.combine(a, a)
        if not _same(twice, a, exact=True):
            self._fail(
                "is not idempotent", f"combine(a, a) is {_shown(twice)} for a = {_shown(a)}", "Leave idempotent= out."
            )
        one, other = self.operations.combine(a, b), self.operations.combine(b, a)
        if not _same(one, other, exact=True):
            self._fail(
                "is not commutative, which idempotent= claims too",
                f"combine(a, b) is {_shown(one)} and combine(b, a) is {_shown(other)} "
                f"for a = {_shown(a)}, b = {_shown(b)}",
                "Leave idempotent= out.",
            )

    def _fail(self, law: str, counterexample: str, advice: str = "Correct lift, combine or identity.") -> None:
        raise AlgebraError(f"{self.what!r} {law}: {counterexample}. {advice}")


def _check_splits(what: str, bound: Bound, arrays: list[pa.Array], rng: np.random.Generator) -> None:
    """Partials of any parts, stored and read again, merge to what the whole gives."""
    rows = len(arrays[0])
    whole = _answer(bound, arrays, [0, rows])
    if len(whole) != 1:
        raise AlgebraError(f"{what!r} lowers one element of state to {len(whole)} answers. Return an array as long.")
    for _ in range(_TRIALS):
        cuts = sorted({0, rows, *rng.integers(0, rows + 1, size=int(rng.integers(1, 5))).tolist()})
        split = _answer(bound, arrays, cuts)
        if not _same_values(split, whole):
            raise AlgebraError(
                f"{what!r} changes when its input is split: cut at {cuts[1:-1]}, {rows} events give "
                f"{split[0].as_py()} instead of {whole[0].as_py()}. Correct combine, or the types of the state."
            )


def _answer(bound: Bound, arrays: list[pa.Array], cuts: list[int]) -> pa.Array:
    stored = []
    for component in bound.components:
        arguments = _arguments(component, arrays)
        split = [
            _reduced(component, component.lift(*(array.slice(lo, hi - lo) for array in arguments)))
            for lo, hi in pairwise(cuts)
        ]
        stored.append(_reduced(component, pa.concat_arrays(split)))
    parts = [
        partials_of(component, column).answers() for component, column in zip(bound.components, stored, strict=True)
    ]
    with np.errstate(all="ignore"):
        return bound.lower(*parts, **_window(arrays) if bound.by_window else {})


def _window(arrays: list[pa.Array]) -> dict[str, Array]:
    """A window that holds all examples, whose times come first."""
    times = numbers(arrays[0].drop_null().view(pa.int64()))
    ends = (times.min(), times.max() + 1) if len(times) else (0, 1)
    return {name: np.array([end]) for name, end in zip(("start", "end"), ends, strict=True)}


def _reduced(component: Component, stored: pa.Array) -> pa.Array:
    """All partials of a column as one."""
    decoded = component.decode(stored)
    with np.errstate(all="ignore"):
        state = _fold(decoded.operations, decoded.state)
    nulls = None if decoded.valid is None else np.array([not decoded.valid.any()])
    return decoded.restore(state, nulls)


def _check_empty(what: str, bound: Bound, arrays: list[pa.Array]) -> None:
    """Windows in which every event has a null reach lift and lower with no row at all."""
    nothing = [pa.nulls(2, array.type) for array in arrays]
    try:
        answers = _answer(bound, nothing, [0, 2])
    except Exception as error:
        raise AlgebraError(
            f"{what!r} fails on empty arrays, which lift and lower get where every argument is null: {error!r}. "
            "Return empty arrays then."
        ) from error
    if len(answers) != 1 or answers.type != bound.type:
        raise AlgebraError(f"{what!r} gives {answers} for events without values; one null or number is expected.")


class _Tuples:
    """The answers of single tuples, on spans of the examples: those of the algebra."""

    def __init__(self, aggregate: Aggregate, bound: Bound, arrays: list[pa.Array], rng: np.random.Generator) -> None:
        # What counts events looks at none of their attributes.
        names = [] if aggregate.arguments == ("1",) else [f"a{i}" for i in range(len(arrays))]
        self.aggregate, self.bound, self.rng = aggregate, bound, rng
        self.arrays = arrays if names else [pa.array(np.ones(len(arrays[0]), np.int64)).cast(arrays[0].type)]
        self.start = aggregate.accumulator(*names)
        self.items = pa.table({f"a{i}": array for i, array in enumerate(arrays)}).to_pylist()

    def check(self) -> None:
        """Every way to take tuples."""
        for cuts in [[0, 0, 0, 0], *(self._cuts() for _ in range(_TRIALS // 3))]:
            lo, hi = cuts[0], cuts[-1]
            expected = self._expected(lo, hi)
            if self.start is not None:
                one_by_one = self._inserted(lo, hi)
                self._same("insert", one_by_one.value(), expected, cuts)
                self._insert_all(cuts, one_by_one)
                self._save(cuts, one_by_one)
                if hasattr(one_by_one, "merge"):
                    self._merge(cuts, expected)
            elif self.aggregate.collects:
                values = [value for item in self.items[lo:hi] if (value := item["a0"]) is not None]
                self._same("over_values", self.aggregate.over_values(values), expected, cuts)

    def _cuts(self) -> list[int]:
        return sorted(self.rng.integers(0, len(self.items) + 1, size=4).tolist())

    def _expected(self, lo: int, hi: int) -> pa.Array:
        # Of no event at all, as of events without values.
        rows = [array.slice(lo, hi - lo) if hi > lo else pa.nulls(1, array.type) for array in self.arrays]
        return _answer(self.bound, rows, [0, len(rows[0])])

    def _inserted(self, lo: int, hi: int) -> Accumulator:
        assert self.start is not None
        accumulator = self.start()
        for item in self.items[lo:hi]:
            accumulator.insert(item)
        return accumulator

    def _insert_all(self, cuts: list[int], one_by_one: Accumulator) -> None:
        together = self._inserted(0, 0)
        for lo, hi in pairwise(cuts):
            together.insert_all(self.items[lo:hi])
        if repr(state_of(together)) != repr(state_of(one_by_one)):
            self._fail(
                "insert_all", f"the state {state_of(together)} instead of {state_of(one_by_one)} of insert", cuts
            )

    def _save(self, cuts: list[int], one_by_one: Accumulator) -> None:
        _, lo, _, hi = cuts
        first, loaded = self._inserted(cuts[0], lo), self._inserted(0, 0)
        restore(loaded, deepcopy(state_of(first)))
        for item in self.items[lo:hi]:
            loaded.insert(item)
        if repr(loaded.value()) != repr(one_by_one.value()):
            found = f"{loaded.value()!r} instead of {one_by_one.value()!r}, saved and loaded at {lo}"
            self._fail("state_of", found, cuts, "Name every attribute in __slots__.")

    def _merge(self, cuts: list[int], expected: pa.Array) -> None:
        for later_first in (False, True):
            a, b, c = (self._inserted(lo, hi) for lo, hi in pairwise(cuts))
            for one, other in ((b, c), (a, b)) if later_first else ((a, b), (a, c)):
                before = repr(state_of(other))
                one.merge(other)
                if repr(state_of(other)) != before:
                    self._fail("merge", f"another state of the later tuples, which were {before}", cuts)
            self._same("merge", a.value(), expected, cuts)

    def _same(self, way: str, found: Any, expected: pa.Array, cuts: list[int]) -> None:
        try:
            answer = pa.array([found if found is None else _rounded(found, expected.type)], expected.type)
        except (pa.ArrowException, TypeError) as error:
            self._fail(way, f"{found!r}, which is no {expected.type}: {error}", cuts)
        if not _same_values(answer, expected):
            self._fail(way, f"{found!r} instead of {expected[0].as_py()!r}", cuts)

    def _fail(self, way: str, found: str, cuts: list[int], advice: str = "Correct it.") -> NoReturn:
        raise AlgebraError(
            f"{str(self.aggregate)!r} has another answer for single tuples: {way} of the events between {cuts} gives "
            f"{found}. {advice}"
        )


def _rounded(value: Any, type_: pa.DataType) -> Any:
    """A number as its type has it: plain Python divides decimals to more digits."""
    if not pa.types.is_decimal(type_):
        return value
    with localcontext(prec=76):
        return Decimal(value).quantize(Decimal(1).scaleb(-type_.scale), ROUND_HALF_UP)


def _fold(operations: Operations, state: State) -> State:
    """All elements of a state combined, first to last, as a state of one element."""
    elements = [take(state, slice(i, i + 1)) for i in range(len(state[0]))]
    combine: Callable[[State, State], State] = operations.combine
    return concatenate([reduce(combine, elements, operations.identities(state, 1))])


def _same(a: State, b: State, *, exact: bool = False) -> bool:
    return all(_equal(x, y, exact) for x, y in zip(a, b, strict=True))


def _equal(x: Array, y: Array, exact: bool) -> bool:
    if x.dtype.kind == "f" or y.dtype.kind == "f":
        tolerance = 0.0 if exact else _NEAR
        return bool(np.allclose(x, y, rtol=tolerance, atol=tolerance * 1e-3, equal_nan=True))
    return bool(np.array_equal(x, y))


def _same_values(a: pa.Array, b: pa.Array) -> bool:
    if pa.types.is_struct(a.type):
        valid: bool = a.is_valid().equals(b.is_valid())
        return valid and all(map(_same_values, a.flatten(), b.flatten()))
    if pa.types.is_floating(a.type) and not a.null_count and not b.null_count:
        return _equal(a.to_numpy(zero_copy_only=False), b.to_numpy(zero_copy_only=False), exact=False)
    return bool(a.equals(b)) or (_nan(a) and _nan(b))


def _nan(array: pa.Array) -> bool:
    return "nan" in str(array.to_pylist())


def _shown(state: State) -> str:
    return str(tuple(array.tolist()[0] for array in state))
