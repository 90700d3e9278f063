"""What a stream keeps between micro-batches, and what a shard does with it; knows neither Spark nor files.

A shard holds the granules of its keys: combined rows that grow coarser with age. Start with ``shard.py``, the
micro-batch of a shard. ``watermark.py`` decides what is late and what is due, ``granules.py`` and ``runs.py`` hold the
rows, ``views.py`` the queries registered later, ``limits.py`` the eviction of keys, ``manifest.py`` what is written
down. Windows by rows and operators (``panes.row_windows``, ``panes.applying``) keep whole rows in the same blob stores
(``held_rows.py``). This room may import ``panes.engine`` and the rooms below it.
"""
