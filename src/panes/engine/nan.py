"""The one NaN of keys: equal to itself as in Spark, in memory and after it was stored."""

from __future__ import annotations


class NotANumber(float):
    """NaN of which there is one, also after it was stored: a dictionary finds what is identical, if not equal."""

    def __reduce__(self) -> str:
        return "NAN"


NAN = NotANumber("nan")
