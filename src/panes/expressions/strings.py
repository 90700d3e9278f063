"""Strings: Unicode code points, no collation, no locale."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc


def like(array: pa.Array, pattern: str) -> pa.Array:
    r"""Match whole strings: ``%`` is any run, ``_`` one character, a backslash makes either of them plain.

    Examples
    --------
    >>> like(pa.array(["10%", "10x", "a\nb"]), r"10\%").to_pylist()
    [True, False, False]
    """
    parts, characters = [], iter(pattern)
    for character in characters:
        if character == "\\":
            parts.append(_plain(next(characters)))
        else:
            parts.append({"%": ".*", "_": "."}.get(character) or _plain(character))
    return pc.match_substring_regex(array, rf"(?s)\A{''.join(parts)}\z")


def _plain(character: str) -> str:
    # RE2 takes every escape that re.escape writes but the one of a NUL.
    return r"\x00" if character == "\0" else re.escape(character)


def upper(array: pa.Array) -> pa.Array:
    """Upper case with full Unicode mapping, ß to SS; Arrow's own kernel maps single characters only."""
    return _mapped(array, pc.ascii_upper, str.upper)


def lower(array: pa.Array) -> pa.Array:
    """Lower case with full Unicode mapping, a final Σ to ς."""
    return _mapped(array, pc.ascii_lower, str.lower)


def _mapped(array: pa.Array, ascii_kernel: object, mapping: object) -> pa.Array:
    assert callable(ascii_kernel)
    assert callable(mapping)
    if pc.all(pc.string_is_ascii(array), min_count=0).as_py():
        return ascii_kernel(array)
    return pa.array([None if text is None else mapping(text) for text in array.to_pylist()], pa.string())
