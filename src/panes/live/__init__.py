"""Structures in this process that take in the events of a stream and answer lookups at any time."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import NoReturn

from panes.errors import DeclarationError


class _Room(ModuleType):
    """``pn.live`` is this package once it has been imported, and users look for a function there."""

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        """Say what to call instead."""
        raise DeclarationError("panes.live is a package and not a function: write pn.plan(query).live().")


sys.modules[__name__].__class__ = _Room
