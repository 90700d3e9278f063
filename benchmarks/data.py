"""What is aggregated: synthetic events, real trades, real sensor readings; all as Parquet in a cache directory."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

RATE = 100
"""Synthetic events per second of event time, at a constant pace."""

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
"""Real data beside the checkout; workloads that need them are skipped where they are absent."""

_FILES = 8  # so that every core has something to read
START = 1_700_000_000_000_000
_TIME = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class Dataset:
    """Events sorted by ``ts`` in a directory of Parquet files, and what is known about them.

    ``keys`` are distinct values per set of key columns; ``seconds`` is the event time that they span.
    """

    name: str
    path: Path
    events: int
    seconds: float
    keys: dict[tuple[str, ...], int] = field(compare=False)

    @property
    def rate(self) -> float:
        """Events per second of event time."""
        return self.events / self.seconds

    @property
    def files(self) -> str:
        """What DuckDB and Polars are given."""
        return str(self.path / "*.parquet")

    def prefix(self, events: int) -> Dataset:
        """The first events, as a dataset of its own."""
        if events >= self.events:
            return self
        name = f"{self.name}-first-{events}"
        return kept(name, self.keys, lambda: iter([_head(self.path, events)]))


def synthetic(events: int, keys: int) -> Dataset:
    """Events at a constant pace: ``ts``, ``key``, ``value`` (double), ``units`` (int)."""

    def parts() -> Iterator[pa.Table]:
        rng = np.random.default_rng(keys)
        for ids in np.array_split(np.arange(events), _FILES):
            yield pa.table(
                {
                    "ts": pa.array(START + ids * (1_000_000 // RATE)).cast(_TIME),
                    "key": rng.integers(0, keys, len(ids), dtype=np.int32),
                    "value": rng.integers(0, 100_000, len(ids)) / 1000.0,
                    "units": rng.integers(0, 1000, len(ids), dtype=np.int32),
                }
            )

    return kept(f"synthetic-{events}-keys-{keys}", {("key",): keys}, parts)


def trades() -> Dataset | None:
    """Five days of US trades: ``ts``, ``symbol``, ``price``, ``qty``, ``exch``, and more."""
    source = SHARED / "us_equity_trades.parquet"
    if not source.exists():
        return None
    keys = {("symbol",): 4}
    return kept("trades", keys, lambda: _split(pq.read_table(source)))


def debs(events: int) -> Dataset | None:
    """The DEBS 2012 sample, ``ts`` and ``value`` (mf01), laid end to end in time until there are enough events."""
    source = SHARED / "debs2012_manufacturing.tsv"
    if not source.exists():
        return None

    def parts() -> Iterator[pa.Table]:
        names = [str(i) for i in range(56)]
        texts = pa.csv.ConvertOptions(column_types={"0": pa.string()}, include_columns=["0", "2"])
        read = pa.csv.ReadOptions(column_names=names)
        table = pa.csv.read_csv(source, read, pa.csv.ParseOptions(delimiter="\t"), texts)
        instants = np.array([text[:26] for text in table["0"].to_pylist()], dtype="datetime64[us]").astype(np.int64)
        values = table["2"].to_numpy().astype(np.float64)
        tiles = -(-events // len(instants))
        span = instants[-1] - instants[0] + 1_000_000 // RATE
        times = (instants[None, :] + np.arange(tiles)[:, None] * span).ravel()
        tiled = pa.table({"ts": pa.array(times).cast(_TIME), "value": np.tile(values, tiles)})
        return _split(tiled.slice(0, max(events, len(instants))))

    return kept(f"debs-{events}", {}, parts)


def cache() -> Path:
    """Where data are kept between runs."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "panes-bench"


def kept(name: str, keys: dict[tuple[str, ...], int], parts: Callable[[], Iterator[pa.Table]]) -> Dataset:
    """The dataset of a name, made if it is not there yet, and then whole or not at all."""
    path = cache() / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        making = Path(tempfile.mkdtemp(dir=path.parent, prefix=".making-"))
        try:
            for number, part in enumerate(parts()):
                pq.write_table(part, making / f"part-{number:03}.parquet")
            making.rename(path)
        finally:
            shutil.rmtree(making, ignore_errors=True)
    files = sorted(path.glob("*.parquet"))
    events = sum(pq.read_metadata(file).num_rows for file in files)
    first, last = (pq.read_table(file, columns=["ts"])["ts"].cast(pa.int64()) for file in (files[0], files[-1]))
    return Dataset(name, path, events, (last[-1].as_py() - first[0].as_py()) / 1e6, keys)


def _head(path: Path, events: int) -> pa.Table:
    tables, rows = [], 0
    for file in sorted(path.glob("*.parquet")):
        tables.append(pq.read_table(file))
        rows += tables[-1].num_rows
        if rows >= events:
            break
    return pa.concat_tables(tables).slice(0, events)


def _split(table: pa.Table) -> Iterator[pa.Table]:
    rows = -(-table.num_rows // _FILES)
    return (table.slice(at, rows) for at in range(0, table.num_rows, rows))
