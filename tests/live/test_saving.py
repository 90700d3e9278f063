"""An index that is saved and loaded answers as before, and goes on as if nothing had happened."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

import panes as pn
from panes.errors import DeclarationError, PlanError, StateError
from panes.live.saving import FORMAT
from panes.testing import events
from tests.live.test_index import ALTERNATING, ANY, VALUES, assert_same

SKETCHED = {
    "distinct": pn.approx_count_distinct("s"),
    "about": pn.approx_quantile("i", 0.5),
    "often": pn.top("s", 3),
}


@pytest.mark.parametrize("keep", ["100 s", 30])
@pytest.mark.parametrize("by", [(), ("k",), ("k", "m")])
def test_it_goes_on(tmp_path, keep, by):
    table = events(300, keys={"k": pa.string(), "m": pa.int32()}, values=VALUES, special=0.05, seed=9).sort_by("ts")
    select = {**ANY, **SKETCHED}
    index = pn.Index(select, by=by, at="ts", keep=keep, where="i IS NULL OR i > -90")
    index.update(table.slice(0, 200))
    index.save(tmp_path / "index")
    loaded = pn.Index.load(tmp_path / "index")
    requests = table.select(["k", "m"]).slice(0, 30)
    window = {"over": "30 s"} if isinstance(keep, str) else {"last": 12, "skip": 3}
    for _ in range(2):
        assert_same(loaded.lookup(requests, **window), index.lookup(requests, **window))
        assert (loaded.rows, loaded.left_out, loaded.null_times) == (index.rows, index.left_out, index.null_times)
        for one in (index, loaded):
            one.update(table.slice(200))
    with pytest.raises(PlanError):
        loaded.lookup(requests, **({"over": "101 s"} if isinstance(keep, str) else {"last": 31}))


def test_what_has_left_is_known_to_have_left(tmp_path):
    index = pn.Index({"n": pn.count()}, at="ts", keep=2)
    index.update(pa.table({"ts": pa.array([1, 2, 3], pa.timestamp("us"))}))
    index.save(tmp_path / "index")
    loaded = pn.Index.load(tmp_path / "index")
    request = pa.table({"from": pa.array([1], pa.timestamp("us")), "to": pa.array([9], pa.timestamp("us"))})
    with pytest.raises(PlanError, match="before the last 2 rows"):
        loaded.lookup(request)
    assert loaded.lookup(pa.table({"r": [1]}), last=2)["n"].to_pylist() == [2]


def test_an_aggregate_of_your_own_has_to_be_given_again(tmp_path):
    table = events(50, keys={}, values=VALUES, nulls=0.0, seed=2).sort_by("ts")
    select = {"halved": ALTERNATING, "n": pn.count()}
    index = pn.Index(select, at="ts", keep="1 day")
    index.update(table)
    index.save(tmp_path / "index")
    with pytest.raises(DeclarationError, match="functions are not saved"):
        pn.Index.load(tmp_path / "index")
    loaded = pn.Index.load(tmp_path / "index", select=select)
    requests = pa.table({"r": [1]})
    assert_same(loaded.lookup(requests, over="1 h"), index.lookup(requests, over="1 h"))
    with pytest.raises(StateError, match=r"the file holds .halved.: halved\(x\)"):
        pn.Index.load(tmp_path / "index", select={"top": pn.max("i")})


def test_files_that_are_no_index(tmp_path):
    path = tmp_path / "index"
    for content in (b"", b"nothing", np.arange(99).tobytes()):
        path.write_bytes(content)
        with pytest.raises(StateError, match="is not an index that Panes saved"):
            pn.Index.load(path)
    index = pn.Index({"n": pn.count()}, at="ts", keep=2)
    with pytest.raises(PlanError, match="nothing to save"):
        index.save(path)
    index.update(pa.table({"ts": pa.array([1], pa.timestamp("us"))}))
    index.save(path)
    data = path.read_bytes()
    newer = data.replace(json.dumps({"format": FORMAT})[:-1].encode(), json.dumps({"format": 9})[:-1].encode())
    assert newer != data
    path.write_bytes(newer)
    with pytest.raises(StateError, match="written in format 9"):
        pn.Index.load(path)
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(StateError, match="is not an index"):
        pn.Index.load(path)


def test_one_file_and_nothing_beside_it(tmp_path):
    index = pn.Index({"n": pn.count()}, at="ts", keep=2)
    index.update(pa.table({"ts": pa.array([1], pa.timestamp("us"))}))
    for _ in range(2):
        index.save(tmp_path / "index")
    assert [path.name for path in tmp_path.iterdir()] == ["index"]
