"""Where the command reads events and writes answers: files of some format, or a table; once, or as a stream."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as t
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StringType, StructType

from panes.errors import PanesError
from panes.spark.naming import quoted

MALFORMED = "_corrupt_record"
MALFORMED_METRICS = "panes_malformed"
_TEXTUAL = ("csv", "json")
_ENDINGS = {"parquet": "parquet", "csv": "csv", "json": "json", "jsonl": "json", "ndjson": "json", "orc": "orc"}


@dataclass(frozen=True)
class Source:
    """Where events come from.

    Parameters
    ----------
    place
        A path, an address, or the name of a table.
    format
        The format of files; None to tell it from the name.
    schema
        The columns of textual files, as Spark's DDL; None to infer them.
    strict
        Whether a malformed row is an error.
    """

    place: str
    format: str | None
    schema: str | None
    strict: bool

    def __post_init__(self) -> None:
        found = self._format()
        given = [option for option, value in (("--schema", self.schema), ("--strict", self.strict)) if value]
        if given and found not in _TEXTUAL:
            what = "a table has" if found is None else f"{found} has"
            raise PanesError(
                f"{' and '.join(given)} is for CSV and JSON, and {what} columns of its own. Leave it out, or say "
                "what the files are, as --format csv."
            )

    @property
    def infers(self) -> bool:
        """Whether columns are guessed from the rows."""
        return self.schema is None and self._format() in _TEXTUAL

    def read(self, spark: SparkSession) -> DataFrame:
        """All rows; textual ones with a column of what could not be read."""
        found = self._format()
        if found is None:
            return spark.table(self.place)
        reader = spark.read.format(found)
        if found not in _TEXTUAL:
            return reader.load(self.place)
        return _whole(reader.schema(self._columns(spark, found)).options(**self._options(found)).load(self.place))

    def stream(self, spark: SparkSession) -> DataFrame:
        """The rows as they come."""
        found = self._format()
        if found is None:
            return spark.readStream.table(self.place)
        reader = spark.readStream.format(found)
        if found not in _TEXTUAL:
            return reader.schema(spark.read.format(found).load(self.place).schema).load(self.place)
        return _whole(reader.schema(self._columns(spark, found)).options(**self._options(found)).load(self.place))

    def _format(self) -> str | None:
        if self.format is not None:
            return self.format
        ending = ending_of(self.place)
        if ending is not None:
            return ending
        files = "/" in self.place or "\\" in self.place or Path(self.place).exists()
        return "parquet" if files else None

    def _columns(self, spark: SparkSession, found: str) -> StructType:
        if self.schema is not None:
            columns = _declared(self.schema)
        else:
            options = {**self._options(found), "inferSchema": "true"}
            columns = spark.read.format(found).options(**options).load(self.place).schema
        if not len(columns):
            raise PanesError(f"{self.place} has no columns to infer: name them with --schema 'ts TIMESTAMP, k STRING'.")
        if self.strict or MALFORMED in columns.names:
            return columns
        return StructType([*columns.fields]).add(MALFORMED, StringType())

    def _options(self, found: str) -> dict[str, str]:
        options = {"mode": "FAILFAST" if self.strict else "PERMISSIVE", "columnNameOfCorruptRecord": MALFORMED}
        return {"header": "true", **options} if found == "csv" else options


def columns_of(rows: DataFrame) -> str:
    """The columns of some rows, as ``--schema`` takes them."""
    return ", ".join(f"{_bare(field.name)} {field.dataType.simpleString().upper()}" for field in rows.schema)


def counting() -> Observation:
    """What ``plan.run`` counts the events of a batch with."""
    return Observation()


def part_malformed(rows: DataFrame) -> tuple[DataFrame | None, DataFrame]:
    """The rows that could not be read, where there may be any, and the others."""
    if MALFORMED not in rows.columns:
        return None, rows
    return rows.where(f"{MALFORMED} IS NOT NULL"), rows.where(f"{MALFORMED} IS NULL").drop(MALFORMED)


def observed(malformed: DataFrame) -> DataFrame:
    """What could not be read of a stream, as text; how many rows they are is an observed metric."""
    return malformed.observe(MALFORMED_METRICS, F.count(F.lit(1)).alias("malformed")).select(MALFORMED)


def _bare(name: str) -> str:
    return name if name.isidentifier() else quoted(name)


def _whole(rows: DataFrame) -> DataFrame:
    """The same rows, with every column looked at by a condition that is always true.

    Spark parses what a query uses, but a row is malformed or not whichever columns that happens to be.
    """
    columns = [f"CAST({quoted(name)} IS NULL AS INT)" for name in rows.columns if name != MALFORMED]
    return rows.where(f"least({', '.join([*columns, '0', '0'])}) = 0")


def _declared(schema: str) -> StructType:
    try:
        found = StructType.fromDDL(schema)
    except PySparkException as error:
        raise PanesError(
            f"--schema {schema!r} cannot be read: write it as 'ts TIMESTAMP, k STRING, x DOUBLE'."
        ) from error
    if not isinstance(found, StructType):
        raise PanesError(f"--schema {schema!r} is one type: name the columns, as 'ts TIMESTAMP, k STRING'.")
    return found


def ending_of(place: str) -> str | None:
    """The format that a name ends with."""
    name = PurePosixPath(place.rstrip("/*"))
    if name.suffix.lower() in (".gz", ".bz2", ".zst"):
        name = name.with_suffix("")
    return _ENDINGS.get(name.suffix.removeprefix(".").lower())


_MALFORMED = "malformed"


@dataclass(frozen=True)
class Sink:
    """Files that do not exist yet, or those of a stream that goes on.

    Parameters
    ----------
    place
        A path or an address.
    format
        The format of files; None to tell it from the name.
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
