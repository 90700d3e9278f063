"""Planning: queries and statistics in, a physical plan out, with no data and no Spark.

Start with ``plan_queries``, which groups queries into stores and returns a ``physical_plan.PhysicalPlan``;
``plan_store`` plans one store. ``coverage`` says which window can be read from which, ``cost`` what that costs, and
``factor_windows``, ``search``, ``optimize`` and ``forest`` choose who reads whom. ``panes`` chooses where panes are
cut, ``strategy`` and ``calibration`` which way a store runs. ``granularity`` decides what a stream keeps. ``steps``
lists what a run does; ``explanation`` and ``svg`` show a plan.

Everything is a pure function of declarations and numbers: this room imports only ``queries``, ``expressions`` and what
they import. (It is not called ``plan``, since ``pn.plan`` is a function.)
"""
