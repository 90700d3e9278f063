"""A plan as a picture: what is read from what, from the left to the right, as SVG."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

from panes.planning.blueprint import Blueprint
from panes.planning.picture import panes_of_store, title_of, window_title

_ROW, _GAP, _HEIGHT, _LETTER, _PADDING, _MARGIN = 44, 60, 30, 7.2, 12, 20
_LOOKS = {
    "events": ("#1f3a5f", "#ffffff", ""),
    "panes": ("#dbe7f3", "#1f3a5f", ""),
    "factor": ("#ffffff", "#1f3a5f", ' stroke-dasharray="5 4"'),
    "window": ("#f3efe0", "#3a3220", ""),
}
"""Fill, text and line of a box."""


@dataclass
class _Box:
    text: str
    kind: str
    note: str = ""
    below: list[_Box] = field(default_factory=list)
    x: float = 0
    y: float = 0

    @property
    def width(self) -> float:
        return len(self.text) * _LETTER + 2 * _PADDING


def svg(blueprint: Blueprint) -> str:
    """The stream, the panes of each store, factor windows (dashed) and the user's windows, as a tree."""
    root = _boxes(blueprint)
    levels: list[list[_Box]] = []
    _gather(root, 0, levels)
    x = float(_MARGIN)
    for level in levels:
        for box in level:
            box.x = x
        x += max(box.width for box in level) + _GAP
    rows = _place(root, 0)
    width, height = x - _GAP + _MARGIN, rows * _ROW + 2 * _MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" font-family="ui-monospace, monospace" font-size="12">',
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
    ]
    for level in levels:
        for box in level:
            lines += [_arrow(box, child) for child in box.below]
    for level in levels:
        lines += [_drawn(box) for box in level]
    return "\n".join([*lines, "</svg>", ""])


def _boxes(blueprint: Blueprint) -> _Box:
    """What is read from what; a store that is answered from the panes of another hangs there."""
    stream = _Box("events", "events")
    stores: list[_Box] = []
    for store in blueprint.stores:
        origin = stream if store.source is None else stores[store.source]
        top = origin
        if store.strategy == "columnar":
            top = _Box(panes_of_store(store), "panes", title_of(store))
            origin.below.append(top)
        stores.append(top)
        boxes = {
            node.window: _Box(
                window_title(store, node.window),
                "factor" if node.factor else "window",
                f"{node.cost * 1e6:,.4g} rows per second and key; {title_of(store)}",
            )
            for node in store.forest.nodes
        }
        for node in store.forest.nodes:
            (top if node.provider is None else boxes[node.provider]).below.append(boxes[node.window])
    return stream


def _gather(box: _Box, depth: int, levels: list[list[_Box]]) -> None:
    if depth == len(levels):
        levels.append([])
    levels[depth].append(box)
    for child in box.below:
        _gather(child, depth + 1, levels)


def _place(box: _Box, row: float) -> float:
    """Give rows to a box and everything below it, from a row on; says how many they took."""
    taken = 0.0
    for child in box.below:
        taken += _place(child, row + taken)
    middle = row if not box.below else (box.below[0].y + box.below[-1].y) / 2
    box.y = middle
    return max(taken, 1)


def _middle(box: _Box) -> float:
    return _MARGIN + box.y * _ROW + _ROW / 2


def _arrow(box: _Box, child: _Box) -> str:
    x, y, to_x, to_y = box.x + box.width, _middle(box), child.x, _middle(child)
    bend = (x + to_x) / 2
    curve = f"M{x:.0f},{y:.0f} C{bend:.0f},{y:.0f} {bend:.0f},{to_y:.0f} {to_x:.0f},{to_y:.0f}"
    return f'<path d="{curve}" fill="none" stroke="#8a94a3"/>'


def _drawn(box: _Box) -> str:
    fill, ink, line = _LOOKS[box.kind]
    y = _middle(box)
    note = f"<title>{escape(box.note)}</title>" if box.note else ""
    return (
        f'<g>{note}<rect x="{box.x:.0f}" y="{y - _HEIGHT / 2:.0f}" width="{box.width:.0f}" height="{_HEIGHT}" rx="6" '
        f'fill="{fill}" stroke="#1f3a5f"{line}/>'
        f'<text x="{box.x + _PADDING:.0f}" y="{y + 4:.0f}" fill="{ink}">{escape(box.text)}</text></g>'
    )
