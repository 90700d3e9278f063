"""Windows in, the cheapest forest out, by integer programming: the measure of the planner's heuristic.

Requires: SciPy (HiGHS). Costs: exponential at worst; tens of windows and hundreds of candidates are seconds. Paper:
Factor Windows, section IV-C, leaves the gap between Algorithm 3 and an optimum open.

One binary variable says whether a candidate exists. A window or existing candidate reads exactly one provider: the raw
stream, a user's window or an existing candidate. Once the binary ones are fixed, the cheapest provider is a vertex of
what remains, so the other variables need not be integers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from panes.errors import PlanError
from panes.planning.cost import extend, min_cost
from panes.planning.coverage import Floats, Semantics
from panes.planning.forest import Forest
from panes.planning.optimize import Problem, optimize
from panes.planning.search import Offers, candidates
from panes.timeline import Geometry


def optimum(windows: Iterable[Geometry], semantics: Semantics, eta: float = 1.0, time_limit: float = 60.0) -> Forest:
    """Return the forest of least cost whose factor windows are among those that ``search.candidates`` finds.

    With disjoint instances these include an optimum over all windows. It is never dearer than the planner's forest.

    Parameters
    ----------
    windows, semantics, eta
        As in ``panes.planning.optimize.optimize``.
    time_limit
        Seconds after which to give up with a ``PlanError``.

    Examples
    --------
    >>> from panes.planning.coverage import Semantics
    >>> windows = [Geometry(r, r) for r in (20, 30, 45)]
    >>> optimum(windows, Semantics.PARTITIONED_BY).factors
    (Geometry(range=5, slide=5, offset=0), Geometry(range=15, slide=15, offset=0))
    """
    problem = Problem.of(windows, semantics, eta)
    users = problem.graph.windows
    planned = optimize(map(problem.ticks.restore, users), semantics, eta).factors
    pool = list(dict.fromkeys((*candidates(users, semantics), *map(problem.ticks.measure, planned))))
    alone = min_cost(problem.graph, problem.eta)
    chosen, status = _solve(Offers.of(alone, pool, problem.eta), time_limit)
    best = extend(alone, [pool[column] for column in chosen], problem.eta)
    return problem.forest(best, [f"optimum: of {len(pool)} candidates {len(chosen)} are best ({status})"])


def _solve(offers: Offers, time_limit: float) -> tuple[list[int], str]:
    """Return the best columns of the offers, and how good they are."""
    count = len(offers.candidates)
    if count == 0:
        return [], "nothing to choose"
    try:
        from scipy import sparse
        from scipy.optimize import Bounds, LinearConstraint, milp
    except ImportError as missing:
        raise PlanError(
            "the optimum needs SciPy, which is not installed. Write: pip install 'panes[exact]', or use optimize()."
        ) from missing

    model = _Model.of(offers)
    shape = (len(model.lower), len(model.objective))
    matrix = sparse.csr_matrix((model.values, (model.rows, model.columns)), shape=shape)
    result = milp(
        model.objective,
        constraints=LinearConstraint(matrix, np.array(model.lower), np.inf),
        integrality=np.concatenate([np.ones(count), np.zeros(len(model.objective) - count)]),
        bounds=Bounds(0, 1),
        options={"time_limit": time_limit, "mip_rel_gap": 0.0},
    )
    if result.status != 0:
        raise PlanError(
            f"no optimum within {time_limit} seconds for {offers.users} windows and {count} candidates: "
            f"{result.message} Give more time, fewer candidates, or use optimize()."
        )
    return [column for column in range(count) if result.x[column] > 0.5], "optimal"


@dataclass(slots=True)
class _Model:
    """Rows of the integer program; variables are first the candidates, then the edges that can pay.

    Only edges cheaper than a row's base price are there. A row pays its base price less what its edges save, so the
    objective is the candidates' base prices minus the savings, and the user's base prices are a constant.
    """

    objective: Floats
    rows: list[int] = field(default_factory=list)
    columns: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, offers: Offers) -> _Model:
        count, users = len(offers.candidates), offers.users
        consumers, providers = np.nonzero(offers.price < offers.base[:, None])
        saved = offers.base[consumers] - offers.price[consumers, providers]
        model = cls(np.concatenate([offers.base[users:], -saved]))
        edges: dict[int, list[int]] = {}
        for variable, (consumer, provider) in enumerate(
            zip(consumers.tolist(), providers.tolist(), strict=True), start=count
        ):
            edges.setdefault(consumer, []).append(variable)
            model.add({provider: 1.0, variable: -1.0}, 0.0)  # an edge needs its provider
        for consumer, variables in edges.items():
            # At most one provider; for a candidate, only if it exists.
            limit = dict.fromkeys(variables, -1.0)
            if consumer >= users:
                model.add({consumer - users: 1.0, **limit}, 0.0)
            else:
                model.add(limit, -1.0)
        return model

    def add(self, terms: dict[int, float], lower: float) -> None:
        """Add the row ``sum of terms >= lower``."""
        self.rows.extend([len(self.lower)] * len(terms))
        self.columns.extend(terms)
        self.values.extend(terms.values())
        self.lower.append(lower)
