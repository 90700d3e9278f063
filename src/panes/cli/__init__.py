"""The command ``panes``: SQL files and data files in, answers out.

Start with ``main``, which declares every command and its options; ``jobs`` does the work of ``explain``, ``run``,
``stream`` and ``compare``, ``doctor`` checks the machine, and ``console`` prints. The room may import every other one.
It loads them only when a command needs them, so ``panes --help`` is quick.
"""
