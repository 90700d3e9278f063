"""The commands and their options. What a command does is imported when it runs."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from panes.errors import PanesError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from panes.api.streams import Catalogue
    from panes.spark.files import Source

_RAISED = re.compile(r"[A-Za-z_.]+: ")

app = typer.Typer(
    name="panes",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


class Layout(StrEnum):
    """The layout of the answers."""

    long = "long"
    wide = "wide"


class Mode(StrEnum):
    """When a stream answers."""

    append = "append"
    update = "update"


class Late(StrEnum):
    """What to do with late events."""

    counted = "count"
    emitted = "emit"


class Strategy(StrEnum):
    """A way to run the whole plan."""

    native = "native"
    rewrite = "rewrite"
    columnar = "columnar"


class Bounds(StrEnum):
    """The bound that belongs to a window."""

    start = "[)"
    end = "(]"


def _print_version(requested: bool) -> None:
    if requested:
        from panes import __version__

        print(f"panes {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Thousands of windowed queries over one event stream for about the price of one, on Apache Spark."""


Queries = Annotated[
    Path, typer.Argument(help="A file of SQL statements separated by semicolons.", exists=True, dir_okay=False)
]
At = Annotated[str | None, typer.Option(help="The event time column, if a statement does not name it.")]
WindowBounds = Annotated[Bounds, typer.Option(help="Which bound belongs to a window.")]
Input = Annotated[str, typer.Option("--input", "-i", help="A file, folder, URL or Spark table.")]
Output = Annotated[str, typer.Option("--output", "-o", help="Where to write answers; must not exist yet.")]
OutputFormat = Annotated[str | None, typer.Option(help="parquet, csv, json, ...; by default from the file name.")]
Empty = Annotated[bool, typer.Option("--empty", help="Also answer windows on the clock that hold no events.")]
Format = Annotated[str | None, typer.Option("--format", help="parquet, csv, json, ...; by default from the file name.")]
Schema = Annotated[str | None, typer.Option(help="The columns of CSV or JSON: 'ts TIMESTAMP, k STRING, x DOUBLE'.")]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first malformed row.")]
Master = Annotated[str | None, typer.Option(help="The Spark master; by default this process.")]
Conf = Annotated[list[str] | None, typer.Option(help="A Spark setting, name=value; repeatable.")]
QueryName = Annotated[str, typer.Argument(metavar="NAME", help="The name of the query.")]
Folder = Annotated[str, typer.Option("--catalogue", help="The catalogue folder of a running job.")]


@app.command()
def explain(
    queries: Queries,
    rate: Annotated[str | None, typer.Option(help="Events per second: 100, 100/s or 5000/min.")] = None,
    keys: Annotated[int | None, typer.Option(help="The number of distinct keys.")] = None,
    at: At = None,
    bounds: WindowBounds = Bounds.start,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="Print a Mermaid flowchart.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
    svg: Annotated[Path | None, typer.Option(help="Draw the plan into a file.", dir_okay=False)] = None,
    input_: Annotated[
        str | None, typer.Option("--input", "-i", help="Show the steps of a run on these events.")
    ] = None,
    format_: Format = None,
    schema: Schema = None,
    watermark: Annotated[str | None, typer.Option(help="Read the events as a stream, with this delay.")] = None,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Show how the queries are planned together and what that saves, or the steps of a run on given events."""
    from panes.cli.jobs import explain_plan, explain_run, plan_file

    if input_ is None:
        about_events = {"--format": format_, "--schema": schema, "--watermark": watermark, "--master": master}
        _reject(about_events | {"--conf": conf}, "is about events: add --input, or leave it out.")
        explain_plan(plan_file(queries, at, bounds.value, rate, keys), mermaid=mermaid, json=json, svg=svg)
        return
    about_plan = {"--mermaid": mermaid, "--json": json, "--svg": svg}
    _reject(about_plan, "shows the plan and not a run: leave --input out.")
    start = _spark_starter(master, conf, stream=watermark is not None)
    source = _source(input_, format_, schema, False)
    explain_run(plan_file(queries, at, bounds.value, rate, keys), source, start, watermark)


@app.command()
def run(
    queries: Queries,
    input_: Input,
    output: Output,
    format_: Format = None,
    output_format: OutputFormat = None,
    schema: Schema = None,
    strict: Strict = False,
    layout: Annotated[Layout, typer.Option(help="A row per answer, or a row per key and window end.")] = Layout.long,
    empty: Empty = False,
    strategy: Annotated[Strategy | None, typer.Option(help="Run everything this way, for comparison.")] = None,
    at: At = None,
    bounds: WindowBounds = Bounds.start,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Run the queries over all events there are."""
    from panes.cli.jobs import read_queries, run_batch
    from panes.spark.files import Sink

    start, source, sink = (
        _spark_starter(master, conf),
        _source(input_, format_, schema, strict),
        Sink(output, output_format),
    )
    to_run = read_queries(queries, at, bounds.value)
    if to_run:
        run_batch(
            to_run,
            source,
            sink,
            start,
            layout=layout.value,
            empty=empty,
            strategy=None if strategy is None else strategy.value,
        )


@app.command()
def stream(
    queries: Queries,
    input_: Input,
    output: Output,
    watermark: Annotated[str, typer.Option(help="How late events may come, such as '10 minutes'.")],
    format_: Format = None,
    output_format: OutputFormat = None,
    schema: Schema = None,
    strict: Strict = False,
    mode: Annotated[Mode, typer.Option(help="Answer once, or early with corrections.")] = Mode.append,
    empty: Empty = False,
    late: Annotated[Late, typer.Option(help="Count late events, or also write them as rows.")] = Late.counted,
    shards: Annotated[int, typer.Option(help="How many shards the keys are divided into.", min=1)] = 4,
    catalogue: Annotated[str | None, typer.Option(help="A folder of queries that come and go.")] = None,
    history: Annotated[
        str | None, typer.Option(help="With a catalogue: how long to keep events for new queries.")
    ] = None,
    checkpoint: Annotated[str | None, typer.Option(help="Where the stream keeps its state.")] = None,
    once: Annotated[bool, typer.Option("--once", help="Stop once all present input has been read.")] = False,
    at: At = None,
    bounds: WindowBounds = Bounds.start,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Run the queries while the input grows, and write each answer when its window is complete."""
    if history is not None and catalogue is None:
        raise PanesError("--history keeps events for the queries of a catalogue: add --catalogue, or leave it out.")
    from panes.cli.jobs import read_queries, run_stream
    from panes.spark.files import Sink

    source, sink = _source(input_, format_, schema, strict), Sink(output, output_format)
    start = _spark_starter(master, conf, stream=True)
    to_run = read_queries(queries, at, bounds.value)
    if to_run:
        run_stream(
            to_run,
            source,
            sink,
            start,
            watermark=watermark,
            mode=mode.value,
            empty=empty,
            late=late.value,
            shards=shards,
            catalogue=catalogue,
            history=history,
            checkpoint=checkpoint,
            once=once,
        )


@app.command()
def compare(
    queries: Queries,
    input_: Input,
    format_: Format = None,
    schema: Schema = None,
    strict: Strict = False,
    at: At = None,
    bounds: WindowBounds = Bounds.start,
    rounds: Annotated[int, typer.Option(help="How often each runs, after a warm-up.", min=1)] = 3,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Run the queries with Panes and with Spark's own windows: compare the answers and the times."""
    from panes.cli import jobs

    start, source = _spark_starter(master, conf), _source(input_, format_, schema, strict)
    to_run = jobs.read_queries(queries, at, bounds.value)
    if to_run:
        jobs.compare(to_run, source, rounds, start)


@app.command()
def register(queries: Queries, catalogue: Folder, at: At = None, bounds: WindowBounds = Bounds.start) -> None:
    """Add the queries of a file to a running job: all of them, or none if one is refused."""
    import panes as pn
    from panes.cli.console import console
    from panes.queries.catalogue_entries import registration

    folder = pn.Catalogue(catalogue)
    to_add = pn.sql(queries.read_text(encoding="utf-8-sig"), at=at, bounds=bounds.value)
    names = {entry.name for entry in folder.list()}
    for query in to_add:
        registration(query)
        if query.name in names:
            raise PanesError(f"the catalogue already has a query {query.name!r}. Drop it, or rename this one.")
        names.add(query.name)
    for query in to_add:
        folder.register(query)
        console().print(f"registered {query.name}; the job's answers say whether it can serve it", markup=False)


@app.command()
def suspend(name: QueryName, catalogue: Folder) -> None:
    """Pause a query of a running job."""
    _catalogue(catalogue).suspend(name)
    _say(f"suspended {name}")


@app.command()
def resume(name: QueryName, catalogue: Folder) -> None:
    """Continue a suspended query."""
    _catalogue(catalogue).resume(name)
    _say(f"resumed {name}")


@app.command()
def drop(name: QueryName, catalogue: Folder) -> None:
    """Remove a query from the catalogue."""
    _catalogue(catalogue).drop(name)
    _say(f"dropped {name}")


@app.command("list")
def list_(catalogue: Folder) -> None:
    """List the queries of a catalogue."""
    entries = _catalogue(catalogue).list()
    if not entries:
        _say("the catalogue is empty")
        return
    from rich.markup import escape
    from rich.table import Table

    from panes.cli.console import console

    table = Table("query", "status", "windows", box=None, pad_edge=False)
    for entry in entries:
        table.add_row(*map(escape, (entry.name, entry.status, ", ".join(entry.windows))))
    console().print(table)


@app.command()
def demo() -> None:
    """Run sixteen windows over a year of real flights, beside Spark's own windows."""
    from panes.demo import main as run_demo

    run_demo()


@app.command()
def doctor(master: Master = None, conf: Conf = None) -> None:
    """Check that everything Panes needs is installed, and say how to fix what is not."""
    from panes.cli.doctor import examine

    if not examine(_spark_starter(master, conf)):
        raise typer.Exit(1)


def main() -> None:
    """Run a command. An error prints one sentence and exits with code 1."""
    try:
        app()
    except PanesError as error:
        _fail(str(error))
    except Exception as error:
        # Compare names, so that a command without Spark does not import PySpark here.
        library = type(error).__module__.partition(".")[0]
        if library in ("pyspark", "py4j"):
            _fail(spark_message(str(error)))
        if isinstance(error, (OSError, UnicodeDecodeError)) or library == "pyarrow":
            _fail(str(error))
        raise


def spark_message(error: str) -> str:
    """Return one line of a Spark error: Panes' or Python's own message from an executor, or else its first line.

    Examples
    --------
    >>> spark_message("An exception in the Python worker: Traceback ...\\n  File x\\nValueError: no\\n\\tat y")
    'Spark says: ValueError: no'
    """
    lines = error.strip().splitlines()
    ours = [line.partition(": ")[2] for line in lines if line.startswith("panes.errors.")]
    _, traced, below = error.partition("Traceback")
    raised = [line for line in below.splitlines()[1:] if _RAISED.match(line)] if traced else []
    return ours[0] if ours else f"Spark says: {[*raised, *lines][0]}"


def _fail(message: str) -> NoReturn:
    print(f"panes: {message}", file=sys.stderr)
    raise SystemExit(1)


def _say(line: str) -> None:
    from panes.cli.console import console

    console().print(line, markup=False)


def _catalogue(folder: str) -> Catalogue:
    import panes as pn

    return pn.Catalogue(folder, create=False)


def _source(place: str, format_: str | None, schema: str | None, strict: bool) -> Source:
    from panes.spark.files import Source

    return Source(place, format_, schema, strict)


def _spark_starter(master: str | None, conf: list[str] | None, *, stream: bool = False) -> Callable[[], SparkSession]:
    """Check the settings now, and return a function that starts Spark when a command needs it."""
    settings = {}
    for text in conf or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise PanesError(f"--conf {text!r} is not a setting: write --conf name=value.")
        settings[name] = value

    def start() -> SparkSession:
        from panes.spark.session import session

        return session(master, settings, stream=stream)

    return start


def _reject(options: Mapping[str, object], why: str) -> None:
    given = [name for name, value in options.items() if value]
    if given:
        raise PanesError(f"{', '.join(given)} {why}")
