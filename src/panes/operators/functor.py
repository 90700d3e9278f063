"""Selection and projection: an operator without a window, which preserves the punctuations of its stream.

Paper: Gedik 2014, sections 3.4 and 6.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from panes.operators.operator import Operator
from panes.operators.operator_model import InputPort, OperatorModel
from panes.operators.punctuations import preserving


class Functor(Operator):
    """Keep tuples that fulfil a condition, and make other tuples of them.

    Examples
    --------
    >>> from panes.operators import PUNCTUATION
    >>> Functor(lambda x: 10 * x, where=lambda x: x > 1).run([1, 2, PUNCTUATION, 3])
    [20, PUNCTUATION, 30]
    """

    model: ClassVar[OperatorModel] = OperatorModel("Functor", (InputPort(),), (preserving(0),))

    def __init__(
        self, transform: Callable[[Any], Any] | None = None, *, where: Callable[[Any], bool] | None = None
    ) -> None:
        super().__init__()
        self._transform = transform
        self._where = where

    def process(self, item: Any, port: int = 0) -> None:
        """Pass on a tuple, if it is to be kept."""
        if self._where is None or self._where(item):
            self.submit(item if self._transform is None else self._transform(item))
