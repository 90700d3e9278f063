"""The Python workers of Spark: whether they can run Panes is found out before the first job that needs them.

Spark starts its workers with ``python3``, unless ``PYSPARK_PYTHON`` says otherwise. Where that Python lacks what is
needed, every job would fail, and the reason would be one among some hundred lines of the JVM.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

import panes
from panes.errors import PanesError

_NEEDED = ("panes", "numpy", "pyarrow", "pandas")
_OLDEST = {"numpy": 2, "pyarrow": 18}
_PATIENCE = 60
_SETTING = "spark.sql.execution.pyspark.python"
"""A setting of sessions that goes before the ``PYSPARK_PYTHON`` with which the application was started."""

_asked: set[tuple[str, str]] = set()
"""The applications, and their Pythons, that were found to be able."""


def map_in_python(
    rows: DataFrame, function: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]], schema: StructType | str
) -> DataFrame:
    """``rows.mapInArrow(function, schema)``, in workers that can import Panes."""
    check_workers(rows.sparkSession)
    return rows.mapInArrow(function, schema)


def check_workers(session: SparkSession) -> None:
    """Refuse a session whose workers cannot run Panes; once per application, and without a job if they run this Python.

    Otherwise it is found out by a job of one row, since workers get packages in several ways: from where they run, from
    ``PYTHONPATH``, and from what was added to the session.
    """
    connect = "connect" in type(session).__module__
    chosen = session.conf.get(_SETTING, None)
    if connect:
        # Without the setting, the server decides which Python it starts.
        application, python, local = str(session.session_id), chosen or "python3", False  # type: ignore[attr-defined]
    else:
        context = session.sparkContext
        python, local = chosen or context.pythonExec, str(context.master).startswith("local")
        if local and _is_this(python):
            return
        application = context.applicationId
    if (application, python) in _asked:
        return
    if local:
        _check_version(python)
    _check_report(_report(session, python), local=local, connect=connect)
    _asked.add((application, python))


def _is_this(python: str) -> bool:
    """Whether a command starts the Python of this process, in the same environment."""
    found = shutil.which(python)
    # An environment is the folder that links to a Python, so that links are followed only for the name in it.
    return (
        found is not None
        and os.path.dirname(os.path.abspath(found)) == os.path.dirname(os.path.abspath(sys.executable))
        and os.path.realpath(found) == os.path.realpath(sys.executable)
    )


def _check_version(python: str) -> None:
    """Refuse a Python of this machine that is missing, or of another version: its workers would fail in the JVM."""
    found = shutil.which(python)
    if found is None:
        raise PanesError(f"Spark's workers are to run {python!r}, which is not on the PATH. {_same_python()}")
    try:
        said = subprocess.run(
            [found, "-c", "import sys; print(*sys.version_info[:2], sep='.')"],
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE,
        ).stdout.strip()
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PanesError(
            f"Spark's workers are to run {found}, which does not start: {error}. {_same_python()}"
        ) from None
    if said != _version():
        raise PanesError(
            f"Spark's workers run {found}, which is Python {said or 'of an unknown version'}, and this process runs "
            f"Python {_version()} ({sys.executable}). {_same_python()}"
        )


def _report(session: SparkSession, python: str) -> dict[str, Any]:
    """What a worker says about itself."""
    asking = F.udf(_worker_report(_NEEDED), "string", useArrow=False)
    try:
        row = session.range(1, numPartitions=1).select(asking("id")).first()
    except Exception as error:  # of Spark or, where no Python starts, of Py4J
        if "PYTHON_VERSION_MISMATCH" in str(error):
            why = f"is of another version than the Python {_version()} of this process"
        elif "Cannot run program" in str(error):
            why = "is not there"
        else:
            raise
        raise PanesError(f"the Python that Spark's workers run ({python}) {why}. {_ship()}") from None
    assert row is not None
    found: dict[str, Any] = json.loads(row[0])
    return found


def _worker_report(names: tuple[str, ...]) -> Callable[[int], str]:
    """Return a function that travels by value: a worker cannot import this module if it lacks Panes."""

    def report(_: int) -> str:
        import importlib
        import json
        import sys

        versions, errors = {}, {}
        for name in names:
            try:
                versions[name] = importlib.import_module(name).__version__
            except Exception as error:
                errors[name] = f"{type(error).__name__}: {error}"
        return json.dumps({"python": sys.executable, "versions": versions, "errors": errors})

    return report


def _check_report(report: dict[str, Any], *, local: bool, connect: bool) -> None:
    """Refuse workers that lack a package, or have one that does not fit."""
    versions, errors = report["versions"], report["errors"]
    missing = [name for name, error in errors.items() if error.startswith("ModuleNotFoundError")]
    if missing:
        why = f"lacks {', '.join(missing)}"
    elif errors:
        name, error = next(iter(errors.items()))
        why = f"cannot import {name} ({error})"
    elif versions["panes"] != panes.__version__:
        why = f"has panes {versions['panes']}, and this process has {panes.__version__}"
    else:
        old = [name for name, oldest in _OLDEST.items() if int(versions[name].partition(".")[0]) < oldest]
        if not old:
            return
        why = f"has {old[0]} {versions[old[0]]}, and Panes needs {_OLDEST[old[0]]} or newer"
    advice = _same_python() if local else _ship(missing or _NEEDED, connect=connect)
    raise PanesError(f"the Python that Spark's workers run ({report['python']}) {why}. {advice}")


def _same_python() -> str:
    return (
        f"Set PYSPARK_PYTHON={sys.executable} in the environment, or write os.environ['PYSPARK_PYTHON'] = "
        "sys.executable before Spark starts."
    )


def _ship(packages: Iterable[str] = _NEEDED, *, connect: bool = False) -> str:
    """What to do about workers on other machines, which lack some packages."""
    installed = "install Panes there and set PYSPARK_PYTHON to the Python that has it"
    if [*packages] == ["panes"]:
        add = "spark.addArtifacts('panes.zip', pyfile=True)" if connect else "spark.sparkContext.addPyFile('panes.zip')"
        return f"Give it to them with {add}, or {installed}: see 'On a cluster' in the documentation."
    return f"Ship an environment with spark.archives, or {installed}: see 'On a cluster' in the documentation."


def _version() -> str:
    return f"{sys.version_info[0]}.{sys.version_info[1]}"
