"""SQL: read queries from the dialects of neighbouring systems, and write them back.

``statement`` reads a statement clause by clause; ``selecting`` reads what it selects, ``read_windows`` its windows.
``printing`` writes a query. ``window_kinds`` is the table that reading and writing windows share. Imports ``queries``
and below. Only this room, ``expressions`` and ``live/conditions.py`` import sqlglot. Start reading in ``statement``.
"""
