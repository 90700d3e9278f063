"""Kernels: what is ``combine(column[lo:hi])`` for every pair at once?"""

from panes.kernels.choose import KERNELS, choose
from panes.kernels.kernel import Kernel
from panes.kernels.reducer import Reducer

__all__ = ["KERNELS", "Kernel", "Reducer", "choose"]
