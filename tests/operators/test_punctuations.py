"""Window punctuations: which streams are punctuated, and that a graph is checked before anything runs (section 3.4)."""

from __future__ import annotations

from typing import ClassVar

import pytest

import panes as pn
from panes.errors import DeclarationError
from panes.operators import (
    FREE,
    GENERATING,
    PUNCTUATION,
    TUMBLING_WINDOWS,
    Aggregate,
    Functor,
    Graph,
    InputMode,
    InputPort,
    Join,
    Operator,
    OperatorModel,
    Sort,
    preserving,
    windows_of,
)
from panes.operators.policies import operator_policies

PUNCTUATED = pn.tumbling(pn.punctuation())


class Both(Operator):
    """Two inputs; it passes on the tuples of both, and the punctuations of the second."""

    model: ClassVar[OperatorModel] = OperatorModel("Both", (InputPort(), InputPort()), (preserving(1),))

    def process(self, item, port=0):
        self.submit(item)


class Expecting(Operator):
    """It needs punctuations whatever its window."""

    model: ClassVar[OperatorModel] = OperatorModel(
        "Expecting", (InputPort((TUMBLING_WINDOWS,), InputMode.EXPECTING),), (FREE,)
    )

    def process(self, item, port=0):
        self.submit(item)


def lowest():
    return Aggregate(PUNCTUATED, {"least": pn.min("x")})


def graph():
    made = Graph()
    made.source("plain")
    made.source("marked", GENERATING)
    made.source("other", GENERATING)
    return made


def test_modes_of_the_operators_of_the_paper():
    count = pn.tumbling(pn.rows(1))
    assert Aggregate(count, {"n": pn.count()}).input_mode(0) is InputMode.OBLIVIOUS
    assert lowest().input_mode(0) is InputMode.EXPECTING
    assert Sort(PUNCTUATED, order="x").input_mode(0) is InputMode.EXPECTING
    last = pn.sliding(pn.rows(1))
    join = Join(last, last, on="x", outer="full", unmatched_ports=True)
    assert [join.input_mode(port) for port in (0, 1)] == [InputMode.OBLIVIOUS] * 2
    assert [join.output_mode(port) for port in range(3)] == [GENERATING] * 3


def test_punctuated_streams():
    made = graph()
    made.add(Functor(), reads=["plain"], writes=["free"])
    made.add(Functor(), reads=["marked"], writes=["kept"])
    made.add(Functor(), reads=["kept"], writes=["kept twice"])
    made.add(Functor(), reads=[["marked", "other"]], writes=["mixed"])
    made.add(Functor(), reads=["mixed"], writes=["mixed further"])
    made.add(Both(), reads=["plain", "marked"], writes=["of the second"])
    made.add(Both(), reads=["marked", "plain"], writes=["of the first"])
    made.add(Sort(pn.tumbling(pn.rows(2)), order="x"), reads=["mixed"], writes=["sorted"])
    found = {name: made.punctuated(name) for name in made._streams}
    assert found == {
        "plain": False,
        "marked": True,
        "other": True,
        "free": False,
        "kept": True,
        "kept twice": True,
        "mixed": False,
        "mixed further": False,
        "of the second": True,
        "of the first": False,
        "sorted": True,
    }


@pytest.mark.parametrize(
    ("reads", "message"),
    [
        ("plain", "the stream 'plain' has none: its window would never end"),
        (["marked", "other"], "2 streams are connected to it: .* Connect one punctuated stream"),
        ([], "0 streams are connected"),
        ("markd", "did you mean 'marked'"),
    ],
)
def test_an_expecting_port_needs_one_punctuated_stream(reads, message):
    with pytest.raises(DeclarationError, match=message):
        graph().add(lowest(), reads=[reads], writes=["lowest"])


def test_expecting_ports_are_checked_whatever_their_window():
    with pytest.raises(DeclarationError, match="Expecting expects window punctuations on port 0"):
        graph().add(Expecting(pn.tumbling(pn.rows(1))), reads=["plain"])
    graph().add(Expecting(pn.tumbling(pn.rows(1))), reads=["marked"])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda made: made.add(Both(), reads=["plain"]), "2 input ports, and reads= has 1"),
        (lambda made: made.add(Functor(), reads=["plain"], writes=["a", "b"]), "1 output ports, and writes= names 2"),
        (lambda made: made.add(Functor(), reads=["plain"], writes=["marked"]), "two streams 'marked'"),
        (lambda made: made.source("x", preserving(0)), "no input port"),
        (lambda made: made.send("plian", 1), "did you mean 'plain'"),
        (lambda made: made.run([], collect=["plian"]), "did you mean 'plain'"),
    ],
)
def test_graphs_that_are_none(build, message):
    with pytest.raises(DeclarationError, match=message):
        build(graph())


def test_boundaries_travel_through_a_graph():
    """Windows of a count, through a projection, into an aggregate of each of them."""
    made = graph()
    made.add(Sort(pn.tumbling(pn.rows(3)), order="x"), reads=["plain"], writes=["sorted"])
    made.add(Functor(lambda row: {"x": -row["x"]}), reads=["sorted"], writes=["negated"])
    made.add(lowest(), reads=["negated"], writes=["lowest"])
    out = made.run((("plain", {"x": x}) for x in (3, 1, 2, 9, 8, 7, 5)), collect=["sorted", "lowest"])
    assert [[row["x"] for row in window] for window in windows_of(out["sorted"])] == [[1, 2, 3], [7, 8, 9]]
    assert out["lowest"] == [{"least": -3}, PUNCTUATION, {"least": -9}, PUNCTUATION]


def test_an_empty_window_gives_a_punctuation_and_no_tuple():
    assert lowest().run([PUNCTUATION, {"x": 1}, PUNCTUATION, PUNCTUATION]) == [
        PUNCTUATION,
        {"least": 1},
        PUNCTUATION,
        PUNCTUATION,
    ]


def test_a_punctuation_ends_the_subwindows_of_all_partitions():
    window = operator_policies(pn.tumbling(pn.punctuation()), by="k")
    rows = [{"k": "b", "x": 1}, {"k": "a", "x": 2}, PUNCTUATION, PUNCTUATION, {"k": "a", "x": 3}, PUNCTUATION]
    found = Aggregate(window, {"least": pn.min("x")}).run(rows)
    assert [row for row in found if row is not PUNCTUATION] == [
        {"k": "b", "least": 1},
        {"k": "a", "least": 2},
        {"k": "a", "least": 3},
    ]


def test_other_policies_are_oblivious():
    found = Aggregate(pn.tumbling(pn.rows(2)), {"n": pn.count()}).run([{}, PUNCTUATION, {}])
    assert found == [{"n": 2}, PUNCTUATION]


def test_an_operator_that_preserves_punctuations_need_not_pass_them_on_itself():
    both = Both()
    assert both.run([1, PUNCTUATION, 2], port=1) == [1, PUNCTUATION, 2]
    assert both.run([1, PUNCTUATION, 2], port=0) == [1, 2]


def test_an_operator_is_added_once():
    """Added again, it would read a second stream on a port that is to read one."""
    made, least = graph(), lowest()
    made.add(least, reads=["marked"])
    with pytest.raises(DeclarationError, match="in the graph already"):
        made.add(least, reads=["other"])
