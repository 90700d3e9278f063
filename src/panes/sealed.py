"""Bytes that outlive the process, in an envelope: nothing of them is parsed before a digest has been verified.

What is written to files and state stores may come back damaged: cut off, overwritten, or with a bit flipped. Arrow does
not notice, and answers wrongly or crashes. So such bytes are sealed; bytes that only travel between two steps of a job
are not. The envelope stays as it is, whatever becomes of the formats inside::

    magic    6 bytes   no JSON text or Arrow stream begins with them
    format   2 bytes   big-endian, as all numbers
    length   8 bytes   of the data
    digest  16 bytes   of data, place, format and length: SHA-256, cut off
    data
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EINVAL, ENOTSUP
from pathlib import Path
from stat import S_IMODE
from typing import Any, Final
from uuid import uuid4

from panes.errors import StateError

_MAGIC: Final = b"PANES\x1a"
_NUMBERS: Final = struct.Struct(">HQ")
# Processors have instructions for SHA-256: 1,800 MB/s of CPU time over 32 MiB in CPython 3.11, where BLAKE2b has 940.
# CRC-32 has 4,200, but one in four billion of all damages passes it.
_DIGEST, _DIGEST_BYTES = hashlib.sha256, 16
OVERHEAD: Final = len(_MAGIC) + _NUMBERS.size + _DIGEST_BYTES
"""How much longer sealed data are."""

_UNSEALED: Final = re.compile(rb'\{"format": (\d+)|\xff{4}')
"""How manifests and other data began before they were sealed: with their format as JSON, or with an Arrow stream."""


class OtherFormat(StateError):
    """Data are whole, and of another format than the one that is read; the message says which."""


class Damaged(StateError):
    """Data are not what was written; the message says in what way."""


def seal(data: bytes, format: int, place: str = "") -> bytes:
    """Return data in an envelope.

    Parameters
    ----------
    format
        The format of the data.
    place
        The name under which they are kept, if any: they are valid there only.

    Examples
    --------
    >>> sealed = seal(b"some data", format=3)
    >>> bytes(unseal(sealed, format=3))
    b'some data'
    >>> unseal(sealed[:-1] + b"b", format=3)
    Traceback (most recent call last):
    ...
    panes.sealed.Damaged: its checksum is wrong
    """
    return b"".join((_envelope(_DIGEST(data), len(data), format, place), data))


def unseal(sealed: bytes, format: int, place: str = "") -> memoryview:
    """Return data without their envelope, once they are known to be what was written.

    Parameters
    ----------
    format, place
        The format that the caller reads, and the name under which the data were kept.
    """
    if len(sealed) < OVERHEAD or not sealed.startswith(_MAGIC):
        if (before := _UNSEALED.match(sealed)) is not None:
            raise OtherFormat(f"written in {'an old format' if before[1] is None else f'format {before[1].decode()}'}")
        raise Damaged("it does not begin as Panes begins it" if sealed else "it is empty")
    written, length = _NUMBERS.unpack_from(sealed, len(_MAGIC))
    data = memoryview(sealed)[OVERHEAD:]
    if len(data) != length:
        raise Damaged(f"it has {len(data):,} bytes and not {length:,}")
    if _envelope(_DIGEST(data), length, written, place) != sealed[:OVERHEAD]:
        raise Damaged("its checksum is wrong")
    if written != format:
        raise OtherFormat(f"written in format {written}")
    return data


@contextmanager
def sealed_file(path: str | os.PathLike[str], format: int) -> Iterator[io.RawIOBase]:
    """Write a sealed file, whole or not at all: until it is complete and on disk, an earlier file of the name stays.

    The mode is that of the earlier file; that of a new one is as ``open`` makes it. A link is followed.

    Parameters
    ----------
    format
        The format of what is written.
    """
    target = Path(os.path.realpath(path))
    # In the same folder, so that it can be renamed; a name of its own, so that two who save at once do not meet.
    making = target.with_name(f".panes-{uuid4().hex}")
    try:
        with making.open("xb") as file:
            with suppress(FileNotFoundError):
                mode = S_IMODE(target.stat().st_mode)
                # Before anything is written that others may not read.
                if mode != S_IMODE(making.stat().st_mode):
                    making.chmod(mode)
            file.write(bytes(OVERHEAD))
            data = _Digested(file)
            yield data
            file.seek(0)
            file.write(_envelope(data.digest, data.length, format, ""))
            file.flush()
            os.fsync(file.fileno())
        making.replace(target)
    except BaseException:
        making.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


class _Digested(io.RawIOBase):
    """What is written to a file, digested on its way."""

    def __init__(self, file: io.BufferedWriter) -> None:
        self._file, self.digest, self.length = file, _DIGEST(), 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.digest.update(data)
        written = self._file.write(data)
        self.length += written
        return written


def _envelope(digest: Any, length: int, format: int, place: str) -> bytes:
    """Return what precedes data."""
    numbers = _NUMBERS.pack(format, length)
    digest.update(place.encode() + numbers)
    return b"".join((_MAGIC, numbers, digest.digest()[:_DIGEST_BYTES]))


def _sync_folder(folder: Path) -> None:
    """Let a new name outlive a crash; not every system lets folders be opened or synced."""
    try:
        number = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(number)
    except OSError as error:
        if error.errno not in (EINVAL, ENOTSUP):
            raise
    finally:
        os.close(number)
