"""All kinds of windows that a query may have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from panes.queries.nested import Nested
from panes.queries.windows import Cumulate, RowWindow, Sliding, Window

AnyWindow: TypeAlias = Window | Cumulate | Sliding | RowWindow | Nested
KINDS = (Window, Cumulate, Sliding, RowWindow, Nested)


def names_of(declared: AnyWindow) -> tuple[str, ...]:
    """What results call a window: by its own name, or each level by one."""
    return declared.names if isinstance(declared, Nested) else (declared.name,)


def suffixes_of(declared: AnyWindow) -> tuple[str, ...]:
    """What the columns of the wide layout end with, in the order of ``names_of``."""
    return declared.suffixes if isinstance(declared, Nested) else (declared.suffix,)


def wide_names(windows: Iterable[AnyWindow], columns: Sequence[str]) -> tuple[tuple[str, str, str], ...]:
    """The columns of the wide layout: the name of the window, the output column, and the name of both together.

    Examples
    --------
    >>> import panes as pn
    >>> [name for *_, name in wide_names([pn.hopping("1 hour", every="5 min"), pn.sliding(pn.rows(10))], ["n"])]
    ['n_1h_by_5m', 'n_10rows']
    """
    return tuple(
        (name, column, f"{column}_{suffix}")
        for window in windows
        for name, suffix in zip(names_of(window), suffixes_of(window), strict=True)
        for column in columns
    )
