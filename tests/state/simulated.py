"""Random schedules of a whole stream in memory, each made from one number and compared with brute force.

A schedule has deliveries in several parts and orders, late rows, crashes between any two calls to the state store and
micro-batches that run again, restarts with other windows, changes of the catalogue, evictions. Run many of them with
``python -m tests.state.simulated --seconds 600 --seed 0``, or one that failed with ``--replay SEED``.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
import traceback
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Row

import panes as pn
from panes.errors import StateError
from panes.frames.positions import FARTHEST
from panes.queries.catalogue_entries import Entry, registration
from panes.queries.windows import RowWindow, Window
from panes.row_windows.rows_shard import RowsShard
from panes.spark.naming import VIEW, key
from panes.spark.time_job import COVERAGE, DETAIL, KIND, NAME, WINDOW_NAME
from panes.state import blob_store
from panes.state.stream_options import StreamOptions
from panes.testing.reference import answers_of, comparable
from tests.model.streaming import passed
from tests.state.in_memory import Crash, Faults, Operator, Processes, Stream, manifests, of_rows, over_time

TIME = pa.timestamp("us", "UTC")
SCHEMA = pa.schema(
    [
        ("ts", TIME),
        ("k", pa.string()),
        ("j", pa.float64()),
        ("x", pa.int64()),
        ("y", pa.int64()),
        ("odometer", pa.int64()),
        ("stop", pa.bool_()),
        ("id", pa.int64()),
    ]
)
AT_LAST = 10_000
SHARED, PLANS = 10**6, 40
"""Schedules below a number choose from a few plans, each bound once in a process; the others have their own."""

SELECTS = [
    {"n": pn.count(), "total": pn.sum("x"), "mean": pn.mean("x")},
    {"n": pn.count(), "low": pn.min("x"), "top": pn.max("y"), "total": pn.sum("x + y")},
    {"n": pn.count(), "newest": pn.last("y"), "at_top": pn.arg_max("id", "y")},
    {"n": pn.count(), "different": pn.count_distinct("y"), "middle": pn.quantile("x", 0.5)},
]
CONDITIONS = [None, "x > 0", "y = 1", "x > 0 OR k = 'a'"]
KEYS: list[tuple[str, ...]] = [("k",), ("j",), (), ("k", "j")]
REFUSED = ["rm -rf /", Entry("resume", "nobody").to_json(), Entry("drop", "q0").to_json()]

Ids: TypeAlias = frozenset[int]
At: TypeAlias = tuple[str, str, tuple[Any, ...], int, int]
"""An instance: query, window, key, and the bounds that answers show."""


class Wrong(AssertionError):
    """A stream did not do what brute force says."""


def require(fine: bool, *what: Any) -> None:
    """Raise unless everything is fine."""
    if not fine:
        raise Wrong(" ".join(map(str, what)))


@dataclass(frozen=True)
class Event:
    """A row, with the watermark that judged it when it came."""

    row: dict[str, Any]
    before: int = 0

    @property
    def t(self) -> int | None:
        instant = self.row["ts"]
        return instant if instant is not None and abs(instant) <= FARTHEST else None

    def passes(self, where: str | None) -> bool:
        x, y, k = (self.row[name] for name in "xyk")
        return {
            None: True,
            "x > 0": x is not None and x > 0,
            "y = 1": y == 1,
            "x > 0 OR k = 'a'": (x is not None and x > 0) or k == "a",
        }[where]

    def key(self, by: Sequence[str]) -> tuple[Any, ...]:
        return tuple(comparable(self.row[name]) if self.row[name] is not None else None for name in by)


def table_of(events: Sequence[Event]) -> pa.Table:
    """Events as a table."""
    columns = [
        pa.array([e.row[f.name] for e in events], pa.int64()).cast(TIME)
        if f.name == "ts"
        else pa.array([e.row[f.name] for e in events], f.type)
        for f in SCHEMA
    ]
    return pa.table(columns, schema=SCHEMA)


# What there is to stream.


def clock_window(rng: random.Random, *, update: bool = False) -> Any:
    """A window over time."""
    kind = rng.randrange(5 if update else 7)
    size, slide, offset = rng.randint(1, 40), rng.randint(1, 15), rng.randint(0, 9)
    bounds = rng.choice(["[)", "(]"])
    if kind == 0:
        return pn.tumbling(f"{size}us", offset=f"{offset % size}us", bounds=bounds)
    if kind in (1, 2):
        return pn.hopping(f"{size}us", every=f"{slide}us", offset=f"{offset % slide}us", bounds=bounds)
    if kind == 3:
        return pn.cumulate(f"{slide}us", upto=f"{slide * rng.randint(2, 3)}us", bounds=bounds)
    if kind == 4:
        since = None if rng.random() < 0.5 else f"1970-01-01 00:00:00.{rng.randint(0, 60):06}"
        return pn.nested([f"{4 * slide}us", f"{slide}us"], [f"{2 * slide}us", f"{slide}us"], since=since)
    ago = rng.choice([0, 0, rng.randint(1, 20)])
    return pn.sliding(f"{size}us", ago=f"{ago}us", bounds=rng.choice(["(]", "[)", "[]"]))


def windows(rng: random.Random, count: int, make: Callable[[random.Random], Any]) -> list[Any]:
    """Several windows with different names."""
    found: dict[str, Any] = {}
    for _ in range(count):
        window = make(rng)
        if not set(window.names) & {name for w in found.values() for name in w.names}:
            found[window.name] = window
    return list(found.values())


@dataclass(frozen=True)
class Family:
    """Plans with the same keys, aggregates and conditions, between which a stream may restart."""

    plans: tuple[pn.Plan, ...]
    operators: tuple[Operator, ...]
    options: StreamOptions


@lru_cache(maxsize=PLANS)
def family(number: int) -> Family:
    """The family of a number."""
    rng = random.Random(number)
    update = rng.random() < 0.3
    catalogue = "memory" if rng.random() < 0.4 else None
    limits = None
    if rng.random() < 0.3:
        some = {"age": f"{rng.randint(1, 40)}us", "keys": rng.randint(1, 4), "rows": rng.randint(1, 8)}
        chosen = rng.sample(sorted(some), rng.randint(1, 2))
        limits = pn.Limits(**{name: some[name] for name in chosen}, emit=rng.random() < 0.7)
    options = StreamOptions(
        mode="update" if update else "append",
        empty=not update and limits is None and catalogue is None and rng.random() < 0.25,
        late=rng.choice(["count", "emit"]),
        shards=rng.choice([1, 2, 3]),
        limits=limits,
        catalogue=catalogue,
        history=rng.choice([0, 30, 1000]) if catalogue else 0,
    )
    shapes = [(rng.choice(KEYS), rng.choice(SELECTS), rng.choice(CONDITIONS)) for _ in range(rng.randint(1, 3))]
    plans, operators = [], []
    for _ in range(rng.choice([1, 2])):
        queries = []
        for i, (by, select, where) in enumerate(shapes):
            over = windows(rng, rng.randint(1, 3), lambda r: clock_window(r, update=update))
            columns = {f"{name}_{i}": aggregate for name, aggregate in select.items()}
            columns[f"ids_{i}"] = pn.distinct("id")
            queries.append(pn.query(f"q{i}", by=by, at="ts", select=columns, over=over, where=where))
        plan = pn.plan(queries)
        plans.append(plan)
        operators.append(over_time(plan, SCHEMA, options))
    return Family(tuple(plans), tuple(operators), options)


def events_of(rng: random.Random, first: int, clock: int, spread: int) -> list[Event]:
    """The rows of a micro-batch, around a time."""
    found = []
    for i in range(rng.choice([0, 1, 2, 4, 8])):
        t: int | None = max(clock + rng.randint(-spread, spread), -20)
        if rng.random() < 0.06:
            t = rng.choice([None, None, 2**62, -(2**61)])
        row = {
            "ts": t,
            "k": rng.choice(["a", "b", None]),
            "j": rng.choice([0.0, -0.0, 1.5, float("nan"), None]),
            "x": rng.choice([None, -2, 0, 1, 3]),
            "y": rng.randint(0, 2),
            "odometer": None if t is None else t // 2,
            "stop": rng.choice([True, False, False, False, None]),
            "id": first + i,
        }
        found.append(Event(row))
    return found


# What brute force says.


@dataclass
class Declared:
    """A window of a query, and since when it is one."""

    query: pn.Query
    window: Window
    name: str
    where: str | None
    by: tuple[str, ...]
    begun: int = -(2**62)
    """All instances that begin at this instant or later are seen in full."""

    def instances(self, t: int) -> Iterator[int]:
        """Where the instances begin that hold an instant."""
        g = self.window.geometry
        if self.window.since is not None and t < self.window.since:
            return
        start = t - (t - g.offset) % g.slide
        while start + g.range > t:
            yield start
            start -= g.slide

    def at(self, holder: tuple[Any, ...], start: int) -> At:
        """What answers show of an instance."""
        w = self.window
        first = start if w.since is None else max(start, w.since)
        return self.name, w.name, holder, first - w.shift, start + w.geometry.range - w.end_shift


def truth(
    declared: Declared, events: Sequence[Event], after: int, upto: int, touched: Sequence[Event] | None
) -> Counter[tuple[At, Ids]]:
    """The answers of a window in a micro-batch; with ``touched``, of the instances that hold some of these events."""
    w, own = declared.window, [e for e in events if e.t is not None and e.passes(declared.where)]
    found: Counter[tuple[At, Ids]] = Counter()
    if w.per_event:
        for e in own:
            if e.t >= e.before and after <= e.t < upto:
                last = e.t - w.ago
                first = last - w.geometry.range
                holder = e.key(declared.by)
                ids = frozenset(o.row["id"] for o in own if first < o.t <= last and o.key(declared.by) == holder)
                found[declared.at(holder, first + 1), ids] += 1
        return found
    held: dict[tuple[Any, int], set[int]] = defaultdict(set)
    for e in own:
        for start in declared.instances(e.t):
            if start + w.geometry.range > e.before:
                held[e.key(declared.by), start].add(e.row["id"])
    news = None if touched is None else {e.row["id"] for e in touched}
    for (holder, start), ids in held.items():
        end = start + w.geometry.range
        due = after < end <= upto if news is None else end > after and bool(ids & news)
        if due:
            found[declared.at(holder, start), frozenset(ids)] += 1
    return found


def lateness(declared: Sequence[Declared], came: Sequence[Event], before: int) -> tuple[list[int], list[int]]:
    """The events that are late, and those that are lost."""
    late, lost = [], []
    for e in came:
        missed = joined = False
        for d in declared if e.t is not None else ():
            if not e.passes(d.where):
                continue
            w = d.window
            if w.per_event:
                # Its own answer, and the last one that holds it.
                missed |= e.t < before
                joined |= e.t + w.ago + w.geometry.range > before
            for start in () if w.per_event else d.instances(e.t):
                missed |= start + w.geometry.range <= before
                joined |= start + w.geometry.range > before
        late += [e.row["id"]] if missed else []
        lost += [e.row["id"]] if missed and not joined else []
    return late, lost


# What every schedule does.


@dataclass
class Done:
    """What many schedules did."""

    schedules: int = 0
    steps: int = 0
    crashes: int = 0
    restarts: int = 0
    refusals: int = 0
    changes: int = 0
    evicted: int = 0
    late: int = 0
    answers: int = 0

    def __str__(self) -> str:
        return ", ".join(f"{value:,} {name}" for name, value in vars(self).items())


def committed(
    rng: random.Random, stream: Stream, mail: dict[int, list[Row]], upto: int, processes: Processes, done: Done
) -> tuple[list[pa.RecordBatch], Counter[str] | None]:
    """Run a micro-batch until it is done; each time that it fails, nothing of it stays but what is cached."""
    for _ in range(rng.choice([0, 0, 1, 2])):
        processes.take(rng.randrange(2))
        stream.watch(Faults(rng.randint(1, max(12, stream.calls))))
        version = stream.version()
        done.crashes += 1
        with suppress(Crash):
            stream.step(mail, upto)
            # It was written, but the micro-batch before is the last one that was committed.
        stream.restore(version)
    processes.take(rng.randrange(2), died=rng.random() < 0.2)
    stream.watch(faults := Faults())
    answers = stream.step(mail, upto)
    stream.calls = faults.seen
    return answers


# A schedule of windows over time.


class OverTime:
    """A schedule of windows over time."""

    def __init__(self, seed: int, done: Done) -> None:
        self.rng = rng = random.Random(seed)
        self.done = done
        self.family = family(rng.randrange(PLANS) if seed < SHARED else rng.randrange(10**6))
        self.options = self.family.options
        self.events: list[Event] = []
        self.watermark = 0
        self.processes = Processes()
        self.active: dict[str, list[Declared]] = {}
        self.listed: dict[str, pn.Query] = {}
        self.checks: dict[tuple[str, str], list[tuple[Any, ...]]] = defaultdict(list)
        self.number = 0
        self.start(0, Stream(self.family.operators[0]))

    def start(self, plan: int, stream: Stream) -> None:
        """Start with a plan from some state."""
        self.plan, self.stream = plan, stream
        stream.operator = self.family.operators[plan]
        before = {(d.name, str(d.window.lifespan), d.by, d.window.per_event): d for d in getattr(self, "declared", ())}
        newest = max([self.watermark, *(e.t + 1 for e in self.events if e.t is not None)])
        if before and manifests(stream):
            # Granules have the edges of the earlier run.
            newest += 2 * max(period for m in manifests(stream) for e in m["stores"] for period, _ in e["edges"])
        self.declared, self.views = [], []
        for store in self.family.plans[plan]._for_streams.stores:
            for _, query in store.queries:
                for window in query.windows:
                    where = None if query.where is None else query.where.sql
                    found = Declared(query, window, query.name, where, query.by)
                    # A window that no query had before may lack events that came before.
                    same = [
                        d
                        for (_, lifespan, by, per_event), d in before.items()
                        if (lifespan, set(by), per_event) == (str(window.lifespan), set(query.by), window.per_event)
                    ]
                    found.begun = min((d.begun for d in same), default=newest if before else -(2**62))
                    self.declared.append(found)
                    self.views.append(found)

    def run(self) -> None:
        """Run the schedule."""
        rng, clock = self.rng, self.rng.choice([0, 0, 30])
        spread, delay = rng.choice([3, 15, 60]), rng.choice([0, 0, 5, 30])
        for _ in range(rng.randint(2, 7)):
            clock += rng.choice([0, 5, 20, 60])
            came = events_of(rng, len(self.events), clock, spread)
            self.micro_batch(came, self.next_watermark(delay))
            if rng.random() < 0.25:
                self.restart()
        if rng.random() < 0.6:
            self.micro_batch([], AT_LAST)
            held = sum(run["rows"] for m in manifests(self.stream) for store in m["stores"] for run in store["runs"])
            require(held == 0 or self.options.history > 0, "granules", held, "after all windows")
        self.check_columns()

    def next_watermark(self, delay: int) -> int:
        seen = [e.t - delay for e in self.events if e.t is not None]
        return max([self.watermark, *seen]) if self.rng.random() < 0.8 else self.watermark

    def micro_batch(self, came: list[Event], upto: int) -> None:
        """Run a micro-batch, again after every crash, and compare what it does with brute force."""
        rng, after = self.rng, self.watermark
        parts = parts_in(rng, came)
        changes = self.changes() if self.options.catalogue else []
        mail = self.stream.operator.packed([table_of(part) for part in parts], changes)
        told = upto
        if upto == after and len(self.stream.stores) == self.options.shards and rng.random() < 0.2:
            # A job that starts again may learn the watermark late; its shards know better.
            told = rng.randint(0, upto)
        batches, metrics = committed(rng, self.stream, mail, told, self.processes, self.done)
        self.watermark = upto
        judged = [Event(e.row, after) for e in came]
        self.events += judged
        self.apply(changes)
        self.done.steps += 1
        self.compare(batches, metrics, judged, after, upto)

    def restart(self) -> None:
        """Start again, with the same or other windows; what cannot serve them is refused."""
        rng, wrong = self.rng, None
        if rng.random() < 0.3 and manifests(self.stream):
            options = dict(vars(self.options))
            name = rng.choice(["shards", "mode"])
            options[name] = self.options.shards + 1 if name == "shards" else "update"
            if name == "mode" and self.options.mode == "update":
                options[name] = "append"
            job = self.stream.operator.job
            wrong = type(job)(
                **{**{f: getattr(job, f) for f in job.__dataclass_fields__}, "options": StreamOptions(**options)}
            )
            self.refused_job(wrong, f"{name}=")
        plan = rng.randrange(len(self.family.plans))
        stores = {(s.per_event, tuple(n.lower() for n in s.keys)) for s in self.family.plans[plan]._for_streams.stores}
        kept = [
            {(e["per_event"], tuple(n.lower() for n in e["by"])) for e in m["stores"]} for m in manifests(self.stream)
        ]
        keyless = {(p, keys or ("__panes_everything",)) for p, keys in stores}
        fits = all(keyless <= some for some in kept)
        if not fits:
            self.refused_job(self.family.operators[plan].job, "the checkpoint keeps")
            return
        if plan != self.plan and kept:
            # The same components: otherwise what is new has no past.
            try:
                for store in self.stream.stores.values():
                    if store._manifest is not None:
                        self.family.operators[plan].job.open(store)
            except StateError:
                self.done.refusals += 1
                return
        self.done.restarts += 1
        self.start(plan, self.stream)
        self.processes.take(rng.randrange(2), died=True)

    def refused_job(self, job: Any, reason: str) -> None:
        """A job that no shard may open, but those that have not run since the last restart."""
        self.done.refusals += 1
        refused = 0
        for store in self.stream.stores.values():
            store.faults = Faults()
            if store._manifest is None:
                continue
            try:
                job.open(store)
            except StateError as error:
                require(reason in str(error), "refused for another reason:", error)
                refused += 1
        require(refused > 0, "a job was not refused, although it is", reason)

    # The catalogue

    def changes(self) -> list[tuple[str, str]]:
        """Some changes, as files that arrive in any order."""
        rng, texts = self.rng, []
        for _ in range(rng.choice([0, 0, 1, 2])):
            kind = rng.randrange(5)
            name = rng.choice(["r0", "r1", "r2"])
            if kind == 0:
                texts.append(rng.choice(REFUSED))
            elif kind == 1:
                texts.append(Entry(rng.choice(["suspend", "resume", "drop"]), name).to_json())
            else:
                texts.append(self.registered(name))
        self.number += len(texts)
        files = [(f"{self.number - len(texts) + i:08}.json", text) for i, text in enumerate(texts)]
        return rng.sample(files, len(files))

    def registered(self, name: str) -> str:
        rng = self.rng
        declared = [d for d in self.declared if not d.window.per_event]
        if not declared:
            return Entry("drop", name).to_json()
        d = rng.choice(declared)
        edges = next(
            s.program.edges
            for s in self.stream.operator.job.stores
            if not s.offer.per_event and set(s.offer.keys) == set(d.by)
        )
        e = rng.choice(edges)
        slide = e.period * rng.randint(1, 3)
        window = Window(pn.hopping(f"{e.period * rng.randint(1, 6)}us", every=f"{slide}us").geometry, f"w{name}")
        if rng.random() < 0.9:
            g = type(window.geometry)(window.geometry.range, slide, e.offset)
            window = Window(g, f"w{name}")
        where = d.where
        if d.query.where is None and "k" in d.by and rng.random() < 0.3:
            where = "k = 'b'"
        query = pn.query(
            name, by=d.by, at="ts", select=dict(d.query.aggregates), over=[pn.tumbling("1us")], where=where
        )
        entry = registration(query)
        return type(entry)(**{**vars_of(entry), "over": (window,)}).to_json()

    def apply(self, changes: list[tuple[str, str]]) -> None:
        """Follow the catalogue as the first shard's manifest says."""
        self.done.changes += len(changes)
        found = manifests(self.stream)
        if not found:
            return
        views = found[0]["views"]
        require(all(m["views"].keys() == views.keys() for m in found), "shards disagree about the catalogue")
        require(
            all({n: v[1] for n, v in m["views"].items()} == {n: v[1] for n, v in views.items()} for m in found),
            "shards disagree about what is active",
        )
        from panes.queries.catalogue_entries import read_entry

        self.active = {}
        for name, (text, active, _) in views.items():
            if active:
                entry = read_entry(text)
                keyed = entry.where == "k = 'b'"
                suffix = entry.select[0][0].rpartition("_")[2]
                own = next(d for d in self.declared if d.name == f"q{suffix}" and not d.window.per_event)
                where = (
                    None
                    if entry.where is None or keyed
                    else next(
                        d.where for d in self.declared if d.where is not None and d.query.where.sql == entry.where
                    )
                )
                self.active[name] = [Declared(own.query, w, name, where, own.by) for w in entry.over]

    # Comparing

    def compare(
        self,
        batches: list[pa.RecordBatch],
        metrics: Counter[str] | None,
        came: list[Event],
        after: int,
        upto: int,
    ) -> None:
        """Compare the answers and figures of a micro-batch with brute force."""
        whole, part, texts = self.read(batches)
        touched = came if self.options.mode == "update" else None
        for d in self.declared:
            expected = truth(d, self.events, after, upto, touched)
            if self.options.limits is not None and d.window.per_event:
                # A key that is evicted has its answers early, and some of their windows lie before the watermark.
                expected |= truth(d, self.events, -(2**62), 2**62, None)
            got = Counter({(at, ids): n for (at, ids), n in whole.items() if self.is_of(at, d)})
            empty = {one for one in got if not one[1] and one not in expected}
            require(not empty or self.options.empty, "an empty answer", empty)
            for one in empty:
                del got[one]
            surplus = got - expected
            require(
                not surplus,
                "wrong answers",
                dict(surplus),
                "instead of",
                {a: sorted(i) for a, i in expected if a in {b for b, _ in surplus}},
            )
            missing = expected - got
            if self.options.limits is None:
                missing = Counter({one: n for one, n in missing.items() if one[0][3] >= d.begun})
                require(not missing, "missing answers", dict(missing))
        for d in [d for some in self.active.values() for d in some]:
            expected = dict(iter(truth(d, self.events, after, upto, touched)))
            by_at = dict(expected)
            for (at, ids), n in whole.items():
                if self.is_of(at, d):
                    require(
                        n == 1 and by_at.get(at) == ids,
                        "wrong answer of",
                        d.name,
                        at,
                        sorted(ids),
                        "not",
                        sorted(by_at.get(at, [])),
                    )
        for at, ids, coverage in part:
            d = next(
                d for d in [*self.declared, *(d for some in self.active.values() for d in some)] if self.is_of(at, d)
            )
            known = truth(d, self.events, -(2**62), 2**62, None)
            possible = [other for a, other in known if a == at]
            require(
                any(ids <= other for other in possible) and 0 <= coverage < 1, "wrong part", at, sorted(ids), coverage
            )
            if self.options.limits is None:
                since = at[4] - round(coverage * (at[4] - at[3]))
                times = {e.row["id"]: e.t for e in self.events}
                shift = d.window.shift
                seen = {i for i in possible[0] if times[i] >= since + shift}
                if touched is None:
                    require(ids == seen, "a part that is not what was seen", at, sorted(ids), sorted(seen), coverage)
        self.figures(metrics, came, after, upto, whole, part, texts)

    def is_of(self, at: At, d: Declared) -> bool:
        length = d.window.geometry.range
        sized = at[4] - at[3] == length - d.window.end_shift + d.window.shift
        return at[0] == d.name and at[1] == d.window.name and (sized or d.window.since is not None)

    def read(self, batches: list[pa.RecordBatch]) -> tuple[Counter[Any], list[Any], Counter[str]]:
        """The answers with full coverage, those in part, and other rows."""
        whole: Counter[tuple[At, Ids]] = Counter()
        part, texts = [], Counter()
        names = list(self.stream.operator.job.keys)
        registered = {d.name: d for some in self.active.values() for d in some}
        for batch in batches:
            bounds = [batch.column(i).cast(pa.int64()).to_pylist() for i in (1, 2)]
            for i, row in enumerate(batch.to_pylist()):
                kind = row.get(KIND, "answer")
                if kind != "answer":
                    texts[kind] += 1
                    texts[f"{kind} {row[DETAIL]}"] += 1
                    continue
                number = row[VIEW]
                d = self.views[number] if number >= 0 else registered[row[NAME]]
                window = d.window.name if number >= 0 else row[WINDOW_NAME]
                values = {n: row[key(names.index(n))] for n in d.by}
                holder = tuple(None if v is None else comparable(v) for v in values.values())
                suffix = d.query.name[1:]
                ids = frozenset(row[f"ids_{suffix}"] or ())
                at = (d.name, window, holder, bounds[0][i], bounds[1][i])
                coverage = row.get(COVERAGE)
                require(row[f"n_{suffix}"] == len(ids), "n is not the number of events", at, row)
                columns = {alias: row[alias] for alias, _ in d.query.aggregates}
                self.checks[d.query.name, window].append((d.query, sorted(ids), at[3], at[4], columns))
                if coverage is None or coverage == 1:
                    whole[at, ids] += 1
                else:
                    part.append((at, ids, coverage))
        return whole, part, texts

    def figures(
        self, metrics: Counter[str] | None, came: list[Event], after: int, upto: int, whole: Any, part: Any, texts: Any
    ) -> None:
        """Compare what a micro-batch counts with brute force."""
        everyone = [*self.declared, *(d for some in self.active.values() for d in some)]
        wanted = [e for e in came if any(e.passes(d.where) for d in self.declared)]
        if metrics is None:
            require(not wanted, "events were not counted")
            return
        late, lost = lateness(everyone, wanted, after)
        expected = {
            "events": len(wanted),
            "null_timestamps": sum(e.row["ts"] is None for e in wanted),
            "absurd_timestamps": sum(e.row["ts"] is not None and e.t is None for e in wanted),
            "late": len(late),
            "lost": len(lost),
            "answers": sum(whole.values()) + len(part),
            "watermark": upto,
        }
        found = {name: metrics[name] for name in expected}
        require(found == expected, "figures", found, "instead of", expected)
        if self.options.late == "emit":
            require(texts["late"] == len(late) and all(texts[f"late {i}"] for i in late), "late rows", texts, late)
        open_ = self.open_instances(upto) if self.options.limits is None else set()
        holders = {at[2] for at in open_}
        require(metrics["keys"] >= len(holders), "keys", metrics["keys"], holders)
        require(not open_ or metrics["granules"] > 0, "nothing is held of", open_)
        require(metrics["granules"] == 0 or (metrics["bytes"] > 0 and metrics["keys"] > 0), "no bytes of granules")
        least, most = self.open_windows(open_, everyone, upto)
        require(least <= metrics["open_windows"] <= most, "open windows", least, metrics["open_windows"], most)
        if self.options.limits is None:
            require(metrics["evicted"] == 0, "evicted", metrics["evicted"])
        self.done.evicted += metrics["evicted"]
        self.done.late += metrics["late"]
        self.done.answers += metrics["answers"]

    def open_instances(self, upto: int) -> set[At]:
        """The instances of declared windows that hold events and have not been answered."""
        found = set()
        for d in self.declared:
            if not d.window.per_event and d.begun == -(2**62):
                w = d.window
                for at, _ in truth(d, self.events, upto, 2**62, None):
                    # Of windows with different bounds, the same instants are open.
                    found.add((*at[:3], at[3] + w.shift, at[4] + w.end_shift))
        return found

    def open_windows(self, open_: set[At], declared: Sequence[Declared], upto: int) -> tuple[int, int]:
        """The least and the most windows that may be open: those of one key, and all that have begun."""
        of_key: dict[Any, set[Any]] = defaultdict(set)
        for at in open_:
            of_key[at[0], at[2]].add((at[1], at[3], at[4]))
        latest = max((e.t for e in self.events if e.t is not None), default=0)
        distinct = {(frozenset(d.by), d.window.geometry) for d in declared if not d.window.per_event}
        begun = sum(
            max(0, (latest - g.offset) // g.slide - (upto - g.offset - g.range) // g.slide) for _, g in distinct
        )
        return max((len({(start, end) for _, start, end in some}) for some in of_key.values()), default=0), begun

    def check_columns(self) -> None:
        """Compare all other columns with the references of their aggregates."""
        if not self.events:
            return
        table = table_of([Event({**e.row, "ts": e.t}) for e in self.events])
        for rows in self.checks.values():
            query = rows[0][0]
            for alias, aggregate in query.aggregates:
                if alias.startswith(("ids_", "n_")):
                    continue
                expected = answers_of(
                    aggregate, table, [(ids, first, last) for _, ids, first, last, _ in rows], at="ts"
                )
                for (_, ids, *_, columns), value in zip(rows, expected.to_pylist(), strict=True):
                    mine = columns[alias]
                    same = mine == value or (
                        isinstance(mine, float) and isinstance(value, float) and math.isclose(mine, value, rel_tol=1e-9)
                    )
                    require(same, alias, mine, "instead of", value, "over", ids)


# A schedule of windows of rows and sessions.


def row_window(rng: random.Random) -> Any:
    """A window of rows, or a session."""
    n, m, size, pace = rng.randint(1, 4), rng.randint(1, 3), rng.randint(1, 30), rng.randint(1, 20)
    odometer = pn.delta("odometer", rng.randint(0, 12))
    return rng.choice(
        [
            pn.sliding(pn.rows(n)),
            pn.sliding(pn.rows(n), ago=pn.rows(m)),
            pn.sliding(pn.rows(n), bounds="[)"),
            pn.sliding(odometer),
            pn.tumbling(pn.rows(n)),
            pn.tumbling(odometer),
            pn.tumbling(f"{size}us", origin=rng.choice(["first", "row"])),
            pn.tumbling(pn.punctuation("stop", scope=rng.choice(["stream", "key"]))),
            pn.hopping(pn.rows(n + 1), every=pn.rows(m + 1)),
            pn.hopping(pn.rows(n), every=f"{pace}us", bounds=rng.choice(["[)", "(]"])),
            pn.hopping(f"{size}us", every=pn.rows(m), bounds="[]"),
            pn.hopping(odometer, every=pn.rows(m)),
            pn.hopping(f"{size}us", every=f"{pace}us", origin="first"),
            pn.session(f"{rng.randint(1, 25)}us"),
            pn.session(f"{rng.randint(1, 25)}us"),
        ]
    )


@dataclass(frozen=True)
class RowFamily:
    """A plan of windows of rows, and its operators, each with the parts that it answers."""

    plan: pn.Plan
    operators: tuple[tuple[Operator, tuple[Any, ...]], ...]


@lru_cache(maxsize=PLANS)
def row_family(number: int) -> RowFamily:
    """The family of a number."""
    rng, queries = random.Random(number), []
    for i in range(rng.choice([1, 1, 2])):
        columns = {f"{name}_{i}": aggregate for name, aggregate in rng.choice(SELECTS).items()}
        columns[f"ids_{i}"] = pn.distinct("id")
        over = windows(rng, rng.randint(1, 3), row_window)
        by, where = rng.choice(KEYS), rng.choice(CONDITIONS)
        queries.append(pn.query(f"q{i}", by=by, at="ts", select=columns, over=over, where=where, ties="id"))
    plan, shards = pn.plan(queries), rng.choice([1, 2, 3])
    return RowFamily(plan, tuple((of_rows(parts, SCHEMA, shards), tuple(parts)) for parts in plan._key_sets))


class OfRows:
    """A schedule of windows of rows and sessions."""

    def __init__(self, seed: int, done: Done) -> None:
        self.rng = rng = random.Random(seed)
        self.done, self.processes = done, Processes()
        self.family = row_family(rng.randrange(PLANS) if seed < SHARED else rng.randrange(10**6))
        self.streams = [Stream(operator) for operator, _ in self.family.operators]
        self.events: list[Event] = []
        self.watermark = 0
        self.found: Counter[Any] = Counter()
        self.ended: dict[Any, int] = {}
        self.sessions: Counter[Any] = Counter()

    def run(self) -> None:
        """Run the schedule."""
        rng, clock = self.rng, self.rng.choice([0, 0, 30])
        spread, delay = rng.choice([3, 15, 60]), rng.choice([0, 0, 5, 30])
        for _ in range(rng.randint(2, 7)):
            clock += rng.choice([0, 5, 20, 60])
            seen = [e.t - delay for e in self.events if e.t is not None]
            upto = max([self.watermark, *seen]) if rng.random() < 0.8 else self.watermark
            self.micro_batch(events_of(rng, len(self.events), clock, spread), upto)
            if rng.random() < 0.2:
                self.refused()
        last = max([self.watermark, *(e.t + 1 for e in self.events if e.t is not None)])
        self.micro_batch([], last)
        self.compare(last)

    def micro_batch(self, came: list[Event], upto: int) -> None:
        rng, after = self.rng, self.watermark
        judged = [Event(e.row, after) for e in came]
        self.events += judged
        parts = parts_in(rng, came)
        self.watermark = upto
        self.done.steps += 1
        for stream, (operator, own) in zip(self.streams, self.family.operators, strict=True):
            mail = operator.packed([table_of(part) for part in parts], [])
            batches, metrics = committed(rng, stream, mail, upto, self.processes, self.done)
            rows = sum(len(batch) for batch in batches)
            for batch in batches:
                self.read(batch, operator, own)
            if metrics is not None:
                self.figures(metrics, own, judged, after, upto, rows)
        for query in self.family.plan.queries:
            for window in query.over:
                if window.kind == "session":
                    self.end_sessions(query, window, upto)

    def refused(self) -> None:
        """Another number of shards is refused."""
        for stream, (operator, _) in zip(self.streams, self.family.operators, strict=True):
            declared = {**operator.job.declared, "shards": operator.shards + 1}
            for store in stream.stores.values():
                store.faults = Faults()
                if store._manifest is None:
                    continue
                self.done.refusals += 1
                try:
                    RowsShard(operator.job.open.args[0], declared, store)
                except StateError as error:
                    require("shards=" in str(error), "refused for another reason:", error)
                else:
                    raise Wrong("another number of shards was not refused")

    def read(self, batch: pa.RecordBatch, operator: Operator, parts: Sequence[Any]) -> None:
        """Collect answers as brute force has them."""
        views = [(part.query, window) for part in parts for window in part.windows]
        keys = {name.lower(): travelling for name, travelling in operator.job.columns.names.items()}
        bounds = [batch.column(i).cast(pa.int64()).to_pylist() for i in (1, 2)]
        for row, start, end in zip(batch.to_pylist(), *bounds, strict=True):
            query, window = views[row[VIEW]]
            holder = tuple(row[keys[name.lower()]] for name in query.by)
            answers = tuple((alias, shown(row[alias])) for alias, _ in query.aggregates)
            self.found[query.name, window.name, tuple(map(shown, holder)), start, end, answers] += 1

    def end_sessions(self, query: pn.Query, window: RowWindow, upto: int) -> None:
        """Collect the sessions that a watermark ends: rows at most a gap apart that were in time."""
        gap, where = window.size, None if query.where is None else query.where.sql
        by_key: dict[Any, list[Event]] = defaultdict(list)
        for e in self.events:
            if e.t is not None and e.passes(where) and e.t + gap > e.before:
                by_key[e.key(query.by)].append(e)
        for holder, rows in by_key.items():
            at = query.name, window.name, holder
            rows = sorted((e for e in rows if e.t > self.ended.get(at, -(2**62))), key=lambda e: e.t)
            session: list[Event] = []
            for e in [*rows, None]:
                if session and (e is None or e.t > session[-1].t + gap):
                    if session[-1].t + gap <= upto:
                        self.sessions[
                            at, session[0].t, session[-1].t + gap, frozenset(s.row["id"] for s in session)
                        ] += 1
                        self.ended[at] = max(self.ended.get(at, -(2**62)), session[-1].t)
                    session = []
                session += [] if e is None else [e]

    def figures(
        self, metrics: Counter[str], parts: Sequence[Any], came: list[Event], after: int, upto: int, rows: int
    ) -> None:
        """Compare what a micro-batch counts with brute force."""
        wanted, late, lost = [], 0, 0
        for e in came:
            travels = missed = joined = False
            for part in parts:
                marked = part.input.mark is not None and bool(e.row["stop"])
                where = None if part.query.where is None else part.query.where.sql
                travels |= marked or e.passes(where)
                if e.t is None or marked or not e.passes(where):
                    continue
                for window in part.windows:
                    lasts = window.size if window.kind == "session" else 1
                    missed |= e.t + lasts <= after
                    joined |= e.t + lasts > after
            wanted += [e] if travels else []
            late, lost = late + missed, lost + (missed and not joined)
        expected = {
            "events": len(wanted),
            "null_timestamps": sum(e.row["ts"] is None for e in wanted),
            "absurd_timestamps": sum(e.row["ts"] is not None and e.t is None for e in wanted),
            "late": late,
            "lost": lost,
            "answers": rows,
            "watermark": upto,
        }
        found = {name: metrics[name] for name in expected}
        require(found == expected, "figures", found, "instead of", expected)
        self.done.late += late
        self.done.answers += rows

    def compare(self, last: int) -> None:
        """Compare all answers with a run over the rows that were in time, and with sessions made one by one."""
        table = table_of([Event({**e.row, "ts": e.t}) for e in self.events if e.t is None or e.t >= e.before])
        known = self.family.plan.run(table)
        over = {query.name: {name: w for w in query.over for name in w.names} for query in self.family.plan.queries}
        expected: Counter[Any] = Counter()
        for query in self.family.plan.queries:
            mine = known.filter(pc.equal(known.column("query"), query.name))
            mine = passed(query.over, mine, last)
            bounds = mine.column("window").combine_chunks()
            edges = [bounds.field(i).cast(pa.int64()).to_pylist() for i in range(2)]
            for row, start, end in zip(mine.to_pylist(), *edges, strict=True):
                if over[query.name][row["window_name"]].kind == "session":
                    continue
                holder = tuple(shown(row[name]) for name in query.by)
                answers = tuple((alias, shown(row[alias])) for alias, _ in query.aggregates)
                expected[query.name, row["window_name"], holder, start, end, answers] += 1
        of_rows_ = Counter({at: n for at, n in self.found.items() if over[at[0]][at[1]].kind != "session"})
        require(of_rows_ == expected, "wrong", dict(of_rows_ - expected), "missing", dict(expected - of_rows_))
        ended: Counter[Any] = Counter()
        for (query, window, holder, start, end, answers), n in self.found.items():
            if over[query][window].kind == "session":
                ids = next(value for alias, value in answers if alias.startswith("ids_"))
                ended[(query, window, holder), start, end, ids] += n
        of_sessions = Counter(
            {((q, w, tuple(map(shown_key, h))), s, e, ids): n for ((q, w, h), s, e, ids), n in self.sessions.items()}
        )
        require(ended == of_sessions, "wrong sessions", dict(ended - of_sessions), "missing", dict(of_sessions - ended))


def shown(value: Any) -> Any:
    """A value as answers are compared: sets of rows, floats rounded, NaN equal to itself."""
    if isinstance(value, list):
        return frozenset(value)
    if isinstance(value, float):
        return ("nan",) if math.isnan(value) else round(value, 9) + 0.0
    return value


def shown_key(value: Any) -> Any:
    """The same of what ``comparable`` made."""
    if isinstance(value, tuple):
        return ("nan",) if value[0] else round(value[1], 9) + 0.0
    return value


def vars_of(entry: Entry) -> dict[str, Any]:
    return {name: getattr(entry, name) for name in entry.__dataclass_fields__}


def parts_in(rng: random.Random, events: Sequence[Event]) -> list[list[Event]]:
    """The partitions of a micro-batch: rows in any order; none where there is nothing to read."""
    if not events and rng.random() < 0.5:
        return []
    shuffled = rng.sample(list(events), len(events))
    cut = rng.randint(0, len(shuffled))
    return [shuffled[:cut], shuffled[cut:]] if rng.random() < 0.5 else [shuffled]


def run_one(seed: int, done: Done) -> str | None:
    """Run the schedule of a seed; return what went wrong."""
    before = blob_store.CACHE
    try:
        (OfRows if seed % 4 == 3 else OverTime)(seed, done).run()
        done.schedules += 1
    except Exception:
        return traceback.format_exc()
    finally:
        blob_store.CACHE = before
    return None


def main() -> None:
    """Run schedules until the time is over, or one again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--replay", type=int)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    done, found, began = Done(), 0, time.monotonic()
    if given.replay is not None:
        sys.exit(run_one(given.replay, done) or 0)
    seed = given.seed
    while time.monotonic() - began < given.seconds:
        wrong = run_one(seed, done)
        if wrong is not None:
            found += 1
            print(
                f"python -m tests.state.simulated --replay {seed}  # {wrong.strip().splitlines()[-1][:300]}", flush=True
            )
        seed += 1
    hours = (time.monotonic() - began) / 3600
    print(f"{done}; {found} failed; {done.steps / hours:,.0f} steps per hour")
    sys.exit(found > 0)


if __name__ == "__main__":
    main()
