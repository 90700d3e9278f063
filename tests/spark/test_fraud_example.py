"""The example of training and serving: features from history and from a stream are the same numbers."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


def example():
    path = Path(__file__).parents[2] / "examples" / "fraud.py"
    spec = importlib.util.spec_from_file_location("fraud", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_is_learnt_is_what_is_served(spark, tmp_path):
    fraud = example()
    table = fraud.payments(2_000, cards=40)
    examples = fraud.training_set(spark.createDataFrame(table)).cache()
    assert examples.count() == 2_000
    compared, differing = fraud.differences(examples, fraud.served(spark, table, tmp_path, files=3))
    # All but the payments that the watermark has not passed.
    assert compared > 3 * 1_900
    assert differing == 0


@pytest.mark.soak
def test_the_whole_example(capsys):
    fraud = example()
    fraud.main()
    assert ", 0 differ" in capsys.readouterr().out
