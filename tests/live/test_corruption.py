"""A damaged file of a live plan is refused with a sentence that names it: never a wrong answer, never a crash."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

import panes as pn
from panes.errors import StateError
from panes.live.saving import load
from tests.damage import damaged, damaged_in_place

EVENTS = pa.table({"ts": pa.array([1, 2, 3], pa.timestamp("us")), "k": ["a", "b", "a"], "v": [5, 6, 7]})
NESTED = pn.nested(["5 s", "60 s"], ["1 s", "10 s"])


def saved(path, keep, *, index=False):
    over = pn.sliding(pn.rows(1)) if keep == pn.rows(2) else pn.sliding("1 s")
    plan = pn.plan(pn.query(by="k", at="ts", select={"n": pn.count(), "total": pn.sum("v")}, over=over))
    live = plan.live(keep)
    if index:
        live.add_index("total")
    live.update(EVENTS)
    live.save(path)
    return plan


KINDS = {
    "events": {"keep": "1 h"},
    "rows": {"keep": pn.rows(2)},
    "granules": {"keep": NESTED},
    "index": {"keep": "1 h", "index": True},
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_is_refused(tmp_path, kind):
    path = tmp_path / "live"
    queries = saved(path, **KINDS[kind]).queries
    assert load(path, queries, None, None).rows
    message = f"^{re.escape(repr(str(path)))} is not a complete file of live.save"
    for _ in damaged_in_place(path):
        with pytest.raises(StateError, match=message):
            load(path, queries, None, None)


def test_the_plan_says_so_too(tmp_path):
    path = tmp_path / "live"
    plan = saved(path, "1 h")
    whole = path.read_bytes()
    for other in list(damaged(whole))[:: len(whole) // 10]:
        path.write_bytes(other)
        with pytest.raises(StateError, match="Load an earlier file, or build the plan anew from the events"):
            plan.live(load=path)
