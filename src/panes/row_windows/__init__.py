"""Windows measured in rows, attributes or marks, and sessions: over tables and over streams.

Start with ``parts``, which says which windows share one sorted column, and ``bound_rows``, which answers them.
``arrival`` sorts rows; ``framing`` turns a window of rows into index pairs. A stream keeps one ``rows_shard`` per
shard, made of ``windows_shard`` and ``sessions_shard``.

Imports ``operators``, ``state``, ``engine`` and the rooms below them.
"""
