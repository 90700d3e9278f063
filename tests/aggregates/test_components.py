"""The contract of components: what is stored, lifted, combined, merged, and what the JVM makes, is one and the same.

Storage round trips catch lost nulls and narrowed types; splits catch a combine that depends on where pieces end; the
JVM suite catches Spark SQL that drifts away from the NumPy algebra. All components share a handful of Spark jobs.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

import panes as pn
from panes.aggregates.aggregate import Aggregate
from panes.aggregates.bags import Values
from panes.aggregates.decay import Decaying, Fading
from panes.aggregates.extrema import Max, Min
from panes.aggregates.moments import CoMoments, Moments
from panes.aggregates.picks import Greatest, Least
from panes.aggregates.registry import sql_names
from panes.aggregates.sums import Count, Sum
from panes.aggregates.trend import Lines
from panes.engine.answer import answer_panes
from panes.engine.program import Node, Program, Reading, View
from panes.errors import AlgebraError
from panes.frames import Positions, frame
from panes.kernels import Reducer
from panes.testing import assert_same_answers, check_aggregate
from panes.testing.event_tables import draw
from panes.testing.reference import comparable
from panes.timeline import SECOND, Edges, Geometry

TYPES = {
    "i8": pa.int8(),
    "i16": pa.int16(),
    "i32": pa.int32(),
    "i64": pa.int64(),
    "f32": pa.float32(),
    "f64": pa.float64(),
    "d": pa.decimal128(9, 2),
    "wide": pa.decimal128(38, 4),
    "s": pa.string(),
    "b": pa.bool_(),
    "day": pa.date32(),
    "t": pa.timestamp("us", "UTC"),
    "n": pa.timestamp("us"),
    "bin": pa.binary(),
}
TIMES = {"at": pa.timestamp("us", "UTC"), "local_at": pa.timestamp("us")}
"""Event times, which are never null."""

NUMERIC = [n for n, t in TYPES.items() if pa.types.is_integer(t) or pa.types.is_floating(t) or pa.types.is_decimal(t)]


def components():
    """Every component over every type that it takes, by name."""
    found = {}
    for name, type_ in TYPES.items():
        arguments, types = (name,), (type_,)
        for kind in (Count, Min, Max, Values, *((Sum, Moments) if name in NUMERIC else ())):
            found[f"{kind.kind} {name}"] = kind(arguments, types)
        for kind in (Least, Greatest):
            found[f"{kind.kind} of {name} by f64"] = kind(("f64", name), (pa.float64(), type_))
            found[f"{kind.kind} of i32 by {name}"] = kind((name, "i32"), (type_, pa.int32()))
        if name in NUMERIC:
            found[f"comoments {name}"] = CoMoments((name, "f64"), (type_, pa.float64()))
    for time, name in [*(("at", name) for name in ("s", *NUMERIC)), ("local_at", "f64")]:
        timed, what = ((time, name), (TIMES[time], TYPES[name])), f"{name} over {time}"
        found[f"decaying count of {what}"] = Decaying(*timed, counted=True, half_life=7 * SECOND)
        found[f"fading count of {what}"] = Fading(*timed, counted=True, horizon=100.0 * SECOND, power=1)
        if name in NUMERIC:
            found[f"decaying sum of {what}"] = Decaying(*timed, counted=False, half_life=7 * SECOND)
            found[f"fading sum of {what}"] = Fading(*timed, counted=False, horizon=100.0 * SECOND, power=4)
            found[f"line of {what}"] = Lines(*timed)
    return found


COMPONENTS = components()


def column(type_, rows, seed, *, nulls=0.2):
    rng = random.Random(f"{seed} {type_}")
    values = [None if rng.random() < nulls else draw(rng, type_, special=0.1) for _ in range(rows)]
    return pa.array(values, type_)


def arguments_of(component, rows=40, seed=0, nulls=0.2):
    named = zip(component.arguments, component.types, strict=True)
    return [
        column(type_, rows, f"{seed} {i}", nulls=0 if name in TIMES else nulls) for i, (name, type_) in enumerate(named)
    ]


def reduced(component, stored, lo=0, hi=None):
    """Some stored partials as one, back in storage."""
    decoded = component.decode(stored)
    lo, hi = np.array([lo]), np.array([len(stored) if hi is None else hi])
    with np.errstate(all="ignore"):
        state = Reducer(decoded.operations, decoded.state, kernel="naive").reduce(lo, hi)
    nulls = None if decoded.valid is None else np.array([not decoded.valid[lo[0] : hi[0]].any()])
    return decoded.restore(state, nulls)


def same(a, b, component=None):
    assert_same_answers(_flat(a, component), _flat(b, component), absolute=1e-9)


END = 45 * SECOND
"""Later than all event times here, and near enough that nothing has faded."""


def _flat(array, component=None):
    """Several doubles in columns of their own, since they are compared with a tolerance only there.

    Where partials may be counted from any instant, what they say about one instant is compared.
    """
    if isinstance(component, (Decaying, Fading)):
        return pa.table({"valid": array.is_valid(), "seen": component.seen(array, np.full(len(array), END))})
    if isinstance(component, Lines):
        table = _flat(array)
        mean = pa.compute.add(table["at"].cast(pa.float64()), table["mean_t"])
        return table.drop_columns("at").set_column(2, "mean_t", mean)
    if pa.types.is_struct(array.type) and "order" not in array.type.names:
        parts = {name: pa.compute.struct_field(array, name) for name in array.type.names}
        for name in parts.keys() & {"mean_x", "mean_y"}:
            # Next to an infinite mean, which is no number where infinities of both signs met, nothing is a number.
            finite = pa.compute.fill_null(pa.compute.is_finite(parts[name]), True)
            parts[name] = pa.compute.if_else(finite, parts[name], math.nan)
        return pa.table({"valid": array.is_valid(), **parts})
    return pa.table({"stored": array})


@pytest.mark.parametrize("name", COMPONENTS)
def test_storage_round_trip(name):
    component = COMPONENTS[name]
    for seed, nulls in enumerate((0.0, 0.3, 1.0)):
        stored = component.lift(*arguments_of(component, seed=seed, nulls=nulls))
        assert stored.type == component.storage
        decoded = component.decode(stored)
        assert all(len(part) == len(stored) for part in decoded.state)
        back = decoded.restore(decoded.state, None if decoded.valid is None else ~decoded.valid)
        assert back.type == component.storage
        same(back, stored)
        sliced = component.decode(stored.slice(7, 20))
        again = sliced.restore(sliced.state, None if sliced.valid is None else ~sliced.valid)
        same(again, stored.slice(7, 20))


@pytest.mark.parametrize("name", COMPONENTS)
def test_merging_after_any_split_gives_what_no_split_gives(name):
    component, rng = COMPONENTS[name], random.Random(name)
    arguments = arguments_of(component)
    stored = component.lift(*arguments)
    whole = reduced(component, stored)
    for _ in range(6):
        cuts = sorted({0, 40, *(rng.randrange(41) for _ in range(rng.randint(1, 6)))})
        pieces = [reduced(component, stored, lo, hi) for lo, hi in pairwise(cuts)]
        same(reduced(component, pa.concat_arrays(pieces)), whole, component)


@pytest.mark.parametrize("name", [name for name, component in COMPONENTS.items() if component.kind != "values"])
def test_lasting_states_of_several_columns_make_what_one_column_makes(name):
    """Pieces are decoded apart, and their states combined: what numbers the values of a piece would go wrong."""
    component, rng = COMPONENTS[name], random.Random(name)
    stored = component.lift(*arguments_of(component))
    whole = reduced(component, stored)
    for _ in range(4):
        cuts = sorted({0, 40, *(rng.randrange(41) for _ in range(rng.randint(1, 6)))})
        pieces = [component.decode_lasting(stored.slice(lo, hi - lo)) for lo, hi in pairwise(cuts)]
        first, valid = pieces[0], np.concatenate([_some(piece) for piece in pieces])
        kinds = [
            object if any(p.state[i].dtype == object for p in pieces) else part.dtype
            for i, part in enumerate(first.state)
        ]
        total = tuple(np.full(1, one, kind) for one, kind in zip(first.operations.identity, kinds, strict=True))
        for piece in pieces:
            state = tuple(part.astype(kind) for part, kind in zip(piece.state, kinds, strict=True))
            with np.errstate(all="ignore"):
                own = Reducer(first.operations, state, kernel="naive").reduce(np.array([0]), np.array([len(state[0])]))
                total = first.operations.combine(total, own)
        same(first.restore(total, None if valid.any() else np.array([True])), whole, component)


def _some(decoded):
    return np.ones(len(decoded.state[0]), bool) if decoded.valid is None else decoded.valid


@pytest.mark.parametrize("name", COMPONENTS)
def test_lifted_and_reduced_is_brute_force(name):
    component = COMPONENTS[name]
    for seed, nulls in enumerate((0.0, 0.4, 1.0)):
        arguments = arguments_of(component, seed=seed, nulls=nulls, rows=15)
        if component.kind in _EXPECTED:
            flat = _flat(reduced(component, component.lift(*arguments)), component)
            expected = pa.Table.from_pylist([_expected(component, arguments)], schema=flat.schema)
            assert_same_answers(flat, expected, absolute=1e-9)
            continue
        found = reduced(component, component.lift(*arguments))[0].as_py()
        expected = _brute(component, [a.to_pylist() for a in arguments])
        if isinstance(component, Moments) and expected is not None:
            assert found["n"] == expected["n"]
            assert [found["sum"], found["m2"]] == pytest.approx(
                [expected["sum"], expected["m2"]], rel=1e-9, abs=1e-9, nan_ok=True
            )
        elif isinstance(found, float) and isinstance(component, Sum):
            assert found == pytest.approx(expected, nan_ok=True)
        else:
            assert comparable(found) == comparable(expected)


def _expected(component, arguments):
    """What a component of several doubles is to say, as ``_flat`` has it."""
    times = arguments[0].cast(pa.int64()) if pa.types.is_timestamp(arguments[0].type) else arguments[0]
    rows = zip(times.to_pylist(), arguments[1].to_pylist(), strict=True)
    pairs = [(x, 1.0 if getattr(component, "counted", False) else float(y)) for x, y in rows if None not in (x, y)]
    return {"valid": bool(pairs)} | _EXPECTED[component.kind](component, [(float(x), y) for x, y in pairs])


def _expected_products(component, pairs):
    names = ["n", "mean_t", "mean_y", "tt", "yy", "ty"] if component.kind == "line" else None
    names = names or ["n", "mean_x", "mean_y", "xx", "yy", "xy"]
    if not pairs:
        return dict.fromkeys(names)
    x, y = (np.array([pair[i] for pair in pairs], dtype=np.longdouble) for i in (0, 1))
    with np.errstate(invalid="ignore"):
        dx, dy = x - x.mean(), y - y.mean()
        sums = [(dx * dx).sum(), (dy * dy).sum(), (dx * dy).sum()]
    means = [float(v.mean()) if np.isfinite(v).all() else math.nan for v in (x, y)]
    return dict(zip(names, [len(pairs), *means, *map(float, sums)], strict=True))


_EXPECTED = {
    "line": _expected_products,
    "comoments": _expected_products,
    "decaying": lambda c, pairs: {"seen": sum(y * 2 ** (-(END - t) / c.half_life) for t, y in pairs)},
    "fading": lambda c, pairs: {"seen": sum(y * (1 - (END - t) / c.horizon) ** c.power for t, y in pairs)},
}


def _brute(component, arguments):
    rows = [row for row in zip(*arguments, strict=True) if None not in row]
    if isinstance(component, Count):
        return len(rows)
    if not rows:
        return None
    if isinstance(component, (Least, Greatest)):
        pick = min if isinstance(component, Least) else max
        order, value = pick(rows, key=lambda row: [comparable(x) for x in row])
        return {"order": order, "value": value}
    values = [x for (x,) in rows]
    if isinstance(component, Values):
        distinct = {comparable(x): x for x in values}
        return [{"value": distinct[c], "n": sum(comparable(x) == c for x in values)} for c in sorted(distinct)]
    if isinstance(component, (Min, Max)):
        return (min if isinstance(component, Min) else max)(values, key=comparable)
    if isinstance(component, Sum):
        return sum(values)
    numbers = [float(x) for x in values]
    if not all(map(math.isfinite, numbers)):
        return {"n": len(numbers), "sum": sum(numbers), "m2": math.nan}
    mean = sum(map(Fraction, numbers)) / len(numbers)
    m2 = float(sum((Fraction(x) - mean) ** 2 for x in numbers))
    return {"n": len(numbers), "sum": math.fsum(numbers), "m2": m2}


def test_spark_builds_and_merges_what_numpy_combines(spark):
    """Three jobs for all components: events → partials per group, partials → partials per coarser group."""
    from pyspark.sql import functions as F
    from pyspark.sql.pandas.types import from_arrow_schema

    from panes.spark.naming import micros

    rows = 160
    rng = random.Random(1)
    data = pa.table(
        {name: column(type_, rows, "jvm", nulls=0 if name in TIMES else 0.2) for name, type_ in (TYPES | TIMES).items()}
    )
    panes = [rng.randrange(12) for _ in range(rows)]
    data = data.append_column("pane", pa.array(panes, pa.int64()))
    # Before all events, and the same for all events of a pane.
    data = data.append_column("start", pa.array([(pane - 60) * SECOND for pane in panes], pa.int64()))
    frame_ = spark.createDataFrame(data, schema=from_arrow_schema(data.schema, prefer_timestamp_ntz=True))
    listed = [component for component in COMPONENTS.values() if component.in_jvm]
    names = [f"c{i}" for i in range(len(listed))]
    micros_of = {name: micros(name, frame_.schema[name].dataType) for name in TIMES}
    built = frame_.groupBy("pane").agg(
        *(
            F.expr(c.build_from(micros_of.get(c.arguments[0], "0L"), "start")).alias(n)
            for c, n in zip(listed, names, strict=True)
        )
    )
    merged = built.groupBy((F.col("pane") % 3).alias("pane")).agg(
        *(F.expr(c.merge(n)).alias(n) for c, n in zip(listed, names, strict=True))
    )
    for jvm, group in ((built, lambda pane: pane), (merged, lambda pane: pane % 3)):
        table = jvm.toArrow().sort_by("pane")
        groups = np.array([group(pane) for pane in data["pane"].to_pylist()])
        for component, name in zip(listed, names, strict=True):
            whole = component.lift(*(data[a].combine_chunks() for a in component.arguments))
            ours = pa.concat_arrays(
                [reduced(component, whole.filter(pa.array(groups == pane))) for pane in table["pane"].to_pylist()]
            )
            theirs = table[name].combine_chunks()
            if not pa.types.is_struct(theirs.type) or "order" in theirs.type.names:
                assert _normal(theirs.type) == _normal(component.storage), component.name
            _same_stored(ours, theirs, component)


def _normal(type_):
    return str(type_).replace(" not null", "").replace("tz=Etc/UTC", "tz=UTC")


def _same_stored(ours, theirs, component):
    try:
        same(ours, theirs, component)
    except AssertionError as error:
        raise AssertionError(f"{component.name}: {error}") from error


# The engine on columns that are not equal panes: the same frames and kernels, whatever the rows are.


def _program(components, edges, *windows):
    readings = tuple(Reading(f"a{i}", (i,), pn.sum("x").bind(c.arguments, c.types)) for i, c in enumerate(components))
    views = tuple(View(0, pn.tumbling("1us", name=str(i)), readings, None) for i, _ in enumerate(windows))
    nodes = tuple(Node(w, None, tuple(range(len(components))), (i,)) for i, w in enumerate(windows))
    return Program(tuple(components), edges, views, nodes)


def test_panes_of_mixed_widths_through_the_engine():
    """Edges every 4 and every 6: panes [0, 4), [4, 6), [6, 8), [8, 12). No window of 4 or 6 cuts one."""
    component = Sum(("x",), (pa.int64(),))
    program = _program([component], (Edges(4), Edges(6)), Geometry(4, 4), Geometry(6, 6), Geometry(12, 12))
    panes = Positions([0, 4, 6, 8, 12, 0, 8], [4, 6, 8, 12, 16, 4, 12], [0, 5, 7])
    stored = pa.array([1, 2, 4, 8, 16, 32, None])
    answers = list(answer_panes(program, panes, [stored]))
    found = [list(zip(a.key.tolist(), a.start.tolist(), a.columns[0].to_pylist(), strict=True)) for a in answers]
    assert found == [
        [(0, 0, 1), (0, 4, 6), (0, 8, 8), (0, 12, 16), (1, 0, 32), (1, 8, None)],
        [(0, 0, 3), (0, 6, 12), (0, 12, 16), (1, 0, 32), (1, 6, None)],
        [(0, 0, 15), (0, 12, 16), (1, 0, 32)],
    ]


@pytest.mark.parametrize("kernel", [None, "naive", "running", "landmark", "dyadic"])
def test_ordinals_are_a_column_like_any_other(kernel):
    """The last three rows, every row: counted rows are positions too."""
    component = Sum(("x",), (pa.int64(),))
    stored = component.lift(pa.array([1, 2, None, 4, 5, 10, 20]))
    positions = Positions.of_events(np.array([0, 1, 2, 3, 4, 0, 1]), np.array([0, 5, 7]))
    last_three = frame(Geometry(3, 1), positions)
    decoded = component.decode(stored)
    (totals,) = Reducer(decoded.operations, decoded.state, kernel=kernel).reduce(last_three.lo, last_three.hi)
    # Instances end at rows 0 .. 4 and then run out of the key.
    assert totals.tolist() == [1, 3, 3, 6, 9, 9, 5, 10, 30, 30, 20]
    assert last_three.key.tolist() == [0] * 7 + [1] * 4


@pytest.mark.parametrize("width", [1, 3, 5])
def test_granules_that_coarsen_with_age(width):
    """Old rows wide, new rows narrow, as a store keeps them: windows on the coarse edges cannot tell."""
    edges = [0, 30, 60, 75, 90, *range(90 + width, 121, width)]
    edges = [e for e in edges if e <= 120]
    if edges[-1] != 120:
        edges.append(120)
    start, end = np.array(edges[:-1]), np.array(edges[1:])
    values = np.arange(len(start)) + 1
    positions = Positions(start, end, np.array([0, len(start)]))
    component = Sum(("x",), (pa.int64(),))
    decoded = component.decode(pa.array(values))
    found = frame(Geometry(30, 30), positions)
    (totals,) = Reducer(decoded.operations, decoded.state).reduce(found.lo, found.hi)
    assert totals.tolist() == [int(values[(start >= s) & (start < s + 30)].sum()) for s in range(0, 120, 30)]


# The laws, as users check them.


def _custom(**changes):
    declared = {
        "name": "mine",
        "state": {"s": np.int64},
        "identity": (0,),
        "lift": lambda x: (x.astype(np.int64),),
        "combine": lambda a, b: (a[0] + b[0],),
        "lower": lambda s: s,
        "output": np.int64,
    }
    return pn.aggregate("x", **(declared | changes))


LAWFUL = [
    (pn.count(), ("i32",)),
    (pn.count("x"), ("i32",)),
    (pn.sum("x"), ("i64",)),
    (pn.sum("x"), ("d",)),
    (pn.sum("x"), ("f64",)),
    (pn.mean("x"), ("i16",)),
    (pn.mean("x"), ("i64",)),
    (pn.mean("x"), ("d",)),
    (pn.mean("x"), ("f32",)),
    (pn.min("x"), ("s",)),
    (pn.min("x"), ("f64",)),
    (pn.max("x"), ("f64",)),
    (pn.max("x"), ("t",)),
    (pn.var("x"), ("f64",)),
    (pn.std("x", ddof=0), ("i8",)),
    (pn.first("x"), ("t", "bin")),
    (pn.arg_max("x", "y"), ("day", "f32")),
    (pn.arg_min("x", "y"), ("f64", "s")),
    (pn.corr("x", "y"), ("f64", "i32")),
    (pn.trend("x"), ("t", "f64")),
    (pn.aged(pn.count("x"), half_life="3s"), ("t", "s")),
    (pn.aged(pn.mean("x"), half_life="3s"), ("t", "i64")),
    (pn.aged(pn.sum("x"), half_life="1min", power=3), ("n", "f64")),
    (pn.count_distinct("x"), ("f64",)),
    (pn.distinct("x"), ("f64",)),
    (pn.quantile("x", 0.3), ("f64",)),
    (pn.quantile("x", 0.3, method="element"), ("d",)),
    (pn.approx_count_distinct("x"), ("s",)),
    (_custom(), ("i32",)),
]


@pytest.mark.parametrize(("aggregate", "columns"), LAWFUL, ids=str)
def test_own_aggregates_keep_their_laws(aggregate, columns):
    for seed in range(3):
        check_aggregate(aggregate, *(column(TYPES[c], 30, f"{seed}{i}") for i, c in enumerate(columns)), seed=seed)


def test_every_aggregate_is_checked():
    def kinds(kind):
        return {kind}.union(*map(kinds, kind.__subclasses__()))

    sql_names()  # imports every chapter
    own = {kind for kind in kinds(Aggregate) if kind.__module__.startswith("panes.") and kind.__name__[0] != "_"}
    # These sketches depend on how they are merged, within the error bounds that test_sketches.py checks.
    random = {type(pn.approx_quantile("x", 0.5)), type(pn.top("x", 3))}
    by_levels = {kind for kind in own if kind.levels}
    assert {type(aggregate) for aggregate, _ in LAWFUL} == own - by_levels - random - {Aggregate}


def _in_place(a, b):
    a[0][:] += b[0]
    return a


BROKEN = {
    "lift every event": ({"lift": lambda x: (x[:1],)}, "shapes"),
    "by itself": ({"lift": lambda x: (x - x.max(initial=0),)}, "by itself"),
    "identity": ({"identity": (1,)}, "identity"),
    "associative": ({"combine": lambda a, b: (a[0] - b[0],), "identity": (0,)}, "identity|associative"),
    "associative only": (
        {"combine": lambda a, b: (np.where(a[0] == 0, b[0], np.where(b[0] == 0, a[0], a[0] - 2 * b[0])),)},
        "not associative",
    ),
    "group": ({"subtract": lambda a, b: (a[0] - 2 * b[0],)}, "not a group"),
    "idempotent": ({"idempotent": True}, "not idempotent"),
    "commutative": (
        {"combine": lambda a, b: (np.where(a[0] == 0, b[0], a[0]),), "idempotent": True},
        "not commutative",
    ),
    "in place": ({"combine": _in_place}, "in place"),
    "empty": ({"lower": lambda s: np.full(len(s), s.max())}, "empty arrays"),
}


@pytest.mark.parametrize("law", BROKEN)
def test_a_broken_law_is_named_with_a_counterexample(law):
    changes, message = BROKEN[law]
    with pytest.raises(AlgebraError, match=message):
        check_aggregate(_custom(**changes), [3, 1, 4, 1, 5, 9, 2, 6])


def test_a_sum_of_floats_is_no_group():
    aggregate = _custom(
        state={"s": np.float64},
        identity=(0.0,),
        lift=lambda x: (x,),
        subtract=lambda a, b: (a[0] - b[0],),
        output=np.float64,
    )
    with pytest.raises(AlgebraError, match="not a group"):
        check_aggregate(aggregate, [0.1, 0.2, 0.3, 1e16])


def test_a_right_aggregate_passes_and_needs_examples():
    check_aggregate(_custom(subtract=lambda a, b: (a[0] - b[0],)), [3, None, 4], seed=1)
    with pytest.raises(AlgebraError, match="without examples"):
        check_aggregate(_custom())
