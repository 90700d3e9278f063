"""One runner and one table of named workloads: ``python -m benchmarks NAME``.

Contenders run side by side in one process on the same files, in interleaved rounds, after their answers were found
equal. Every run prints a table and writes the same to ``benchmarks/results/NAME.json``.
"""

import os

#: Everybody gets as many cores: Spark as ``local[2]``, DuckDB and Polars as two threads.
CORES = 2

# Polars reads this once, when it is imported.
os.environ.setdefault("POLARS_MAX_THREADS", str(CORES))
