"""Windows on the clock over times of a zone: their edges lie on the grid of UTC, and that is said once."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from panes.errors import ZoneWarning
from panes.queries.windows import AnyWindow, Cumulate, Nested, RowWindow, Window
from panes.timeline import DAY, MINUTE, SECOND, Geometry

_FROM, _UNTIL = datetime(2000, 1, 1, tzinfo=UTC), datetime(2038, 1, 1, tzinfo=UTC)
"""Changes of clocks in these years count. A rule of our time would otherwise be hidden by one long past."""

_FIXED = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?")
_SHOWN = 3
_warned: set[tuple[str, AnyWindow]] = set()


def warn_of_zone(windows: Iterable[AnyWindow], zone: str | None) -> None:
    """Warn of windows on the clock whose edges are not those of local time; once per process, zone and window.

    Parameters
    ----------
    zone
        The zone in which times are shown; None if they have none.

    Examples
    --------
    >>> import panes as pn, warnings
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     warn_of_zone([pn.tumbling("1 hour"), pn.tumbling("1 day")], "Asia/Tokyo")
    >>> print(caught[0].message)
    the window '1d' follows the clock of UTC: in Asia/Tokyo '1d' begins at 09:00. For local time write
    pn.tumbling('1d', offset='15h').
    """
    if zone is None or zone in ("UTC", "Etc/UTC", "Z"):
        return
    offsets = offsets_of(zone)
    new = [window for window in dict.fromkeys(windows) if (zone, window) not in _warned and off_grid(window, offsets)]
    if not new:
        return
    warnings.warn(_sentence(new, zone, offsets), ZoneWarning, stacklevel=2)
    _warned.update((zone, window) for window in new)


def off_grid(window: AnyWindow, offsets: tuple[int, ...]) -> bool:
    """Whether edges of a window are not those of local time.

    Only a pace that divides a day, or is a multiple of one, has edges that people know from their clocks. In a zone
    whose clocks do not change, a window that was given an offset is where it was meant to be.

    Parameters
    ----------
    offsets
        What is added to UTC in the zone, in µs.

    Examples
    --------
    >>> import panes as pn
    >>> new_york, kolkata = offsets_of("America/New_York"), offsets_of("Asia/Kolkata")
    >>> [off_grid(pn.tumbling(size), new_york) for size in ("1 hour", "1 day", "7 min")]
    [False, True, False]
    >>> [off_grid(pn.tumbling("1 hour", offset=offset), kolkata) for offset in ("0s", "30 min")]
    [True, False]
    """
    grid = _grid(window)
    if grid is None or (DAY % grid.slide and grid.slide % DAY):
        return False
    if len({offset % grid.slide for offset in offsets}) > 1:
        return True
    return grid.offset == 0 and offsets[0] % grid.slide != 0


@lru_cache(maxsize=64)
def offsets_of(zone: str) -> tuple[int, ...]:
    """What a zone adds to UTC, in µs, from 2000 on; nothing is added in a zone that is unknown here.

    Examples
    --------
    >>> [offset // MINUTE for offset in offsets_of("America/New_York")], offsets_of("GMT+1") == (60 * MINUTE,)
    ([-300, -240], True)
    """
    fixed = _FIXED.fullmatch(zone)
    if fixed is not None:
        hours, minutes, seconds = (int(part or 0) for part in fixed.groups()[1:])
        return ((-1 if fixed[1] == "-" else 1) * (hours * 3600 + minutes * 60 + seconds) * SECOND,)
    try:
        known = ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        return (0,)
    found, instant = set(), _FROM
    while instant < _UNTIL:
        found.add(instant.astimezone(known).utcoffset() or timedelta())
        instant += timedelta(weeks=1)
    return tuple(sorted(offset // timedelta(microseconds=1) for offset in found))


def _grid(window: AnyWindow) -> Geometry | None:
    """The pace on the clock and its offset; None for a window without one."""
    if isinstance(window, RowWindow):
        pace = window.size if window.every is None else window.every
        if window.kind == "session" or window.origin != "epoch" or not isinstance(pace, int):
            return None
        return Geometry(pace, pace, window.offset)
    if isinstance(window, Window):
        return None if window.per_event else replace(window.geometry, offset=window.geometry.offset - window.shift)
    if isinstance(window, Cumulate):
        return Geometry(window.upto, window.upto, window.offset)
    if isinstance(window, Nested):
        # The level that is answered least often shows best where instances lie.
        return Geometry(window.slides[-1], window.slides[-1], window.offset)
    return None


def _sentence(windows: list[AnyWindow], zone: str, offsets: tuple[int, ...]) -> str:
    names = ", ".join(repr(window.name) for window in windows[:_SHOWN])
    names += f" and {len(windows) - _SHOWN} more" if len(windows) > _SHOWN else ""
    what = f"the window{'s' * (len(windows) > 1)} {names} follow{'s' * (len(windows) == 1)} the clock of UTC"
    grid = _grid(windows[0])
    assert grid is not None
    begins = " or ".join(_clock(grid, offset) for offset in sorted(offsets))
    what += f": in {zone} {windows[0].name!r} begins at {begins}"
    if len(offsets) == 1:
        write = " and ".join(repr(_moved(window, offsets[0])) for window in windows[:_SHOWN])
        return f"{what}. For local time write {write}."
    return (
        f"{what}. Clocks of this zone change, so that no offset= gives local time. For local days take times without "
        "a zone: in Spark F.col('ts').cast('timestamp_ntz') (of a stream, F.from_utc_timestamp('ts', "
        f"{zone!r}) with spark.sql.session.timeZone set to UTC), in pyarrow pc.local_timestamp(table['ts']), in pandas "
        "df['ts'].dt.tz_localize(None), in polars pl.col('ts').dt.replace_time_zone(None)."
    )


def _clock(grid: Geometry, offset: int) -> str:
    """The local time at which instances begin: of a pace under a day, that of the first one."""
    minutes = (grid.offset + offset) % min(grid.slide, DAY) // MINUTE
    return f"{minutes // 60:02}:{minutes % 60:02}"


def _moved(window: AnyWindow, offset: int) -> AnyWindow:
    """A window whose edges are those of local time."""
    grid = _grid(window)
    assert grid is not None
    moved = -offset % grid.slide
    if isinstance(window, Window):
        place = replace(window.geometry, offset=moved + window.shift)
        return replace(window, geometry=place, name=replace(window, geometry=place).default_name)
    if isinstance(window, Nested):
        return replace(window, offset=moved)
    assert isinstance(window, (Cumulate, RowWindow))
    return replace(window, offset=moved, name=replace(window, offset=moved).default_name)
