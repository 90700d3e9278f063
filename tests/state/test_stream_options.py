"""Options of a stream are checked before anything else: for windows of all kinds, and whatever the data are."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import panes as pn
from panes.errors import PlanError

WINDOWS = {
    "on the clock": pn.tumbling("5 s"),
    "sliding": pn.sliding("5 s"),
    "of rows": pn.sliding(pn.rows(3)),
    "a session": pn.session("5 s"),
    "until a mark": pn.tumbling(pn.punctuation("done")),
}


def planned(*over: Any, **more: Any) -> pn.Plan:
    return pn.plan(pn.query("q", by="k", at="ts", select=more.pop("select", {"n": pn.count()}), over=over, **more))


@pytest.mark.parametrize("over", WINDOWS.values(), ids=WINDOWS)
@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"mode": "complete"}, r"mode='complete': write 'append' .* or 'update' .*would never end"),
        ({"mode": ["append"]}, r"mode=\['append'\]: write 'append'"),
        ({"late": "drop"}, "late='drop': write 'count', or 'emit'"),
        ({"shards": 0}, "shards=0: write a whole number from 1 to 1024"),
        ({"shards": "4"}, "shards='4': write a whole number"),
        ({"layout": "tall"}, "layout='tall': write 'long'"),
        ({"empty": 1}, "empty=1: write True"),
    ],
    ids=str,
)
def test_a_value_that_no_stream_takes(over: Any, option: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        planned(over).stream(pa.table({}), **option)


@pytest.mark.parametrize("option", [{"late": "emit"}, {"limits": pn.Limits(keys=1)}], ids=str)
def test_what_windows_of_rows_do_not_have(option: dict[str, Any]) -> None:
    name = next(iter(option))
    refused = f"{name}=.* is for windows on the clock and sliding windows.*'3rows/event', which is one of rows"
    with pytest.raises(PlanError, match=refused):
        planned(WINDOWS["on the clock"], WINDOWS["of rows"]).stream(pa.table({}), **option)


@pytest.mark.parametrize("kind", ["sliding", "of rows", "a session", "until a mark"])
def test_windows_whose_answers_are_final_are_not_updated(kind: str) -> None:
    with pytest.raises(PlanError, match=r"of query 'q' come once.* are final. Stream them with mode='append'"):
        planned(WINDOWS[kind]).stream(pa.table({}), mode="update")
    with pytest.raises(PlanError, match="Declare these windows in a query of their own"):
        planned(WINDOWS["on the clock"], WINDOWS[kind]).stream(pa.table({}), mode="update")


def test_options_that_do_not_fit_each_other(tmp_path: Any) -> None:
    clock = WINDOWS["on the clock"]
    with pytest.raises(PlanError, match="empty=True needs mode='append'"):
        planned(clock).stream(pa.table({}), empty=True, mode="update")
    for option in ({"mode": "update"}, {"late": "emit"}, {"catalogue": pn.Catalogue(str(tmp_path))}):
        with pytest.raises(PlanError, match=f"layout='wide' with {next(iter(option))}=.* Take layout='long'"):
            planned(clock).stream(pa.table({}), layout="wide", **option)
    with pytest.raises(PlanError, match="5s and 1m/event come out at different times"):
        planned(clock, pn.sliding("1 min")).stream(pa.table({}), layout="wide")
    with pytest.raises(PlanError, match="several of which may share an instant"):
        planned(WINDOWS["of rows"]).stream(pa.table({}), layout="wide")
    with pytest.raises(PlanError, match="has a column 'kind', which rows of this stream use"):
        planned(clock, select={"kind": pn.count()}).stream(pa.table({}), late="emit")


def test_queries_of_several_event_times() -> None:
    queries = [pn.query(at, at=at, by="k", select={"n": pn.count()}, over=pn.tumbling("5 s")) for at in ("ts", "sent")]
    with pytest.raises(PlanError, match=r"several event times \(ts, sent\), but a stream has one watermark"):
        pn.plan(queries).stream(pa.table({}))


def test_options_that_fit_lead_to_the_data() -> None:
    with pytest.raises(PlanError, match="takes a streaming DataFrame, and was given a Table"):
        planned(*WINDOWS.values()).stream(pa.table({}))
