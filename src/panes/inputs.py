"""What users give as data: Spark DataFrames, or what Arrow can read in this process."""

from __future__ import annotations

from typing import Any

from panes.errors import PlanError


def is_spark(data: Any) -> bool:
    """Whether something is a Spark DataFrame."""
    # Asked by name, so that pyspark is imported only where a Spark DataFrame arrives.
    return any(
        base.__module__.startswith("pyspark.sql") and base.__name__ == "DataFrame" for base in type(data).__mro__
    )


def is_arrow(data: Any) -> bool:
    """Whether something has the Arrow C interface: pyarrow, pandas, polars, ..."""
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")


def check_one(doing: str, data: Any) -> None:
    """Refuse what is neither a Spark DataFrame nor what Arrow can read here.

    Parameters
    ----------
    doing
        What would be done with it, as ``run on``.
    """
    if not is_spark(data) and not is_arrow(data):
        raise PlanError(
            f"cannot {doing} a {type(data).__name__}: give a Spark DataFrame, a pyarrow Table, or anything with the "
            "Arrow C interface, such as a pandas or polars DataFrame."
        )


def check_here(call: str, what: str, data: Any) -> None:
    """Refuse what this process cannot read.

    Parameters
    ----------
    call, what
        What is given the data, as ``live.update``, and what it calls them, as ``batch``.
    """
    if is_spark(data):
        write = f"{call}({what}.toArrow())"
        if data.isStreaming:
            write = f"stream.writeStream.foreachBatch(lambda {what}, number: {write})"
        raise PlanError(f"{call} reads tables in this process, and was given a Spark DataFrame. Write {write}.")
    if not is_arrow(data):
        raise PlanError(
            f"{call} cannot read a {type(data).__name__}: give a pyarrow Table, or anything with the Arrow C "
            "interface, such as a pandas or polars DataFrame."
        )


def both_on_spark(doing: str, **sides: Any) -> bool:
    """Whether two inputs are Spark DataFrames; or neither is, and both can be read here. Anything else is an error.

    Parameters
    ----------
    doing
        What would be done with an input, as ``join``.
    sides
        The inputs by what messages call them.
    """
    spark = {name: is_spark(data) for name, data in sides.items()}
    for name, data in sides.items():
        if not spark[name] and not is_arrow(data):
            raise PlanError(
                f"cannot {doing} a {type(data).__name__} (the {name}): give Spark DataFrames, pyarrow Tables, or "
                "anything with the Arrow C interface, such as pandas or polars DataFrames."
            )
    if len(set(spark.values())) > 1:
        raise PlanError(
            "one side is a Spark DataFrame and the other is not. Give the other to spark.createDataFrame first, or "
            "bring the DataFrame here with toArrow()."
        )
    return all(spark.values())


def unread(data: Any) -> Any:
    """The same data, or none of the same columns where looking at them would use them up: a reader reads once."""
    return data.schema.empty_table() if hasattr(data, "read_next_batch") else data
