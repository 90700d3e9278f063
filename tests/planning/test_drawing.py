"""Plans as pictures: readable, however many windows there are."""

from __future__ import annotations

from xml.etree import ElementTree

import panes as pn
from panes.queries.windows import Cumulate, Window

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*over: Window | Cumulate, by: str = "device") -> tuple[list[str], float]:
    """The texts of a picture, and its height."""
    query = pn.query("q", at="ts", by=by, select={"n": pn.count()}, over=over)
    picture = ElementTree.fromstring(pn.plan(query, rate=1000).to_svg())
    return [text.text or "" for text in picture.iter(f"{SVG}text")], float(picture.attrib["height"])


def test_costs_and_the_saving_are_in_the_picture() -> None:
    texts, _ = drawn(pn.tumbling("20 min"), pn.tumbling("30 min"), pn.hopping("1 hour", every="30 min"))
    assert "1 query, 3 windows, 1 pass over the events" in texts
    assert any("Spark's own windows" in text and text.endswith("× cheaper") for text in texts)
    assert any(text.strip().startswith("windows read ") for text in texts)
    assert {"1,000/s", "100 keys", "reads 4/h per key"} <= set(texts)
    assert not any("dashed" in text for text in texts), "there is no factor window"


def test_many_windows_are_drawn_in_part() -> None:
    hours, few = drawn(pn.cumulate("1 hour", upto="4 hours"))
    assert {f"4h by 1h, first {hour}h" for hour in range(1, 5)} <= set(hours)
    assert not any("more" in text for text in hours)
    minutes, many = drawn(pn.cumulate("1 minute", upto="1 day"))
    assert any(text.startswith("… ") and text.endswith(" more") for text in minutes)
    assert few < many < 2500


def test_long_names_are_cut_where_they_are_drawn() -> None:
    texts, _ = drawn(pn.tumbling("20 min", name="<" + "a" * 100), pn.tumbling("30 min"), by="k" * 100)
    assert "<" + "a" * 38 + "…" in texts
