"""Where Spark runs: in this process, where a master says, or as ``spark-submit`` asks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import panes.__main__ as entry
from panes.spark import session


def test_a_local_master_is_set_up_like_none(monkeypatch):
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    asked = []
    monkeypatch.setattr(session, "local_session", lambda name, stream, more: asked.append(more))
    session.session(None, {})
    session.session("local[1]", {"a": "b"})
    assert asked == [{}, {"spark.master": "local[1]", "a": "b"}]


@pytest.mark.soak
def test_spark_submit_runs_the_command(tmp_path):
    (tmp_path / "queries.sql").write_text("SELECT k, SUM(x) AS s FROM ev GROUP BY k, window(ts, '1 hour')")
    (tmp_path / "ev.csv").write_text("ts,k,x\n2026-01-01T00:10:00,a,1\n2026-01-01T00:20:00,a,2\n")
    submit = Path(sys.executable).with_name("spark-submit")
    settings = ["spark.sql.shuffle.partitions=1", "spark.ui.enabled=false", "spark.log.level=ERROR"]
    words = [submit, "--master", "local[1]", *(word for setting in settings for word in ("--conf", setting))]
    words += [entry.__file__, "run", "queries.sql", "--input", "ev.csv", "--output", "answers.csv"]
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "TZ": "Asia/Tokyo"}
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "1 answer to 1 query, from 2 events" in done.stdout
    (answers,) = (tmp_path / "answers.csv").glob("*.csv")
    assert answers.read_text().splitlines()[1] == "query1,1h,2026-01-01T00:00:00.000Z,2026-01-01T01:00:00.000Z,a,3"
