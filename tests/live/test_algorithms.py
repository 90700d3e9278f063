"""One contract for all live algorithms: after any batches and expiries, every window of rows that are held is answered
as if its rows were combined one after another.

Each algorithm runs with every algebra whose laws it needs. This catches rings that wrap around wrongly, rows of one key
that reach another, what has expired and comes back, orders that change, intervals that are made too early or too late,
and partitions of widths that miss a landmark.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panes.aggregates.operations import concatenate, from_ufunc, take
from panes.errors import AlgebraError, PlanError
from panes.live.column import ALGORITHMS
from panes.live.landmark import LandmarkIntervals
from panes.live.quantiles import SortedIntervals, select
from panes.live.rings import Rings
from tests.kernels.test_contract import ALGEBRAS, as_state, assert_answers, seeded

LEGAL = [
    pytest.param(name, algebra, id=f"{name}-{label}")
    for name in ALGORITHMS
    for label, algebra in ALGEBRAS.items()
    if ALGORITHMS[name].can(algebra.operations)
]


@pytest.fixture(autouse=True)
def _no_warnings():
    """As in a live plan: infinities that meet are NaN, and expired rows may be combined with held ones."""
    with np.errstate(all="ignore"):
        yield


class Stream:
    """An algorithm in rings, and beside it every row that each key ever had."""

    def __init__(self, make, algebra, keys):
        self.algebra, self.rings = algebra, Rings()
        self.ever = [as_state(algebra, []) for _ in range(keys)]
        self.algorithm = make(algebra.operations, self.ever[0], self.rings)
        self.rings.add(self.algorithm)
        self.rings.grow(keys)

    def append(self, states):
        """The next rows of some keys, by key."""
        states = {key: state for key, state in sorted(states.items()) if len(state[0])}
        for key, state in states.items():
            self.ever[key] = concatenate([self.ever[key], state])
        keys = np.array(list(states), np.int64)
        counts = np.array([len(state[0]) for state in states.values()], np.int64)
        together = concatenate(list(states.values())) if states else take(self.ever[0], slice(0))
        self.rings.append(keys, counts, {self.algorithm: together})

    def expire(self, key, rows):
        """Let the oldest rows of a key go."""
        self.rings.expire(np.array([key]), self.rings.first[[key]] + rows)

    def check(self, key, lo, hi):
        """Windows of rows of keys, answered together and compared one by one."""
        key, lo, hi = (np.array(values, np.int64) for values in (key, lo, hi))
        answers = self.algorithm.lookup(key, lo, hi)
        for one in np.unique(key):
            some = key == one
            assert_answers(self.algebra, self.ever[one], lo[some], hi[some], take(answers, some))

    def check_some(self, rng, lookups=20):
        key = rng.integers(0, len(self.ever), lookups)
        first, end = self.rings.first[key], self.rings.end[key]
        edges = np.sort(first[:, None] + (rng.random((lookups, 2)) * (end - first + 1)[:, None]).astype(int), axis=1)
        edges[: lookups // 4] = np.stack([first, end], axis=1)[: lookups // 4]
        self.check(key, edges[:, 0], edges[:, 1])


@pytest.mark.parametrize(("name", "algebra"), LEGAL)
@settings(max_examples=12)
@given(data=st.data())
def test_any_batches(name, algebra, data):
    stream = Stream(ALGORITHMS[name], algebra, keys=3)
    batches = st.dictionaries(st.integers(0, 2), st.lists(algebra.elements, max_size=9), max_size=3)
    for batch in data.draw(st.lists(batches, max_size=6)):
        stream.append({key: as_state(algebra, rows) for key, rows in batch.items()})
        stream.expire(data.draw(st.integers(0, 2)), data.draw(st.integers(0, 6)))
        key = data.draw(st.lists(st.integers(0, 2), max_size=6))
        edges = []
        for one in key:
            first, end = int(stream.rings.first[one]), int(stream.rings.end[one])
            edges.append(sorted(data.draw(st.tuples(*[st.integers(first, end)] * 2))))
        stream.check(key, [a for a, _ in edges], [b for _, b in edges])


@pytest.mark.parametrize(("name", "algebra"), LEGAL)
def test_rings_that_wrap_around(name, algebra):
    """Many batches of all sizes while the oldest rows expire: every ring is written over several times."""
    rng = np.random.default_rng(3)
    stream, most = Stream(ALGORITHMS[name], algebra, keys=4), (3, 40, 100, 300)
    for number in range(40):
        counts = [int(rng.integers(0, [2, 5, 60, 90][(number + key) % 4] + 1)) for key in range(4)]
        stream.append({key: seeded(algebra, count, seed=number) for key, count in enumerate(counts)})
        for key in range(4):
            stream.expire(key, max(int(stream.rings.end[key] - stream.rings.first[key]) - most[key], 0))
        stream.check_some(rng)
    assert (stream.rings.end > 2 * stream.rings.size).any()


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_window_of_some_rows(name):
    """All of them, around the edges of blocks and levels, before and after rows expire."""
    algebra = ALGEBRAS["affine maps" if ALGORITHMS[name].can(ALGEBRAS["affine maps"].operations) else "int sum"]
    stream = Stream(ALGORITHMS[name], algebra, keys=2)
    for part in (5, 1, 17, 12):
        stream.append({1: seeded(algebra, part)})
    for expired in (0, 7, 10):
        stream.expire(1, expired)
        first, end = int(stream.rings.first[1]), int(stream.rings.end[1])
        edges = np.array([(a, b) for a in range(first, end + 1) for b in range(a, end + 1)])
        stream.check(np.ones(len(edges), int), edges[:, 0], edges[:, 1])


@pytest.mark.parametrize("name", ALGORITHMS)
def test_nothing(name):
    stream = Stream(ALGORITHMS[name], ALGEBRAS["int sum"], keys=2)
    stream.append({})
    nothing = np.zeros(0, np.int64)
    assert len(stream.algorithm.lookup(nothing, nothing, nothing)[0]) == 0
    stream.check([0, 1], [0, 0], [0, 0])
    stream.append({1: seeded(ALGEBRAS["int sum"], 3)})
    stream.expire(1, 3)
    stream.check([1, 0], [3, 0], [3, 0])
    stream.append({1: seeded(ALGEBRAS["int sum"], 2)})
    stream.check([1, 1], [3, 4], [5, 5])


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize(("lo", "hi"), [(3, 6), (7, 11)])
def test_rows_that_are_not_held_are_refused(name, lo, hi):
    stream = Stream(ALGORITHMS[name], ALGEBRAS["int sum"], keys=1)
    stream.append({0: seeded(ALGEBRAS["int sum"], 10)})
    stream.expire(0, 4)
    with pytest.raises(PlanError, match="beyond the rows that are held"):
        stream.algorithm.lookup(*np.array([[0], [lo], [hi]]))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_keys_that_are_forgotten(name):
    rng = np.random.default_rng(5)
    stream = Stream(ALGORITHMS[name], ALGEBRAS["int sum"], keys=6)
    stream.append({key: seeded(ALGEBRAS["int sum"], 9 * key, seed=key) for key in range(6)})
    stream.check_some(rng)
    stream.rings.keep(np.array([1, 3, 5]))
    stream.ever = [stream.ever[key] for key in (1, 3, 5)]
    stream.check_some(rng)
    stream.append({key: seeded(ALGEBRAS["int sum"], 50, seed=key) for key in range(3)})
    stream.check_some(rng)


def numbers_in(value):
    """How many array elements a structure keeps."""
    if isinstance(value, np.ndarray):
        return value.size
    if isinstance(value, dict):
        return sum(map(numbers_in, value.values()))
    if isinstance(value, (tuple, list)):
        return sum(map(numbers_in, value))
    # A column has its rings, and rings their columns.
    return sum(numbers_in(v) for name, v in getattr(value, "__dict__", {}).items() if name not in ("rings", "columns"))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_memory_is_bounded_by_what_is_held(name):
    """A long stream in many keys that come and go; and a key that was large is small again."""
    stream = Stream(ALGORITHMS[name], ALGEBRAS["int sum"], keys=50)
    stream.append({0: seeded(ALGEBRAS["int sum"], 20_000)})
    stream.check([0], [0], [20_000])
    for number in range(60):
        for key in range(50):
            if stream.rings.end[key] > stream.rings.first[key]:
                stream.expire(key, 20_000)
        stream.append({key % 50: seeded(ALGEBRAS["int sum"], 40) for key in range(number, number + 10)})
    assert stream.rings.rows == 400
    assert stream.rings.slots <= 1 << 13
    assert numbers_in(vars(stream.algorithm)) <= 1 << 17
    stream.check_some(np.random.default_rng(1))


@settings(max_examples=60)
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["append", "append", "append", "expire", "keep"]),
            st.lists(st.tuples(st.integers(0, 5), st.integers(1, 700)), min_size=1, max_size=6),
        ),
        max_size=25,
    )
)
def test_rings_neither_overlap_nor_lose_rows(steps):
    algebra = ALGEBRAS["int sum"]
    stream = Stream(ALGORITHMS["elements"], algebra, keys=6)
    for what, numbers in steps:
        chosen = {key % len(stream.ever): rows for key, rows in numbers}
        if what == "append":
            stream.append({key: seeded(algebra, rows) for key, rows in chosen.items()})
        elif what == "expire":
            for key, rows in chosen.items():
                stream.expire(key, rows)
        else:
            stream.rings.keep(np.array(sorted(chosen)))
            stream.ever = [stream.ever[key] for key in sorted(chosen)]
        rings = stream.rings
        assert ((rings.size & (rings.size - 1)) == 0).all()
        assert (rings.end - rings.first < np.maximum(rings.size, 1)).all()
        some = rings.size > 0
        begin, size = rings.base[some], rings.size[some]
        assert (begin % size == 0).all()
        order = np.argsort(begin)
        assert ((begin + size)[order][:-1] <= begin[order][1:]).all()
        assert (begin + size).max(initial=0) <= rings.slots
        stream.check(np.arange(len(rings)), rings.first, rings.end)


def test_partitions_are_as_many_as_widths_differ():
    algebra = ALGEBRAS["float sum"]
    stream = Stream(LandmarkIntervals, algebra, keys=2)
    stream.append({0: seeded(algebra, 500), 1: seeded(algebra, 300)})
    lo = np.arange(0, 200, 3)
    for width in (20, 31, 16):
        stream.check(lo % 2, lo, lo + width)
    assert tuple(stream.algorithm._from_landmark) == (4,)
    stream.check([0, 1], [0, 0], [500, 300])
    assert tuple(stream.algorithm._from_landmark) == (4, 8)
    for _ in range(20):
        stream.append({0: seeded(algebra, 37), 1: seeded(algebra, 3)})
        stream.check([0, 1, 0, 1], stream.rings.end[[0, 1, 0, 1]] - [300, 301, 17, 30], stream.rings.end[[0, 1, 0, 1]])


@pytest.mark.parametrize("label", [label for label, a in ALGEBRAS.items() if not a.operations.group])
def test_an_illegal_algorithm_is_an_error_at_construction(label):
    algebra = ALGEBRAS[label]
    with pytest.raises(AlgebraError, match=r"'running' needs a group \(an exact subtract\)"):
        ALGORITHMS["running"](algebra.operations, as_state(algebra, []), Rings())


def test_running_sums_may_wrap_around():
    """The sum of everything is beyond 64 bits, and the sum of a window is exact."""
    add = from_ufunc(np.add, 0, subtract=np.subtract)
    rings = Rings()
    sums = ALGORITHMS["running"](add, (np.zeros(0, np.int64),), rings)
    rings.add(sums)
    for _ in range(10):
        rings.append(np.array([0]), np.array([1000]), {sums: (np.full(1000, 2**55 + 1),)})
    assert sums.lookup(*np.array([[0], [9_900], [10_000]]))[0] == 100 * (2**55 + 1)


@pytest.mark.parametrize("objects", [False, True])
def test_quantiles(objects):
    """Every rank of random windows, with ties, over rings that wrap around; the rank is a parameter of the lookup."""
    rng = np.random.default_rng(11)
    rings, ever = Rings(), [[], [], []]
    kind = object if objects else np.int64
    quantiles = SortedIntervals((np.zeros(0, kind),), rings)
    rings.add(quantiles)
    for number in range(30):
        keys = np.flatnonzero(rng.random(3) < 0.8)
        batches = [rng.integers(-9, [3, 2**40][number % 2], rng.integers(1, 80)) for _ in keys]
        for key, batch in zip(keys, batches, strict=True):
            ever[key] += batch.tolist()
        if len(keys):
            rings.append(
                keys, np.array([len(b) for b in batches]), {quantiles: (np.concatenate(batches).astype(kind),)}
            )
        rings.grow(3)
        rings.expire(np.arange(3), rings.end - [5, 90, 200])
        key = rng.integers(0, 3, 40)
        lo = rings.first[key] + (rng.random(40) * (rings.end - rings.first)[key]).astype(int)
        hi = lo + 1 + (rng.random(40) * (rings.end[key] - lo - 1)).astype(int)
        some = rings.end[key] > rings.first[key]
        key, lo, hi = key[some], lo[some], hi[some]
        rank = (rng.random(len(lo)) * (hi - lo)).astype(int)
        expected = [sorted(ever[k][a:b])[r] for k, a, b, r in zip(key, lo, hi, rank, strict=True)]
        assert quantiles.at(key, lo, hi, rank).tolist() == expected


@given(
    stretches=st.lists(st.tuples(st.integers(0, 3), st.lists(st.integers(0, 5), min_size=1)), min_size=1, max_size=12),
    part=st.floats(0, 0.999),
)
def test_selection(stretches, part):
    owners = sorted({owner for owner, _ in stretches})
    stretches = sorted((owners.index(owner), sorted(values)) for owner, values in stretches)
    values = np.concatenate([values for _, values in stretches])
    ends = np.cumsum([len(values) for _, values in stretches])
    owner = np.array([owner for owner, _ in stretches])
    together = [sorted(v for o, values in stretches for v in values if o == one) for one in range(len(owners))]
    rank = np.array([int(part * len(values)) for values in together])
    found = select(values, owner, ends - [len(v) for _, v in stretches], ends, rank)
    assert found.tolist() == [values[r] for values, r in zip(together, rank, strict=True)]
