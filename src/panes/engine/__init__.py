"""The engine: a program and sorted rows in, answers out; the same in this process, on Spark's workers and in a shard.

``bind_program`` binds a plan to the types of the data and gives a ``program``: components, views, and the tree of
windows. ``sorting`` puts events in order, ``partials`` lifts them into panes, ``answer`` goes down the tree. Lookups
search single events instead (``lookback``, ``index_pairs``). ``schema``, ``results`` and ``lookup_results`` are about
what comes out, ``columns``, ``keys`` and ``input_columns`` about what goes in. The engine imports planning, frames
and kernels, and knows neither Spark nor streams: workers load it, so its hot modules load no parser. Start with
``answer``.
"""
