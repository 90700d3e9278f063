"""The columns of requests: where keys and times stand, and whether what a lookup adds has names of its own."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from panes.declare.lookups import Lookup, LookupPart
from panes.engine.schema import field_of
from panes.engine.sides import check_key, check_times, position, time_position
from panes.errors import SchemaError

_SIDES = ("the events", "the requests")


@dataclass(frozen=True)
class RequestColumns:
    """Where the keys stand among the columns of the requests, and the time."""

    keys: tuple[int, ...]
    at: int


def request_columns(part: LookupPart, events: pa.Schema, requests: pa.Schema) -> RequestColumns:
    """Find the columns of a lookup in the requests; what is missing or of another type is an error.

    Parameters
    ----------
    events
        The schema of the events, which was checked before.
    """
    keys = tuple(position(f"by={key!r}", key, _SIDES[1], requests) for key in part.by)
    at = time_position(f"at={part.asked_at!r}", part.asked_at, _SIDES[1], requests)
    for key, place in zip(part.by, keys, strict=True):
        check_key(f"by={key!r}", _SIDES, (field_of(events, key).type, requests.field(place).type))
    times = field_of(events, part.at).type, requests.field(at).type
    check_times((f"at={part.at!r}", f"at={part.asked_at!r}"), _SIDES, times)
    return RequestColumns(keys, at)


def check_added(lookup: Lookup, requests: pa.Schema) -> None:
    """Refuse requests of which a column could not be told from another one, or from what the lookup adds."""
    _check_twins(requests)
    taken = {name.lower() for name in requests.names}
    for name in lookup.added:
        if name.lower() in taken:
            raise SchemaError(
                f"the requests have a column {name!r}, which is also what the lookup would add. Rename it, or the "
                "output column or window of the query."
            )


def _check_twins(requests: pa.Schema) -> None:
    lowered = [name.lower() for name in requests.names]
    twins = next((name for name in requests.names if lowered.count(name.lower()) > 1), None)
    if twins is not None:
        raise SchemaError(
            f"two columns of the requests are called {twins!r} (upper and lower case count as equal), and no answer "
            "could name one of them. Drop or rename one."
        )
