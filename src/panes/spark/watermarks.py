"""What a stream needs to know when it is complete: a watermark on its event time."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import types as t

from panes.errors import PlanError

_DELAY = "spark.watermarkDelayMs"
_ZONE = "spark.sql.session.timeZone"


def check_watermark(events: DataFrame, name: str, side: str = "events", called: str | None = None) -> None:
    """Refuse a stream of which nobody knows when it is complete.

    A column that is not there, or is no time, is found elsewhere.

    Parameters
    ----------
    name
        The column of event time.
    side
        What messages call the stream.
    called
        What they call the column.
    """
    at = {field.name.lower(): field for field in events.schema}.get(name.lower())
    if at is None or _DELAY in at.metadata or not isinstance(at.dataType, (t.TimestampType, t.TimestampNTZType)):
        return
    what = "the stream" if side == "events" else f"the {side} side"
    own = at.name if called is None else called
    marked = f"withWatermark({own!r}, '10 minutes')"
    if isinstance(at.dataType, t.TimestampNTZType):
        zone = events.sparkSession.conf.get(_ZONE)
        raise PlanError(
            f"{own!r} of {what} is TIMESTAMP_NTZ, and Spark keeps watermarks on TIMESTAMP only. Write "
            f"{side}.withColumn({own!r}, F.col({own!r}).cast('timestamp')).{marked}. The cast reads times in "
            f"the time zone of the session, {zone}: set {_ZONE} to the one in which they were written."
        )
    raise PlanError(
        f"{what} has no watermark on {own!r}, so no row could ever be known to be the last of its time. Write "
        f"{side}.{marked} first, with the delay that late rows may have."
    )
