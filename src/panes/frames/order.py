"""The order of steps when a row arrives at a window: insert, evict, trigger.

Paper: Gedik 2014, Tables I and II. This table is the only declaration of that order. The containers of
``panes.operators`` run its steps for one tuple after another; ``row_sliding`` and ``row_tumbling`` derive from it
which rows a window holds when it is processed, for all rows at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

INSERT: Final = "insert"
EVICT: Final = "evict"
TRIGGER: Final = "trigger"
FULL: Final = "full"
"""A window is full for the first time; on the clock only where rows are evicted by time."""


@dataclass(frozen=True, slots=True)
class Order:
    """What happens when a row arrives, and what happens independently of arrivals.

    Parameters
    ----------
    arrival
        The steps at the arrival of a row, in order.
    alone
        The steps that happen on the clock, or when a punctuation arrives.
    """

    arrival: tuple[str, ...]
    alone: tuple[str, ...] = ()

    @property
    def holds_arriving(self) -> bool:
        """Whether a window that is processed when a row arrives holds that row.

        A sliding window is processed by its trigger; a tumbling window by its eviction, which flushes it.

        Examples
        --------
        >>> ORDER["count", None].holds_arriving, ORDER["delta", None].holds_arriving
        (True, False)
        """
        process = TRIGGER if TRIGGER in self.arrival else EVICT
        return process in self.arrival and self.arrival.index(INSERT) < self.arrival.index(process)


ORDER: Final[dict[tuple[str, str | None], Order]] = {
    # Table I, tumbling windows: by eviction policy.
    ("count", None): Order((INSERT, EVICT)),
    ("delta", None): Order((EVICT, INSERT)),
    ("time", None): Order((INSERT,), alone=(EVICT,)),
    ("punctuation", None): Order((INSERT,), alone=(EVICT,)),
    # Sessions are not in the paper.
    ("gap", None): Order((INSERT,), alone=(EVICT,)),
    # Table II, sliding windows: by eviction and trigger policy.
    ("count", "count"): Order((EVICT, INSERT, TRIGGER)),
    ("count", "delta"): Order((TRIGGER, EVICT, INSERT)),
    ("count", "time"): Order((EVICT, INSERT), alone=(TRIGGER,)),
    ("delta", "count"): Order((EVICT, INSERT, TRIGGER)),
    ("delta", "delta"): Order((TRIGGER, EVICT, INSERT)),
    ("delta", "time"): Order((EVICT, INSERT), alone=(TRIGGER,)),
    ("time", "count"): Order((INSERT, TRIGGER), alone=(EVICT,)),
    ("time", "delta"): Order((TRIGGER, INSERT), alone=(EVICT,)),
    ("time", "time"): Order((INSERT,), alone=(EVICT, TRIGGER)),
}

ON_THE_CLOCK: Final = (EVICT, FULL, TRIGGER)
"""The order of what is due on the clock at one instant: no trigger sees a row that is older than its period."""

CLOCK: Final = "clock"
ARRIVAL: Final = "arrival"
PUNCTUATION: Final = "punctuation"

WITHIN_AN_INSTANT: Final = (CLOCK, ARRIVAL, PUNCTUATION)
"""What is due at an instant happens before the rows that arrive at it; a punctuation comes after them."""


def sees_its_instant(cause: str) -> bool:
    """Return whether a window that is processed by the clock or a punctuation holds the rows of the same instant.

    Examples
    --------
    >>> sees_its_instant(CLOCK), sees_its_instant(PUNCTUATION)
    (False, True)
    """
    return WITHIN_AN_INSTANT.index(ARRIVAL) < WITHIN_AN_INSTANT.index(cause)


def clock_has_done(step: str, cause: str) -> bool:
    """Return whether a step that is due on the clock is done when a window is processed at the same instant.

    Parameters
    ----------
    step
        Of ``ON_THE_CLOCK``.
    cause
        Of ``WITHIN_AN_INSTANT``: what processes the window.

    Examples
    --------
    >>> clock_has_done(EVICT, CLOCK), clock_has_done(EVICT, ARRIVAL)
    (True, True)
    """
    if cause == CLOCK:
        return ON_THE_CLOCK.index(step) < ON_THE_CLOCK.index(TRIGGER)
    return WITHIN_AN_INSTANT.index(CLOCK) < WITHIN_AN_INSTANT.index(cause)
