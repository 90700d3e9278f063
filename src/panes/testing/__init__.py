"""What tests and benchmarks of windowed queries need: generators of window sets."""

from panes.testing.window_sets import random_gen, sequential_gen

__all__ = ["random_gen", "sequential_gen"]
