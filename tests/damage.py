"""Damage that storage does to bytes: any of it has to be noticed."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from panes.errors import StateError


def damaged(data: bytes, seed: int = 0) -> Iterator[bytes]:
    """Every byte with one bit flipped, and with all of them; cut at every length; and something after the end."""
    rng = random.Random(seed)
    for i in range(len(data)):
        for flipped in (1 << rng.randrange(8), 0xFF):
            changed = bytearray(data)
            changed[i] ^= flipped
            yield bytes(changed)
        yield data[:i]
    yield data + b"\0"


def damaged_in_place(path: Path, seed: int = 0) -> Iterator[None]:
    """The same to a file, which is not written anew each time: that would take a hundred times as long."""
    rng, whole = random.Random(seed), path.read_bytes()
    with path.open("r+b", buffering=0) as file:
        for i, byte in enumerate(whole):
            for flipped in (1 << rng.randrange(8), 0xFF):
                os.pwrite(file.fileno(), bytes([byte ^ flipped]), i)
                yield
            os.pwrite(file.fileno(), bytes([byte]), i)
        os.pwrite(file.fileno(), b"\0", len(whole))
        yield
        for length in reversed(range(len(whole))):
            file.truncate(length)
            yield


def assert_noticed(data: bytes, read: Callable[[bytes], object], message: str) -> None:
    """Reading fails with a sentence, whatever has been damaged."""
    for other in damaged(data):
        with pytest.raises(StateError, match=message):
            read(other)
