"""Functions, operators and joins over the rows of windows: what ``pn.apply``, ``pn.sort`` and ``pn.join`` compute.

A function is declared in ``user_functions`` and called once per window in ``function_calls``. An operator is declared
in ``user_operators`` and gets one tuple after another in ``tuple_by_tuple``, or in a stream in ``operator_shard``;
built-in operators may work on whole columns, in ``operators_in_columns``. ``outputs`` makes tables of what both return.
Joins of tables are in ``joined_tables``; over windows of rows both sides are the rows of one stream, ``joined_rows``.

Imports ``row_windows`` and the rooms below it; the runners ``local`` and ``spark`` import this room.
"""
