"""A Java that is missing or too old is told of in one sentence, before a JVM starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from panes.errors import PanesError
from panes.spark.session import find_java


def java_at(home: Path, version: str) -> None:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2015-03-03' >&2\n")
    java.chmod(0o755)


def test_the_java_of_this_machine() -> None:
    version, _ = find_java()
    assert version >= 17


@pytest.mark.parametrize(("version", "found"), [("17.0.15", 17), ("21", 21), ("25-ea", 25)])
def test_a_java_that_is_new_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, found: int) -> None:
    java_at(tmp_path, version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java() == (found, str(tmp_path / "bin" / "java"))


@pytest.mark.parametrize("version", ["1.8.0_412", "11.0.2"])
def test_a_java_that_is_too_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    java_at(tmp_path, version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(
        PanesError, match=f'needs Java 17 or newer, and .* is openjdk version "{version}".*: install it'
    ):
        find_java()


def test_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(PanesError, match=r"JAVA_HOME is .*, which has none: install it"):
        find_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PanesError, match="there is none on the PATH: install it"):
        find_java()
