"""Find attributes of an operator that its ``save`` leaves out: a stream would lose them after every micro-batch.

An operator that has processed tuples is compared with a new one, attribute by attribute, as deep as Python can look.
What it cannot look into counts as unchanged: functions and what they enclose, iterators, and objects written in C that
do not compare, such as random number generators. Variables of modules and classes are not the operator's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Final

import numpy as np

from panes.operators.clocks import Clock
from panes.operators.operator import Operator

_OPAQUE: Final = (Clock, type, FunctionType, BuiltinFunctionType, MethodType, ModuleType, partial, Iterator)
_OWN: Final = frozenset(("declared", "clock", "outputs", "windows", "_owns_clock", "_sinks"))
"""The attributes of every operator."""


def unsaved_attributes(operator: Operator, new: Operator) -> Iterator[tuple[str, Any]]:
    """Yield the attributes that would be lost, with their values.

    Parameters
    ----------
    new
        The same operator before the first tuple.
    """
    saves = next(each for each in type(operator).__mro__ if "save" in vars(each))
    kept: frozenset[str] | None = vars(saves).get("_keeps")
    # An operator with its own save is trusted; those of the library list what theirs keeps.
    if kept is None or type(operator) is saves:
        return
    before, same = _attributes(new), _Same(operator, new)
    for name, value in _attributes(operator).items():
        if name in _OWN or name in kept or isinstance(getattr(type(operator), name, None), cached_property):
            continue
        if not (same.compare(before[name], value) if name in before else same.is_window(value)):
            yield name, value


class _Same:
    """Whether two values are equivalent: neither remembers anything that the other does not.

    The windows and clocks of the two operators count as equivalent: they are saved, or are not state.
    """

    def __init__(self, operator: Operator, new: Operator) -> None:
        # Each pair is compared once: objects may refer to each other. Ids stay valid as long as the operators exist.
        self._seen = {(id(new), id(operator))}
        self._windows = {id(window) for window in operator.windows}

    def compare(self, one: Any, other: Any) -> bool:
        """Return whether two values are equivalent, or too deep to compare."""
        try:
            return self(one, other)
        except RecursionError:
            return True

    def is_window(self, value: Any) -> bool:
        """Return whether a value is a window of the operator, which is saved."""
        return id(value) in self._windows

    def __call__(self, one: Any, other: Any) -> bool:
        if one is other or (id(one), id(other)) in self._seen or self.is_window(other):
            return True
        if type(one) is not type(other):
            return False
        if isinstance(one, _OPAQUE):
            return True
        self._seen.add((id(one), id(other)))
        own, others = _attributes(one), _attributes(other)
        if own or others:
            contents = isinstance(one, (list, tuple, deque, dict))
            return self._named(own, others) and (not contents or self._contents(one, other))
        return self._contents(one, other)

    def _contents(self, one: Any, other: Any) -> bool:
        if isinstance(one, np.ndarray):
            if one.dtype != other.dtype or one.shape != other.shape:
                return False
            return all(map(self, one.flat, other.flat)) if one.dtype.hasobject else one.tobytes() == other.tobytes()
        if isinstance(one, (list, tuple, deque)):
            return len(one) == len(other) and all(map(self, one, other))
        if isinstance(one, dict):
            if one.keys() == other.keys():
                return self._named(one, other)
            # Keys may be objects that are equal to nothing else, such as windows.
            return (
                len(one) == len(other) and all(map(self, one, other)) and all(map(self, one.values(), other.values()))
            )
        if isinstance(one, (set, frozenset)):
            return len(one) == len(other) and not any(map(_compares, one ^ other))
        return _equal(one, other)

    def _named(self, one: Mapping[Any, Any], other: Mapping[Any, Any]) -> bool:
        return one.keys() == other.keys() and all(self(value, other[name]) for name, value in one.items())


def _attributes(value: Any) -> dict[str, Any]:
    """Return the attributes of an instance, in its slots and its dict."""
    slots = (vars(each).get("__slots__", ()) for each in type(value).__mro__)
    names = [name for some in slots for name in ((some,) if isinstance(some, str) else some)]
    found = {name: getattr(value, name) for name in names if name != "__dict__" and hasattr(value, name)}
    return found | getattr(value, "__dict__", {})


def _equal(one: Any, other: Any) -> bool:
    if not _compares(one):
        return True
    try:
        # All NaNs are equivalent.
        return bool(one == other) or bool(one != one and other != other)
    except Exception:  # a foreign class may raise anything when it is compared: assume that it is unchanged
        return True


def _compares(value: Any) -> bool:
    """Return whether a value defines equality, beyond being the same object."""
    return any("__eq__" in vars(each) for each in type(value).__mro__[:-1])
