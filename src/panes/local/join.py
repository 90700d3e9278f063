"""``pn.join`` on tables in this process."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from panes.applying.joined_tables import join_tables
from panes.inputs import as_table
from panes.queries.join_declarations import JoinDeclaration


def join(declared: JoinDeclaration, left: Any, right: Any) -> pa.Table:
    """Join two tables over all windows.

    Parameters
    ----------
    left, right
        pyarrow Tables, or anything with the Arrow C interface.
    """
    return join_tables(declared, as_table(left), as_table(right))
