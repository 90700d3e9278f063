"""Every verb through Spark Connect: ``test_versions.py`` in a Python of its own, against a server of its own."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

import panes
from panes.spark.session import find_java
from tests.conftest import NO_CODEGEN, SPARK

ROOT = Path(__file__).parents[2]
NEEDED = ("grpc", "grpc_status", "google.rpc")
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
SECONDS = 90


def lacking() -> str:
    """What is not there to run through Spark Connect; empty if all is."""
    missing = [name for name in NEEDED if find_spec(name.split(".")[0]) is None or find_spec(name) is None]
    if missing:
        return f"Spark Connect imports {', '.join(missing)}: pip install 'panes[connect]'"
    home = Path(str(find_spec("pyspark").origin)).parent
    return "" if list(home.glob("jars/spark-connect_*.jar")) else "this PySpark has no server of Spark Connect"


def serving(folder: Path, environment: dict[str, str]) -> Iterator[str]:
    """The address of a server of Spark Connect, as long as it is needed."""
    import pyspark

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = SPARK | NO_CODEGEN | {"spark.connect.grpc.binding.port": str(port)}
    options = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    command = [Path(pyspark.__file__).parent / "bin" / "spark-submit", "--master", "local[2]", *options]
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen([*command, "--class", SERVER], cwd=ROOT, env=environment, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + SECONDS
        while socket.socket().connect_ex(("127.0.0.1", port)):
            told = (folder / "server.log").read_text()
            assert server.poll() is None, told
            assert time.monotonic() < deadline, told
            time.sleep(0.2)
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


@pytest.mark.spark
@pytest.mark.skipif(bool(lacking()), reason=lacking())
def test_every_verb(tmp_path: Path) -> None:
    find_java()
    paths = [str(Path(panes.__file__).parents[1]), str(ROOT)]
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(paths)}
    for address in serving(tmp_path, environment):
        run = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            "-m",
            "versions",
            "tests/spark/test_versions.py",
        ]
        environment["PANES_TESTS_REMOTE"] = address
        found = subprocess.run(run, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout
    assert re.search(r"^\d+ passed", found.stdout, re.MULTILINE), found.stdout
