"""Streams while they run: a catalogue of queries that come and go, and a line of progress per micro-batch.

A catalogue is a folder with a small JSON file per change, which the job reads as a stream. A change takes effect at the
next micro-batch, and a job that starts again sees the same changes in the same places.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

from pyarrow import fs

from panes.errors import DeclarationError, PanesError
from panes.queries.catalogue_entries import LONGEST, Entry, read_entry, registration
from panes.queries.query import Query, check_queries
from panes.suggestions import helpful
from panes.timeline import DurationLike, parse_duration

Status = Literal["active", "suspended"]


@dataclass(frozen=True)
class Listed:
    """A query of a catalogue, active or suspended. Whether the job can serve it is in the answers' ``kind``."""

    name: str
    status: Status
    windows: tuple[str, ...]


@helpful("pn.Catalogue('/data/catalogue', history='1 day')", retention="history", keep="history", folder="path")
class Catalogue:
    """Queries that come and go while a job runs.

    Parameters
    ----------
    path
        A folder that the job can read too: a path, or an address such as ``s3://bucket/folder``.
    history
        For how long a job keeps events for queries that are registered later, beyond what the declared ones need.
    create
        Whether to create a missing folder; otherwise it is an error.

    Examples
    --------
    >>> import tempfile, panes as pn
    >>> catalogue = pn.Catalogue(tempfile.mkdtemp())
    >>> catalogue.register(pn.query("hourly", at="ts", by="k", select={"n": pn.count()}, over=pn.tumbling("1h")))
    >>> catalogue.register("-- name: daily\\nSELECT k, COUNT(*) AS n FROM ev GROUP BY k, window(ts, '1 day')")
    >>> catalogue.suspend("hourly")
    >>> for listed in catalogue.list():
    ...     print(listed)
    Listed(name='hourly', status='suspended', windows=('1h',))
    Listed(name='daily', status='active', windows=('1d',))
    """

    def __init__(self, path: str, *, history: DurationLike | None = None, create: bool = True) -> None:
        self.history = 0 if history is None else parse_duration(history)
        # Absolute: Spark reads a bare path from wherever its default file system is.
        self.path = str(path) if "://" in str(path) else Path(path).absolute().as_uri()
        found: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(self.path)
        self._files, self._folder = found
        if create:
            self._files.create_dir(self._folder, recursive=True)
        elif self._files.get_file_info(self._folder).type is not fs.FileType.Directory:
            raise PanesError(
                f"there is no catalogue in {path}. Name the folder of a running job's catalogue; registering a query "
                "makes a new one."
            )

    def register(self, query: Query | str) -> None:
        """Register a query over keys, aggregates and events that the job keeps, with windows no finer than its panes.

        Parameters
        ----------
        query
            What ``pn.query`` made, or SQL text of one or several, each named by ``-- name: xyz`` before it.
        """
        queries = check_queries(_queries(query))
        known = {listed.name for listed in self.list()}
        for each in queries:
            if each.name in known:
                raise DeclarationError(f"the catalogue has a query {each.name!r} already. Drop it, or rename this one.")
        for entry in [registration(each) for each in queries]:
            self._write(entry)

    def suspend(self, name: str) -> None:
        """Pause a query; what only its windows need is dropped meanwhile."""
        self._change("suspend", name, "active")

    def resume(self, name: str) -> None:
        """Resume a suspended query; ``coverage`` says how much of each answer was seen."""
        self._change("resume", name, "suspended")

    def drop(self, name: str) -> None:
        """Take a query out of the catalogue."""
        self._change("drop", name, None)

    def list(self) -> list[Listed]:
        """The queries of the catalogue, in the order in which they were registered."""
        found: dict[str, Listed] = {}
        for _, text in self._entries():
            try:
                entry = read_entry(text)
            except PanesError:
                continue  # The job refuses it too, and says so.
            if entry.action == "register":
                found.setdefault(
                    entry.name, Listed(entry.name, "active", tuple(dict.fromkeys(w.name for w in entry.over)))
                )
            elif entry.action == "drop":
                found.pop(entry.name, None)
            elif entry.name in found:
                status: Status = "active" if entry.action == "resume" else "suspended"
                found[entry.name] = Listed(entry.name, status, found[entry.name].windows)
        return list(found.values())

    def _change(self, action: Literal["suspend", "resume", "drop"], name: str, only: Status | None) -> None:
        listed = {found.name: found for found in self.list()}
        if name not in listed:
            known = ", ".join(listed) or "none"
            raise DeclarationError(f"the catalogue has no query {name!r} to {action}; it has: {known}.")
        if only is not None and listed[name].status != only:
            raise DeclarationError(f"the query {name!r} is {listed[name].status}, so there is nothing to {action}.")
        self._write(Entry(action, name))

    def _write(self, entry: Entry) -> None:
        numbers = [int(name.split("-")[0]) for name, _ in self._named() if name.split("-")[0].isdigit()]
        name = f"{max(numbers, default=0) + 1:08}-{uuid4().hex[:8]}.json"
        # Under a name that the job does not read, until it is complete.
        making = f"{self._folder}/.{name}"
        try:
            with self._files.open_output_stream(making) as file:
                file.write(entry.to_json().encode())
            self._files.move(making, f"{self._folder}/{name}")
        except BaseException:
            with suppress(OSError):
                self._files.delete_file(making)
            raise

    def _named(self) -> Sequence[tuple[str, str]]:
        found = self._files.get_file_info(fs.FileSelector(self._folder))
        return sorted((f.base_name, f.path) for f in found if f.is_file and not f.base_name.startswith((".", "_")))

    def _entries(self) -> Sequence[tuple[str, str]]:
        entries = []
        for name, path in self._named():
            with self._files.open_input_stream(path) as file:
                entries.append((name, file.read(4 * LONGEST + 1).decode(errors="replace")))
        return entries


def _queries(query: Query | str) -> list[Query]:
    if not isinstance(query, str):
        return [query]
    # Loaded where there is text: a job reads its catalogue without a parser of statements.
    from panes.api.sql import sql

    return sql(query)


@helpful("pn.show_progress(spark)", spark="session", **dict.fromkeys(("log", "file", "print"), "tell"))
def show_progress(session: Any, tell: Callable[[str], None] | None = None) -> Any:
    """Show a line per micro-batch of every stream of Panes in a Spark session, on the standard error output.

    Parameters
    ----------
    tell
        Where lines go instead.

    Returns
    -------
    StreamingQueryListener
        For ``session.streams.removeListener``.
    """
    from panes.spark.progress import Progress

    listener = Progress(tell)
    session.streams.addListener(listener)
    return listener
