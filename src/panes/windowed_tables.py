"""The façade of windows by policy over tables: counts, deltas, times and punctuations; in this process or on Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from panes.algebra.aggregates import Aggregate
from panes.declare.expressions import ExpressionLike
from panes.errors import DeclarationError, PlanError
from panes.inputs import is_arrow, is_spark
from panes.windowing.declarations import WindowDeclaration
from panes.windowing.over_tables import MakeOperator, aggregates_of, operator_of, stream_of


def windowed(
    data: Any,
    *,
    window: WindowDeclaration,
    by: str | Iterable[str] = (),
    at: str | None = None,
    select: Mapping[str, Aggregate | ExpressionLike] | None = None,
    group_by: str | Iterable[str] = (),
    partial: bool = True,
    operator: MakeOperator | None = None,
    schema: pa.Schema | None = None,
    where: ExpressionLike | None = None,
    punctuations: str | None = None,
    port: str | None = None,
    shards: int = 4,
    checkpoint: str | None = None,
) -> Any:
    """Aggregates, or an operator of your own, over windows that count, time, delta or punctuation policies define.

    The rows arrive at windows as tuples of a stream would, in the order of ``at``. Rows of one instant arrive in the
    order of their values: first those of delta attributes, then the other columns that are used, as they stand in the
    data. A window that is not full when rows end is not processed.

    Parameters
    ----------
    data
        A Spark DataFrame, a batch or a stream, gives a lazy Spark DataFrame; a pyarrow Table, or anything with the
        Arrow C interface (pandas, polars), gives a pyarrow Table. The rows of a stream arrive when its watermark has
        passed them, so that its windows are those of a batch; rows that come later than that are counted as late.
    window
        ``pn.policy.tumbling(...)`` or ``pn.policy.sliding(...)``.
    by
        The columns that partition the window: a window for each of their values.
    at
        The column of time, which time policies go by. Rows without a time do not arrive. Without it, rows of a table
        arrive as they stand; a DataFrame has no such order.
    select
        Output columns: an aggregate each, or an expression over the aggregates' names, the keys and ``window``.
    group_by
        The columns that group the tuples inside a window. This is not partitioning, which makes several windows.
    partial
        Whether a sliding window is processed before it has been full for the first time.
    operator
        Instead of ``select``: what makes an operator, when it is called with a window and ``clock=``. It is given one
        tuple after another, as a dict of all columns; sorts of whole windows and inner joins run in columns.
    schema
        The columns of what the operator submits. On Spark it is needed; here it may be left out.
    where
        Which rows arrive.
    punctuations
        For ``pn.policy.punctuation()``: a boolean column; a row where it is true is a window punctuation, and not a
        tuple. It ends the windows of all partitions, after the tuples of its instant. With ``operator``, it reaches
        partitions that have come before it.
    port
        With ``operator``: a column of whole numbers that says for which input port a row is, where the operator has
        several. Tuples do not have it.
    shards
        Of a stream: into how many parts its partitions are divided. A checkpoint keeps its number.
    checkpoint
        Of a stream: where it will have its checkpoint. One that cannot serve this window is then refused here, before
        the stream starts, and otherwise in its first micro-batch.

    Returns
    -------
    pyarrow.Table or pyspark.sql.DataFrame
        With ``select``: the columns of ``by``, ``window``, those of ``group_by``, the output columns; a row for every
        window that was processed and held a tuple, or for each group in it. ``window`` has ``start`` and ``end``, the
        times of its first and last tuple, ``processed``, when it was processed, and ``number``, which of the windows
        of its partition it is, from 0; without ``at`` only the last. Where partitions are evicted, those that the
        window did not hold meanwhile are numbered from 0 again.
        With ``operator``: what it submitted; of one with several output ports with a column ``port``.

    Examples
    --------
    >>> import datetime as dt, pyarrow as pa, panes as pn
    >>> second = lambda *seconds: [dt.datetime(2026, 1, 1, 12, 0, s) for s in seconds]
    >>> trades = pa.table({"ts": second(0, 1, 5, 9, 20, 21), "stock": list("aabaaa"), "price": [5, 7, 1, 9, 8, 6]})
    >>> found = pn.windowed(trades, by="stock", at="ts", select={"n": pn.count(), "high": pn.max("price")},
    ...     window=pn.policy.sliding(pn.policy.count(100), pn.policy.delta("ts", "3 s")))
    >>> for row in found.to_pylist():
    ...     print(row["stock"], f"{row['window']['start']:%S} to {row['window']['end']:%S}", row["n"], row["high"])
    a 00 to 01 2 7
    a 00 to 09 3 9

    References
    ----------
    Gedik, *Generic windowing support for extensible stream processing systems* (2014), section 3.
    """
    stream = stream_of(window, by, at, where, punctuations, port)
    if (select is None) == (operator is None):
        raise DeclarationError(
            "a window is computed over by select= or by operator=. Write one of them, as select={'n': pn.count()}."
        )
    on_spark = is_spark(data)
    if not on_spark and not is_arrow(data):
        raise PlanError(
            f"cannot window a {type(data).__name__}: give a Spark DataFrame, a pyarrow Table, or anything with the "
            "Arrow C interface, such as a pandas or polars DataFrame."
        )
    if checkpoint is not None and not (on_spark and data.isStreaming):
        raise PlanError("checkpoint= is for streams: tables have none. Leave it out.")
    if operator is not None:
        if group_by != () or partial is not True:
            raise DeclarationError("group_by= and partial= are for select=: an operator does as it likes.")
        custom = operator_of(stream, operator, schema)
        if on_spark:
            if data.isStreaming:
                from panes.spark.windowed_streams import operated_stream

                return operated_stream(custom, data, shards, checkpoint)
            from panes.spark.windowed_tables import operated as operated_on_spark

            return operated_on_spark(custom, data)
        from panes.local.windowed_operators import operated as operated_here

        return operated_here(custom, data)
    if port is not None:
        raise DeclarationError("port= is for operator=: aggregates have one input. Leave it out.")
    if schema is not None:
        raise DeclarationError("schema= is for operator=: the types of aggregates are known. Leave it out.")
    assert select is not None
    declared = aggregates_of(stream, select, group_by, partial)
    if on_spark and data.isStreaming:
        from panes.spark.windowed_streams import windowed_stream

        return windowed_stream(declared, data, shards, checkpoint)
    if on_spark:
        from panes.spark.windowed_tables import windowed as windowed_on_spark

        return windowed_on_spark(declared, data)
    from panes.local.windowed_aggregates import windowed as windowed_here

    return windowed_here(declared, data)
