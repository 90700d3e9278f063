"""Random window sets, as in the experiments of the papers.

Factor Windows, section V-A, Algorithm 6 (RandomGen) and its sequential sibling (SequentialGen), with the default
parameters of section V-B; Subsuming Multiple Sliding Windows, section 5 (smooth, medium and abrupt windows).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from panes.errors import DeclarationError
from panes.timeline import SECOND, Geometry

#: Seeds of ranges for tumbling windows, and of slides for hopping ones.
TUMBLING_SEEDS: Final = (2, 5, 10)
HOPPING_SEEDS: Final = (5, 10, 20)

#: The longest slide of each class of windows, and the longest range of all, in ticks.
LONGEST_SLIDE: Final = {"smooth": 10, "medium": 20, "abrupt": 30}
LONGEST_RANGE: Final = 60


def random_gen(
    n: int,
    tumbling: bool,
    seeds: Sequence[int] | None = None,
    multiplier: int = 50,
    rng: random.Random | int | None = None,
    unit: int = SECOND,
) -> list[Geometry]:
    """Draw windows whose range (tumbling) or slide (hopping, range twice the slide) is a multiple of a random seed.

    Parameters
    ----------
    n
        How many distinct windows.
    tumbling
        Whether windows are tumbling.
    seeds
        The seeds to multiply; by default those of the paper.
    multiplier
        The largest factor; the least is 2, so a planner can still find the seed as a factor window.
    rng
        A random number generator, or its seed.
    unit
        The unit of seeds, in the unit of the result.

    Examples
    --------
    >>> [window.range for window in random_gen(3, tumbling=True, rng=1, unit=1)]
    [76, 36, 66]
    """
    seeds = _seeds(n, tumbling, seeds, multiplier)
    source = rng if isinstance(rng, random.Random) else random.Random(rng)
    found: dict[Geometry, None] = {}
    while len(found) < n:
        found.setdefault(_window(source.choice(seeds) * source.randint(2, multiplier) * unit, tumbling))
    return list(found)


def sequential_gen(
    n: int,
    tumbling: bool,
    seeds: Sequence[int] | None = None,
    multiplier: int = 50,
    rng: random.Random | int | None = None,
    unit: int = SECOND,
) -> list[Geometry]:
    """Take twice, three times, ... one random seed, as dashboards often do; parameters as in ``random_gen``.

    Examples
    --------
    >>> [(window.range, window.slide) for window in sequential_gen(3, tumbling=False, seeds=[5], unit=1)]
    [(20, 10), (30, 15), (40, 20)]
    """
    seeds = _seeds(n, tumbling, seeds, multiplier)
    if n > multiplier - 1:
        raise DeclarationError(f"{n} windows need a multiplier of at least {n + 1}, not {multiplier}.")
    source = rng if isinstance(rng, random.Random) else random.Random(rng)
    seed = source.choice(seeds)
    return [_window(seed * factor * unit, tumbling) for factor in range(2, n + 2)]


def sliding_class(name: str, n: int, rng: random.Random | int | None = None, unit: int = SECOND) -> list[Geometry]:
    """Draw windows of a class, ``smooth``, ``medium`` or ``abrupt``; a window may occur several times.

    Examples
    --------
    >>> [(window.range, window.slide) for window in sliding_class("smooth", 3, rng=1, unit=1)]
    [(40, 3), (19, 2), (34, 2)]
    """
    if name not in LONGEST_SLIDE:
        raise DeclarationError(f"there is no class {name!r} of windows: write one of {', '.join(LONGEST_SLIDE)}.")
    source = rng if isinstance(rng, random.Random) else random.Random(rng)
    found = []
    for _ in range(n):
        slide = source.randint(1, LONGEST_SLIDE[name])
        found.append(Geometry(source.randint(slide + 1, LONGEST_RANGE) * unit, slide * unit))
    return found


def _seeds(n: int, tumbling: bool, seeds: Sequence[int] | None, multiplier: int) -> Sequence[int]:
    seeds = seeds or (TUMBLING_SEEDS if tumbling else HOPPING_SEEDS)
    possible = {seed * factor for seed in seeds for factor in range(2, multiplier + 1)}
    if n > len(possible):
        raise DeclarationError(
            f"{n} distinct windows cannot be drawn: seeds {tuple(seeds)} with a multiplier of {multiplier} give only "
            f"{len(possible)}. Give more seeds or a larger multiplier."
        )
    return seeds


def _window(slide: int, tumbling: bool) -> Geometry:
    return Geometry(slide, slide) if tumbling else Geometry(2 * slide, slide)
