"""A threshold on disk: a folder with what was declared (JSON), the keys, and the events that are kept (Arrow)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from panes.algebra.operations import Array
from panes.errors import StateError
from panes.live.collective_levels import Integers

FORMAT = 1
_DECLARED, _SCHEMA, _KEYS, _EVENTS = "threshold.json", "schema.arrow", "keys.arrow", "events.arrow"


@dataclass(frozen=True)
class Saved:
    """What makes a threshold again.

    Parameters
    ----------
    declared
        Plain values by name.
    schema
        The columns of events that are read; None before the first event.
    keys
        One row for each key.
    numbers, times, values
        The row of each event's key, its time, and its value where there are values.
    """

    declared: dict[str, Any]
    schema: pa.Schema | None
    keys: pa.Table | None
    numbers: Integers
    times: Integers
    values: Array | None


def write(folder: Path, saved: Saved) -> None:
    """Write a folder; what says that it is one comes last."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _DECLARED).unlink(missing_ok=True)
    if saved.schema is not None and saved.keys is not None:
        events: dict[str, Any] = {"key": saved.numbers, "time": saved.times}
        if saved.values is not None:
            # Integers beyond 64 bits as text.
            wide = saved.values.dtype == object
            events["value"] = [str(value) for value in saved.values] if wide else saved.values
        _write(folder / _SCHEMA, saved.schema.empty_table())
        _write(folder / _KEYS, saved.keys)
        _write(folder / _EVENTS, pa.table(events))
    text = json.dumps({"format": FORMAT, "events": saved.schema is not None, **saved.declared}, indent=1)
    (folder / _DECLARED).write_text(text + "\n", encoding="utf-8")


def read(folder: Path) -> Saved:
    """Read a folder that ``write`` wrote."""
    try:
        declared = json.loads((folder / _DECLARED).read_text(encoding="utf-8"))
        number = declared.pop("format")
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise StateError(
            f"there is no threshold in {str(folder)!r}: {_DECLARED} is missing or cannot be read. Give the folder that "
            "save(folder) was given."
        ) from error
    if number != FORMAT:
        raise StateError(
            f"the threshold in {str(folder)!r} has the format {number!r}, and this version of Panes reads {FORMAT}. "
            "Read it with the version that wrote it, or build it again."
        )
    if not declared.pop("events"):
        nothing = np.zeros(0, np.int64)
        return Saved(declared, None, None, nothing, nothing, None)
    schema, keys, events = (_read(folder / name) for name in (_SCHEMA, _KEYS, _EVENTS))
    values = None
    if "value" in events.column_names:
        column = events["value"]
        wide = pa.types.is_string(column.type)
        values = np.array([int(value.as_py()) for value in column], object) if wide else column.to_numpy()
    return Saved(declared, schema.schema, keys, events["key"].to_numpy(), events["time"].to_numpy(), values)


def _write(path: Path, table: pa.Table) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def _read(path: Path) -> pa.Table:
    with pa.OSFile(str(path), "rb") as source:
        return pa.ipc.open_file(source).read_all()
