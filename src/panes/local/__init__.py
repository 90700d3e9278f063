"""The runner for tables in this process: Arrow in, Arrow out.

A file per verb, named as in ``panes.spark``: ``run`` (with ``rows`` for windows of rows), ``lookup`` and ``apply``;
joins of tables are in ``panes.applying``. Each binds the declaration to the types of the data, which finds every
mistake, and then lists the steps: sort the rows once per set of keys, answer all windows. It imports the rooms below
the runners, and never PySpark. Start with ``run``.
"""
