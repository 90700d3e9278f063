"""The command ``panes``, as a user types it."""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from typer.main import get_command
from typer.testing import CliRunner

import panes as pn
from panes.cli.main import app
from panes.errors import PanesError
from panes.testing import assert_same_answers

SQL = """
-- name: temps
SELECT device, MIN(temp) AS low, COUNT(*) AS n FROM readings TIMESTAMP BY ts
GROUP BY device, Windows(TumblingWindow(minute, 20), HoppingWindow(minute, 60, 10));
"""
START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
EVENTS = pa.table(
    {
        "ts": pa.array([START + dt.timedelta(minutes=3 * i) for i in range(60)], pa.timestamp("us", "UTC")),
        "device": ["ab"[i % 2] for i in range(60)],
        "temp": [float(i % 17) for i in range(60)],
    }
)


@pytest.fixture
def queries(tmp_path):
    path = tmp_path / "queries.sql"
    path.write_text(SQL)
    return path


def panes(*words, code=0):
    """What a command says; a mistake is what ``main`` would say."""
    result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.output


def panes_out(*words):
    """What a command writes to its standard output alone."""
    return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False).stdout


def test_explain_has_several_forms(queries, tmp_path):
    assert "20m" in panes("explain", queries, "--rate", "100/s", "--keys", 50)
    assert panes("explain", queries, "--mermaid").startswith("flowchart LR")
    told = json.loads(panes("explain", queries, "--json", "--rate", "6000/min"))
    assert told["rate"] == 100
    assert {window["name"] for window in told["stores"][0]["windows"]} >= {"20m", "1h/10m"}
    assert json.loads(panes_out("explain", queries, "--json", "--svg", tmp_path / "plan.svg"))
    drawn = ElementTree.parse(tmp_path / "plan.svg").getroot()
    texts = {text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")}
    assert {"events", "20m", "1h/10m"} <= texts


def test_explain_shows_what_a_run_does(spark, queries, tmp_path):
    pq.write_table(EVENTS, tmp_path / "readings.parquet")
    said = panes("explain", queries, "-i", tmp_path / "readings.parquet")
    assert "plan.run on a DataFrame" in said
    assert "panes" in said
    (tmp_path / "readings").mkdir()
    pq.write_table(EVENTS, tmp_path / "readings" / "0.parquet")
    said = panes("explain", queries, "-i", tmp_path / "readings", "--format", "parquet", "--watermark", "1 minute")
    assert "plan.stream" in said
    assert "state" in said
    with pytest.raises(PanesError, match="--watermark is about events: add --input"):
        panes("explain", queries, "--watermark", "1 minute")
    with pytest.raises(PanesError, match="--json shows the plan and not a run"):
        panes("explain", queries, "--json", "-i", tmp_path / "readings.parquet")


def test_csv_to_answers_with_malformed_rows(spark, queries, tmp_path):
    pa.csv.write_csv(EVENTS, tmp_path / "readings.csv")
    with (tmp_path / "readings.csv").open("a") as file:
        file.write('2026-01-01T00:00:00Z,"a",warm\n')
    schema = ["--schema", "ts TIMESTAMP, device STRING, temp DOUBLE"]
    said = panes("run", queries, "-i", tmp_path / "readings.csv", "-o", tmp_path / "answers", *schema)
    assert "from 60 events" in said
    assert "1 malformed row left out" in said
    found = spark.read.parquet(str(tmp_path / "answers")).toArrow()
    assert_same_answers(found, pn.plan(pn.sql(SQL)).run(EVENTS))
    assert "warm" in (next((tmp_path / "answers.malformed").glob("*.txt"))).read_text()
    with pytest.raises(Exception, match=r"(?i)malformed"):
        panes("run", queries, "-i", tmp_path / "readings.csv", "-o", tmp_path / "strict", *schema, "--strict")


def test_inferred_columns_wide_layout_and_csv_out(spark, queries, tmp_path):
    pa.csv.write_csv(EVENTS, tmp_path / "readings.csv")
    panes("run", queries, "-i", tmp_path / "readings.csv", "-o", tmp_path / "out.csv", "--layout", "wide")
    names = next(tmp_path.glob("out.csv/*.csv")).read_text().splitlines()[0].split(",")
    assert names[:3] == ["device", "window_end", "low_20m"]
    panes("run", queries, "-i", tmp_path / "readings.csv", "-o", tmp_path / "long.csv")
    names = next(tmp_path.glob("long.csv/*.csv")).read_text().splitlines()[0].split(",")
    assert names[:4] == ["query", "window_name", "window_start", "window_end"]


def test_a_row_is_malformed_whichever_columns_are_used(spark, tmp_path):
    (tmp_path / "count.sql").write_text("SELECT COUNT(*) AS n FROM s GROUP BY window(ts, '1 hour')")
    rows = ['{"ts": "2026-01-01T00:00:00Z", "x": 1.5}', '{"ts": "2026-01-01T00:00:00Z", "x": "warm"}']
    (tmp_path / "rows.json").write_text("\n".join(rows))
    asked = ["run", tmp_path / "count.sql", "-i", tmp_path / "rows.json", "--schema", "ts TIMESTAMP, x DOUBLE"]
    said = panes(*asked, "-o", tmp_path / "answers")
    assert "from 1 event," in said
    assert "1 malformed row left out" in said
    with pytest.raises(Exception, match=r"(?i)malformed"):
        panes(*asked, "-o", tmp_path / "strict", "--strict")
    # A place that is taken is refused before the answers are written, be it that of the malformed rows.
    (tmp_path / "again.malformed").mkdir()
    with pytest.raises(PanesError, match=r"again\.malformed exists already"):
        panes(*asked, "-o", tmp_path / "again")
    assert not (tmp_path / "again").exists()


@pytest.mark.usefixtures("one_partition")
def test_a_stream_goes_on_where_it_was_and_keeps_malformed_rows(spark, queries, tmp_path):
    folder = tmp_path / "events"
    folder.mkdir()
    cumulating = SQL.replace("TumblingWindow(minute, 20)", "CumulateWindow(minute, 60, 20)")
    queries.write_text(cumulating)
    schema = ["--schema", "ts TIMESTAMP, device STRING, temp DOUBLE", "--format", "csv"]
    streamed = ["--watermark", "0 seconds", "--once", "--shards", 2]
    told = 0
    for part in range(2):
        pa.csv.write_csv(EVENTS.slice(30 * part, 30), folder / f"{part}.csv")
        with (folder / f"{part}.csv").open("a") as file:
            file.write(f'2026-01-01T00:00:00Z,"a",warm{part}\n')
        said = panes("stream", queries, "-i", folder, "-o", tmp_path / "answers", *schema, *streamed)
        assert "from 30 events" in said
        assert "1 malformed row left out" in said
        told += int(re.search(r"^(\d+) answers, from", said, re.MULTILINE)[1])
    found = spark.read.parquet(str(tmp_path / "answers")).toArrow()
    # Spark tells of the last micro-batches after they are done.
    assert told == found.num_rows
    batch = pn.plan(pn.sql(cumulating)).run(EVENTS)
    last = pc.max(EVENTS["ts"]).as_py()
    assert_same_answers(found, batch.filter(pc.less_equal(pc.struct_field(batch["window"], "end"), last)))
    kept = spark.read.text(str(tmp_path / "answers.malformed")).collect()
    assert sorted(row.value.rpartition(",")[2] for row in kept) == ["warm0", "warm1"]


@pytest.mark.usefixtures("one_partition")
def test_ctrl_c_stops_a_stream(spark, queries, tmp_path):
    (tmp_path / "events").mkdir()
    pq.write_table(EVENTS, tmp_path / "events" / "0.parquet")
    done = threading.Event()

    def press() -> None:
        while not done.wait(0.2):
            if (tmp_path / "answers.checkpoint" / "commits" / "0").exists():
                os.kill(os.getpid(), signal.SIGINT)
                return

    pressing = threading.Thread(target=press)
    pressing.start()
    try:
        streamed = ["--watermark", "0 seconds"]
        said = panes("stream", queries, "-i", f"{tmp_path}/events/", "-o", tmp_path / "answers", *streamed)
    finally:
        done.set()
        pressing.join()
    assert "stopped; run the same command again to continue" in said
    assert "from 60 events" in said
    assert not spark.streams.active


def test_compare_convinces(spark, queries, tmp_path):
    pq.write_table(EVENTS, tmp_path / "readings.parquet")
    said = panes("compare", queries, "-i", tmp_path / "readings.parquet", "--rounds", 1)
    assert "answers of both are equal" in said
    assert "Spark's own windows" in said


def test_a_catalogue_from_the_shell(queries, tmp_path):
    where = ["--catalogue", tmp_path / "catalogue"]
    assert "registered temps" in panes("register", queries, *where)
    with pytest.raises(PanesError, match="already has a query"):
        panes("register", queries, *where)
    panes("suspend", "temps", *where)
    assert re.search(r"temps\s+suspended\s+20m, 1h/10m", panes("list", *where))
    panes("resume", "temps", *where)
    panes("drop", "temps", *where)
    assert "empty" in panes("list", *where)


def test_a_mistyped_catalogue_is_not_made(tmp_path):
    where = ["--catalogue", tmp_path / "katalog"]
    for command in (["list"], ["suspend", "q"], ["resume", "q"], ["drop", "q"]):
        with pytest.raises(PanesError, match="there is no catalogue in"):
            panes(*command, *where)
    assert not (tmp_path / "katalog").exists()


def test_all_queries_of_a_file_are_registered_or_none(tmp_path):
    where = ["--catalogue", tmp_path / "catalogue"]
    two = tmp_path / "two.sql"
    one = (
        "SELECT COUNT(*) AS n FROM s TIMESTAMP BY ts GROUP BY Windows(Window('[bold]w[/]', TumblingWindow(minute, 5)))"
    )
    two.write_text(f"-- name: a\n{one};\n-- name: b\n{one} HAVING n > 1")
    with pytest.raises(PanesError, match="having"):
        panes("register", two, *where)
    assert "empty" in panes("list", *where)
    two.write_text(f"\ufeff-- name: a\n{one}")
    panes("register", two, *where)
    assert "[bold]w[/]" in panes("list", *where)


def test_the_doctor_finds_this_machine_well(spark):
    said = panes("doctor")
    assert "a small job on Spark: 45 answers" in said


def test_the_doctor_looks_at_everything(monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    said = panes("doctor", code=1)
    assert re.search(r"WRONG Java: Spark needs Java 17 or newer, and JAVA_HOME is /nowhere, which has none", said)
    assert re.search(r"ok    packages: pyspark", said)
    assert "memory: " in said
    assert "a small job on Spark: skipped" in said


def test_mistakes_are_sentences(queries, tmp_path):
    for given in (["--strict"], ["--schema", "ts TIMESTAMP"]):
        for place in ("x.parquet", "x.orc", "a_table"):
            with pytest.raises(PanesError, match=f"{given[0]} is for CSV and JSON"):
                panes("run", queries, "-i", place, "-o", "y", *given)
    assert "--watermark" in panes("stream", queries, "-i", "x.csv", "-o", "y", code=2)
    assert "--once" in panes("run", queries, "-i", "x.csv", "-o", "y", "--once", code=2)
    kept = ["--watermark", "0 s", "--history", "1 day"]
    with pytest.raises(PanesError, match="add --catalogue"):
        panes("stream", queries, "-i", "x.csv", "-o", "y", *kept)
    with pytest.raises(PanesError, match="not a rate"):
        panes("explain", queries, "--rate", "often")
    wrong = tmp_path / "wrong.sql"
    wrong.write_text("SELECT x FROM")
    done = subprocess.run(
        [sys.executable, "-m", "panes", "explain", wrong], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("panes: line 1, column 10: expected the name of a stream here.\n")


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_a_missing_package_is_a_sentence(missing):
    blocked = f"import sys, runpy; sys.modules[{missing!r}] = None; sys.argv = ['panes', 'doctor']; "
    done = subprocess.run(
        [sys.executable, "-c", blocked + "runpy.run_module('panes', run_name='__main__')"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"panes: the command line needs {missing}: run pip install 'panes[cli]'.\n"


def test_the_command_prints_its_version():
    done = subprocess.run([sys.executable, "-m", "panes", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"panes {pn.__version__}\n"


def test_a_command_without_arguments_lists_the_commands():
    done = subprocess.run([sys.executable, "-m", "panes"], capture_output=True, text=True, check=False)
    text = done.stdout + done.stderr
    assert "Usage" in text
    assert all(f"  {command} " in text for command in get_command(app).commands)


def test_help_needs_no_spark():
    code = (
        "import sys; from panes.cli.main import app; from typer.testing import CliRunner; "
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0; "
        "print([name for name in ('pyspark', 'numpy', 'pyarrow', 'sqlglot') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_reference_names_every_option():
    text = (Path(__file__).parents[2] / "docs" / "command_line.md").read_text().partition("<!-- reference")[2]
    listed = dict(re.findall(r"\| `panes (\w+)` \|(.*)\|", text))
    commands = get_command(app).commands
    assert listed.keys() == commands.keys()
    for name, command in commands.items():
        options = [max(parameter.opts, key=len) for parameter in command.params if parameter.opts[0].startswith("-")]
        assert re.findall(r"--[a-z-]+", listed[name]) == options, name
