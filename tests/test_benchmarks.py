"""Run the benchmarks on very little data: some without Spark, one with it. The figures mean nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from benchmarks import published
from benchmarks.__main__ import main
from benchmarks.report import RESULTS, as_json
from benchmarks.workloads import WORKLOADS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    # Before each timing the benchmarks collect garbage: half a second among all that the tests of a process hold.
    monkeypatch.setattr("gc.collect", lambda: 0)


def run(name: str, directory: Path, spark: SparkSession | None = None, events: int = 2000) -> dict[str, Any]:
    assert main([name, "--quick", "--events", str(events), "--results", str(directory)], spark) == 0
    text = (directory / f"{name}.json").read_text(encoding="utf-8")
    assert str(Path.home()) not in text
    assert str(directory) not in text
    return json.loads(text)


def contenders(report: dict[str, Any]) -> set[str]:
    return {name for timing in report["timings"] for name in timing["seconds"]}


def test_planning_needs_no_spark(tmp_path: Path) -> None:
    report = run("planning", tmp_path)
    assert report["command"] == "python -m benchmarks planning --quick --events 2000"
    gaps = report["tables"][1]["rows"]
    assert all(row["search mean"] >= 1 for row in gaps)


def test_accumulators_need_no_spark(tmp_path: Path) -> None:
    whole, sliding = run("accumulators", tmp_path)["tables"]
    assert min(row["one by one, ×"] for row in whole["rows"]) > 2
    assert min(row["derived, ×"] for row in sliding["rows"]) > 2


@pytest.mark.soak
def test_live_windows_need_no_spark(tmp_path: Path) -> None:
    report = run("asw", tmp_path)
    rates = [row[name] for table in report["tables"][:3] for row in table["rows"] for name in row if "INT" in name]
    assert len(rates) == 2 * 3 + 2 * 3 + 2 * 4
    assert min(rates) > 0


@pytest.mark.soak
def test_thresholds_need_no_spark(tmp_path: Path) -> None:
    report = run("thresholds", tmp_path)
    figure_12, updates, few, many, ratios, _ = (table["rows"] for table in report["tables"])
    assert [row["ε"] for row in figure_12 if "ε" in row] == [row["ε"] for row in updates if "ε" in row] == [0.75, 0.5]
    assert all(row["candidates per key found"] >= 1 for row in figure_12 if "ε" in row)
    assert len(few) == len(many) == len(ratios) == 2


@pytest.mark.soak
def test_windowing_checks_its_loops_by_hand(tmp_path: Path) -> None:
    report = run("windowing", tmp_path)
    assert "timings" not in report  # the tables show them all
    assert {"library", "operator", "lists", "columns", "loop"} <= report["tables"][0]["rows"][0].keys()
    assert report["tables"][2]["rows"][-1]["partitions held"] > 1000


def test_windowed_checks_its_answers(tmp_path: Path) -> None:
    # Each of a hundred keys needs a whole window of a hundred rows.
    report = run("windowed", tmp_path, events=20_000)
    assert contenders(report) == {"event by event", "library", "vectorised"}
    assert all(row["windows"] >= 100 for row in report["tables"][0]["rows"])


def test_hopping_beside_spark(tmp_path: Path, spark: SparkSession) -> None:
    report = run("hopping", tmp_path, spark)
    assert contenders(report) == {"Spark's own", "Panes", "DuckDB", "Polars"}
    assert all(timing["rounds"] == 1 for timing in report["timings"])
    assert report["machine"]["java"]


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_published_results_are_small_and_current(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    report = json.loads(text)
    assert text == as_json(report)
    assert report["name"] in WORKLOADS
    assert len(text.splitlines()) <= 300


def test_the_published_figures_are_those_of_the_results() -> None:
    message = f"docs/performance.md or the README is out of date: run `{published.COMMAND}`"
    assert published.PAGE.read_text(encoding="utf-8") == published.page(), message
    assert published.README.read_text(encoding="utf-8") == published.readme(), message


def test_the_page_shows_every_result() -> None:
    shown = [section.name for chapter in published.CHAPTERS.values() for section in chapter]
    assert sorted(shown) == sorted(path.stem for path in RESULTS.glob("*.json"))


def test_an_unknown_name_lists_the_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nothing"]) == 2
    listed = capsys.readouterr().err
    assert all(name in listed for name in WORKLOADS)
