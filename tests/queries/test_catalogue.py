"""What a catalogue takes in, without a job that reads it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from pyarrow.fs import LocalFileSystem

import panes as pn
from panes.errors import DeclarationError, SqlError
from panes.queries.catalogue_entries import read_entry

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


def damaged_anywhere(data):
    """Every bit of every byte flipped, all of them, and cut at every length."""
    for i, byte in enumerate(data):
        for flipped in (*(1 << bit for bit in range(8)), 0xFF):
            yield data[:i] + bytes([byte ^ flipped]) + data[i + 1 :]
        yield data[:i]


@pytest.mark.parametrize("action", ["register", "suspend"])
def test_a_damaged_entry_registers_nothing_else(catalogue, tmp_path, action):
    over = pn.nested(["2 s", "6 s"], ["1 s", "3 s"], since="2026-01-01", bounds="(]")
    catalogue.register(pn.query("q", by="é", at="ts", select={"n": pn.count()}, over=over, where="x > 0"))
    catalogue.suspend("q")
    file = next(path for path in sorted((tmp_path / "catalogue").iterdir()) if action in path.read_text())
    whole = read_entry(file.read_text())
    assert whole.action == action
    for other in damaged_anywhere(file.read_bytes()):
        # The digits of an escaped letter mean the same in either case.
        if b"u00E9" in other:
            assert read_entry(other.decode()) == whole
            continue
        with pytest.raises(DeclarationError, match=r"^not a catalogue entry: "):
            read_entry(other.decode(errors="replace"))


def test_an_entry_may_be_written_by_hand(catalogue, tmp_path):
    window = {"name": "1h", "range": 3_600_000_000, "slide": 3_600_000_000, "offset": 0}
    data = {"format": 1, "action": "register", "name": "by hand", "at": "ts", "by": ["k"], "where": None}
    data |= {"select": {"n": "count('1')"}, "over": [window]}
    (tmp_path / "catalogue" / "00000001-mine.json").write_text(json.dumps(data, indent=2))
    catalogue.register(pn.query("made", by="k", at="ts", select={"n": pn.count()}, over=pn.tumbling("1 hour")))
    assert [(listed.name, listed.windows) for listed in catalogue.list()] == [("by hand", ("1h",)), ("made", ("1h",))]
    by_hand, made = (read_entry(text) for _, text in catalogue._entries())
    assert replace(by_hand, name="made") == made


def test_a_change_that_cannot_be_written_leaves_no_file(catalogue, tmp_path):
    def fails(self, *_):
        raise OSError("no space left on device")

    catalogue._files = type("Files", (), {"__getattr__": lambda _, name: getattr(files, name), "move": fails})()
    files = LocalFileSystem()
    with pytest.raises(OSError, match="no space left"):
        catalogue.register(DAILY)
    assert not list((tmp_path / "catalogue").iterdir())
