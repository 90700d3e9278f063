"""Windows in, a forest out: who reads whom, with factor windows where they pay off.

Paper: Factor Windows, section IV-C, Algorithm 3 (``paper=True``), and beyond it the search over candidates for
subsets of windows. No result costs more than the one before it in this list: naive, Algorithm 1, Algorithm 3, the
search. If a step does not pay off, the cheaper result is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from panes.errors import PlanError
from panes.planning.cost import RAW, Assignment, extend, min_cost, naive_cost, window_cost, without_childless
from panes.planning.coverage import CoverageGraph, Integers, Semantics, Ticks
from panes.planning.factor_windows import Downstream, best_factor
from panes.planning.forest import Forest, ForestNode
from panes.planning.search import Offers, candidates, search
from panes.timeline import Geometry

_SMALL = 64  # windows up to which the search tries every exchange
_DEAREST = 96  # if there are more windows, candidates come from the most expensive ones
_CELLS = 1_500_000  # windows times candidates that the search may look at in a step
_TRACED = 200  # lines
_EVERY_PAIR = 20_000
"""Windows up to which each is tried as a provider of each other: twice as many take four times as long."""


def optimize(
    windows: Iterable[Geometry],
    semantics: Semantics,
    eta: float = 1.0,
    *,
    paper: bool = False,
    factors: bool = True,
    describe: Callable[[Geometry], str] = str,
) -> Forest:
    """Plan which window is read from which, with factor windows where they pay off.

    Parameters
    ----------
    windows
        The user's windows, in any unit; equal ones count once.
    semantics
        ``PARTITIONED_BY`` for any aggregate, ``COVERED_BY`` for idempotent ones.
    eta
        Events per unit of time, of the unit that windows are given in; may be below one.
    paper
        Stop at the paper's Algorithm 3 instead of searching further.
    factors
        Whether to allow factor windows; without them this is the paper's Algorithm 1.
    describe
        Returns the name of a window for the trace.

    Examples
    --------
    >>> forest = optimize([Geometry(r, r) for r in (20, 30, 40)], Semantics.PARTITIONED_BY)
    >>> for node in forest.nodes:
    ...     print(node.window, "from", node.provider or "the raw stream", f"at {node.cost:.3g}")
    ⟨20, 20⟩ from ⟨10, 10⟩ at 0.1
    ⟨30, 30⟩ from ⟨10, 10⟩ at 0.1
    ⟨40, 40⟩ from ⟨20, 20⟩ at 0.05
    ⟨10, 10⟩ from the raw stream at 1
    >>> forest.naive, forest.total
    (3.0, 1.25)
    """
    problem = Problem.of(windows, semantics, eta, describe)
    trace: list[str] = []
    alone, proposed = _algorithm_1_and_factors(problem, trace)
    if not factors:
        return problem.forest(alone, trace[:1])
    best = _cheaper(problem, alone, proposed, trace)
    if not paper:
        best = _search(problem, alone, best, trace)
    return problem.forest(best, trace)


@dataclass(frozen=True, slots=True)
class Problem:
    """Distinct windows and the rate of events, in ticks."""

    graph: CoverageGraph
    eta: float
    ticks: Ticks
    describe: Callable[[Geometry], str] = str

    @classmethod
    def of(
        cls,
        windows: Iterable[Geometry],
        semantics: Semantics,
        eta: float,
        describe: Callable[[Geometry], str] = str,
    ) -> Problem:
        """Collapse equal windows and measure them in ticks."""
        distinct = tuple(dict.fromkeys(windows))
        if not distinct:
            raise PlanError("there is no window to plan. Give at least one.")
        if not (eta > 0 and math.isfinite(eta)):
            raise PlanError(f"eta={eta} is not a rate. Give a positive number of events per unit of time.")
        ticks = Ticks.of(distinct)
        return cls(CoverageGraph(tuple(map(ticks.measure, distinct)), semantics), eta * ticks.tick, ticks, describe)

    def forest(self, assignment: Assignment, trace: list[str]) -> Forest:
        """Return an assignment as a forest in the given unit, without factor windows that nothing reads."""
        users = len(self.graph)
        pruned = without_childless(assignment, keep=users)
        windows = [self.ticks.restore(window) for window in pruned.graph.windows]
        eta = self.eta / self.ticks.tick
        nodes = []
        for at, (window, source) in enumerate(zip(windows, pruned.providers.tolist(), strict=True)):
            provider = None if source == RAW else windows[source]
            nodes.append(ForestNode(window, provider, window_cost(window, provider, eta), factor=at >= users))
        factors = sorted(nodes[users:], key=lambda node: node.window)
        steps = trace if len(trace) <= _TRACED else [*trace[:_TRACED], f"... and {len(trace) - _TRACED} more steps"]
        return Forest((*nodes[:users], *factors), naive_cost(windows[:users], eta), tuple(steps))

    def name(self, window: Geometry | None) -> str:
        """Return how the trace shows a window that is measured in ticks."""
        return "the raw stream" if window is None else self.describe(self.ticks.restore(window))


def _algorithm_1_and_factors(problem: Problem, trace: list[str]) -> tuple[Assignment, list[Geometry]]:
    """Run Algorithm 1 and, in the same pass over the edges, find the best factor window below each vertex."""
    graph, eta = problem.graph, problem.eta
    covered = np.zeros(len(graph), dtype=np.bool_)
    proposed: dict[Geometry, None] = {}
    known = set(graph.windows)
    proposals = []

    def propose(target: Geometry | None, consumers: Integers) -> None:
        factor = best_factor(target, Downstream.of(graph, consumers), graph.semantics, eta)
        if factor is not None and factor not in known and factor not in proposed:
            proposed[factor] = None
            proposals.append(f"factor window {problem.name(factor)} proposed below {problem.name(target)}")

    def visit(window: Geometry, consumers: Integers) -> None:
        covered[consumers] = True
        propose(window, consumers)

    alone = Assignment.raw(graph, eta) if len(graph) > _EVERY_PAIR else min_cost(graph, eta, visit)
    propose(None, np.flatnonzero(~covered))
    raw = int((alone.providers == RAW).sum())
    trace += [f"Algorithm 1: {len(graph)} windows, {raw} read the raw stream", *proposals]
    return alone, list(proposed)


def _cheaper(problem: Problem, alone: Assignment, proposed: list[Geometry], trace: list[str]) -> Assignment:
    """Run Algorithm 3: add all proposed factor windows, unless together they do not pay off.

    A factor window is proposed as if its consumers had no better provider than its target. They may have one, so the
    paper's claim that inserting it never hurts needs a check.
    """
    if not proposed:
        trace.append("Algorithm 3: no factor window pays off")
        return alone
    extended = without_childless(extend(alone, proposed, problem.eta), keep=len(problem.graph))
    count, before, after = len(extended.graph) - len(problem.graph), alone.total, extended.total
    if after < before:
        trace.append(f"Algorithm 3: with {count} factor windows the cost is {after / before:.4g} of Algorithm 1's")
        return extended
    trace.append(f"Algorithm 3: {len(proposed)} proposed factor windows do not pay off together and are left out")
    return alone


def _search(problem: Problem, alone: Assignment, best: Assignment, trace: list[str]) -> Assignment:
    """Search among candidates for subsets of the windows, starting from nothing and from Algorithm 3's result."""
    users = problem.graph.windows
    small = len(users) <= _SMALL
    present = best.graph.windows[len(users) :]
    room = max(48, min(400, _CELLS // len(users)))
    # Cheap windows have little to gain, so candidates come from the most expensive ones.
    dearest = np.argsort(-best.costs[: len(users)], kind="stable")[:_DEAREST]
    found = candidates([users[i] for i in dearest], problem.graph.semantics, limit=2 * room, ranges=4 if small else 1)
    known = {*users, *present}
    fresh = [factor for factor in found if factor not in known]
    if len(present) > room:
        # Too many to weigh one by one: keep all of them, and only look for further ones.
        alone, present = best, ()
    offers = Offers.of(alone, [*present, *fresh], problem.eta)
    started = range(len(present))
    if len(fresh) > room:
        gains = offers.gains(started)
        offers = offers.only([*started, *np.argsort(-gains, kind="stable")[:room].tolist()])
    pool = offers.candidates
    trials = [search(offers, start, swaps=small) for start in ([], list(started))]
    chosen = min(trials, key=offers.total)
    improved = without_childless(extend(alone, [pool[column] for column in chosen], problem.eta), keep=len(users))
    if improved.total < best.total * (1 - 1e-12):
        names = ", ".join(problem.name(pool[column]) for column in chosen[:12])
        trace.append(
            f"search: of {len(pool)} candidates {len(chosen)} bring the cost to "
            f"{improved.total / best.total:.4g} of Algorithm 3's: {names}"
        )
        return improved
    trace.append(f"search: nothing more to gain among {len(pool)} further candidates")
    return best
