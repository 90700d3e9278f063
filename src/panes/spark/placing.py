"""Which numbers stand for shards, so that Spark's partitions get equally many of them.

Spark puts a row into the partition ``pmod(murmur3(key), partitions)``. Shards called 0, 1, 2, ... would fall at
random, three into one of two partitions and one into the other. So the i-th shard is called by the smallest number
whose hash ends in the bits of i. It depends on nothing but i: a checkpoint finds its shards again, whatever changes.
"""

from __future__ import annotations

from functools import cache

_SEED = 42
_ENDS_IN = 1 << 12
_WORD = 0xFFFFFFFF


def murmur3(number: int) -> int:
    """Spark's ``hash`` of an INT, as an unsigned number.

    Examples
    --------
    >>> murmur3(1) - 2**32
    -559580957
    """
    mixed = number * 0xCC9E2D51 & _WORD
    mixed = _turned(mixed, 15) * 0x1B873593 & _WORD
    hashed = _turned(_SEED ^ mixed, 13) * 5 + 0xE6546B64 & _WORD
    hashed ^= 4  # bytes
    hashed = (hashed ^ hashed >> 16) * 0x85EBCA6B & _WORD
    hashed = (hashed ^ hashed >> 13) * 0xC2B2AE35 & _WORD
    return hashed ^ hashed >> 16


def _turned(word: int, bits: int) -> int:
    return (word << bits | word >> 32 - bits) & _WORD


@cache
def labels(shards: int) -> tuple[int, ...]:
    """What each shard is called.

    Examples
    --------
    >>> [murmur3(label) % 4 for label in labels(6)]
    [0, 1, 2, 3, 0, 1]
    """
    wanted, found, number = set(range(shards)), dict[int, int](), 0
    while wanted:
        ending = murmur3(number) % _ENDS_IN
        if ending in wanted:
            wanted.remove(ending)
            found[ending] = number
        number += 1
    return tuple(found[i] for i in range(shards))
