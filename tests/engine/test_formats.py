"""State of another format, older or newer, is refused with a sentence."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from panes.errors import StateError
from panes.state import blobs
from panes.state.job import JobOptions
from panes.state.manifest import read_manifest
from panes.state.waiting import check_state

SENTENCE = r"was written in format \d+, and this version of Panes reads \d+\. Start with a new checkpoint"


@pytest.mark.parametrize("other", [blobs.FORMAT - 1, blobs.FORMAT + 1])
def test_another_format_is_refused(monkeypatch, other):
    monkeypatch.setattr(blobs, "FORMAT", other)
    data = blobs.pack(pa.RecordBatch.from_pydict({"n": [1]}))
    assert blobs.unpack(data).num_rows == 1
    monkeypatch.undo()
    with pytest.raises(StateError, match=SENTENCE):
        blobs.unpack(data)
    manifest = json.dumps({"format": other}).encode()
    with pytest.raises(StateError, match=SENTENCE):
        read_manifest(manifest, (), JobOptions(shards=1, mode="append"))
    with pytest.raises(StateError, match=SENTENCE):
        check_state(manifest, {})
