"""State of another format, older or newer, is refused with a sentence."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from panes.errors import StateError
from panes.state import blob_store
from panes.state.manifest import check_state, read_manifest
from panes.state.stream_options import StreamOptions

SENTENCE = r"was written in format \d+, and this version of Panes reads \d+\. Start with a new checkpoint"


@pytest.mark.parametrize("other", [blob_store.FORMAT - 1, blob_store.FORMAT + 1])
def test_another_format_is_refused(monkeypatch, other):
    monkeypatch.setattr(blob_store, "FORMAT", other)
    data = blob_store.pack(pa.RecordBatch.from_pydict({"n": [1]}))
    assert blob_store.unpack(data).num_rows == 1
    monkeypatch.undo()
    with pytest.raises(StateError, match=SENTENCE):
        blob_store.unpack(data)
    manifest = json.dumps({"format": other}).encode()
    with pytest.raises(StateError, match=SENTENCE):
        read_manifest(manifest, (), StreamOptions())
    with pytest.raises(StateError, match=SENTENCE):
        check_state(manifest, {})
