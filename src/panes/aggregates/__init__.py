"""Aggregates: what each one stores, how partial answers combine, and how the answer is read out of them.

One class per aggregate says all there is to know of it: its components, its answer in Arrow and in Spark SQL, Spark's
own form, its accumulator for single tuples, and a reference in plain Python for tests. A constructor beside it names it
in Python and in SQL. A chapter holds aggregates of one kind: ``sums``, ``extrema``, ``picks``, ``moments``, ``trend``,
``aged``, ``collecting``, ``approximate``, ``custom``.

The room imports only errors, durations and suggestions; it knows neither queries nor kernels. Start with ``sums``, then
``aggregate`` (what an aggregate is), ``component`` (a stored column) and ``operations`` (the algebra that kernels see).
"""
