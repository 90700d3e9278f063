"""What an operator keeps beside its windows and does not save: a stream would forget it after every micro-batch.

An operator that was given tuples is compared with one that was just made, attribute by attribute, as deep as Python
can look. What it cannot look into counts as unchanged: functions and what they enclose, iterators, and objects that
are written in C and do not compare, such as sources of random numbers. Variables of modules and classes are not looked
at: they are not the operator's.
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
"""What every operator has."""


def forgotten(operator: Operator, new: Operator) -> Iterator[tuple[str, Any]]:
    """The attributes that would be lost, with their values.

    Parameters
    ----------
    new
        The same operator before the first tuple.
    """
    saves = next(each for each in type(operator).__mro__ if "save" in vars(each))
    kept: frozenset[str] | None = vars(saves).get("_keeps")
    # Whoever writes a method save says what is kept; the operators of the library say it of their own attributes.
    if kept is None or type(operator) is saves:
        return
    before, same = _attributes(new), _Same(operator, new)
    for name, value in _attributes(operator).items():
        if name in _OWN or name in kept or isinstance(getattr(type(operator), name, None), cached_property):
            continue
        if not (same.told(before[name], value) if name in before else same.a_window(value)):
            yield name, value


class _Same:
    """Whether two values are as good as equal, so that neither remembers anything that the other does not.

    Parameters
    ----------
    operator, new
        Both refer to their own windows and clocks, which are saved or not state.
    """

    def __init__(self, operator: Operator, new: Operator) -> None:
        # Each pair is looked at once: objects may refer to each other. All of them last as long as the operators do.
        self._seen = {(id(new), id(operator))}
        self._windows = {id(window) for window in operator.windows}

    def told(self, one: Any, other: Any) -> bool:
        """Compare, unless that is too deep."""
        try:
            return self(one, other)
        except RecursionError:
            return True

    def a_window(self, value: Any) -> bool:
        """Whether it is one of the operator's, which are saved."""
        return id(value) in self._windows

    def __call__(self, one: Any, other: Any) -> bool:
        """Compare."""
        if one is other or (id(one), id(other)) in self._seen or self.a_window(other):
            return True
        if type(one) is not type(other):
            return False
        if isinstance(one, _OPAQUE):
            return True
        self._seen.add((id(one), id(other)))
        inside, beside = _attributes(one), _attributes(other)
        if inside or beside:
            contents = isinstance(one, (list, tuple, deque, dict))
            return self._named(inside, beside) and (not contents or self._contents(one, other))
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
    """Those of an instance, wherever it has them."""
    slots = (vars(each).get("__slots__", ()) for each in type(value).__mro__)
    names = [name for some in slots for name in ((some,) if isinstance(some, str) else some)]
    found = {name: getattr(value, name) for name in names if name != "__dict__" and hasattr(value, name)}
    return found | getattr(value, "__dict__", {})


def _equal(one: Any, other: Any) -> bool:
    if not _compares(one):
        return True
    try:
        # NaN is as good as another.
        return bool(one == other) or bool(one != one and other != other)
    except Exception:  # whatever a class of somebody else's does when it is compared: it cannot be told
        return True


def _compares(value: Any) -> bool:
    """Whether a value can be equal to another: an object as such is not."""
    return any("__eq__" in vars(each) for each in type(value).__mro__[:-1])
