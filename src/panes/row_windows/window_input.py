"""Windows by rows over whole tables: how rows arrive at them, checked before any row is looked at."""

from __future__ import annotations

from dataclasses import dataclass

from panes.aggregates.aggregates import Aggregate as Declared
from panes.errors import DeclarationError
from panes.expressions.expression import Expression
from panes.operators.policies import Gap, SlidingPolicies, Time, WindowPolicies
from panes.queries.measures import Punctuation
from panes.timeline import Geometry

_AGES = 2**59


@dataclass(frozen=True)
class WindowInput:
    """How the rows of a table arrive at a window.

    Parameters
    ----------
    window
        Partitioned by ``by``, if that names columns.
    at
        The column of time; None for the order of the table.
    where
        Which rows arrive at all.
    port
        The column that says for which input port of an operator a row is.
    others
        The other windows that go by the same rows, or by the same clock in an operator.
    ties
        The columns that order rows of one instant; none for all columns of the data.
    """

    window: WindowPolicies
    by: tuple[str, ...]
    at: str | None
    where: Expression | None
    port: str | None = None
    others: tuple[WindowPolicies, ...] = ()
    ties: tuple[str, ...] = ()

    @property
    def mark(self) -> Punctuation | None:
        """Which rows are punctuations, where the window ends with them."""
        policy = self.window.evict
        return policy if isinstance(policy, Punctuation) and policy.column else None

    @property
    def deltas(self) -> tuple[str, ...]:
        """The columns that delta policies of the window go by."""
        return tuple(dict.fromkeys(str(policy.column) for policy in self.window.deltas))

    @property
    def timed(self) -> bool:
        """Whether something may happen on the clock."""
        return any(_timed(window) for window in (self.window, *self.others))

    @property
    def together(self) -> bool:
        """Whether partitions have an influence on each other.

        One is evicted because of the others, or tuples of two partitions meet in a window that is partitioned by
        something else.
        """
        partitions = [window.partitioned for window in (self.window, *self.others) if window.partitioned is not None]
        mixed = any(each.evict is not None or (each.by and each.by != self.by) for each in partitions)
        # Without partitions of rows there are none that could meet.
        return bool(self.by) and mixed

    @property
    def alone(self) -> bool:
        """Whether one operator has all tuples: there are no partitions, or they have an influence on each other."""
        return not self.by or self.together

    @property
    def used(self) -> frozenset[str]:
        """The columns that decide which rows arrive where and when."""
        mark = () if self.mark is None else (self.mark.column,)
        names = (*self.by, *self.deltas, *self.ties, *mark, *(n for n in (self.at, self.port) if n is not None))
        return frozenset((*names, *(() if self.where is None else self.where.roots)))


def check_output(alias: str, value: object) -> None:
    """Refuse what cannot be computed over windows of any length."""
    # One that has to know how long windows are: these are of any length.
    if isinstance(value, Declared) and (value.levels or value.in_order or value.misfit(Geometry(_AGES, 1)) is not None):
        raise DeclarationError(
            f"{alias!r} is {value}, which goes by the length or the levels of a window over time, and windows by rows "
            "are of any length. Leave it to windows on the clock."
        )


def check_times(window: WindowPolicies, at: str | None) -> None:
    """Refuse a window that goes by time where rows have none."""
    evict = None if window.partitioned is None else window.partitioned.evict
    aged = evict is not None and evict.age is not None
    if (aged or _timed(window)) and at is None:
        raise DeclarationError(
            f"the window '{window}' goes by time, and rows have none. Write at= with the column of their time."
        )


def _timed(window: WindowPolicies) -> bool:
    policies = (window.evict, window.trigger) if isinstance(window, SlidingPolicies) else (window.evict,)
    return any(isinstance(policy, (Time, Gap)) for policy in policies)
