"""Whatever file of a checkpoint is damaged: a stream that starts again fails, or answers as if nothing had happened."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

import panes as pn
from panes.testing import assert_same_answers
from tests.conftest import configured
from tests.spark.job import ALL_KINDS
from tests.spark.late import last_events, late_events
from tests.spark.streams import Collected, Recorded

PLAN = pn.plan(ALL_KINDS)


@pytest.fixture(scope="module")
def settings(spark) -> Iterator[None]:
    """Few files. Spark writes a snapshot of the first state and then changes: a restart reads all of them."""
    yield from configured(spark, {"spark.sql.shuffle.partitions": "1"})


@dataclass
class Written:
    """A stream that has ended in good order, with its checkpoint and answers, and what comes next."""

    record: Recorded
    checkpoint: Path
    before: dict[int, pa.Table]
    expected: dict[int, pa.Table] = field(default_factory=dict)

    def go_on(self, checkpoint: Path) -> dict[int, pa.Table]:
        """Start again, and return the answers of all micro-batches, as a sink keeps them that replaces by number."""
        return {**self.before, **Collected(PLAN.stream(self.record.stream(), shards=2), checkpoint).finish().batches}


@pytest.fixture(scope="module")
def written(spark, tmp_path_factory, settings) -> Written:
    folder = tmp_path_factory.mktemp("damaged")
    batches = late_events(400, 6, seed=4)
    record = Recorded(spark, folder, batches[0].schema)
    record.add(*batches[:5])
    stream = Collected(PLAN.stream(record.stream(), shards=2), folder / "checkpoint").finish()
    found = Written(record, folder / "checkpoint", stream.batches)
    record.add(batches[5], last_events(batches))
    copy = copied(found.checkpoint, folder / "undamaged")
    found.expected = found.go_on(copy)
    assert sum(table.num_rows > 0 for table in found.expected.values()) >= 4
    return found


def copied(checkpoint: Path, place: Path) -> Path:
    """A copy without hidden files: those still being written, and checksums that only local files have."""
    return shutil.copytree(checkpoint, place, ignore=shutil.ignore_patterns(".*"))


def cut(file: Path) -> None:
    """As a full disk leaves it."""
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])


def empty(file: Path) -> None:
    """As a machine that lost its power leaves it."""
    file.write_bytes(b"")


def flip(file: Path) -> None:
    """As a bad sector leaves it: a byte in three quarters of the file is another one."""
    data = bytearray(file.read_bytes())
    data[3 * len(data) // 4] ^= 0x10
    file.write_bytes(data)


def delete(file: Path) -> None:
    """As a cleaning job leaves it."""
    file.unlink()


def last(pattern: str) -> Callable[[Path], list[Path]]:
    """The file of the highest number."""
    return lambda place: [max(place.glob(pattern), key=lambda file: int(file.name.split(".")[0].split("_")[0]))]


def every(pattern: str) -> Callable[[Path], list[Path]]:
    return lambda place: sorted(place.glob(pattern))


FILES = {
    "offsets": last("offsets/[0-9]*"),
    "all offsets": every("offsets/[0-9]*"),
    "commits": last("commits/[0-9]*"),
    "all commits": every("commits/[0-9]*"),
    "sources": last("sources/0/[0-9]*"),
    "metadata": every("metadata"),
    "changelog": last("state/0/0/*.changelog"),
    "all changelogs": every("state/1/0/*.changelog"),
    "snapshot": last("state/0/0/*.zip"),
    "all snapshots": every("state/1/0/*.zip"),
    "tables": every("state/0/0/SSTs/*.sst"),
    "schema": every("state/*/_stateSchema/*/*"),
    "operator": every("state/*/_metadata/v2/*"),
}


def damaged(written: Written, folder: Path, file: str, damage: Callable[[Path], None]) -> Path:
    """A copy of a checkpoint, damaged."""
    place = copied(written.checkpoint, folder / f"{file} {damage.__name__}")
    chosen = FILES[file](place)
    assert chosen, f"there is no {file}"
    for each in chosen:
        damage(each)
    return place


def outcome(written: Written, place: Path) -> str:
    """How a restart fails, in short; that it does not, and the answers are those of an undamaged one, in no words."""
    try:
        found = written.go_on(place)
    except (PySparkException, Py4JJavaError) as error:
        return str(error)
    assert found.keys() == written.expected.keys()
    for number, table in found.items():
        assert_same_answers(table, written.expected[number], absolute=1e-9)
    return ""


@pytest.mark.parametrize(("file", "damage"), [("changelog", cut), ("snapshot", flip)])
def test_damaged_state_is_never_answered_from(written, tmp_path, file, damage):
    assert outcome(written, damaged(written, tmp_path, file, damage))


@pytest.mark.soak
@pytest.mark.parametrize("file", FILES)
def test_no_damage_to_any_file_changes_an_answer(written, tmp_path, file):
    for damage in (cut, empty, flip, delete):
        place = damaged(written, tmp_path, file, damage)
        said = outcome(written, place)
        # Spark's names for errors, ours, or Java's; the first only says that a stream has failed.
        short = re.findall(r"\[[A-Z_.]{8,}\]|StateError: [^\n]*|\w+(?:Exception|Error): [^\n]*", said)
        print(f"{file}, {damage.__name__}: {short[-1][:120] if short else said[:60] or 'same answers'}")
        shutil.rmtree(place)


@pytest.mark.soak
def test_a_driver_that_died_in_its_first_micro_batch(spark, tmp_path, settings):
    """Its state was written, and nothing was committed."""
    batches = late_events(100, 2, seed=4)
    record = Recorded(spark, tmp_path, batches[0].schema)
    record.add(batches[0])
    checkpoint = tmp_path / "checkpoint"
    Collected(PLAN.stream(record.stream(), shards=2), checkpoint).finish()
    place = copied(checkpoint, tmp_path / "died")
    for log in ("commits", "offsets"):
        for entry in (place / log).iterdir():
            if log == "commits" or entry.name != "0":
                entry.unlink()
    record.add(batches[1], last_events(batches))
    found, expected = (
        Collected(PLAN.stream(record.stream(), shards=2), at).finish() for at in (place, tmp_path / "calm")
    )
    assert_same_answers(found.rows, expected.rows, absolute=1e-9)
