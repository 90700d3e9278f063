"""The runner on Spark: a DataFrame in, a lazy DataFrame out. The only room that computes with PySpark.

A file per verb, named as in ``panes.local``: ``run`` (with ``rows`` for windows of rows), ``stream``, ``lookup``,
``join`` and ``apply`` (``operated`` for operators). ``binding`` finds every mistake on the driver, before any job.
``run`` lists the steps of each strategy: ``group_bys`` in the JVM alone; ``columnar``, with ``lanes``, ``chunks`` and
``batches``, through Python; ``finish`` names the columns. A stream goes through ``packing``, ``stateful_operator``
and ``processor``, and ``session`` and ``files`` serve the command line. Workers import ``chunks``, ``batches``,
``packing`` and ``processor``, so these load little. Start with ``run``.
"""
