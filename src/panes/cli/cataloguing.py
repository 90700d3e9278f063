"""Commands about the catalogue of a running job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import panes as pn
from panes.cli.reporting import console
from panes.errors import PanesError

if TYPE_CHECKING:
    from panes.queries.windows import Bounds


def register_file(queries: Path, folder: str, at: str | None, bounds: Bounds) -> None:
    """Register every query of a file; none of them if one cannot be."""
    from panes.queries.catalogue_entries import registration

    catalogue = pn.Catalogue(folder)
    asked = pn.sql(queries.read_text(encoding="utf-8-sig"), at=at, bounds=bounds)
    known = {listed.name for listed in catalogue.list()}
    for query in asked:
        registration(query)
        if query.name in known:
            raise PanesError(f"the catalogue has a query {query.name!r} already. Drop it, or rename this one.")
        known.add(query.name)
    for query in asked:
        catalogue.register(query)
        console().print(f"registered {query.name}; the job says in its answers whether it can serve it", markup=False)


def change(action: Literal["suspend", "resume", "drop"], name: str, folder: str) -> None:
    """Suspend, resume or drop a query."""
    getattr(pn.Catalogue(folder, create=False), action)(name)
    console().print(
        f"{ {'suspend': 'suspended', 'resume': 'resumed', 'drop': 'dropped'}[action] } {name}", markup=False
    )


def list_queries(folder: str) -> None:
    """Show what is registered."""
    from rich.markup import escape
    from rich.table import Table

    listed = pn.Catalogue(folder, create=False).list()
    if not listed:
        console().print("the catalogue is empty")
        return
    shown = Table("query", "status", "windows", box=None, pad_edge=False)
    for query in listed:
        shown.add_row(*map(escape, (query.name, query.status, ", ".join(query.windows))))
    console().print(shown)
