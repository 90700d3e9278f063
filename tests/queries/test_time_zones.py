import datetime as dt
import warnings
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import panes as pn
from panes.errors import ZoneWarning
from panes.queries import time_zones
from panes.queries.time_zones import off_grid, offsets_of, warn_of_zone

NEW_YORK, KOLKATA = "America/New_York", "Asia/Kolkata"
QUERY = pn.query(by="k", at="ts", select={"n": pn.count()}, over=pn.tumbling("1 day"))


@pytest.fixture(autouse=True)
def _nothing_was_said(monkeypatch):
    monkeypatch.setattr(time_zones, "_warned", set())


def hours(zone, day, count):
    """An event per hour of real time from local midnight of a day."""
    first = dt.datetime(*day, tzinfo=ZoneInfo(zone)).astimezone(dt.UTC)
    times = [first + dt.timedelta(hours=h) for h in range(count)]
    return pa.table({"ts": pa.array(times, pa.timestamp("us", zone)), "k": ["a"] * count, "x": list(range(count))})


def windows_of(table):
    return [(f"{row['window']['start']:%d %H:%M}", row["n"]) for row in table.to_pylist()]


@pytest.mark.parametrize(
    ("zone", "window", "off"),
    [
        ("UTC", pn.tumbling("1 day"), False),
        (NEW_YORK, pn.tumbling("1 hour"), False),
        (NEW_YORK, pn.tumbling("1 day"), True),
        (NEW_YORK, pn.tumbling("1 day", offset="5 hours"), True),
        (NEW_YORK, pn.hopping("1 day", every="1 hour"), False),
        (NEW_YORK, pn.tumbling("2 hours"), True),
        (NEW_YORK, pn.tumbling("7 min"), False),
        (NEW_YORK, pn.sliding("1 day"), False),
        (NEW_YORK, pn.sliding(pn.rows(5)), False),
        (NEW_YORK, pn.session("1 day"), False),
        (NEW_YORK, pn.tumbling("1 day", origin="first"), False),
        (NEW_YORK, pn.hopping(pn.rows(9), every="1 day"), True),
        (NEW_YORK, pn.cumulate("1 hour", upto="1 day"), True),
        (NEW_YORK, pn.nested(["1 hour", "7 days"], ["1 min", "1 day"]), True),
        (KOLKATA, pn.tumbling("1 hour"), True),
        (KOLKATA, pn.tumbling("30 min"), False),
        (KOLKATA, pn.tumbling("1 hour", offset="30 min"), False),
        (KOLKATA, pn.tumbling("1 day", offset="18.5 hours"), False),
        (KOLKATA, pn.tumbling("1 day", offset="12 hours"), False),
        (KOLKATA, pn.tumbling("1 day", bounds="(]"), True),
        ("Asia/Tokyo", pn.tumbling("7 days"), True),
        ("+05:30", pn.tumbling("1 hour"), True),
        ("GMT-3", pn.tumbling("1 hour"), False),
        ("no/such zone", pn.tumbling("1 day"), False),
    ],
)
def test_which_windows_leave_the_local_grid(zone, window, off):
    assert off_grid(window, offsets_of(zone)) is off


def test_offsets_are_added_to_utc():
    assert [offset / 3.6e9 for offset in offsets_of("Australia/Lord_Howe")] == [10.5, 11.0]
    assert [offsets_of(zone)[0] / 3.6e9 for zone in ("+05:30", "-0330", "UTC+9", "UTC")] == [5.5, -3.5, 9, 0]


def test_a_zone_whose_clocks_do_not_change_gets_an_offset_that_gives_local_days():
    events = hours(KOLKATA, (2026, 3, 7), 48)
    with pytest.warns(ZoneWarning, match=r"'1d' begins at 05:30\. .* pn\.tumbling\('1d', offset='18h30m'\)\.$"):
        found = pn.plan(QUERY).run(events)
    assert windows_of(found) == [("06 05:30", 6), ("07 05:30", 24), ("08 05:30", 18)]
    local = pn.query(by="k", at="ts", select={"n": pn.count()}, over=pn.tumbling("1d", offset="18h30m"))
    assert windows_of(pn.plan(local).run(events)) == [("07 00:00", 24), ("08 00:00", 24)]


@pytest.mark.parametrize(
    "window",
    [
        pn.tumbling("1 hour"),
        pn.tumbling("7 days", bounds="(]"),
        pn.hopping("3 days", every="1 day"),
        pn.cumulate("1 hour", upto="1 day"),
        pn.hopping(pn.rows(9), every="1 day"),
        pn.nested(["1 hour", "2 days"], ["1 min", "1 hour"]),
    ],
    ids=str,
)
def test_what_is_written_instead_is_on_the_local_grid(window):
    with pytest.warns(ZoneWarning) as caught:
        warn_of_zone([window], KOLKATA)
    written = eval(str(caught[0].message).partition(" write ")[2].removesuffix("."), {"pn": pn})
    assert written != window
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_zone([written], KOLKATA)


@pytest.mark.parametrize(("day", "count"), [((2026, 3, 8), 23), ((2026, 11, 1), 25), ((2026, 7, 1), 24)])
def test_local_days_without_a_zone_have_as_many_hours_as_they_had(day, count):
    events = hours(NEW_YORK, day, count)
    with pytest.warns(ZoneWarning, match=r"begins at 19:00 or 20:00\. Clocks of this zone change.*pc\.local_timestamp"):
        assert len(pn.plan(QUERY).run(events)) == 2
    local = events.set_column(0, "ts", pc.local_timestamp(events["ts"]))
    assert windows_of(pn.plan(QUERY).run(local)) == [(f"{day[2]:02} 00:00", count)]


def test_a_warning_comes_once_for_a_zone_and_a_window():
    with warnings.catch_warnings(record=True, action="always") as caught:
        for zone in (NEW_YORK, KOLKATA, NEW_YORK):
            warn_of_zone([pn.tumbling("1 day"), pn.tumbling("1 hour")], zone)
        warn_of_zone([pn.tumbling(f"{n} days") for n in range(1, 9)], NEW_YORK)
    said = [str(each.message).partition(" follow")[0] for each in caught]
    assert said == ["the window '1d'", "the windows '1d', '1h'", "the windows '2d', '3d', '4d' and 4 more"]


def live_update(events):
    pn.plan(QUERY).live().update(events)


def live_over(events):
    live = pn.plan(pn.query(by="k", at="ts", select={"n": pn.count()}, over=pn.sliding("3 days"))).live(keep="9 days")
    live.update(events)
    live.lookup(events, over=pn.tumbling("1 day"))


VERBS = {
    "run": pn.plan(QUERY).run,
    "run pandas": lambda events: pn.plan(QUERY).run(events.to_pandas()),
    "explain": pn.plan(QUERY).explain,
    "lookup": lambda events: pn.plan(QUERY).lookup(events, events),
    "live": live_update,
    "live over": live_over,
    "apply": lambda events: pn.apply(events, lambda *_: {"a": 1}, over=(w for w in QUERY.over), by="k", at="TS"),
    "sort": lambda events: pn.sort(events, order="x", over=iter([pn.tumbling("1 day")]), at="ts"),
    "rows": pn.plan(pn.query(at="ts", select={"n": pn.count()}, over=pn.hopping(pn.rows(9), every="1 day"))).run,
}


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_warns(verb):
    with pytest.warns(ZoneWarning, match=f"in {NEW_YORK} "):
        VERBS[verb](hours(NEW_YORK, (2026, 7, 1), 5))


def test_polars_keeps_its_zone():
    polars = pytest.importorskip("polars")
    events = polars.from_arrow(hours(KOLKATA, (2026, 7, 1), 5))
    with pytest.warns(ZoneWarning, match=KOLKATA):
        pn.plan(QUERY).run(events)
