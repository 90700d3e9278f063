"""Data as others bring it: views, encodings, nested and foreign types give the answers of the plain types.

Each case has the plain column beside it. Slices and empty columns catch conversions that forget an array's offset or
look at its first element.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import panes as pn
from panes.errors import SchemaError
from panes.inputs import as_table

VIEW = pa.string_view()
WORDS = pa.DictionaryArray.from_arrays(pa.array([1, 0, None, 1], pa.uint32()), pa.array(["a", "b"], VIEW))
UUIDS = pa.array([b"a" * 16, None, b"b" * 16, b"a" * 16], pa.binary(16))
LISTS = [["a", "b"], None, ["b", None], ["a", "b"]]
PAIRS = [{"word": "a", "n": 1}, None, {"word": None, "n": 2}, {"word": "a", "n": 1}]
DECIMALS = [Decimal("1.5"), None, Decimal("-2.5"), Decimal("1.5")]

KEYS = {
    "string view": (pa.array(["a", None, "b", "a"], VIEW), pa.string()),
    "large string": (pa.array(["a", None, "b", "a"], pa.large_string()), pa.string()),
    "binary view": (pa.array([b"a", None, b"b", b"a"], pa.binary_view()), pa.binary()),
    "fixed binary": (UUIDS, pa.binary()),
    "dictionary of views": (WORDS, pa.string()),
    "dictionary with a null value": (
        pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0]), pa.array(["a", None])),
        pa.string(),
    ),
    "struct of a dictionary": (
        pa.StructArray.from_arrays([WORDS], names=["word"], mask=pa.array([False, False, False, True])),
        pa.struct([("word", pa.string())]),
    ),
    "struct of views": (
        pa.array(PAIRS, pa.struct([("word", VIEW), ("n", pa.uint8())])),
        pa.struct([("word", pa.string()), ("n", pa.int16())]),
    ),
    "list of views": (pa.array(LISTS, pa.list_(VIEW)), pa.list_(pa.string())),
    "large list": (pa.array(LISTS, pa.large_list(VIEW)), pa.list_(pa.string())),
    "list view": (pa.array(LISTS, pa.list_view(VIEW)), pa.list_(pa.string())),
    "large list view": (pa.array(LISTS, pa.large_list_view(VIEW)), pa.list_(pa.string())),
    "fixed-size list": (pa.array(LISTS, pa.list_(VIEW, 2)), pa.list_(pa.string())),
    "list of fixed-size lists": (
        pa.array([[[1, 2]], None, [[1, 3], None], [[1, 2]]], pa.list_(pa.list_(pa.uint16(), 2))),
        pa.list_(pa.list_(pa.int32())),
    ),
    "unsigned": (pa.array([2**64 - 1, None, 0, 2**64 - 1], pa.uint64()), pa.decimal128(20, 0)),
    "short decimal": (pa.array(DECIMALS, pa.decimal64(5, 1)), pa.decimal128(5, 1)),
    "long decimal": (pa.array(DECIMALS, pa.decimal256(60, 1)), pa.decimal128(38, 1)),
    "date in milliseconds": (pa.array([86_400_000, None, 0, 86_400_000], pa.date64()), pa.date32()),
}


def plain(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """The same values by way of Python."""
    return pa.array(array.to_pylist(), type_)


def stream(events: object, by: str = "key") -> list[dict[str, object]]:
    """How often each key comes, by a plan."""
    made = pn.plan(pn.query("q", at="ts", by=by, select={"n": pn.count()}, over=pn.tumbling("10 s")))
    return sorted(made.run(events).select([by, "n"]).to_pylist(), key=repr)


def instants(count: int, unit: str = "us") -> pa.Array:
    return pa.array(range(count), pa.timestamp(unit, "UTC"))


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("rows", [slice(0, 4), slice(1, 4), slice(2, 3), slice(0, 0)])
def test_columns_arrive_as_plain_ones(name: str, rows: slice) -> None:
    array, type_ = KEYS[name]
    arrived = as_table({"key": array[rows]}).column("key")
    arrived.validate(full=True)
    assert arrived.type == type_
    assert arrived.combine_chunks() == plain(array[rows], type_)


@pytest.mark.parametrize("name", KEYS)
def test_a_column_without_chunks_has_its_type_too(name: str) -> None:
    array, type_ = KEYS[name]
    assert as_table(pa.table({"key": pa.chunked_array([], array.type)})).column("key").type == type_


@pytest.mark.parametrize("name", KEYS)
def test_keys_of_any_type_give_the_answers_of_plain_ones(name: str) -> None:
    array, type_ = KEYS[name]
    given = pa.chunked_array([array[:1], array[1:]])
    answers = stream(pa.table({"ts": instants(4), "key": given}))
    assert sum(answer["n"] for answer in answers) == 4
    assert len(answers) == len({repr(value) for value in array.to_pylist()})
    assert answers == stream(pa.table({"ts": instants(4), "key": plain(array, type_)}))


def test_maps_arrive_as_plain_ones() -> None:
    array = pa.array([[("a", 1)], None, [("b", 2), ("c", None)], []], pa.map_(VIEW, pa.uint8()))
    for some in (array, array[1:], array[2:3], array[:0]):
        arrived = as_table({"m": some}).column("m")
        arrived.validate(full=True)
        assert arrived.type == pa.map_(pa.string(), pa.int16())
        assert arrived.to_pylist() == some.to_pylist()


@pytest.mark.parametrize("rows", [slice(0, 5), slice(1, 4), slice(4, 5), slice(0, 0)])
def test_runs_are_written_out(rows: slice) -> None:
    runs = pa.RunEndEncodedArray.from_arrays([2, 3, 5], pa.array(["a", None, "b"], VIEW))
    arrived = as_table({"key": runs[rows]}).column("key")
    assert arrived.type == pa.string()
    assert arrived.to_pylist() == ["a", "a", None, "b", "b"][rows]


def test_extension_types_of_arrow_arrive_as_what_they_are_stored_as() -> None:
    flags = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0, None, 2], pa.int8()))
    events = pa.table({"ts": instants(4), "key": pa.ExtensionArray.from_storage(pa.uuid(), UUIDS), "flag": flags})
    assert as_table(events).column("flag").to_pylist() == [True, False, None, True]
    assert stream(events) == stream(pa.table({"ts": instants(4), "key": UUIDS.cast(pa.binary())}))


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Vienna"])
def test_nanoseconds_are_floored_also_before_the_epoch(zone: str | None) -> None:
    given = pa.array([-1001, -1000, -1, 0, 999, 1000, None], pa.timestamp("ns", zone))
    arrived = as_table({"ts": given, "nested": pa.array([[v] for v in given], pa.list_(given.type))})
    micros = [-2, -1, -1, 0, 0, 1, None]
    assert arrived.column("ts").type == pa.timestamp("us", zone)
    assert arrived.column("ts").cast(pa.int64()).to_pylist() == micros
    assert arrived.column("nested").cast(pa.list_(pa.int64())).to_pylist() == [[m] for m in micros]


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_a_nanosecond_before_the_epoch_is_in_the_window_before_it(zone: str | None) -> None:
    events = pa.table({"ts": pa.array([-1, 1], pa.timestamp("ns", zone)), "key": ["a", "a"]})
    made = pn.plan(pn.query("q", at="ts", select={"n": pn.count()}, over=pn.tumbling("1 us")))
    starts = [answer["window"]["start"] for answer in made.run(events).to_pylist()]
    epoch = datetime(1970, 1, 1, tzinfo=zone and UTC)
    assert sorted(starts) == [epoch - timedelta(microseconds=1), epoch]


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_instants_beyond_microseconds_are_refused(unit: str) -> None:
    assert as_table({"ts": instants(2, unit)}).column("ts").type == pa.timestamp("us", "UTC")
    far = pa.table({"ts": pa.array([2**62], pa.timestamp(unit)), "key": ["a"]})
    with pytest.raises(SchemaError, match=rf"'ts' is of type timestamp\[{unit}\].*Cast it"):
        stream(far)


def test_polars_frames() -> None:
    frame = pl.DataFrame(
        {
            "ts": pl.Series([-1, 1, 2]).cast(pl.Datetime("ns", "UTC")),
            "category": pl.Series(["x", None, "x"], dtype=pl.Categorical),
            "enum": pl.Series(["b", "a", "b"], dtype=pl.Enum(["a", "b"])),
            "words": [["x", "y"], [], ["x", "y"]],
            "pair": [{"w": "x", "n": 1}, {"w": None, "n": 2}, {"w": "x", "n": 1}],
            "array": pl.Series([[1, 2], [3, 4], [1, 2]], dtype=pl.Array(pl.UInt8, 2)),
            "money": pl.Series(["1.50", None, "1.5"]).cast(pl.Decimal(10, 2)),
        }
    )
    for by in frame.columns[1:]:
        counted = {repr(answer[by]): answer["n"] for answer in stream(frame[1:], by)}
        assert sorted(counted.values()) == [1, 1], by
        assert sum(answer["n"] for answer in stream(frame, by)) == 3
        assert set(counted) == {repr(value) for value in frame[by].to_list()}


def test_pandas_frames() -> None:
    frame = pd.DataFrame(
        {
            "ts": pd.to_datetime([0, 1, 2], unit="ns", utc=True),
            "category": pd.Categorical(["x", None, "x"]),
            "words": [["x"], [], ["x"]],
            "nullable": pd.array([1, None, 1], dtype="UInt32"),
        }
    )
    for by in ("category", "words", "nullable"):
        assert sorted(answer["n"] for answer in stream(frame, by)) == [1, 2], by


UNKNOWN = {
    "a union": pa.table(
        {
            "n": [1, 2],
            "Odd": pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])]),
        }
    ),
    "a type of pandas": pd.DataFrame({"n": [1, 2], "Odd": pd.period_range("2026", periods=2, freq="D")}),
    "mixed objects": pd.DataFrame({"n": [1, 2], "Odd": [1, "a"]}),
    "a type of polars": pl.DataFrame({"n": [1, 2], "Odd": pl.Series([1, 2], dtype=pl.Int128)}),
    "a number too large": pa.table({"n": [1, 2], "Odd": pa.array([1, 10**50], pa.decimal256(60, 0))}),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_a_column_that_cannot_be_converted_matters_only_where_it_is_used(name: str) -> None:
    table = as_table(UNKNOWN[name], used={"n"})
    assert table.column("n").to_pylist() == [1, 2]
    assert set(table.column_names) == {"n", "Odd"}, "known, so that errors can suggest it"
    for used in (None, {"n", "odd"}):
        with pytest.raises(SchemaError, match=r"column 'Odd' is of type .+\. Cast it to a plain type first"):
            as_table(UNKNOWN[name], used)


def test_a_plan_ignores_what_its_queries_do_not_use() -> None:
    odd = pl.Series([1, 2], dtype=pl.Int128)
    frame = pl.DataFrame({"TS": pl.Series([0, 1]).cast(pl.Datetime("us")), "Key": ["a", "a"], "odd": odd})
    assert stream(frame) == [{"key": "a", "n": 2}]
    with pytest.raises(SchemaError, match="column 'odd' is of type Int128"):
        stream(frame, "odd")
    with pytest.raises(SchemaError, match="did you mean 'odd'"):
        stream(frame, "oddd")


def test_names_that_differ_in_case_matter_only_where_they_are_used() -> None:
    events = pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], names=["n", "a", "A"])
    assert as_table(events, {"n"}).column("n").to_pylist() == [1]
    for used in (None, {"a"}):
        with pytest.raises(SchemaError, match="same name"):
            as_table(events, used)


def test_plain_columns_are_not_copied() -> None:
    events = pa.table({"n": [1, 2], "words": [["a"], None]})
    arrived = as_table(events)
    assert [c.chunk(0).buffers()[-1].address for c in arrived.columns] == [
        c.chunk(0).buffers()[-1].address for c in events.columns
    ]


def test_a_reader_is_read_once_for_all_windows() -> None:
    """Windows over time, windows of rows, and columns that only order rows of one instant: all of them read it."""
    events = pa.table(
        {"ts": pa.array([1, 1, 2], pa.timestamp("s")), "k": ["a", "a", "b"], "x": [3, 2, 1], "y": [1, 2, 3]}
    )
    over = [pn.tumbling("1 s"), pn.sliding(pn.rows(2))]
    plan = pn.plan(pn.query(by="k", at="ts", select={"last": pn.last("x")}, over=over))
    reader = pa.RecordBatchReader.from_batches(events.schema, events.to_batches())
    assert plan.run(reader).equals(plan.run(events))
    reader = pa.RecordBatchReader.from_batches(events.schema, events.to_batches())
    requests = pa.RecordBatchReader.from_batches(events.schema, events.to_batches())
    looked_up = [plan.lookup(one, other, layout="wide") for one, other in ((reader, requests), (events, events))]
    assert looked_up[0].equals(looked_up[1])
