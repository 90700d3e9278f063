"""Which windows a program answers, and from what: for people."""

from __future__ import annotations

from collections import Counter

from panes.declare.windows import default_name
from panes.engine.program import Program
from panes.planning.steps import FACTOR
from panes.timeline import format_duration


def windows_told(program: Program) -> tuple[str, ...]:
    """Every window that is computed, each with the window it is read from if it is not read from the rows themselves.

    Windows of one name that begin together and end one after another say which one they are.
    """
    named = Counter(name for node in program.nodes for name in {program.views[v].window.name for v in node.views})
    titles = []
    for node in program.nodes:
        own = dict.fromkeys(program.views[v].window.name for v in node.views)
        first = f", first {format_duration(node.geometry.range)}"
        names = (f"{name}{first if named[name] > 1 else ''}" for name in own)
        titles.append(", ".join(names) or f"{FACTOR}{default_name(node.geometry)}")
    providers = (node.provider for node in program.nodes)
    found = [
        title if provider is None else f"{title} ← {titles[provider]}"
        for title, provider in zip(titles, providers, strict=True)
    ]
    return (*found, *(view.window.name for view in program.views if view.window.per_event))
