"""Declarations: windows, queries, joins and lookups as values that are checked when made. Nothing here reads data.

``windows`` has the kinds of windows, ``measures`` what their sizes and paces are measured in; the constructors
(``window_constructors``, ``nested``) and ``query`` check what users write. ``join_declarations`` and
``lookup_declarations`` do the same for the other verbs, ``catalogue_entries`` writes a query as text. Imports only
``expressions``, ``aggregates`` and the foundations. Start reading in ``query`` and ``windows``.
"""
