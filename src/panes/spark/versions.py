"""What versions of PySpark do differently, in one place; ``docs/reliability.md`` lists those that Panes runs on."""

from __future__ import annotations

from inspect import signature
from typing import Any

import pyarrow as pa
import pyspark
from pyspark.sql import DataFrame
from pyspark.sql import types as t
from pyspark.sql.pandas import types as conversion

from panes.errors import PlanError

# Required since 4.2; before, instants are in UTC anyway.
_IN_UTC: dict[str, Any] = {"timezone": "UTC"} if "timezone" in signature(conversion.to_arrow_type).parameters else {}
_STREAMS = (4, 1)


def to_arrow_type(type_: t.DataType) -> pa.DataType:
    """The Arrow type of a Spark type; instants are in UTC."""
    return conversion.to_arrow_type(type_, **_IN_UTC)


def to_spark_type(type_: pa.DataType) -> t.DataType:
    """The Spark type of an Arrow type; times without a zone are TIMESTAMP_NTZ, which is the default since 4.2 only."""
    return conversion.from_arrow_type(type_, prefer_timestamp_ntz=True)


def whole_numbers(rows: DataFrame) -> pa.ChunkedArray:
    """The only column of a DataFrame, which holds whole numbers."""
    if hasattr(rows, "toArrow"):
        return rows.toArrow().column(0)
    # Before 4.0.
    return pa.chunked_array([pa.array([row[0] for row in rows.collect()], pa.int64())])


def check_streams() -> None:
    """Reject a PySpark without ``transformWithState`` on rows."""
    version = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
    if version < _STREAMS:
        needed = ".".join(map(str, _STREAMS))
        raise PlanError(
            f"streams need PySpark {needed} or newer, and this is {pyspark.__version__}, which has no "
            f"transformWithState: pip install 'pyspark>={needed}'. Batches run on this version."
        )
