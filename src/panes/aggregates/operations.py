"""The algebra of an aggregate over columns of state: all that a kernel knows of it.

A *state* is a tuple of equally long NumPy arrays, one element per partial. A kernel never asks for an
aggregate's name; it asks whether ``subtract`` exists (a group), or whether ``combine(a, a) == a`` holds
(idempotent), and otherwise relies on ``combine`` being associative with ``identity``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
State: TypeAlias = tuple[Array, ...]


@dataclass(frozen=True, slots=True)
class Operations:
    """An associative ``combine`` with an identity, and the further laws that hold.

    Parameters
    ----------
    identity
        One scalar per array of the state.
    combine
        Elementwise on two states of one length; the left one is earlier in time. Never in place.
    subtract
        ``subtract(combine(a, b), a) == b`` for every a and b, exactly. Present only for groups.
    idempotent
        Whether ``combine(a, a) == a`` and order does not matter, so that overlapping spans may be combined.
    ufunc
        The NumPy ufunc that ``combine`` is, when the state is a single array: kernels then use
        its ``reduceat`` and ``accumulate``.
    fold
        ``fold(state, lo, hi)``: each span ``[lo, hi)``, which holds a row, combined at once. Present where a combine
        takes microseconds, as for sketches, and a bulk call is cheaper.
    """

    identity: tuple[Any, ...]
    combine: Callable[[State, State], State]
    subtract: Callable[[State, State], State] | None = None
    idempotent: bool = False
    ufunc: np.ufunc | None = None
    fold: Callable[[State, Array, Array], State] | None = None

    @property
    def group(self) -> bool:
        """Whether a part can be taken away exactly."""
        return self.subtract is not None

    def identities(self, like: State, length: int) -> State:
        """A state of identities, with the types of another state."""
        return tuple(
            np.full(length, value, dtype=array.dtype) for value, array in zip(self.identity, like, strict=True)
        )


def from_ufunc(
    ufunc: np.ufunc, identity: Any, *, subtract: np.ufunc | None = None, idempotent: bool = False
) -> Operations:
    """The algebra of a single array under a ufunc.

    Examples
    --------
    >>> add = from_ufunc(np.add, 0, subtract=np.subtract)
    >>> add.combine((np.array([1, 2]),), (np.array([3, 4]),))
    (array([4, 6]),)
    """
    return Operations(
        identity=(identity,),
        combine=lambda a, b: (ufunc(a[0], b[0]),),
        subtract=None if subtract is None else (lambda a, b: (subtract(a[0], b[0]),)),
        idempotent=idempotent,
        ufunc=ufunc,
    )


def take(state: State, index: Array | slice) -> State:
    """Some elements of a state."""
    return tuple(array[index] for array in state)


def concatenate(states: list[State]) -> State:
    """States one after another."""
    return tuple(np.concatenate(arrays) for arrays in zip(*states, strict=True))
