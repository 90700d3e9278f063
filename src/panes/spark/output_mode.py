"""The output mode of ``plan.stream`` and that of ``writeStream`` have to agree, and Spark does not compare them.

Only ``start()`` knows both. Spark reports it to listeners before the first micro-batch, so a listener looks at the plan
of the query, and makes it fail if it writes in another mode.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from panes.errors import PlanError
from panes.spark.processor import DATA, METRIC_NAMES

_OPERATOR = "TransformWithStateInPySpark"
_HARM = {
    "update": "every correction of an answer would be added as one more row",
    "append": "the sink would be told of corrections, and every row is final",
}
_watched: set[str] = set()
"""The sessions that have a listener, by their ids."""


def check_output_modes(session: SparkSession) -> None:
    """Let streams of a session fail, before their first micro-batch, if they are written in another mode."""
    jvm_session = getattr(session, "_jsparkSession", None)
    if jvm_session is None:
        # Spark Connect shows no plans.
        return
    name = str(jvm_session.sessionUUID())
    if name not in _watched:
        session.streams.addListener(_ModeListener(session))
        _watched.add(name)


def mode_error(declared: str, written: str) -> PlanError:
    """Return the error for a stream that is written in another mode than it was declared in."""
    return PlanError(
        f"plan.stream(mode={declared!r}) is written with outputMode({written!r}): {_HARM[declared]}. Write "
        f".writeStream.outputMode({declared!r}), or plan.stream(..., mode={written!r})."
    )


class _ModeListener(StreamingQueryListener):
    """Compares the modes of each query when it starts."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Make a query fail that is written in another mode."""
        query = self._session.streams.get(str(event.id))
        execution = query._jsq.streamingQuery()  # type: ignore[union-attr]
        written = execution.outputMode().toString().lower()
        for declared in _modes(execution.analyzedPlan()):
            if declared != written:
                error = mode_error(declared, written)
                failure = self._session._jvm.org.apache.spark.SparkException(f"{type(error).__name__}: {error}")  # type: ignore[union-attr]
                # What background threads use to end the stream: the listener's own errors would only be logged.
                execution.errorNotifier().markError(failure)
                return

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Do nothing: the mode stays the same."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Do nothing."""


def _modes(plan: Any) -> Iterator[str]:
    """The modes of the operators of Panes in a plan of the JVM."""
    if plan.nodeName() == _OPERATOR:
        output = plan.output()
        if [output.apply(i).name() for i in range(output.size())] == [DATA, *METRIC_NAMES]:
            yield plan.outputMode().toString().lower()
    children = plan.children()
    for i in range(children.size()):
        yield from _modes(children.apply(i))
