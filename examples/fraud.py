"""Card-fraud features, defined once: a training set from history, and the same features live from a stream.

    python examples/fraud.py

1. Payments with labels (did it turn out to be fraud?), made up with a fixed seed.
2. A query defines the features: aggregates per card over the hour, day and week up to each payment.
3. ``plan.lookup`` computes them for every label as they were at that moment: the training set of a model.
4. A stream runs the same query. Its answers are the features of each payment when it happens.
5. Both are equal, number by number: the model is served what it was trained on.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.ml.classification import LogisticRegression
from pyspark.ml.evaluation import BinaryClassificationEvaluator
from pyspark.ml.feature import VectorAssembler
from pyspark.sql import DataFrame, SparkSession

import panes as pn

FEATURES = pn.query(
    "card features",
    by="card",
    at="ts",
    select={
        "payments": pn.count(),
        "amount_sum": pn.sum("amount"),
        "amount_max": pn.max("amount"),
        "merchants": pn.count_distinct("merchant"),
    },
    over=[
        pn.sliding("1 hour", name="1h"),
        pn.sliding("1 day", name="1d"),
        pn.sliding("7 days", name="7d"),
    ],
)


def payments(count: int = 20_000, cards: int = 300, seed: int = 7) -> pa.Table:
    """Make up a month of payments in cents; now and then a thief pays with a stolen card, in a hurry."""
    rng = np.random.default_rng(seed)
    month = 30 * 24 * 3600 * 10**6
    card = rng.integers(0, cards, count)
    ts = rng.integers(0, month, count)
    amount = rng.lognormal(7.5, 1, count).astype(np.int64)
    fraud = np.zeros(count, bool)
    for _ in range(count // 150):
        thief = rng.integers(0, count, 8)
        card[thief] = rng.integers(0, cards)
        ts[thief] = rng.integers(0, month) + np.cumsum(rng.integers(1, 300 * 10**6, 8))
        amount[thief] = rng.lognormal(9, 0.7, 8).astype(np.int64)
        fraud[thief] = True
    order = np.argsort(ts, kind="stable")
    return pa.table(
        {
            "ts": pa.array(ts[order] + 1_767_225_600_000_000, pa.timestamp("us", "UTC")),
            "card": pa.array([f"card-{number:04}" for number in card[order]]),
            "merchant": rng.integers(0, 500, count),
            "amount": amount[order],
            "fraud": fraud[order],
        }
    )


def training_set(history: DataFrame) -> DataFrame:
    """Look up the features of each label's card at that moment; the payment itself is one of its events."""
    return pn.plan(FEATURES).lookup(history, history.select("card", "ts", "fraud"))


def train(examples: DataFrame) -> float:
    """Fit a model to the first three weeks; return how well it ranks the payments of the last one (area under ROC)."""
    columns = [name for name in examples.columns if name not in ("card", "ts", "fraud")]
    rows = VectorAssembler(inputCols=columns, outputCol="features").transform(
        examples.withColumn("label", examples.fraud.cast("double"))
    )
    early = rows.where("ts < TIMESTAMP'2026-01-22 00:00:00Z'")
    late = rows.where("ts >= TIMESTAMP'2026-01-22 00:00:00Z'")
    model = LogisticRegression(maxIter=20).fit(early)
    return float(BinaryClassificationEvaluator().evaluate(model.transform(late)))


def served(spark: SparkSession, table: pa.Table, folder: Path, files: int = 10) -> DataFrame:
    """Stream the same payments, one file per micro-batch, and return the answers."""
    source = folder / "payments"
    source.mkdir()
    rows = -(-len(table) // files)
    for number, start in enumerate(range(0, len(table), rows)):
        pq.write_table(table.slice(start, rows), source / f"{number:03}.parquet")
    stream = (
        spark.readStream.schema(spark.read.parquet(str(source)).schema)
        .option("maxFilesPerTrigger", 1)
        .parquet(str(source))
        .withWatermark("ts", "0 seconds")
    )
    # A card that has not paid for longer than the widest window is forgotten.
    answers = pn.plan(FEATURES).stream(stream, mode="append", limits=pn.Limits(age="8 days"))
    answers.writeStream.format("parquet").option("path", str(folder / "answers")).option(
        "checkpointLocation", str(folder / "checkpoint")
    ).trigger(availableNow=True).start().awaitTermination()
    return spark.read.parquet(str(folder / "answers"))


def differences(examples: DataFrame, answers: DataFrame) -> tuple[int, int]:
    """Count the live answers, and those that differ from the training set."""
    names = [alias for alias, _ in FEATURES.aggregates]
    compared = differing = 0
    for window in FEATURES.over:
        live = answers.where(answers.window_name == window.name)
        live = live.selectExpr("card", "window.end AS ts", *(f"{name} AS live_{name}" for name in names)).distinct()
        both = live.join(examples.drop("fraud").distinct(), ["card", "ts"])
        wrong = " OR ".join(f"NOT (live_{name} <=> {name}_{window.name})" for name in names)
        compared += both.count()
        differing += both.where(wrong).count()
    return compared, differing


def main() -> None:
    """Run every step."""
    spark = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", 4).getOrCreate()
    table = payments()
    history = spark.createDataFrame(table)
    examples = training_set(history).cache()
    examples.where("fraud").select("card", "payments_1h", "amount_sum_1h", "amount_sum_7d", "fraud").show(5)
    print(f"area under the curve on the last week: {train(examples):.3f}")
    with tempfile.TemporaryDirectory() as folder:
        compared, differing = differences(examples, served(spark, table, Path(folder)))
    print(f"{compared:,} live answers compared with the training set, {differing} differ")


if __name__ == "__main__":
    main()
