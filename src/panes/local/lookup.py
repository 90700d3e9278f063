"""``plan.lookup`` on tables in this process: requests in, the same requests with their answers out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from panes.aggregates.operations import Array
from panes.engine.bind_program import types_in
from panes.engine.columns import column_of, counting, instants_of, whole
from panes.engine.input_columns import RequestColumns, check_added, request_columns
from panes.engine.keys import key_ordinals
from panes.engine.lookback import BoundLookup, Lookback, bind_lookup
from panes.engine.lookup_results import Answers, Types, answers_of, feature_types, spread
from panes.engine.schema import check_columns, field_of, one_type_each
from panes.engine.sorting import sort_tied_events, tie_columns
from panes.expressions.evaluate import evaluate
from panes.expressions.expression import expression
from panes.inputs import as_table, reread, with_the_rest
from panes.planning.explanation import listed
from panes.planning.steps import Steps
from panes.queries.lookup_declarations import LookupDeclaration, LookupPart


def lookup_steps(declared: LookupDeclaration, events: Any, requests: Any) -> Steps:
    """List what answers every request, after every check.

    Parameters
    ----------
    events, requests
        pyarrow Tables, or anything with the Arrow C interface.
    """
    events, requests = reread(events), as_table(requests)
    check_added(declared, requests.schema)
    parts = [_Part.of(part, events, requests) for part in declared.parts]
    if declared.layout == "long":
        one_type_each((alias, type_) for part in parts for types in part.types for alias, type_ in types.items())
    steps = Steps("plan.lookup in tables")
    read = steps.add("read", "events", lambda: None)
    asking = steps.add("read", "requests", lambda: requests)
    answers = [part.add(steps, read, asking) for part in parts]

    def put_together(requests: pa.Table, *found: Answers) -> pa.Table:
        return spread(declared.queries, declared.layout, requests, {k: v for some in found for k, v in some.items()})

    detail = "the answers beside the requests" if declared.layout == "wide" else "a row per request, query and window"
    steps.add("union", detail, put_together, asking, *answers)
    return steps


@dataclass(frozen=True, eq=False)
class _Part:
    """Queries that share their sorted events, checked against the data.

    Parameters
    ----------
    table
        Those columns of the events that queries read.
    ties
        The columns that also order events of one instant; None where that does not matter.
    types
        The output columns of each query.
    """

    bound: BoundLookup
    table: pa.Table
    ties: tuple[str, ...] | None
    requests: pa.Table
    columns: RequestColumns
    types: tuple[Types, ...]

    @classmethod
    def of(cls, part: LookupPart, events: Any, requests: pa.Table) -> _Part:
        used = part.read.union(*(query.used for query in part.queries))
        table = as_table(events, {name.lower() for name in used})
        schema = table.schema
        check_columns(part.queries, schema)
        bound = bind_lookup(part, types_in(schema))
        types = feature_types(bound, schema)
        columns = request_columns(part, schema, requests.schema)
        if not part.rows:
            return cls(bound, table, None, requests, columns, types)
        # Without ties=, columns that no query reads order events, too.
        table = table if part.ties else with_the_rest(events, table)
        names = tie_columns(table.schema, part.ties, (*part.by, part.at), part.read)
        return cls(bound, table, tuple(names), requests, columns, types)

    def add(self, steps: Steps, read: int, asking: int) -> int:
        """List what answers these queries.

        Parameters
        ----------
        read, asking
            The steps that have the events and the requests.
        """
        part = self.bound.part
        detail = f"events and requests by {listed(part.by)} and time"
        ordered = steps.add("sort", detail, lambda *_: self._sorted(), read, asking)
        titles = [window.name for _, window in part.views]
        detail = "a search among the events of the key for every window"
        return steps.add("answer", detail, self._answers, ordered, windows=titles)

    def _sorted(self) -> _Sorted:
        part, requests = self.bound.part, self.requests
        table = counting(self.table, part.at, part.kept)
        instants, instant = instants_of(column_of(table, part.at)), instants_of(whole(requests.column(self.columns.at)))
        keys = [column_of(table, key) for key in part.by]
        own_keys = [whole(requests.column(i)) for i in self.columns.keys]
        # One numbering for both sides: a request's key may have no event.
        together = [pa.concat_arrays([a, b.cast(a.type)]) for a, b in zip(keys, own_keys, strict=True)]
        ordinals = key_ordinals(together, len(table) + len(requests))
        own, others = ordinals[: len(table)], ordinals[len(table) :]
        order, turn = np.lexsort((instants, own)), np.lexsort((instant, others))
        starts = np.searchsorted(own[order], np.arange(int(ordinals.max(initial=-1)) + 2))
        arguments = {a: whole(evaluate(expression(a), table)) for a in self.bound.arguments}
        if self.ties is not None:
            sort_tied_events(order, instants[order], starts, table.select(self.ties).columns)
        rows = pa.array(order)
        sorted_arguments = {a: array.take(rows) for a, array in arguments.items()}
        sorted_keys = [array.take(pa.array(turn)) for array in own_keys]
        lookback = Lookback(self.bound, instants[order], starts, sorted_arguments)
        return _Sorted(lookback, turn, others[turn], instant[turn], sorted_keys)

    def _answers(self, rows: _Sorted) -> Answers:
        """What is found for each request, in the order of these."""
        time, back = field_of(self.table.schema, self.bound.part.at).type, pa.array(np.argsort(rows.turn))
        found = answers_of(self.bound, rows.lookback.ask(rows.ordinals, rows.instants), rows.keys, time, self.types)
        return {view: {alias: c.take(back) for alias, c in columns.items()} for view, columns in found.items()}


@dataclass(frozen=True, eq=False)
class _Sorted:
    """Events and requests by key and time.

    Parameters
    ----------
    turn
        The row of each sorted request in the table.
    ordinals, instants, keys
        Of the sorted requests.
    """

    lookback: Lookback
    turn: Array
    ordinals: Array
    instants: Array
    keys: list[pa.Array]
