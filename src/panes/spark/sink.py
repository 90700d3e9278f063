"""Where answers are written: files of some format, once or as they come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from panes.errors import PanesError
from panes.spark.naming import quoted
from panes.spark.source import MALFORMED, ending_of


@dataclass(frozen=True)
class Sink:
    """Files that do not exist yet, or those of a stream that goes on.

    Parameters
    ----------
    place
        A path or an address.
    format
        The format of files; None to go by the name.
    """

    place: str
    format: str | None

    def write(self, answers: DataFrame) -> int:
        """Write the answers of a batch; says how many they are."""
        counted = Observation()
        answers = answers.observe(counted, F.count(F.lit(1)).alias("answers"))
        writer = _flat(answers, self._format).write.format(self._format)
        writer.options(**({"header": "true"} if self._format == "csv" else {})).save(self.place)
        count: int = counted.get["answers"]
        return count

    def start(
        self, answers: DataFrame, mode: Literal["append", "update"], checkpoint: str, *, once: bool
    ) -> StreamingQuery:
        """Write the answers of a stream as they come, or until everything there has been read."""
        writer = _flat(answers, self._format).writeStream.format(self._format).outputMode(mode)
        writer = writer.option("path", self.place).option("checkpointLocation", checkpoint)
        return (writer.trigger(availableNow=True) if once else writer).start()

    def beside(self, what: str) -> str:
        """The place of something that belongs to these answers."""
        return f"{self.place.rstrip('/')}.{what}"

    def capture(self, malformed: DataFrame | None) -> int:
        """Write what could not be read beside the answers; says how many rows that is."""
        if malformed is None:
            return 0
        # Kept: Spark refuses to read a file for nothing but its malformed rows.
        malformed = malformed.persist()
        try:
            count = malformed.count()
            if count:
                malformed.select(MALFORMED).write.text(self.beside("malformed"))
            return count
        finally:
            malformed.unpersist()

    @property
    def _format(self) -> str:
        found = self.format or ending_of(self.place) or "parquet"
        if found == "console":
            raise PanesError("--output-format console shows nothing of a batch: write to a folder, and look into it.")
        return found


def _flat(answers: DataFrame, output_format: str) -> DataFrame:
    """Answers without a struct, for formats that have none."""
    if output_format != "csv" or "window" not in answers.columns:
        return answers
    columns: list[str] = []
    for name in answers.columns:
        bounds = ["window.start AS window_start", "window.end AS window_end"]
        columns += bounds if name == "window" else [quoted(name)]
    return answers.selectExpr(*columns)
