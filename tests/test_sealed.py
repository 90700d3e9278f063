"""What is sealed comes back as it was, or not at all."""

from __future__ import annotations

import pytest

from panes.errors import StateError
from panes.sealed import OVERHEAD, Damaged, OtherFormat, seal, sealed_file, unseal
from tests.damage import assert_noticed


@pytest.mark.parametrize("data", [b"", b"x", bytes(range(256))])
@pytest.mark.parametrize("place", ["", "a name"])
def test_data_come_back(data, place):
    sealed = seal(data, 7, place)
    assert len(sealed) == len(data) + OVERHEAD
    assert bytes(unseal(sealed, 7, place)) == data
    assert_noticed(sealed, lambda other: unseal(other, 7, place), "^its? ")
    # A swap of two whole blobs is a damage, too.
    with pytest.raises(Damaged, match="its checksum is wrong"):
        unseal(sealed, 7, "another name")
    with pytest.raises(OtherFormat, match="written in format 7"):
        unseal(sealed, 8, place)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b'{"format": 4, "mode": "append"}', "written in format 4"),
        (b"\xff\xff\xff\xff\x10\x00\x00\x00", "written in an old format"),
        (b"", "it is empty"),
        (b"PANES", "it does not begin as Panes begins it"),
        (b"something else altogether, and longer", "it does not begin as Panes begins it"),
    ],
)
def test_what_was_never_sealed(data, says):
    with pytest.raises(StateError, match=says):
        unseal(data, 5)


def test_a_file_is_sealed_like_bytes(tmp_path):
    with sealed_file(tmp_path / "file", 3) as file:
        for part in (b"some", b"", memoryview(b" data")):
            file.write(part)
    assert (tmp_path / "file").read_bytes() == seal(b"some data", 3)
