"""Functions and operators over windows: what ``pn.apply``, ``pn.sort`` and joins over rows call.

Start with ``user_functions`` and ``user_operators``, which check what a user gives. A function is called once per
window (``function_calls``); an operator gets one tuple after another (``tuple_by_tuple``, in a stream
``operator_shard``), except for the built-in ones that work on whole columns (``operators_in_columns``).

Imports ``row_windows`` and everything below it; the runners ``local`` and ``spark`` import this room.
"""
