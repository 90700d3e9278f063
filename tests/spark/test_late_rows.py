"""What happens to a late row: the table of ``docs/streaming.md`` says what streams do."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

import panes as pn
from panes.errors import PlanError
from tests.spark.streams import Collected, Recorded

PAGE = Path(__file__).parents[2] / "docs" / "streaming.md"
SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("second", pa.int64())])
WINDOWS = {
    "on the clock": [pn.tumbling("10s"), pn.tumbling("100s")],
    "sliding": [pn.sliding("10s"), pn.sliding("100s")],
    "of rows": [pn.sliding(pn.rows(2)), pn.tumbling(pn.rows(4))],
    "sessions": [pn.session("10s"), pn.session("100s")],
}
# The watermark is at 50 when the first late row comes, which is in time for wide windows, and at 1000 with the second.
BATCHES = ([5, 50], [51], [FIRST := 3, 60], [1000], [1001], [SECOND := 2, 1002], [5000])

FIGURES = {(2, 1): "`late` if it misses a window, and `lost` if it misses all", (2, 2): "`late` and `lost`"}
UPDATED, EMITTED, REFUSED = "corrects the answers of these", "comes out as a row, too", "refused"


@pytest.fixture
def record(spark, tmp_path, one_partition) -> Recorded:
    record = Recorded(spark, tmp_path, SCHEMA)
    for seconds in BATCHES:
        instants = pa.array([second * 10**6 for second in seconds], pa.timestamp("us", "UTC"))
        record.add(pa.table([instants, pa.array(seconds, pa.int64())], schema=SCHEMA))
    return record


@pytest.mark.filterwarnings("ignore::panes.errors.StateWarning")
def test_the_table_says_what_streams_do(record, tmp_path):
    started: dict[tuple[str, str], Collected | None] = {}
    for kind, over in WINDOWS.items():
        plan = pn.plan(pn.query("q", at="ts", select={"seconds": pn.distinct("second")}, over=over))
        for option, mode, late in (("emit", "append", "emit"), ("update", "update", "count"), ("", "append", "count")):
            if option or started[kind, "emit"] is None:
                started[kind, option] = stream_of(plan, record, tmp_path / kind / mode / late, mode=mode, late=late)
    for stream in filter(None, started.values()):
        stream.finish()

    table = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \| (.+?) \| (.+?) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    documented = {windows: cells for windows, *cells in table if windows in WINDOWS}
    assert documented.keys() == WINDOWS.keys()
    for kind, (counted, figures, update, emit) in documented.items():
        stream = started[kind, "emit"] or started[kind, ""]
        rows = stream.rows.to_pylist()
        assert ("dropped" not in counted) == counts(rows, FIRST), kind
        assert not counts(rows, SECOND), kind
        assert not [row for row in rows if row["window"] and row["window"]["end"].timestamp() in (FIRST, SECOND)], kind
        assert figures == FIGURES[stream.metrics["late"], stream.metrics["lost"]], kind
        corrected = started[kind, "update"]
        assert update == (UPDATED if corrected else REFUSED), kind
        assert corrected is None or counts(corrected.rows.to_pylist(), FIRST)
        assert emit == (EMITTED if started[kind, "emit"] else REFUSED), kind
        late = [row["detail"] for row in rows if row.get("kind") == "late"]
        assert [f'"second":{second}' in detail for second, detail in zip((FIRST, SECOND), late, strict=False)] == (
            [True, True] if emit == EMITTED else []
        )


def stream_of(plan: pn.Plan, record: Recorded, checkpoint: Path, **options: str) -> Collected | None:
    """A stream that has been started, or None if the plan refuses the options."""
    try:
        rows = plan.stream(record.stream(delay="0 seconds"), shards=1, **options)
    except PlanError:
        return None
    return Collected(rows, checkpoint, options["mode"])


def counts(rows: list[dict], second: int) -> bool:
    """Whether a row is in some answer."""
    return any(second in (row["seconds"] or ()) for row in rows)
