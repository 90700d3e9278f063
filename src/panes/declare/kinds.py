"""All kinds of windows that a query may have."""

from __future__ import annotations

from typing import TypeAlias

from panes.declare.nested import Nested
from panes.declare.windows import Cumulate, RowWindow, Sliding, Window

AnyWindow: TypeAlias = Window | Cumulate | Sliding | RowWindow | Nested
KINDS = (Window, Cumulate, Sliding, RowWindow, Nested)


def names_of(declared: AnyWindow) -> tuple[str, ...]:
    """What results call a window: by its own name, or each level by one."""
    return declared.names if isinstance(declared, Nested) else (declared.name,)


def suffixes_of(declared: AnyWindow) -> tuple[str, ...]:
    """What the columns of the wide layout end with, in the order of ``names_of``."""
    return declared.suffixes if isinstance(declared, Nested) else (declared.suffix,)
