"""How much state a stream may keep when its keys are without bound."""

from __future__ import annotations

from dataclasses import dataclass

from panes.calls import helpful
from panes.errors import DeclarationError
from panes.timeline import DurationLike, parse_duration


@helpful(
    "pn.Limits(age='1 hour', keys=1_000_000)",
    **dict.fromkeys(("ttl", "max_age", "timeout"), "age"),
    max_keys="keys",
    **dict.fromkeys(("max_rows", "granules"), "rows"),
)
@dataclass(frozen=True)
class Limits:
    """When keys are evicted from a stream's state; those that were updated least recently go first.

    A key that is evicted is never answered silently in part. Its open windows come out at once, with the part that was
    seen in ``coverage``, or with ``emit=False`` not at all; and when it returns, windows that had begun before are
    told by their ``coverage``, or left out.

    Parameters
    ----------
    age
        Evict keys whose last event is older than this, by the watermark.
    keys, rows
        Evict keys while there are more keys or granules than this, in the whole stream.
    emit
        Whether windows that were not seen in full come out.

    Examples
    --------
    >>> Limits(age="1 hour", keys=1_000_000)
    Limits(age='1 hour', keys=1000000, rows=None, emit=True)
    """

    age: DurationLike | None = None
    keys: int | None = None
    rows: int | None = None
    emit: bool = True

    def __post_init__(self) -> None:
        if self.age is None and self.keys is None and self.rows is None:
            raise DeclarationError("these limits limit nothing. Give age=, keys= or rows=.")
        if self.age is not None and parse_duration(self.age) <= 0:
            raise DeclarationError(f"age={self.age!r} has to be positive.")
        for name in ("keys", "rows"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < 1):
                raise DeclarationError(f"{name}={value!r} has to be a whole number, 1 or more.")
