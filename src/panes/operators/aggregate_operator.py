"""The Aggregate operator: output functions over every window, for each group in it.

Paper: Gedik 2014, section 6.1.1. It supports every window configuration: four evictions of tumbling windows and nine
pairs of policies of sliding ones, each with four ways to evict partitions (none among them), 52 in all. Where all
output functions can be merged, tuples of tumbling windows are not stored, and sliding windows are replaced by smaller
ones (``rewritten``) or followed (``TwoStacks`` in ``summaries``). Elsewhere a window is computed anew whenever it is
processed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import gcd
from typing import Any, ClassVar, Final

from panes.aggregates.aggregate import Aggregate as Declared
from panes.errors import DeclarationError
from panes.operators.attributes import KeyReader
from panes.operators.clocks import Clock
from panes.operators.events import Event
from panes.operators.operator import Operator, check_same, partition_attributes
from panes.operators.operator_model import (
    GENERATING,
    PUNCTUATION,
    SLIDING_WINDOWS,
    TUMBLING_WINDOWS,
    InputMode,
    InputPort,
    OperatorModel,
)
from panes.operators.output_functions import computed, output_function
from panes.operators.policies import (
    Attribute,
    By,
    Partitions,
    SlidingPolicies,
    Time,
    TumblingPolicies,
    WindowLike,
    WindowPolicies,
    argument_text,
    policies_text,
)
from panes.operators.summaries import GroupedSummary, Groups, Summary, TwoStacks
from panes.operators.window import WindowContainer
from panes.queries.eviction import Evict
from panes.queries.measures import Rows

_PANES: Final = 8
"""More panes than that for each answer take longer than they save; by time, two extents may have 1 µs in common."""


def rewritten(window: SlidingPolicies) -> tuple[TumblingPolicies, SlidingPolicies] | None:
    """A tumbling window that feeds a smaller sliding one, in place of a sliding window; None where nothing is gained.

    ==========  =====================================================================
    requires    eviction and trigger by count, or both by time; output functions that
                can be merged (associative ones)
    costs       as many summaries as a window has panes, instead of all its tuples
    memory      one summary per pane
    paper       Gedik 2014, section 4.1.8
    ==========  =====================================================================

    Only where it gives the same answers at the same moments. A pane is the greatest common divisor of both extents, so
    that windows begin and end with panes: the period of the trigger, where the window is several times that, as in the
    paper. A window may be partitioned. By time the panes of a partition follow each other from its first tuple on,
    also empty ones (``TumblingWindow.stay``), as its triggers do. Windows that evict partitions are left alone: tuple
    counts would count panes, and a window that is processed for the last time ends within one.

    Examples
    --------
    >>> import panes as pn
    >>> from panes.operators.policies import policies_of
    >>> print(*rewritten(policies_of(pn.hopping("1 hour", every="1 min"))), sep="; ")
    pn.tumbling('1m'); pn.sliding(pn.rows(60))
    >>> print(*rewritten(policies_of(pn.hopping("10 s", every="4 s", origin="first"))), sep="; ")
    pn.tumbling('2s', origin='first'); pn.hopping(pn.rows(5), every=pn.rows(2))
    """
    evict, trigger, partitioned = window.evict, window.trigger, window.partitioned
    if partitioned is not None and partitioned.evict is not None:
        return None
    # The operator itself says to which partition a summary belongs: summaries have no attributes.
    second = None if partitioned is None else Partitions(())
    if isinstance(evict, Rows) and isinstance(trigger, Rows):
        pane = gcd(evict.n, trigger.n)
        # A pane of one tuple is no smaller than the tuple.
        if pane == 1 or not evict.n or trigger.n > _PANES * pane:
            return None
        small = SlidingPolicies(Rows(evict.n // pane), Rows(trigger.n // pane), second, window.partial)
        return TumblingPolicies(Rows(pane), partitioned), small
    if isinstance(evict, Time) and isinstance(trigger, Time):
        pane = gcd(evict.period, trigger.period)
        # On the grid of the clock the first pane is cut short: panes cannot be counted until a window is answered, or
        # until it is full.
        cut = trigger.origin == "epoch"
        if trigger.period > (1 if cut else _PANES) * pane or (cut and not window.partial):
            return None
        small = SlidingPolicies(Rows(evict.period // pane), Rows(trigger.period // pane), second, window.partial)
        return TumblingPolicies(replace(trigger, period=pane), partitioned), small
    return None


class Aggregate(Operator):
    """Compute over every window, and let out a tuple for each group, then a window punctuation.

    The name is the windowing paper's. What it computes is declared with ``panes.aggregates.aggregate.Aggregate``.

    Output tuples have the attributes of the key, those of the group, and those of ``select``. A window without
    tuples gives none, only the punctuation.

    Parameters
    ----------
    window
        Any window that operators have.
    select
        Output attributes: aggregates as ``pn.sum("value")``, or functions of the tuples of a window or group.
    groups
        Attributes that group the tuples inside a window. This is not partitioning, which makes several windows.
    evicted_partitions
        Whether a subwindow is processed once more when its partition is evicted.
    rewrite
        Whether a sliding window may be replaced by a tumbling one and a smaller sliding one; see ``rewritten``.
    by, evict, clock
        See ``Operator``.

    Examples
    --------
    >>> import panes as pn
    >>> totals = Aggregate(pn.tumbling(pn.rows(3)), {"total": pn.sum("x")}, groups="k")
    >>> totals.run([{"k": "a", "x": 1}, {"k": "b", "x": 2}, {"k": "a", "x": 3}])
    [{'k': 'a', 'total': 4}, {'k': 'b', 'total': 2}, PUNCTUATION]
    """

    model: ClassVar[OperatorModel] = OperatorModel(
        "Aggregate", (InputPort((TUMBLING_WINDOWS, SLIDING_WINDOWS), InputMode.WINDOW_BOUND),), (GENERATING,)
    )
    _keeps: ClassVar[frozenset[str]] = frozenset(("_following",))

    def __init__(
        self,
        window: WindowLike,
        select: Mapping[str, Declared | Callable[[Sequence[Any]], Any]],
        *,
        by: By = None,
        groups: str | Iterable[str] = (),
        evict: Evict | None = None,
        evicted_partitions: bool = False,
        rewrite: bool = True,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(window, by=by, evict=evict, clock=clock)
        (declared,) = self.declared
        assert declared is not None
        self._evicted = evicted_partitions
        self._group_names = (groups,) if isinstance(groups, str) else tuple(groups)
        self._summarize(select)
        self._partition_names = partition_attributes("Aggregate", declared)
        self._name_outputs(list(select))
        summarizes = self._mergeable and not _selects_partitions(declared)
        # What it really does: the window as declared, or the two that replace it.
        self.stages: tuple[WindowPolicies, ...] = (declared,)
        if isinstance(declared, SlidingPolicies) and summarizes and rewrite:
            self.stages = rewritten(declared) or self.stages
        self._make_windows(summarizes)
        self._declaration = self._declared_as(select)

    def _name_outputs(self, aliases: list[str]) -> None:
        """Fix the attributes of output tuples: of the key, of the group, and what is computed."""
        _check_names(aliases, [*self._group_names, *self._partition_names])
        self._names = [*self._partition_names, *self._group_names, *aliases]

    def _summarize(self, select: Mapping[str, Declared | Callable[[Sequence[Any]], Any]]) -> None:
        """Fix how output functions are computed: tuple by tuple in a summary where all of them can be merged."""
        self._functions = [output_function(alias, function) for alias, function in select.items()]
        self._group_of: Callable[[Any], Hashable] | None = KeyReader(self._group_names) if self._group_names else None
        starts = [function.start for function in self._functions]
        self._starts = [start for start in starts if start is not None]
        self._mergeable = len(self._starts) == len(starts)
        self._summary: Callable[[], Any] = (
            partial(Summary, self._starts)
            if self._group_of is None
            else partial(GroupedSummary, self._starts, self._group_of)
        )
        # Stands for every pane without tuples: of many partitions, most may be quiet most of the time.
        self._nothing = self._summary()

    def _make_windows(self, summarizes: bool) -> None:
        """Make the window of each stage, with the events that it reacts to."""
        first, *rest = self.stages
        summarizer = self._summary if summarizes else None
        look = (Event.PARTITION_EVICTION,) if self._evicted else ()
        # Where a sliding window is processed with every tuple: its summary, by partition.
        self._follows = False
        self._following: dict[Hashable, TwoStacks] = {}
        self._summarizes = summarizes and isinstance(first, TumblingPolicies)
        if rest:
            self._input: Any = self.window(first, Event.BEFORE_FLUSH, handler=_Feed(self), summarizer=summarizer)
            if isinstance(first.evict, Time):
                self._input.stay()
            self._summaries: WindowContainer[Any] = self.window(rest[0], Event.TRIGGER)
        elif isinstance(first, TumblingPolicies):
            self._input = self.window(first, Event.BEFORE_FLUSH, *look, summarizer=summarizer)
        else:
            self._follows = summarizes and first.trigger == Rows(1) and self._group_of is None
            follow = (Event.AFTER_INSERTION, Event.BEFORE_EVICTION, Event.PARTITION_EVICTION)
            self._input = self.window(first, Event.TRIGGER, *(follow if self._follows else look))
        self._input.apart = True
        self._enter: Callable[[Any], None] = self._input.entry()

    def _declared_as(self, select: Mapping[str, Declared | Callable[[Sequence[Any]], Any]]) -> str:
        """Write what saved state is checked against: output functions, groups, and the windows as they really are."""
        outputs = ", ".join(f"{alias}={argument_text(function)}" for alias, function in select.items())
        windows = policies_text(*self.stages)
        return f"{outputs}, groups={list(self._group_names)}, evicted_partitions={self._evicted}, {windows}"

    def process(self, item: Any, port: int = 0) -> None:
        """Insert a tuple."""
        self._enter(item)

    def process_all(self, items: Sequence[Any], port: int = 0, *, at: Sequence[int] | None = None) -> None:
        """Insert tuples."""
        if type(self).process is Aggregate.process:
            self._input.insert_all(items, at)
        else:
            super().process_all(items, port, at=at)

    def punctuate(self, port: int = 0) -> None:
        """End the window, where it has a punctuation policy."""
        if isinstance(self.stages[0], TumblingPolicies):
            self._input.punctuate()

    # Events

    def before_flush(self, partition: Hashable, window: WindowContainer[Any]) -> None:
        """Process a tumbling window."""
        self._answer(partition, self._groups(partition, window))

    def trigger(self, partition: Hashable, window: WindowContainer[Any]) -> None:
        """Process a sliding window."""
        self._answer(partition, self._groups(partition, window))

    def partition_eviction(
        self, evicted: Iterator[tuple[Hashable, Sequence[Any]]], window: WindowContainer[Any]
    ) -> None:
        """Process subwindows for the last time."""
        for partition, _ in evicted:
            if self._evicted:
                self._answer(partition, self._groups(partition, window))
            self._following.pop(partition, None)

    def after_insertion(self, item: Any, partition: Hashable, window: WindowContainer[Any]) -> None:
        """Follow a sliding window."""
        following = self._following.get(partition)
        if following is None:
            following = self._following[partition] = TwoStacks(self._starts)
        following.insert(item)

    def before_eviction(self, item: Any, partition: Hashable, window: WindowContainer[Any]) -> None:
        """Follow a sliding window."""
        self._following[partition].evict()

    def declaration(self) -> str:
        """Output functions, groups, and the windows as they really are."""
        return self._declaration

    def save(self) -> list[dict[str, Any]]:
        """The state of the windows; summaries as plain values. Then what the operator was declared with."""
        with self.lock():
            windows = [
                _each_summary(saved, lambda summary: summary.save(), tuples=number == 1)
                for number, saved in enumerate(super().save())
            ]
            return [*windows, {"declared": self._declaration}]

    def load(self, state: Sequence[dict[str, Any]]) -> None:
        """Continue where an Aggregate of the same declaration was saved; another one is refused."""
        *windows, own = state
        # Summaries know of what they are: one of another attribute would go on with that.
        check_same("Aggregate", own.get("declared"), self._declaration)
        # An open summary is a copy of its own; finished panes never change, so empty ones share one object.
        loads = (lambda values: self._summary().load(values), self._pane)
        made = [_each_summary(saved, loads[number], tuples=number == 1) for number, saved in enumerate(windows)]
        with self.lock():
            super().load(made)
            if self._follows:
                for partition, tuples in self._input:
                    for item in tuples:
                        self.after_insertion(item, partition, self._input)

    def _pane(self, saved: Any) -> Any:
        return self._summary().load(saved) if saved else self._nothing

    # What is computed

    def _groups(self, partition: Hashable, window: WindowContainer[Any]) -> Groups:
        """The values of each group of a subwindow, in the order in which groups first occur."""
        if len(self.stages) == 2:
            summary, nothing = self._summary(), self._nothing
            for part in window.tuples(partition):
                if part is not nothing:
                    summary.merge(part)
            merged: Groups = summary.values()
            return merged
        if self._summarizes:
            values: Groups = window.summarizer(partition).values()
            return values
        if self._follows:
            return {(): self._following[partition].values()} if window.tuples(partition) else {}
        return computed(self._functions, self._group_of, window.tuples(partition))

    def _answer(self, partition: Hashable, groups: Groups) -> None:
        keys = _several(partition, self._partition_names)
        names, grouped = self._names, self._group_of is not None
        for group, values in groups.items():
            of_group = _several(group, self._group_names) if grouped else ()
            # A group-by attribute may be a partition-by attribute too: it has one value.
            self.submit(dict(zip(names, (*keys, *of_group, *values))))  # noqa: B905 - strict= takes its time
        self.submit(PUNCTUATION)


def _selects_partitions(declared: WindowPolicies) -> bool:
    """Whether a function of the user selects the partitions to evict: it may want to look at their tuples."""
    evicts = None if declared.partitioned is None else declared.partitioned.evict
    return evicts is not None and callable(evicts.choose)


def _each_summary(window: dict[str, Any], change: Callable[[Any], Any], *, tuples: bool) -> dict[str, Any]:
    """The saved state of a window with its summaries changed: summarizers, and tuples where these are summaries."""
    changed = []
    for subwindow in window["subwindows"]:
        summarizer = subwindow["summarizer"]
        others: dict[str, Any] = {"tuples": [change(each) for each in subwindow["tuples"]]} if tuples else {}
        changed.append(subwindow | {"summarizer": None if summarizer is None else change(summarizer)} | others)
    return {**window, "subwindows": changed}


class _Feed:
    """The handler of the first of two windows: its summaries are the tuples of the second."""

    def __init__(self, aggregate: Aggregate) -> None:
        self._aggregate = aggregate

    def before_flush(self, partition: Hashable, window: WindowContainer[Any]) -> None:
        """Pass on a summary, also one of no tuple: the second window counts periods."""
        aggregate = self._aggregate
        summary = window.summarizer(partition) if window.size(partition) else aggregate._nothing
        aggregate._summaries.insert(summary, partition)


def _check_names(aliases: list[str], attributes: list[Attribute]) -> None:
    if not aliases:
        raise DeclarationError("Aggregate computes nothing: select= is empty. Write for example {'n': pn.count()}.")
    taken = [alias for alias in aliases if alias in attributes]
    if taken:
        raise DeclarationError(
            f"{taken[0]!r} is an output attribute of select=, and one that groups or partitions. Rename it in select=."
        )


def _several(value: Any, names: Sequence[Any]) -> Any:
    """The values of some attributes: the value itself where there is one attribute."""
    return (value,) if len(names) == 1 else value
