"""A job whose Python workers cannot run Panes says so in a sentence, before any of its tasks fails."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from types import SimpleNamespace

import pytest

from panes.errors import PanesError
from panes.spark import workers

JOB = """
import sys
import panes as pn
from panes.spark import workers
from pyspark.sql import SparkSession

settings = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1", "spark.ui.enabled": "false"}
quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
builder = SparkSession.builder.master("local[1]").config("spark.driver.extraJavaOptions", quick)
spark = builder.config(map=settings).getOrCreate()
events = spark.range(60).selectExpr("timestamp_seconds(id) AS ts", "id AS x")
plan = pn.plan(pn.query(at="ts", select={"n": pn.count()}, over=pn.tumbling("1 min")), rate=1)
plan.run(events, strategy="native")
try:
    plan.run(events, strategy="columnar")
except pn.PanesError as error:
    print(error)
# The same Python gets the package from somewhere: nothing is cached that was wrong.
spark.sparkContext.addPyFile(sys.argv[1])
try:
    plan.run(events, strategy="columnar")
except pn.PanesError as error:
    print(error)
"""


@pytest.fixture
def bare(tmp_path):
    """A folder with a python3 of this version and no packages."""
    venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
    return tmp_path / "bare" / "bin"


def test_an_environment_that_was_not_activated(bare, tmp_path):
    (tmp_path / "panes.py").write_text("__version__ = '0.0.1'")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK", "PYTHON", "SPARK"))}
    environment = {**kept, "PATH": f"{bare}{os.pathsep}{os.environ['PATH']}", "SPARK_LOCAL_IP": "127.0.0.1"}
    # Workers inherit PYTHONPATH, and are to find no Panes there.
    started = f"import sys; sys.path[:0] = {sys.path!r}\n{JOB}"
    command = [sys.executable, "-c", started, str(tmp_path / "panes.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    lacking, other = done.stdout.splitlines()
    start = f"the Python that Spark's workers run ({bare / 'python3'}) lacks "
    assert lacking.startswith(f"{start}panes, numpy, pyarrow, pandas. Set PYSPARK_PYTHON={sys.executable} in ")
    assert other.startswith(f"{start}numpy, pyarrow, pandas. Set PYSPARK_PYTHON=")
    assert "Traceback" not in done.stderr


def test_the_python_of_this_process_is_known_by_its_folder(bare, tmp_path, monkeypatch):
    assert workers._is_this(sys.executable)
    assert not workers._is_this(str(bare / "python3"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not workers._is_this("python3")
    (tmp_path / "python3").symlink_to(sys.executable)
    assert not workers._is_this("python3")  # an environment is found by the folder of its Python


def test_a_python_that_is_missing_or_of_another_version(tmp_path):
    with pytest.raises(PanesError, match=r"are to run '/no/python', which is not on the PATH. Set PYSPARK_PYTHON="):
        workers._check_version("/no/python")
    other = tmp_path / "python9"
    other.write_text("#!/bin/sh\necho 9.1\n")
    other.chmod(0o755)
    with pytest.raises(PanesError, match=rf"run {other}, which is Python 9\.1, and this process runs Python 3\."):
        workers._check_version(str(other))
    other.write_text("#!/no/interpreter\n")
    with pytest.raises(PanesError, match="does not start"):
        workers._check_version(str(other))


FINE = {"panes": workers.panes.__version__, "numpy": "2.1.0", "pyarrow": "18.0.0", "pandas": "2.2.0"}


@pytest.mark.parametrize(
    ("versions", "errors", "said"),
    [
        (
            {},
            {"panes": "ModuleNotFoundError: No module named 'panes'"},
            r"lacks panes\. Give it to them with spark\.spar",
        ),
        ({}, {"numpy": "ModuleNotFoundError: No module named 'numpy'"}, r"lacks numpy\. Ship an environment"),
        ({}, {"pyarrow": "ImportError: a library"}, r"cannot import pyarrow \(ImportError: a library\)"),
        ({"panes": "0.0.1"}, {}, r"has panes 0\.0\.1, and this process has"),
        ({"numpy": "1.26.4"}, {}, r"has numpy 1\.26\.4, and Panes needs 2 or newer"),
        ({"pyarrow": "17.0.0"}, {}, r"has pyarrow 17\.0\.0, and Panes needs 18 or newer"),
    ],
)
def test_what_workers_lack(versions, errors, said):
    report = {"python": "/usr/bin/python3", "versions": FINE | versions, "errors": errors}
    with pytest.raises(PanesError, match=said):
        workers._check_report(report, local=False, connect=False)
    workers._check_report({**report, "versions": FINE, "errors": {}}, local=False, connect=False)


def test_a_client_of_spark_connect_is_told_of_artifacts():
    report = {"python": "python3", "versions": {}, "errors": {"panes": "ModuleNotFoundError: No module named 'panes'"}}
    with pytest.raises(PanesError, match=r"spark\.addArtifacts\('panes\.zip', pyfile=True\)"):
        workers._check_report(report, local=False, connect=True)


def test_a_worker_is_asked_once_per_application(spark, monkeypatch):
    monkeypatch.setattr(workers, "_asked", set())
    workers.check_workers(spark)
    assert workers._asked == set()  # the Python of this process: nothing to ask
    asked = []
    report = workers._report
    monkeypatch.setattr(workers, "_is_this", lambda python: False)
    monkeypatch.setattr(workers, "_report", lambda *given: asked.append(given) or report(*given))
    for _ in range(3):
        workers.check_workers(spark)
    assert len(asked) == 1
    assert report(spark, sys.executable)["versions"]["panes"] == workers.panes.__version__


def test_failures_that_say_nothing_of_python_are_left_alone(spark):
    from pyspark.errors import PySparkException

    def range_(*_, **__):
        raise PySparkException("the cluster is on fire")

    with pytest.raises(PySparkException, match="on fire"):
        workers._report(SimpleNamespace(range=range_), "python3")
    for what, said in (("PYTHON_VERSION_MISMATCH", "is of another version"), ("Cannot run program", "is not there")):

        def range_(*_, what=what, **__):
            raise PySparkException(f"[{what}] and a hundred lines")

        with pytest.raises(PanesError, match=said):
            workers._report(SimpleNamespace(range=range_), "python3")
