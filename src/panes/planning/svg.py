"""A physical plan in, an SVG picture out: what is read from what, from left to right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape

from panes.planning.explanation import (
    describe_row_windows,
    figures_of,
    number_of_keys,
    panes_of_store,
    summary,
    title_of,
    window_titles,
)
from panes.planning.physical_plan import PhysicalPlan

_ROW, _GAP, _HEIGHT, _LETTER, _PADDING, _MARGIN, _LINE = 54, 60, 40, 7.2, 12, 20, 18
_LONGEST, _STORES, _ROWS = 40, 6, 40
"""The longest text in a box, the most stores described above the tree, and the most rows, if possible."""

_SIBLINGS = ((6, 3), (3, 2), (2, 1), (1, 1), (1, 0))
"""How many of the first and last children of a box are shown; the next pair applies if there are too many rows."""

_LOOKS = {
    "events": ("#1f3a5f", "#ffffff", ""),
    "panes": ("#dbe7f3", "#1f3a5f", ""),
    "factor": ("#ffffff", "#1f3a5f", ' stroke-dasharray="5 4"'),
    "window": ("#f3efe0", "#3a3220", ""),
    "more": ("#ffffff", "#5b6470", ' stroke-opacity="0"'),
}
"""Fill, text and line of a box."""


@dataclass
class _Box:
    """A box with a title and a line below it; ``note`` is its tooltip."""

    text: str
    kind: str
    line: str = ""
    note: str = ""
    below: list[_Box] = field(default_factory=list)
    x: float = 0
    y: float = 0

    @property
    def shown(self) -> str:
        return self.text if len(self.text) <= _LONGEST else f"{self.text[: _LONGEST - 1]}…"

    @property
    def width(self) -> float:
        return max(len(self.shown), len(self.line)) * _LETTER + 2 * _PADDING


def svg(physical: PhysicalPlan) -> str:
    """Return what the plan costs and saves, and a tree of the stream, the panes of each store, and all windows."""
    root = _bounded(physical)
    levels: list[list[_Box]] = []
    _gather(root, 0, levels)
    x = float(_MARGIN)
    for level in levels:
        for box in level:
            box.x = x
        x += max(box.width for box in level) + _GAP
    header = _header(physical)
    top = len(header) * _LINE + _MARGIN
    rows = _place(root, 0)
    width = max(x - _GAP, max(map(len, header)) * _LETTER + _MARGIN) + _MARGIN
    height = top + rows * _ROW + _MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" font-family="ui-monospace, monospace" font-size="12">',
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
    ]
    for number, line in enumerate(header):
        y = _MARGIN + number * _LINE
        lines.append(f'<text x="{_MARGIN}" y="{y}" fill="#1f3a5f" xml:space="preserve">{escape(line)}</text>')
    lines.append(f'<g transform="translate(0 {top})">')
    for level in levels:
        for box in level:
            lines += [_arrow(box, child) for child in box.below]
    for level in levels:
        lines += [_rectangle(box) for box in level]
    return "\n".join([*lines, "</g>", "</svg>", ""])


def _header(physical: PhysicalPlan) -> list[str]:
    """Return the lines above the tree."""
    lines = summary(physical).splitlines()[:1]
    for store in physical.stores[:_STORES]:
        lines += [title_of(store), *(f"  {line}" for line in figures_of(physical, store))]
    if len(physical.stores) > _STORES:
        lines.append(f"… {len(physical.stores) - _STORES} more stores")
    lines += [describe_row_windows(some) for some in physical.row_windows]
    if any(store.forest.factors for store in physical.stores):
        lines.append("dashed: factor windows, which no query declares and others are read from")
    return lines


def _boxes(physical: PhysicalPlan) -> _Box:
    """Return the tree of boxes; a store that is fed by the panes of another is below them."""
    stream = _Box("events", "events", f"{physical.statistics.rate:,.6g}/s")
    stores: list[_Box] = []
    for store in physical.stores:
        origin = stream if store.source is None else stores[store.source]
        top = origin
        if store.strategy == "columnar":
            top = _Box(panes_of_store(store), "panes", number_of_keys(physical, store), title_of(store))
            origin.below.append(top)
        stores.append(top)
        titles = window_titles(store)
        boxes = {
            node.window: _Box(
                titles[node.window],
                "factor" if node.factor else "window",
                f"{'answers' if store.per_event else 'reads'} {_rate(node.cost * 1e6)} per key",
                f"{titles[node.window]}; {title_of(store)}",
            )
            for node in store.forest.nodes
        }
        for node in store.forest.nodes:
            (top if node.provider is None else boxes[node.provider]).below.append(boxes[node.window])
    for some in physical.row_windows:
        top = _Box(
            "events in the order of time",
            "panes",
            f"by {', '.join(some.keys)}" if some.keys else "",
            describe_row_windows(some),
        )
        top.below = [_Box(name, "window", "", f"{name}; {describe_row_windows(some)}") for name in some.windows]
        stream.below.append(top)
    return stream


def _rate(per_second: float) -> str:
    """Return a rate in the smallest unit in which it is at least 1.

    Examples
    --------
    >>> _rate(0.003333333), _rate(1200.0)
    ('12/h', '1,200/s')
    """
    units = {"s": 1, "min": 60, "h": 3600, "d": 86400}
    unit = next((unit for unit, seconds in units.items() if per_second * seconds >= 1), "d")
    return f"{per_second * units[unit]:,.4g}/{unit}"


def _bounded(physical: PhysicalPlan) -> _Box:
    """Return a tree that fits a page, with the first and last of many siblings."""
    for first, last in _SIBLINGS:
        root = _boxes(physical)
        _shorten(root, first, last)
        if sum(not box.below for box in _all(root)) <= _ROWS:
            break
    return root


def _shorten(root: _Box, first: int, last: int) -> None:
    boxes = [root]
    while boxes:
        box = boxes.pop()
        if len(box.below) > first + last + 1:
            between = box.below[first : len(box.below) - last]
            hidden = sum(1 for child in between for _ in _all(child))
            box.below[first : len(box.below) - last] = [_Box(f"… {hidden:,} more", "more")]
        boxes += box.below


def _all(root: _Box) -> Iterator[_Box]:
    boxes = [root]
    while boxes:
        box = boxes.pop()
        yield box
        boxes += box.below


def _gather(box: _Box, depth: int, levels: list[list[_Box]]) -> None:
    if depth == len(levels):
        levels.append([])
    levels[depth].append(box)
    for child in box.below:
        _gather(child, depth + 1, levels)


def _place(box: _Box, row: float) -> float:
    """Place a box and everything below it from a row on, and return how many rows they take."""
    taken = 0.0
    for child in box.below:
        taken += _place(child, row + taken)
    middle = row if not box.below else (box.below[0].y + box.below[-1].y) / 2
    box.y = middle
    return max(taken, 1)


def _middle(box: _Box) -> float:
    return box.y * _ROW + _ROW / 2


def _arrow(box: _Box, child: _Box) -> str:
    x, y, to_x, to_y = box.x + box.width, _middle(box), child.x, _middle(child)
    bend = (x + to_x) / 2
    curve = f"M{x:.0f},{y:.0f} C{bend:.0f},{y:.0f} {bend:.0f},{to_y:.0f} {to_x:.0f},{to_y:.0f}"
    return f'<path d="{curve}" fill="none" stroke="#8a94a3"/>'


def _rectangle(box: _Box) -> str:
    fill, ink, line = _LOOKS[box.kind]
    x, y = box.x + _PADDING, _middle(box)
    note = f"<title>{escape(box.note)}</title>" if box.note else ""
    texts = [(y + 4, "", box.shown)]
    if box.line:
        texts = [(y - 3, "", box.shown), (y + 13, ' opacity="0.7"', box.line)]
    return (
        f'<g>{note}<rect x="{box.x:.0f}" y="{y - _HEIGHT / 2:.0f}" width="{box.width:.0f}" height="{_HEIGHT}" rx="6" '
        f'fill="{fill}" stroke="#1f3a5f"{line}/>'
        + "".join(
            f'<text x="{x:.0f}" y="{at:.0f}" fill="{ink}"{look}>{escape(text)}</text>' for at, look, text in texts
        )
        + "</g>"
    )
