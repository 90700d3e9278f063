"""Windows of rows: measured in rows, in a column or up to marks, and sessions; over tables and over streams.

A table takes four steps: ``parts`` groups windows that share one sorted column, ``arrival`` sorts their rows,
``framing`` turns each window into index pairs, and ``bound_rows`` computes its answers. A stream keeps a ``rows_shard``
per shard, made of ``windows_shard`` and ``sessions_shard``; ``key_set`` names the columns in which rows get there.

Start with ``bound_rows``. Imports ``operators``, ``state``, ``engine`` and the rooms below them.
"""
