"""Planning: decide for all queries together which panes are kept, and which window is read from which.

Start with ``plan_queries``, which turns queries and statistics into a ``PhysicalPlan``: one ``StorePlan`` per set of
keys. ``coverage``, ``factor_windows``, ``search``, ``optimize`` and ``forest`` choose trees of windows; ``panes``
chooses edges; ``strategy``, ``steps``, ``cost`` and ``calibration`` predict costs; ``window_classes`` and
``granularity`` decide what a stream keeps; ``explanation`` and ``svg`` show a plan. Everything is a pure function of
declarations and numbers: this room imports ``panes.queries``, ``panes.expressions`` and ``panes.timeline``, and sees
neither data nor Spark.
"""
