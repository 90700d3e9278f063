"""``pn.last``: the latest value of a column, or the window of the last so many events."""

from __future__ import annotations

from typing import Final, overload

from panes.algebra import declare as aggregates
from panes.algebra.aggregates import Aggregate
from panes.declare.kinds import Last, last_name
from panes.declare.windows import checked_name
from panes.errors import DeclarationError

_MOST: Final = 2**60
"""More events than anybody has, and places of them still fit 64 bits."""


@overload
def last(value: str) -> Aggregate: ...


@overload
def last(value: int, *, every: int = 1, skip: int = 0, name: str | None = None) -> Last: ...


def last(value: str | int, *, every: int = 1, skip: int = 0, name: str | None = None) -> Aggregate | Last:
    """Of a column, the latest value by event time; of a number, the window of so many events, the last ones.

    As an aggregate, the largest value counts if several are as late. As a window of a query it is answered after every
    so many events of a key, also before there have been as many as it holds; of :func:`panes.lookup` for each request.
    Events at one instant come in the order of the values that the query uses.

    Parameters
    ----------
    value
        A column or an expression, or how many events the window holds.
    every
        In a query: after how many events it is answered again.
    skip
        In a lookup: how many of the very last events to leave out. ``last(100, skip=50)`` are the 100 events before the
        last 50.
    name
        What results call the window.

    Examples
    --------
    >>> str(last("price")), str(last(100)), str(last(100, skip=50)), str(last(100, every=10))
    ('last(price)', 'last_100', 'last_100_skip_50', 'last_100_every_10')
    """
    if isinstance(value, str) or not isinstance(value, int):
        if skip != 0 or every != 1 or name is not None:
            raise DeclarationError(
                f"last({value!r}) is an aggregate, which takes no every=, skip= or name=. For a window of events write "
                "a number, as pn.last(100, skip=50)."
            )
        return aggregates.last(value)
    if isinstance(value, bool) or value > _MOST or value <= 0:
        raise DeclarationError(
            f"last({value}) is not a number of events from 1 to {_MOST:,}. Write how many it holds, as pn.last(100)."
        )
    if isinstance(skip, bool) or not isinstance(skip, int) or not 0 <= skip <= _MOST:
        raise DeclarationError(f"skip={skip!r} is not a number of events to leave out. Write one from 0 to {_MOST:,}.")
    if isinstance(every, bool) or not isinstance(every, int) or not 1 <= every <= _MOST:
        raise DeclarationError(
            f"every={every!r} is not a number of events. Write one from 1 to {_MOST:,}, as every=10."
        )
    return Last(last_name(value, every, skip) if name is None else checked_name(name), value, every, skip)
