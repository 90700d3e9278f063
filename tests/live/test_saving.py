"""A live plan that is saved and loaded answers as before, and goes on as if nothing had happened."""

from __future__ import annotations

import errno
import os
import threading

import numpy as np
import pyarrow as pa
import pytest

import panes as pn
from panes.errors import PlanError, StateError
from panes.live import saving
from panes.live.saving import FORMAT
from panes.sealed import OVERHEAD, seal
from panes.testing import events
from tests.live.test_index import ALTERNATING, ANY, VALUES, assert_same

SKETCHED = {
    "distinct": pn.approx_count_distinct("s"),
    "about": pn.approx_quantile("i", 0.5),
    "often": pn.top("s", 3),
}


def plan_of(select, *, keep, by=(), where=None):
    over = pn.sliding("1 us") if isinstance(keep, str) else pn.sliding(pn.rows(1))
    return pn.plan(pn.query(by=by, at="ts", select=select, over=over, where=where))


@pytest.mark.parametrize("keep", ["100 s", pn.rows(30)], ids=str)
@pytest.mark.parametrize("by", [(), ("k",), ("k", "m")])
def test_it_goes_on(tmp_path, keep, by):
    table = events(300, keys={"k": pa.string(), "m": pa.int32()}, values=VALUES, special=0.05, seed=9).sort_by("ts")
    plan = plan_of({**ANY, **SKETCHED, "exact": pn.count_distinct("s")}, by=by, keep=keep, where="i IS NULL OR i > -90")
    live = plan.live(keep)
    live.update(table.slice(0, 200))
    live.save(tmp_path / "live")
    loaded = plan.live(load=tmp_path / "live")
    requests = table.select(["k", "m"]).slice(0, 30)
    window = {"over": "30 s"} if isinstance(keep, str) else {"over": pn.rows(12), "ago": pn.rows(3)}
    for _ in range(2):
        assert_same(loaded.lookup(requests, **window), live.lookup(requests, **window))
        assert_same(loaded.lookup(requests), live.lookup(requests))
        assert (loaded.rows, loaded.left_out, loaded.null_times) == (live.rows, live.left_out, live.null_times)
        for one in (live, loaded):
            one.update(table.slice(200))
    with pytest.raises(PlanError):
        loaded.lookup(requests, over="101 s" if isinstance(keep, str) else pn.rows(31))


def test_indexes_are_there_again(tmp_path):
    plan = plan_of({"total": pn.sum("v"), "top": pn.max("v")}, by="k", keep="1 h")
    live = plan.live("1 h")
    live.add_index("total", p=2)
    live.add_index("top")
    live.update(pa.table({"ts": pa.array([1, 2, 3], pa.timestamp("us")), "k": ["a", "b", "a"], "v": [5, 6, 7]}))
    live.save(tmp_path / "live")
    loaded = plan.live(load=tmp_path / "live")
    assert loaded.explain("total > 7", over="1 s") == "query: the index of total gives candidates, which are checked"
    for condition in ("total > 7", "top > 5"):
        assert loaded.find(condition, over="1 s").equals(live.find(condition, over="1 s"))
        assert loaded.find(condition, over="1 s").num_rows


def test_granules_go_on(tmp_path):
    plan = plan_of({"n": pn.count(), "mid": pn.quantile("v", 0.5)}, by="k", keep="1 h")
    live = plan.live(pn.nested(["5 s", "60 s"], ["1 s", "10 s"]))
    ts = pa.array(np.arange(100) * 1_000_000, pa.timestamp("us"))
    table = pa.table({"ts": ts, "k": ["a", "b"] * 50, "v": np.arange(100) % 7})
    live.update(table.slice(0, 70))
    live.save(tmp_path / "live")
    loaded = plan.live(load=tmp_path / "live")
    for _ in range(2):
        for over in ("3 s", "25 s", "60 s"):
            assert loaded.find(over=over).num_rows == 2
            assert loaded.find(over=over).equals(live.find(over=over))
        assert (loaded.rows, loaded.left_out) == (live.rows, live.left_out)
        for one in (live, loaded):
            one.update(table.slice(70))


def test_what_has_left_is_known_to_have_left(tmp_path):
    plan = plan_of({"n": pn.count()}, keep=pn.rows(2))
    live = plan.live(pn.rows(2))
    live.update(pa.table({"ts": pa.array([1, 2, 3], pa.timestamp("us"))}))
    live.save(tmp_path / "live")
    loaded = plan.live(load=tmp_path / "live")
    request = pa.table({"from": pa.array([1], pa.timestamp("us")), "to": pa.array([9], pa.timestamp("us"))})
    with pytest.raises(PlanError, match="the last 2 rows"):
        loaded.lookup(request, over=("from", "to"))
    assert loaded.lookup(pa.table({"r": [1]}), over=pn.rows(2))["n"].to_pylist() == [2]


def test_it_is_loaded_with_the_plan_that_it_was_saved_with(tmp_path):
    table = events(50, keys={}, values=VALUES, nulls=0.0, seed=2).sort_by("ts")
    plan = plan_of({"halved": ALTERNATING, "n": pn.count()}, keep="1 day")
    live = plan.live("1 day")
    live.update(table)
    live.save(tmp_path / "live")
    loaded = plan.live(load=tmp_path / "live")
    requests = pa.table({"r": [1]})
    assert_same(loaded.lookup(requests, over="1 h"), live.lookup(requests, over="1 h"))
    with pytest.raises(StateError, match=r"select=.'halved': 'halved\(x\)'"):
        plan_of({"top": pn.max("i")}, keep="1 day").live(load=tmp_path / "live")
    with pytest.raises(StateError, match="keep= is"):
        plan.live("2 days", load=tmp_path / "live")
    assert plan.live("1 day", load=tmp_path / "live").rows == 50


def test_files_that_are_no_live_plan(tmp_path):
    path, plan = tmp_path / "live", plan_of({"n": pn.count()}, keep=pn.rows(2))
    for content in (b"", b"nothing", np.arange(99).tobytes()):
        path.write_bytes(content)
        with pytest.raises(StateError, match=r"is not a complete file of live.save"):
            plan.live(load=path)
    with pytest.raises(StateError, match="elsewhere' cannot be read: No such file"):
        plan.live(load=tmp_path / "elsewhere")
    with pytest.raises(StateError, match="cannot be read: Is a directory"):
        plan.live(load=tmp_path)
    live = plan.live(pn.rows(2))
    live.save(path)
    assert plan.live(load=path).rows == 0
    live.update(pa.table({"ts": pa.array([1], pa.timestamp("us"))}))
    live.save(path)
    data = path.read_bytes()
    path.write_bytes(seal(data[OVERHEAD:], 9))
    with pytest.raises(StateError, match=f"written in format 9, and this version of Panes reads {FORMAT}"):
        plan.live(load=path)
    # Files of format 2 and before were not sealed.
    path.write_bytes(data[OVERHEAD:])
    with pytest.raises(StateError, match=f"written in an old format, and this version of Panes reads {FORMAT}"):
        plan.live(load=path)


def test_one_file_and_nothing_beside_it(tmp_path):
    live = plan_of({"n": pn.count()}, keep="1 h").live("1 h")
    live.update(pa.table({"ts": pa.array([1], pa.timestamp("us"))}))
    for _ in range(2):
        live.save(tmp_path / "live")
    assert [path.name for path in tmp_path.iterdir()] == ["live"]


@pytest.mark.parametrize(
    ("saved", "other"),
    [
        (pn.sliding("5 us", name="recent"), pn.sliding("1 s", name="recent")),
        (pn.tumbling("5 us"), pn.tumbling("5 us", bounds="(]")),
    ],
)
def test_a_window_of_the_same_name_is_another(tmp_path, saved, other):
    plans = [pn.plan(pn.query(at="ts", select={"n": pn.count()}, over=over)) for over in (saved, other)]
    live = plans[0].live()
    live.update(pa.table({"ts": pa.array([1, 2, 30], pa.timestamp("us"))}))
    live.save(tmp_path / "live")
    with pytest.raises(StateError, match="Load it with the plan that it was saved with"):
        plans[1].live(load=tmp_path / "live")
    assert plans[0].live(load=tmp_path / "live").rows == live.rows


def small(rows=3):
    plan = pn.plan(pn.query(by="k", at="ts", select={"n": pn.count()}, over=pn.sliding("1 s")))
    live = plan.live()
    ts = pa.array(range(rows), pa.timestamp("us"))
    live.update(pa.table({"ts": ts, "k": ["a", "b"] * (rows // 2) + ["a"] * (rows % 2)}))
    return plan, live


def test_a_save_that_fails_leaves_what_was_there(tmp_path, monkeypatch):
    plan, live = small()
    live.save(tmp_path / "live")
    live.update(pa.table({"ts": pa.array([9], pa.timestamp("us")), "k": ["z"]}))
    writers = iter([pa.ipc.new_stream])

    def breaks(file, schema, **options):
        """The disk is full after the first table."""
        for new_stream in writers:
            return new_stream(file, schema, **options)
        raise OSError(errno.ENOSPC, "no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(pa.ipc, "new_stream", breaks)
        with pytest.raises(OSError, match="no space left"):
            live.save(tmp_path / "live")
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(errno.EIO, "broken disk")))
    with pytest.raises(OSError, match="broken disk"):
        live.save(tmp_path / "live")
    assert [path.name for path in tmp_path.iterdir()] == ["live"]
    assert plan.live(load=tmp_path / "live").rows == 3


def test_a_saved_file_has_the_mode_that_open_gives_it_and_keeps_its_own(tmp_path):
    _, live = small()
    before = os.umask(0o027)
    try:
        live.save(tmp_path / "live")
        assert (tmp_path / "live").stat().st_mode & 0o777 == 0o640
        (tmp_path / "live").chmod(0o600)
        live.save(tmp_path / "live")
    finally:
        os.umask(before)
    assert (tmp_path / "live").stat().st_mode & 0o777 == 0o600


def test_a_link_stays_one(tmp_path):
    plan, live = small()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "live").symlink_to(tmp_path / "elsewhere" / "file")
    live.save(tmp_path / "live")
    assert (tmp_path / "live").is_symlink()
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["file"]
    assert plan.live(load=tmp_path / "live").rows == 3


def test_some_save_while_others_load(tmp_path):
    path, wrong = tmp_path / "live", list[object]()
    plan, first = small(3)
    first.save(path)

    def saves(rows):
        _, live = small(rows)
        for _ in range(20):
            live.save(path)

    def loads():
        try:
            wrong.extend(rows for _ in range(20) if (rows := plan.live(load=path).rows) not in (3, 40, 41))
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=saves, args=(rows,)) for rows in (40, 41)]
    threads += [threading.Thread(target=loads) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert [path.name for path in tmp_path.iterdir()] == ["live"]


def test_what_was_loaded_does_not_depend_on_the_file(tmp_path):
    plan, live = small()
    live.save(tmp_path / "live")
    loaded = plan.live(load=tmp_path / "live")
    # Not as a save would do it: in place.
    (tmp_path / "live").write_bytes(b"something else")
    assert_same(loaded.lookup(pa.table({"k": ["a"]})), live.lookup(pa.table({"k": ["a"]})))


def test_sql_that_was_spelt_otherwise_is_the_same(tmp_path, monkeypatch):
    """As by a version of the parser that kept blanks and parentheses."""

    def planned(doubled="v * 2", where="v > 0"):
        select = {"total": pn.sum(doubled), "more": "total + 1"}
        return pn.plan(pn.query(by="k", at="ts", select=select, over=pn.sliding("1 s"), where=where))

    plan = planned()
    live = plan.live()
    live.update(pa.table({"ts": pa.array([1, 2], pa.timestamp("us")), "k": ["a", "a"], "v": [5, -7]}))
    declared = saving.text_of

    def otherwise(query):
        text = declared(query)
        spelt = {"select": {"total": "sum((v)*2)"}, "arguments": {"total": ["(v)*2"]}, "where": "(v>0)"}
        assert not any(text[what] == value for what, value in spelt.items())
        return {**text, **spelt, "derived": {"more": "(total)+1"}}

    with monkeypatch.context() as patch:
        patch.setattr(saving, "text_of", otherwise)
        live.save(tmp_path / "live")
    found = plan.live(load=tmp_path / "live").lookup(pa.table({"k": ["a"]}), over="1 s")
    assert found["more"].to_pylist() == [11]
    for other in (planned(doubled="v * 3"), planned(where="v >= 0")):
        with pytest.raises(StateError, match="Load it with the plan that it was saved with"):
            other.live(load=tmp_path / "live")
