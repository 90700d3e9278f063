"""Queries out of SQL, and back into SQL."""

from __future__ import annotations

from panes.api.plan import plan
from panes.errors import SqlError
from panes.queries.query import Query
from panes.queries.windows import Bounds
from panes.suggestions import helpful


@helpful("pn.sql('SELECT ...', at='ts')", query="text", statement="text", **dict.fromkeys(("time", "ts"), "at"))
def sql(text: str, *, at: str | None = None, bounds: Bounds = "[)") -> list[Query]:
    """Queries out of SQL: one statement each, separated by ``;``, in any of the dialects of ``docs/sql.md``.

    Parameters
    ----------
    text
        Statements about one stream. ``-- name: xyz`` before a statement names its query; others are called ``query1``,
        ``query2``, and so on by their position.
    at
        The column of event time, for statements that do not name it.
    bounds
        Whether windows are ``[start, end)`` or ``(start, end]``, as in Azure Stream Analytics.

    Examples
    --------
    >>> import panes as pn
    >>> text = "SELECT device, MAX(temp) AS top FROM readings GROUP BY device, window(ts, '1 hour', '5 minutes')"
    >>> pn.sql(text)[0].columns
    ('top',)
    """
    from panes.dialect.statement import read_statements

    statements = read_statements(text, at=at, bounds=bounds)
    if any(statement.explain for statement in statements):
        raise SqlError("EXPLAIN asks for a plan and not for queries: pn.explain(text) gives it.")
    return [statement.query for statement in statements]


def explain(text: str, *, at: str | None = None, bounds: Bounds = "[)", rate: float | None = None) -> str:
    """The plan of some SQL, as ``Plan.explain`` shows it; the word EXPLAIN may stand before a statement.

    Examples
    --------
    >>> import panes as pn
    >>> print(pn.explain("EXPLAIN SELECT COUNT(*) FROM ev GROUP BY window(ts, '1 hour')"))
    1 query, 1 window...
    """
    from panes.dialect.statement import read_statements

    return plan([statement.query for statement in read_statements(text, at=at, bounds=bounds)], rate=rate).explain()


@helpful("pn.to_sql(query)", **dict.fromkeys(("table", "name", "events"), "stream"))
def to_sql(query: Query, *, stream: str = "events") -> str:
    """A query as SQL that :func:`sql` reads back as an equal one.

    Parameters
    ----------
    stream
        What the statement reads from.

    Examples
    --------
    >>> import panes as pn
    >>> temps = pn.query("temps", by="device", at="ts", select={"low": pn.min("temp")},
    ...     over=[pn.tumbling("20 min"), pn.hopping("1 hour", every="5 min", name="hourly")], where="temp > -60")
    >>> print(pn.to_sql(temps))
    -- name: temps
    SELECT device, MIN(temp) AS low
    FROM events TIMESTAMP BY ts
    WHERE temp > -60
    GROUP BY device, Windows(TumblingWindow(minute, 20), Window('hourly', HoppingWindow(minute, 60, 5)))
    """
    from panes.dialect.printing import write_statement

    return write_statement(query, stream)
