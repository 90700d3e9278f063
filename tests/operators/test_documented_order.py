"""The order of steps in ``docs/operators.md`` is the one that ``frames.order`` declares."""

from __future__ import annotations

import re
from pathlib import Path

from panes.frames.order import EVICT, ORDER

PAGE = Path(__file__).parents[2] / "docs" / "operators.md"
KINDS = {"rows": "count", "delta": "delta", "time": "time", "punctuation": "punctuation"}


def steps(cell):
    """What a cell says happens when a row arrives, and alone."""
    cell = cell.replace("; flush when a punctuation arrives", " | flush").replace("flush", EVICT).replace("\\|", "|")
    arrival, *alone = (tuple(re.split(r"\s*→\s*", part.strip())) for part in cell.split(" | "))
    return arrival, tuple(step for some in alone for step in some)


def documented():
    text = PAGE.read_text()
    section = text[text.index("## In which order") :].split("\n## ")[0]
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in section.splitlines() if line.startswith("|")]
    table = [[cell.strip() for cell in row] for row in rows if "---" not in row[0]]
    for name, *cells in table:
        if name in KINDS and len(cells) == 1:
            yield (KINDS[name], None), steps(cells[0])
        elif name in KINDS:
            for pace, cell in zip(("count", "delta", "time"), cells, strict=True):
                yield (KINDS[name], pace), steps(cell)


def test_the_page_has_the_declared_order():
    declared = {key: (order.arrival, order.alone) for key, order in ORDER.items() if key != ("gap", None)}
    assert dict(documented()) == declared
