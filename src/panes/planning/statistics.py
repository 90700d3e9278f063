"""What the planner assumes about a stream: the rate of events and the number of keys."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Final

from panes.errors import PlanError
from panes.suggestions import shown
from panes.timeline import SECOND

Keys = tuple[str, ...]

_MOST: Final = 1e18
"""Of a rate or a number of keys; products of several of them are still doubles."""


@dataclass(frozen=True)
class Statistics:
    """Events per second of event time, and distinct keys per set of key columns.

    Parameters
    ----------
    rate
        Events per second of event time, all keys together.
    keys
        Distinct values of each set of key columns that is known.
    default_keys
        Distinct values of a set of key columns that is not known.
    origin
        Where the figures come from: ``assumed``, ``given`` or ``sampled``.
    """

    rate: float = 100.0
    keys: Mapping[Keys, float] = field(default_factory=dict)
    default_keys: float = 100.0
    origin: str = "assumed"

    def __post_init__(self) -> None:
        keys = [(f"keys={{{', '.join(names)}: ...}}", number) for names, number in self.keys.items()]
        for what, figure in (("rate", self.rate), ("keys", self.default_keys), *keys):
            if not (isinstance(figure, Real) and 0 < figure <= _MOST):
                raise PlanError(f"{what} is {shown(figure)}: write a positive number, of at most {_MOST:.0e}.")

    @classmethod
    def given(cls, rate: float | None, keys: float | Mapping[object, float] | None) -> Statistics:
        """Return the statistics that a user gives; ``keys`` is one number, or one per set of key columns.

        Examples
        --------
        >>> Statistics.given(1000, {"device": 50}).distinct(("device",))
        50
        """
        known = cls(origin="assumed" if rate is None and keys is None else "given")
        if rate is not None:
            known = replace(known, rate=rate)
        if isinstance(keys, Mapping):
            sets = {_unordered((k,) if isinstance(k, str) else tuple(k)): n for k, n in keys.items()}  # type: ignore[arg-type]
            return replace(known, keys=sets)
        return known if keys is None else replace(known, default_keys=keys)

    def distinct(self, keys: Keys) -> float:
        """Return the number of distinct values of a set of key columns."""
        return 1 if not keys else self.keys.get(_unordered(keys), self.default_keys)

    def rows(self, keys: Keys, width: float, recurrence: float) -> float:
        """Estimate how many spans per second hold an event, over all keys.

        Events of a key are assumed to be a Poisson process, so a span is empty with probability
        ``exp(-events expected in it)``.

        Parameters
        ----------
        width
            The length of a span in µs.
        recurrence
            How many spans begin per second, for each key.
        """
        distinct = self.distinct(keys)
        expected = self.rate / distinct * width / SECOND
        return distinct * recurrence * -math.expm1(-expected)


def _unordered(keys: Keys) -> Keys:
    return tuple(sorted(key.lower() for key in keys))
