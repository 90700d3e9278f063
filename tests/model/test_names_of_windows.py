"""The table of names in the tour says what windows are called."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import panes as pn

TOUR = Path(__file__).parents[2] / "docs" / "tour.md"
ROWS = re.findall(r"^\| `(pn\..*?)` \| `([^`]*)` \| (?:`total_([^`]*)` )?\|$", TOUR.read_text(), re.MULTILINE)


def test_the_table_is_there():
    assert len(ROWS) == 9


@pytest.mark.parametrize(("written", "name", "suffix"), ROWS)
def test_a_row(written, name, suffix):
    window = eval(written, {"pn": pn})
    assert window.names == (name,)
    assert suffix in ("", *window.suffixes)
