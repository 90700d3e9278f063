"""Every algorithm has a card in its docstring, and the page made of the cards is up to date."""

from __future__ import annotations

import pytest
from docs.algorithm_cards import COMMAND, FAMILIES, PAGE, cards, page

from panes.kernels import KERNELS
from panes.kernels.distinct import Distinct
from panes.kernels.order_statistics import Ranks, Sorting
from panes.live.collective import Collective
from panes.live.column import ALGORITHMS
from panes.live.quantiles import SortedIntervals
from panes.live.staircase import Staircase

REGISTERED = (*KERNELS, Distinct, Ranks, Sorting, *ALGORITHMS.values(), SortedIntervals, Collective, Staircase)


@pytest.mark.parametrize("algorithm", REGISTERED)
def test_every_algorithm_has_a_card(algorithm: type) -> None:
    file = algorithm.__module__.removeprefix("panes.").replace(".", "/") + ".py"
    found = [card for card in cards() if (card.file, card.name) == (file, algorithm.__qualname__)]
    assert found, f"the docstring of {algorithm.__qualname__} in {file} has no card: see {cards()[0].file}"
    assert found[0].fields.keys() >= {"requires", "memory", "paper"}
    assert found[0].cost


def test_every_card_belongs_to_a_family() -> None:
    assert {card.family for card in cards()} == FAMILIES.keys()


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), f"docs/algorithms.md is out of date: run `{COMMAND}`"
