"""What every verb does with every kind of window and class of aggregates: run against brute force, or refused.

``docs/support.md`` is printed from what is found here, so that it cannot say anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import panes as pn
from panes.errors import PanesError
from panes.queries.windows import RowWindow, Window
from panes.testing import assert_same_answers, brute_force
from panes.testing.lookup_reference import brute_force_lookup
from tests.model.drawing import SCHEMA

WINDOWS: dict[str, Any] = {
    'tumbling("5 ms")': pn.tumbling("5 ms"),
    'hopping("7 ms", every="3 ms")': pn.hopping("7 ms", every="3 ms"),
    'cumulate("2 ms", upto="8 ms")': pn.cumulate("2 ms", upto="8 ms"),
    'nested(["8 ms", "4 ms"], ["4 ms", "2 ms"])': pn.nested(["8 ms", "4 ms"], ["4 ms", "2 ms"]),
    'sliding("5 ms")': pn.sliding("5 ms"),
    'sliding("5 ms", ago="3 ms")': pn.sliding("5 ms", ago="3 ms"),
    "sliding(rows(3))": pn.sliding(pn.rows(3)),
    "tumbling(rows(3))": pn.tumbling(pn.rows(3)),
    "hopping(rows(3), every=rows(2))": pn.hopping(pn.rows(3), every=pn.rows(2)),
    'hopping(rows(3), every="4 ms")': pn.hopping(pn.rows(3), every="4 ms"),
    'hopping("6 ms", every=rows(2))': pn.hopping("6 ms", every=pn.rows(2)),
    'hopping("6 ms", every="4 ms", origin="first")': pn.hopping("6 ms", every="4 ms", origin="first"),
    'tumbling("6 ms", origin="row")': pn.tumbling("6 ms", origin="row"),
    'tumbling(delta("odometer", 5))': pn.tumbling(pn.delta("odometer", 5)),
    'sliding(delta("odometer", 4))': pn.sliding(pn.delta("odometer", 4)),
    'tumbling(punctuation("stop"))': pn.tumbling(pn.punctuation("stop")),
    'session("2 ms")': pn.session("2 ms"),
}

PRODUCT = pn.aggregate(
    "x",
    name="product",
    state={"product": np.float64},
    identity=(1.0,),
    lift=lambda x: x.astype(np.float64),
    combine=lambda a, b: a[0] * b[0],
    lower=lambda p: p,
)

CLASSES: dict[str, dict[str, Any]] = {
    "`count`, `sum`": {"n": pn.count(), "total": pn.sum("x")},
    "`min`, `max`": {"low": pn.min("x"), "top": pn.max("z")},
    "`first`, `last`": {"early": pn.first("y"), "late": pn.last("x")},
    "`arg_min`, `arg_max`": {"at_top": pn.arg_max("y", "x")},
    "`mean`, `var`, `std`": {"average": pn.mean("x"), "spread": pn.var("x")},
    "`corr`": {"together": pn.corr("x", "y")},
    "`count_distinct`, `distinct`": {"different": pn.count_distinct("x"), "items": pn.distinct("y")},
    "`quantile`": {"middle": pn.quantile("x", 0.5)},
    "`approx_count_distinct`": {"sketched": pn.approx_count_distinct("x")},
    "`trend`": {"line": pn.trend("x")},
    "`trend(every=)`": {"ticks": pn.trend("x", every="1 ms")},
    "`aged(half_life=)`": {"fading": pn.aged(pn.sum("x"), half_life="4 ms")},
    "`aged(weights=)`": {"weighed": pn.aged(pn.sum("x"), weights=[1.0, 0.5])},
    "`recurring`": {"common": pn.recurring("x")},
    "your own": {"product": PRODUCT},
}
KNOWN = {"sketched": pn.count_distinct("x")}
"""What is known exactly of a sketch of few values, by its column."""

FAR = 150_000
"""When the last event of all comes, of a key of its own: by then every other window is complete."""


def events() -> pa.Table:
    """Rows with ties, nulls and gaps, in no order, and one far later."""
    rng = np.random.default_rng(11)
    rows, odometer = [], 0
    for number in range(40):
        odometer += int(rng.integers(0, 3))
        instant = number if number < 30 else number + 8
        key = ["a", "b", None][int(rng.integers(0, 3))]
        x = None if rng.random() < 0.2 else int(rng.integers(1, 4))
        z = [None, -1.5, 0.0, 2.5][int(rng.integers(0, 4))]
        rows.append((instant // 2 * 1000, key, "u", odometer, x, int(rng.integers(0, 3)), z, bool(rng.random() < 0.15)))
    order = rng.permutation(len(rows))
    rows = [*(rows[i] for i in order), (FAR, "far", "u", 1000, 1, 1, 1.0, False)]
    return pa.table(
        [pa.array(column, f.type) for column, f in zip(zip(*rows, strict=True), SCHEMA, strict=True)], schema=SCHEMA
    )


@dataclass
class Support:
    """What is known of each cell: nothing wrong was found, or with which sentence it is refused.

    Attributes
    ----------
    refused
        By verb, window and class; what is not in it was answered, and rightly.
    """

    refused: dict[tuple[str, str, str], str] = field(default_factory=dict)
    seen: set[tuple[str, str, str]] = field(default_factory=set)

    def ask(self, verb: str, window: str, of: str, check: Callable[[pn.Query], Any]) -> Any:
        """Ask for one cell, and keep the sentence where it is refused."""
        self.seen.add((verb, window, of))
        try:
            return check(declared(window, of))
        except PanesError as error:
            self.refused[verb, window, of] = _plain(str(error), window)
            return None


def declared(window: str, *classes: str) -> pn.Query:
    """The query of a cell, or of several of one window."""
    select = {alias: aggregate for of in classes for alias, aggregate in CLASSES[of].items()}
    return pn.query(window, by="k", at="ts", select=select, over=WINDOWS[window])


def exact(query: pn.Query) -> pn.Query:
    """The query whose answers those of another have to be."""
    select = {alias: KNOWN.get(alias, aggregate) for alias, aggregate in query.aggregates}
    return pn.query(query.name, by="k", at="ts", select=select, over=query.over)


def same(found: Any, wanted: pa.Table) -> None:
    """Fail unless the answers are equal."""
    assert_same_answers(found, wanted, absolute=1e-9)


def cells() -> Iterable[tuple[str, str]]:
    """Every window with every class."""
    return ((window, of) for window in WINDOWS for of in CLASSES)


def run_table(support: Support) -> None:
    """``plan.run`` over a table."""
    table = events()

    def check(query: pn.Query) -> None:
        same(pn.plan(query).run(table), brute_force(exact(query), table))

    for window, of in cells():
        support.ask("run, table", window, of, check)


def lookup_table(support: Support) -> None:
    """``plan.lookup`` over tables."""
    table = events()
    requests = table.select(["ts", "k"])

    def check(query: pn.Query) -> None:
        same(pn.plan(query).lookup(table, requests), brute_force_lookup(exact(query), table, requests))

    for window, of in cells():
        support.ask("lookup, table", window, of, check)


def live_table(support: Support) -> None:
    """``plan.live``, fed in two batches."""
    table = events()
    requests = table.select(["ts", "k"])

    def check(query: pn.Query) -> None:
        live = pn.plan(query).live(keep="1 s")
        live.update(table.slice(0, 17))
        live.update(table.slice(17))
        same(live.lookup(requests), brute_force_lookup(exact(query), table, requests))

    for window, of in cells():
        support.ask("live", window, of, check)


def counting(key: Any, window: Any, rows: pa.Table) -> dict[str, int]:
    """What is applied to windows."""
    return {"n": rows.num_rows}


COUNT = "`count`, `sum`"
"""The class whose counts a function has to find, too."""


def applied(
    support: Support, verb: str, apply: Callable[[Any], Any], collect: Callable[[Any], pa.Table], given: Any = None
) -> None:
    """``pn.apply``: a function that counts, over every window at once."""
    accepted = []
    for window in WINDOWS:

        def check(query: pn.Query) -> None:
            apply(query.over)
            accepted.extend(query.over)

        support.ask(verb, window, COUNT, check)
    table = events()
    wanted = brute_force(pn.query("n", by="k", at="ts", select={"n": pn.count()}, over=accepted), table)
    found, wanted = collect(apply(accepted)), wanted.drop_columns(["query"])
    if given is not None:
        found, wanted = given(found), given(wanted)
    same(found.select(wanted.column_names), wanted)


def sorted_table(support: Support) -> None:
    """``pn.sort``: the rows of each window in order, and of a stream each row once."""
    table = events()
    every = sorted(map(repr, table.to_pylist()))

    def check(query: pn.Query) -> None:
        [window] = query.over
        found = list(map(repr, pn.sort(table, order="x", over=window, by="k", at="ts").to_pylist()))
        if getattr(window, "every", None) is not None or not isinstance(window, (RowWindow, Window)):
            # Progressive: a row comes out when it leaves the window, and those that are in it at the end do not.
            assert len(found) == len(set(found))
            assert set(found) <= set(every)
            return
        held: list[list[str]] = []

        def keep(key: Any, window: Any, rows: pa.Table) -> None:
            ordered = sorted(rows.to_pylist(), key=lambda row: (row["x"] is not None, row["x"] or 0))
            held.append([str(row["x"]) for row in ordered])
            held[-1].extend(sorted(map(repr, ordered)))

        pn.apply(table, keep, by="k", at="ts", over=window)
        rows = pn.sort(table, order="x", over=window, by="k", at="ts").to_pylist()
        for values in held:
            count = len(values) // 2
            own, rows = rows[:count], rows[count:]
            assert [str(row["x"]) for row in own] + sorted(map(repr, own)) == values
        assert not rows

    for window in WINDOWS:
        support.ask("sort", window, COUNT, check)


HELD: dict[str, Callable[[list[Any], int], list[Any]]] = {
    'sliding("5 ms")': lambda rows, now: [row for row in rows if now - row[0] < 5_000],
    "sliding(rows(3))": lambda rows, now: rows[-3:],
    'sliding(delta("odometer", 4))': lambda rows, now: [row for row in rows if row[2] >= rows[-1][2] - 4],
}
"""What each window of a join holds of the rows of one side and key, ``(instant, key, odometer)``, by the definition."""


def join_table(support: Support) -> None:
    """``pn.join``: rows that come one at a time, each meeting what the window of the other side holds."""
    rng = np.random.default_rng(5)
    driven = np.cumsum(rng.integers(0, 3, 60)).tolist()
    came = [(1000 * i, ["a", "b"][int(rng.integers(0, 2))], driven[i], i % 2) for i in range(60)]
    left, right = (
        pa.table(
            {
                "ts": pa.array([row[0] for row in came if row[3] == side], pa.timestamp("us", "UTC")),
                "k": [row[1] for row in came if row[3] == side],
                "odometer": [row[2] for row in came if row[3] == side],
            }
        )
        for side in (0, 1)
    )

    def check(query: pn.Query) -> None:
        [window] = query.over
        found = pn.join(left, right, on="k", at="ts", over=window)
        hold = next(HELD[text] for text, known in WINDOWS.items() if known is window)
        kept: dict[tuple[str, int], list[Any]] = {}
        pairs = []
        for row in came:
            kept.setdefault((row[1], row[3]), []).append(row)
            for other in hold(kept.get((row[1], 1 - row[3]), []), row[0]):
                pairs.append(tuple(sorted((row[0], other[0]), key=lambda t: t // 1000 % 2)))
        both = zip(*(found[name].cast(pa.int64()).to_pylist() for name in ("ts_left", "ts_right")), strict=True)
        assert sorted(both) == sorted(pairs)

    for window in WINDOWS:
        support.ask("join", window, COUNT, check)


def together(
    support: Support, verb: str, ask: Callable[[pn.Plan], Any], collect: Callable[[Any], pa.Table]
) -> tuple[list[pn.Query], pa.Table | None]:
    """Ask for every cell, which runs nothing, and then for the answers of all that were not refused, at once."""
    accepted: list[pn.Query] = []
    for window in WINDOWS:
        fit: list[str] = []
        for of in CLASSES:
            support.ask(verb, window, of, lambda _, of=of: fit.append(of))
        try:
            ask(pn.plan(declared(window, *fit)))
        except PanesError:
            # One by one, to see which are refused.
            asked, fit = fit, []
            for of in asked:
                support.ask(verb, window, of, lambda query, of=of: (ask(pn.plan(query)), fit.append(of)))
        if fit:
            accepted.append(declared(window, *fit))
    return accepted, collect(ask(pn.plan(accepted))) if accepted else None


def compare(queries: Iterable[pn.Query], found: pa.Table, wanted: Callable[[pn.Query], pa.Table]) -> None:
    """Every query's own rows and columns of the answers of all."""
    for query in queries:
        own = found.filter(pc.equal(found["query"], query.name))
        expected = wanted(exact(query))
        same(own.select(expected.column_names), expected)


def complete(answers: pa.Table) -> pa.Table:
    """The answers that a stream has given when its last event has come, without those about that event."""
    end = pc.struct_field(answers["window"], "end").cast(pa.int64())
    about = pc.fill_null(pc.not_equal(answers["k"], "far"), True)
    return answers.filter(pc.and_(about, pc.less_equal(end, FAR)))


def _plain(sentence: str, window: str) -> str:
    """A sentence without the names that only this page has."""
    name = str(WINDOWS[window])
    sentence = sentence.replace(repr(window), "'q'")
    return sentence.replace(name, "W").replace(repr(name), "W")


# The page


def page(support: Support, titles: Mapping[str, str]) -> str:
    """``docs/support.md``: a table by windows, one by classes of aggregates, and every sentence of refusal."""
    notes: dict[str, int] = {}

    def note(sentence: str) -> str:
        return f"[{notes.setdefault(sentence, len(notes) + 1)}](#refusals)"

    verbs = list(titles)
    by_window = [["window", *titles.values()]]
    for window in WINDOWS:
        row = [f"`{window}`"]
        for verb in verbs:
            asked = [of for of in CLASSES if (verb, window, of) in support.seen]
            refused = {of: support.refused[verb, window, of] for of in asked if (verb, window, of) in support.refused}
            # The plainest aggregates are refused for what the window is.
            row.append(note(next(iter(refused.values()))) if asked and len(refused) == len(asked) else "✓")
        by_window.append(row)
    by_class = [["aggregates", *titles.values()]]
    for of in CLASSES:
        row = [of]
        for verb in verbs:
            # Where a window is refused whatever is asked of it, no aggregate is to blame.
            fit = [
                window
                for window in WINDOWS
                if any((verb, window, o) in support.seen and (verb, window, o) not in support.refused for o in CLASSES)
            ]
            if not any((verb, window, of) in support.seen for window in WINDOWS):
                row.append("")
                continue
            sentences = {support.refused[verb, w, of] for w in fit if (verb, w, of) in support.refused}
            works = any((verb, w, of) not in support.refused for w in fit)
            marks = " ".join(sorted(map(note, sorted(sentences)), key=_number))
            row.append(f"✓ {marks}".strip() if works else marks)
        by_class.append(row)
    numbered = [f"{number}. {sentence}" for sentence, number in notes.items()]
    return "\n".join(
        [
            "# What works where",
            "",
            "`tests/model/test_support.py` prints this page. A ✓ has been run and compared with brute force, event",
            "by event, on rows with ties, nulls and gaps. A number refers to the error below, which refuses the",
            "combination before any job runs; beside a ✓ it concerns some windows only. In errors, `W` is the",
            "window, and `q` the query.",
            "",
            "## Windows",
            "",
            "A ✓ holds for at least one class of aggregates; the second table shows which.",
            "",
            *_table(by_window),
            "",
            "## Aggregates",
            "",
            *_table(by_class),
            "",
            "## Refusals",
            "",
            *numbered,
            "",
        ]
    )


def _number(mark: str) -> int:
    return int(mark[1 : mark.index("]")])


def _table(rows: list[list[str]]) -> list[str]:
    head, *rest = ("| " + " | ".join(row) + " |" for row in rows)
    return [head, "|" + "---|" * len(rows[0]), *rest]
