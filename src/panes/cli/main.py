"""The commands: what they are called and what they take. What they do is imported when it is done."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from panes.errors import PanesError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RAISED = re.compile(r"[A-Za-z_.]+: ")

app = typer.Typer(
    name="panes",
    help="Thousands of windowed queries over one event stream for about the price of one, on Apache Spark.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


class Layout(StrEnum):
    """How answers are laid out."""

    long = "long"
    wide = "wide"


class Mode(StrEnum):
    """When a stream answers."""

    append = "append"
    update = "update"


class Late(StrEnum):
    """What becomes of late events."""

    counted = "count"
    emitted = "emit"


class Strategy(StrEnum):
    """One way to run all of a plan."""

    native = "native"
    rewrite = "rewrite"
    columnar = "columnar"


class Bounds(StrEnum):
    """Which bound belongs to a window."""

    start = "[)"
    end = "(]"


Queries = Annotated[Path, typer.Argument(help="A file of SQL statements, separated by ;.", exists=True, dir_okay=False)]
At = Annotated[str | None, typer.Option(help="The column of event time, where a statement does not name it.")]
WindowBounds = Annotated[Bounds, typer.Option(help="Whether the start or the end of a window belongs to it.")]
Input = Annotated[str, typer.Option("--input", "-i", help="A file, a folder, an address, or a table of Spark.")]
Output = Annotated[str, typer.Option("--output", "-o", help="Where answers go; must not exist yet.")]
OutputFormat = Annotated[str | None, typer.Option(help="parquet, csv, json, ...; by default as the name ends.")]
Empty = Annotated[bool, typer.Option("--empty", help="Answer windows on the clock without events, too.")]
Format = Annotated[str | None, typer.Option("--format", help="parquet, csv, json, ...; by default as the name ends.")]
Schema = Annotated[str | None, typer.Option(help="The columns of CSV or JSON: 'ts TIMESTAMP, k STRING, x DOUBLE'.")]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first malformed row.")]
Master = Annotated[str | None, typer.Option(help="Where Spark runs; by default in this process.")]
Conf = Annotated[list[str] | None, typer.Option(help="A setting of Spark, as name=value; may be repeated.")]
Folder = Annotated[str, typer.Option("--catalogue", help="The folder of the catalogue of a running job.")]


@app.command()
def explain(
    queries: Queries,
    rate: Annotated[str | None, typer.Option(help="Events per second: 100, 100/s or 5000/min.")] = None,
    keys: Annotated[int | None, typer.Option(help="How many distinct keys there are.")] = None,
    at: At = None,
    bounds: WindowBounds = Bounds.start,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="Print a Mermaid flowchart.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
    svg: Annotated[Path | None, typer.Option(help="Draw the plan into a file.", dir_okay=False)] = None,
    input_: Annotated[
        str | None, typer.Option("--input", "-i", help="Show the steps that a run on these events takes.")
    ] = None,
    format_: Format = None,
    schema: Schema = None,
    watermark: Annotated[str | None, typer.Option(help="Take them as a stream: how late they may come.")] = None,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Show how the queries are planned together, what that saves, and what a run on some events does."""
    from panes.cli.explaining import explain_file, explain_run

    if input_ is None:
        how = {"--format": format_, "--schema": schema, "--watermark": watermark, "--master": master, "--conf": conf}
        _refuse([name for name, value in how.items() if value], "is about events: add --input, or leave it out.")
        explain_file(queries, at, bounds.value, rate=rate, keys=keys, mermaid=mermaid, json=json, svg=svg)
        return
    drawn = {"--mermaid": mermaid, "--json": json, "--svg": svg}
    _refuse([name for name, value in drawn.items() if value], "shows the plan and not a run: leave --input out.")
    from panes.spark.files import Source

    source, start = Source(input_, format_, schema, strict=False), _starting(master, conf, stream=watermark is not None)
    explain_run(queries, at, bounds.value, source, start, rate=rate, keys=keys, watermark=watermark)


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
    strategy: Annotated[Strategy | None, typer.Option(help="Run all of it one way, for comparison.")] = None,
    at: At = None,
    bounds: WindowBounds = Bounds.start,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Answer the queries over what is there; panes stream goes on while events come."""
    from panes.cli.running import Batch, queries_of, run_batch
    from panes.spark.files import Sink, Source

    asked, source = queries_of(queries, at, bounds.value), Source(input_, format_, schema, strict)
    sink, start = Sink(output, output_format), _starting(master, conf)
    if asked:
        chosen = Batch(layout.value, empty, None if strategy is None else strategy.value)
        run_batch(asked, source, sink, chosen, start)


@app.command()
def stream(
    queries: Queries,
    input_: Input,
    output: Output,
    watermark: Annotated[str, typer.Option(help="How late events may come, as '10 minutes'.")],
    format_: Format = None,
    output_format: OutputFormat = None,
    schema: Schema = None,
    strict: Strict = False,
    mode: Annotated[Mode, typer.Option(help="Answers once, or early and corrected.")] = Mode.append,
    empty: Empty = False,
    late: Annotated[Late, typer.Option(help="Late events are counted, or also written as rows.")] = Late.counted,
    shards: Annotated[int, typer.Option(help="Into how many parts keys are divided.", min=1)] = 4,
    catalogue: Annotated[str | None, typer.Option(help="A folder of queries that come and go.")] = None,
    history: Annotated[str | None, typer.Option(help="With a catalogue: how long events are kept for it.")] = None,
    checkpoint: Annotated[str | None, typer.Option(help="Where the stream keeps its state.")] = None,
    once: Annotated[bool, typer.Option("--once", help="Stop when everything there has been read.")] = False,
    at: At = None,
    bounds: WindowBounds = Bounds.start,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Answer the queries while the input grows, each answer when its window is complete."""
    if history is not None and catalogue is None:
        raise PanesError("--history is for queries that a catalogue will have: add --catalogue, or leave it out.")
    from panes.cli.running import Streaming, queries_of, run_stream
    from panes.spark.files import Sink, Source

    asked, source = queries_of(queries, at, bounds.value), Source(input_, format_, schema, strict)
    sink, start = Sink(output, output_format), _starting(master, conf, stream=True)
    if asked:
        options = Streaming(watermark, mode.value, empty, late.value, shards, catalogue, history, checkpoint, once)
        run_stream(asked, source, sink, options, start)


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
    """Run the queries with Panes and with Spark's own windows: are the answers equal, and what does it save?"""
    from panes.cli.comparing import compare_queries
    from panes.cli.running import queries_of
    from panes.spark.files import Source

    asked = queries_of(queries, at, bounds.value)
    if asked:
        compare_queries(asked, Source(input_, format_, schema, strict), rounds, _starting(master, conf))


@app.command()
def register(queries: Queries, catalogue: Folder, at: At = None, bounds: WindowBounds = Bounds.start) -> None:
    """Ask a running job for the queries of a file."""
    from panes.cli.cataloguing import register_file

    register_file(queries, catalogue, at, bounds.value)


@app.command()
def suspend(name: Annotated[str, typer.Argument(help="The query.")], catalogue: Folder) -> None:
    """Withdraw a query for a while."""
    from panes.cli.cataloguing import change

    change("suspend", name, catalogue)


@app.command()
def resume(name: Annotated[str, typer.Argument(help="The query.")], catalogue: Folder) -> None:
    """Ask for a suspended query again."""
    from panes.cli.cataloguing import change

    change("resume", name, catalogue)


@app.command()
def drop(name: Annotated[str, typer.Argument(help="The query.")], catalogue: Folder) -> None:
    """Take a query out of the catalogue."""
    from panes.cli.cataloguing import change

    change("drop", name, catalogue)


@app.command("list")
def list_(catalogue: Folder) -> None:
    """Show the queries of a catalogue."""
    from panes.cli.cataloguing import list_queries

    list_queries(catalogue)


@app.command()
def demo() -> None:
    """Sixteen windows over a year of real flights, beside Spark's own windows."""
    from panes.demo import main as run_demo

    run_demo()


@app.command()
def doctor(master: Master = None, conf: Conf = None) -> None:
    """Look whether everything that Panes needs is there, and say how to mend what is not."""
    from panes.cli.doctor import examine

    if not examine(_starting(master, conf)):
        raise typer.Exit(1)


def main() -> None:
    """Run a command; what is wrong is said in a sentence, with the exit code 1."""
    try:
        app()
    except PanesError as error:
        _give_up(str(error))
    except Exception as error:
        # Not imported for this: a command that does not use Spark does not load it.
        if type(error).__module__.startswith(("pyspark.", "py4j.")):
            _give_up(told_by(str(error)))
        if isinstance(error, (OSError, UnicodeDecodeError)) or type(error).__module__.startswith("pyarrow."):
            _give_up(str(error))
        raise


def told_by(error: str) -> str:
    """What an error of Spark says in a line: what Panes or Python said on an executor, or else its own first line.

    Examples
    --------
    >>> told_by("An exception was thrown from the Python worker: Traceback ...\\n  File x\\nValueError: no\\n\\tat y")
    'Spark says: ValueError: no'
    """
    lines = error.strip().splitlines()
    ours = [line.partition(": ")[2] for line in lines if line.startswith("panes.errors.")]
    _, traced, below = error.partition("Traceback")
    raised = [line for line in below.splitlines()[1:] if _RAISED.match(line)] if traced else []
    return ours[0] if ours else f"Spark says: {[*raised, *lines][0]}"


def _give_up(why: str) -> NoReturn:
    print(f"panes: {why}", file=sys.stderr)
    raise SystemExit(1)


def _starting(master: str | None, conf: list[str] | None, *, stream: bool = False) -> Callable[[], SparkSession]:
    """How to start Spark, once a command needs it; a wrong setting is refused at once."""
    settings = {}
    for text in conf or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise PanesError(f"--conf {text!r} is no setting: write --conf name=value.")
        settings[name] = value

    def start() -> SparkSession:
        from panes.spark.session import session

        return session(master, settings, stream=stream)

    return start


def _refuse(given: list[str], why: str) -> None:
    if given:
        raise PanesError(f"{', '.join(given)} {why}")
