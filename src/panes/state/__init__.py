"""What a stream keeps between micro-batches, and what a shard does with it; knows neither Spark nor files.

A shard keeps the granules of its keys: rows of combined events that grow coarser with age. One micro-batch of a shard:

1. ``manifest.py`` reads what the last one wrote down, and rejects what cannot serve the present queries.
2. ``shard.py`` applies changes of the catalogue (``registered_queries.py``: what is registered meanwhile).
3. ``tally.py`` counts late events, each once; ``watermark.py`` says which instances they are in time for and which are
   due, and answers these from the granules (``granules.py``; ``runs.py`` holds them as sorted blobs).
4. ``store_state.py`` adds the new granules and lets all of them age; ``key_eviction.py`` picks the keys that go
   beyond a limit.
5. ``blob_store.py`` has taken the new blobs; the manifest that lists them is written last.

Start with :meth:`panes.state.shard.Shard.step`. Windows of rows and operators (``panes.row_windows``,
``panes.applying``) keep whole rows in the same blob stores (``held_rows.py``). This room may import ``panes.engine``
and the rooms below it.
"""
