"""Where answers are written: files of some format, once or as they come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as t
from pyspark.sql.streaming.query import StreamingQuery

from panes.errors import PanesError
from panes.spark.naming import quoted
from panes.spark.source import MALFORMED, ending_of, observed

_MALFORMED = "malformed"


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

    def check(self, spark: SparkSession) -> None:
        """Refuse places of a batch that exist already, before anything is computed."""
        for place in (self.place, self.malformed):
            if _exists(spark, place):
                raise PanesError(f"{place} exists already. Remove it, or write to another --output.")

    def write(self, answers: DataFrame) -> int:
        """Write the answers of a batch; says how many they are."""
        self._check_types(answers)
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
        self._check_types(answers)
        writer = _flat(answers, self._format).writeStream.format(self._format).outputMode(mode)
        writer = writer.option("path", self.place).option("checkpointLocation", checkpoint)
        return (writer.trigger(availableNow=True) if once else writer).start()

    def _check_types(self, answers: DataFrame) -> None:
        for field in _flat(answers, self._format).schema if self._format == "csv" else ():
            if isinstance(field.dataType, (t.ArrayType, t.StructType, t.MapType)):
                raise PanesError(
                    f"the column {field.name!r} holds {field.dataType.simpleString()}, which CSV has no form for. "
                    "Write --output answers.parquet or answers.json."
                )

    def keep(self, malformed: DataFrame | None, checkpoint: str, *, once: bool) -> list[StreamingQuery]:
        """Write what cannot be read of a stream beside the answers, by a query of its own: every row once."""
        if malformed is None:
            return []
        writer = observed(malformed).writeStream.format("text").option("path", self.malformed)
        writer = writer.option("checkpointLocation", f"{checkpoint.rstrip('/')}.{_MALFORMED}")
        return [(writer.trigger(availableNow=True) if once else writer).start()]

    @property
    def malformed(self) -> str:
        """Where rows go that cannot be read."""
        return self.beside(_MALFORMED)

    def beside(self, what: str) -> str:
        """The place of something that belongs to these answers."""
        return f"{self.place.rstrip('/')}.{what}"

    def capture(self, malformed: DataFrame | None) -> int:
        """Write what could not be read beside the answers; says how many rows that is."""
        if malformed is None:
            return 0
        # Kept, so that the input is not read once to count them and once more to write them.
        malformed = malformed.select(MALFORMED).persist()
        try:
            count = malformed.count()
            if count:
                malformed.write.text(self.malformed)
            return count
        finally:
            malformed.unpersist()

    @property
    def _format(self) -> str:
        found = self.format or ending_of(self.place) or "parquet"
        if found == "console":
            raise PanesError("--output-format console shows nothing of a batch: write to a folder, and look into it.")
        return found


def _exists(spark: SparkSession, place: str) -> bool:
    try:
        # Spark's own way to whatever file system it is; text has a schema, so that nothing is read.
        spark.read.text(place)
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return False
        raise
    return True


def _flat(answers: DataFrame, output_format: str) -> DataFrame:
    """Answers without a struct, for formats that have none."""
    if output_format != "csv" or "window" not in answers.columns:
        return answers
    columns: list[str] = []
    for name in answers.columns:
        bounds = ["window.start AS window_start", "window.end AS window_end"]
        columns += bounds if name == "window" else [quoted(name)]
    return answers.selectExpr(*columns)
