"""Scalar expressions: a subset of Spark SQL as values, and their evaluation on Arrow tables.

Start with ``expression``, the value that the rest of Panes handles. ``parsing`` reads SQL into a checked tree and
``writing`` gives the tree its one spelling; ``functions`` declares the operators and functions. ``evaluate`` computes
an expression on a table: ``binder`` resolves names and types once, ``bound`` is what remains, a tree of Arrow calls.
``coercion`` has Spark's type rules and ``arrow_functions`` Spark's functions on arrays. This room never imports Spark:
``tests/spark/test_expressions.py`` compares the answers of both.
"""
