"""Every public function shows how it is used."""

from __future__ import annotations

import inspect

import pytest

import panes as pn
from panes.live.live import Live

WITHOUT = {
    "Aggregate": "the functions that make aggregates have examples",
    "PanesError": "a base class",
    "Plan": "its verbs have examples",
    "Query": "pn.query has one",
    "show_progress": "needs a Spark session",
    "Catalogue.register": "the class has one for all of its methods",
    "Catalogue.suspend": "as above",
    "Catalogue.resume": "as above",
    "Catalogue.drop": "as above",
    "Catalogue.list": "as above",
    "Plan.stream": "needs a stream: docs/streaming.md has it",
    "Plan.status": "as above",
    "Plan.with_statistics": "needs a Spark DataFrame",
    "Plan.physical_plan": "for readers of the planner",
    "Plan.to_mermaid": "what it gives is to be looked at: docs/planning.md",
    "Plan.to_svg": "as above",
    "Plan.to_dict": "as above",
    "Live.update": "every other example of Live calls it",
    "Live.explain": "docs/live.md shows it",
    "Live.save": "as above",
}
"""Names without an example of their own, and why."""

DOCUMENTED = {name: getattr(pn, name) for name in pn.__all__}
for owner in (pn.Plan, pn.Catalogue, Live):
    methods = inspect.getmembers(owner, lambda value: callable(value) and hasattr(value, "__name__"))
    DOCUMENTED |= {f"{owner.__name__}.{name}": method for name, method in methods if not name.startswith("_")}


@pytest.mark.parametrize("name", DOCUMENTED)
def test_it_has_an_example(name):
    has = ">>> " in (DOCUMENTED[name].__doc__ or "")
    assert has or name in WITHOUT, f"{name} has no example"
    assert not (has and name in WITHOUT), f"{name} has an example: take it off the list"
