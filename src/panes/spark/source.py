"""Where events come from: files of some format, or a table; and the rows of them that cannot be read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
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
        The format of files; None to go by the name.
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
