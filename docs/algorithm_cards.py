"""The card of every algorithm, read from the docstrings, and the page ``docs/algorithms.md`` made of them.

A card is a table in the docstring of a class or function, or of a module: what the algorithm requires, what it costs,
the memory it takes, and the paper it is from. ``python docs/algorithm_cards.py`` rewrites the page.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).resolve().parents[1] / "src" / "panes"
PAGE: Final = Path(__file__).resolve().with_name("algorithms.md")
COMMAND: Final = "python docs/algorithm_cards.py"

FAMILIES: Final = {
    "kernels": "Kernels: many windows over one column",
    "frames": "Frames: windows as index pairs",
    "live": "Live: windows while rows come and expire",
    "index": "Indexes: keys beyond a threshold",
    "row_windows": "Windows of rows",
    "engine": "Answers",
    "applying": "Operators over windows, in columns",
    "operators": "Operators, event by event",
}
"""The title of each family's table, in the order of the page."""

_INDEXES: Final = ("live/collective.py", "live/staircase.py")

_CARD: Final = re.compile(r"^=+  =+\n(.*?)\n=+  =+$", re.DOTALL | re.MULTILINE)
_FIELD: Final = re.compile(r"^(\w*) +(\S.*)$")
_NOT_COST: Final = ("requires", "memory", "paper")


@dataclass(frozen=True, slots=True)
class Card:
    """One algorithm: its class or module, its file below ``src/panes``, and the fields of its card."""

    name: str
    file: str
    fields: dict[str, str]

    @property
    def family(self) -> str:
        """A key of ``FAMILIES``: mostly the package."""
        return "index" if self.file in _INDEXES else self.file.split("/")[0]

    @property
    def cost(self) -> str:
        """What it costs to build or update, and to answer."""
        costs = [(name, text) for name, text in self.fields.items() if name not in _NOT_COST]
        return "; ".join(text if name == "costs" else f"{name}: {text}" for name, text in costs)


@cache
def cards() -> tuple[Card, ...]:
    """All cards, room by room and file by file."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        file = path.relative_to(PACKAGE).as_posix()
        for name, docstring in _docstrings(path):
            match = _CARD.search(docstring)
            fields = fields_of(match[1]) if match else {}
            if "requires" in fields:
                found.append(Card(name, file, fields))
    return tuple(found)


def fields_of(card: str) -> dict[str, str]:
    """The fields of a card's lines; a line without a name continues the one above.

    Examples
    --------
    >>> fields_of("requires    any monoid\\nanswer      O(1): at most\\n            two intervals")
    {'requires': 'any monoid', 'answer': 'O(1): at most two intervals'}
    """
    fields: dict[str, str] = {}
    last = ""
    for line in card.splitlines():
        if (match := _FIELD.match(line)) is None:
            continue
        last = match[1] or last
        fields[last] = f"{fields[last]} {match[2]}" if not match[1] else match[2]
    return fields


def page() -> str:
    """The text of ``docs/algorithms.md``."""
    parts = [
        "# Algorithms\n\n"
        "Every algorithm in Panes, from the card in its docstring. n is the number of rows, and γ the number of powers "
        "of two that widths of windows reach.\n\n"
        f"<!-- Written by `{COMMAND}`. -->\n"
    ]
    every = cards()
    for family, title in FAMILIES.items():
        parts.append(f"\n## {title}\n\n| algorithm | requires | cost | memory | paper | file |\n")
        parts.append("|---|---|---|---|---|---|\n")
        for card in (card for card in every if card.family == family):
            cells = [card.fields["requires"], card.cost, *(card.fields.get(name, "") for name in ("memory", "paper"))]
            cells = [cell.replace("|", "\\|").replace("``", "`") for cell in cells]
            parts.append(f"| `{card.name}` | {' | '.join(cells)} | `{card.file}` |\n")
    return "".join(parts)


def _docstrings(path: Path) -> Iterator[tuple[str, str]]:
    """The docstrings of a module, its classes, functions and methods, with their names."""

    def within(node: ast.Module | ast.ClassDef | ast.FunctionDef, name: str) -> Iterator[tuple[str, str]]:
        docstring = ast.get_docstring(node)
        if docstring:
            yield name or path.stem, docstring
        for inner in node.body:
            if isinstance(inner, (ast.ClassDef, ast.FunctionDef)):
                yield from within(inner, f"{name}.{inner.name}" if name else inner.name)

    return within(ast.parse(path.read_text(encoding="utf-8")), "")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
