"""Rows of a stream until the watermark has passed them: then they arrive, in the order of their time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from panes.aggregates.operations import Array
from panes.errors import StateError
from panes.state.batch_log import BatchLog
from panes.state.blob_store import BlobStore
from panes.state.blobs import FORMAT

INSTANT = "instant"
"""The column of rows with their time in µs."""


@dataclass
class Counted:
    """What a shard counted in one micro-batch, and what it holds after it."""

    late: int = 0
    lost: int = 0
    answers: int = 0
    keys: int = 0
    rows: int = 0
    bytes: int = 0


class Waiting:
    """What has come and not arrived yet.

    Parameters
    ----------
    schema
        The columns of rows; one of them is ``INSTANT``.
    state
        What ``state`` gave.
    """

    def __init__(self, schema: pa.Schema, blob_store: BlobStore, state: dict[str, Any]) -> None:
        self.watermark: int = state.get("watermark", 0)
        self._rows = BatchLog(schema, blob_store, state.get("waiting", ()))
        self._punctuations: list[int] = state.get("punctuations", [])
        self.late = self._waiting = 0

    def __len__(self) -> int:
        """How many rows wait, after the watermark has passed."""
        return self._waiting

    def pass_by(
        self, rows: Sequence[pa.RecordBatch], punctuations: Array, watermark: int
    ) -> tuple[pa.RecordBatch, Array]:
        """Let a watermark pass: the rows and the punctuations before it, in any order.

        What comes although the last watermark has passed it is late, and does not arrive.
        """
        before, self.watermark = self.watermark, max(watermark, self.watermark)
        for some in rows:
            instants = some.column(INSTANT).to_numpy()
            in_time = instants >= before
            self.late += int((~in_time).sum())
            self._rows.append(some if in_time.all() else some.filter(pa.array(in_time)))
        marks = np.array([*self._punctuations, *punctuations[punctuations >= before].tolist()], np.int64)
        due = marks < self.watermark
        self._punctuations = sorted(marks[~due].tolist())
        everything = self._rows.all()
        instants = everything.column(INSTANT).to_numpy()
        waits = instants >= self.watermark
        # Rows that have arrived are left where they are until they are as many as those that wait.
        self._waiting = int(waits.sum())
        if len(waits) >= 2 * self._waiting:
            self._rows.replace(everything.filter(pa.array(waits)))
        return everything.filter(pa.array((instants >= before) & ~waits)), np.sort(marks[due])

    @property
    def state(self) -> dict[str, Any]:
        """For a manifest."""
        return {"watermark": self.watermark, "waiting": self._rows.listed, "punctuations": self._punctuations}

    @property
    def bytes(self) -> int:
        """What waiting rows take in memory."""
        return self._rows.bytes


def read_state(blob_store: BlobStore, declared: dict[str, Any]) -> dict[str, Any]:
    """What a shard has written, or nothing before the first time; that of another declaration is refused."""
    data = blob_store.manifest()
    return {} if data is None else check_state(data, declared)


def check_state(data: bytes, declared: dict[str, Any]) -> dict[str, Any]:
    """What was written, if it was for the same declaration."""
    state: dict[str, Any] = json.loads(data)
    if state["format"] != FORMAT:
        raise StateError(
            f"the checkpoint was written in format {state['format']}, and this version of Panes reads {FORMAT}. Start "
            "with a new checkpoint, or run the version that wrote it."
        )
    for name, now in declared.items():
        was = state.get("declared", {}).get(name)
        if was != now:
            raise StateError(
                f"the checkpoint was written with {name}={was!r}, and this run has {name}={now!r}. Start with a new "
                "checkpoint, or with what was declared before."
            )
    return state


def write_state(blob_store: BlobStore, declared: dict[str, Any], **state: Any) -> None:
    """What ``read_state`` reads."""
    blob_store.write_manifest(json.dumps({"format": FORMAT, "declared": declared, **state}).encode())
