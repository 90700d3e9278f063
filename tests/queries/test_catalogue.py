"""What a catalogue takes in, without a job that reads it."""

from __future__ import annotations

import pytest

import panes as pn
from panes.errors import DeclarationError, SqlError

DAILY = "-- name: daily\nSELECT k, COUNT(*) AS n FROM ev TIMESTAMP BY ts GROUP BY k, TumblingWindow(day, 1)"


@pytest.fixture
def catalogue(tmp_path):
    return pn.Catalogue(str(tmp_path / "catalogue"))


def entries(catalogue):
    return [text.partition('"name"')[2] for _, text in catalogue._entries()]


def test_sql_text_registers_what_the_query_does(catalogue, tmp_path):
    other = pn.Catalogue(str(tmp_path / "other"))
    hourly = DAILY.replace("daily", "hourly").replace("(day, 1)", "(hour, 1)")
    catalogue.register(f"{DAILY};\n{hourly}")
    for name, size in (("daily", "1 day"), ("hourly", "1 hour")):
        other.register(pn.query(name, by="k", at="ts", select={"n": pn.count()}, over=pn.tumbling(size)))
    assert catalogue.list() == other.list()
    assert entries(catalogue) == entries(other)


def test_groups_are_keys_on_the_clock(catalogue, tmp_path):
    other = pn.Catalogue(str(tmp_path / "other"))
    asked = {"at": "ts", "select": {"n": pn.count()}, "over": pn.tumbling("1 day")}
    catalogue.register(pn.query("q", by="k", groups="g", **asked))
    other.register(pn.query("q", by=["k", "g"], **asked))
    assert entries(catalogue) == entries(other)


def test_nothing_is_written_where_one_query_cannot_be(catalogue):
    catalogue.register(DAILY)
    with pytest.raises(DeclarationError, match="has a query 'daily' already"):
        catalogue.register(f"{DAILY.replace('daily', 'another')};\n{DAILY}")
    with pytest.raises(DeclarationError, match=r"10rows/event depends on rows.*Declare it when the stream starts"):
        catalogue.register(
            "SELECT COUNT(*) AS n FROM ev TIMESTAMP BY ts [RANGE 1 DAY SLIDE 1 HOUR];"
            "SELECT COUNT(*) AS n FROM ev TIMESTAMP BY ts [ROWS 10]"
        )
    with pytest.raises(SqlError, match="EXPLAIN asks for a plan"):
        catalogue.register(f"EXPLAIN {DAILY.partition(chr(10))[2]}")
    with pytest.raises(SqlError, match="expected SELECT"):
        catalogue.register("daily")
    with pytest.raises(DeclarationError, match="5 is not a query"):
        catalogue.register(5)
    assert [listed.name for listed in catalogue.list()] == ["daily"]
