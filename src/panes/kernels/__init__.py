"""Kernels: what is ``combine(column[lo:hi])`` for every pair at once?"""

from panes.kernels.choose import KERNELS, Reducer, choose
from panes.kernels.kernel import Kernel

__all__ = ["KERNELS", "Kernel", "Reducer", "choose"]
