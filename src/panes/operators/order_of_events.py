"""In which order a tuple that arrives is inserted, others are evicted, and the window is triggered.

Paper: Gedik 2014, Tables I and II. What a table says to happen "independently of insertions" is not in the order of a
pair here: it happens on the clock.
"""

from __future__ import annotations

from typing import Final

INSERT: Final = "insert"
EVICT: Final = "evict"
TRIGGER: Final = "trigger"

#: Table I, by eviction policy. A tumbling window is triggered when it is evicted: it is flushed.
TUMBLING: Final[dict[str, tuple[str, ...]]] = {
    "count": (INSERT, EVICT),
    "delta": (EVICT, INSERT),
    "time": (INSERT,),
    "punctuation": (INSERT,),
}

#: Table II, by eviction and trigger policy.
SLIDING: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("count", "count"): (EVICT, INSERT, TRIGGER),
    ("count", "delta"): (TRIGGER, EVICT, INSERT),
    ("count", "time"): (EVICT, INSERT),
    ("delta", "count"): (EVICT, INSERT, TRIGGER),
    ("delta", "delta"): (TRIGGER, EVICT, INSERT),
    ("delta", "time"): (EVICT, INSERT),
    ("time", "count"): (INSERT, TRIGGER),
    ("time", "delta"): (TRIGGER, INSERT),
    ("time", "time"): (INSERT,),
}
