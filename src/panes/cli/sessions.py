"""The Spark that a command runs on."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from panes.errors import PanesError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def session(master: str | None, conf: Iterable[str] | None) -> SparkSession:
    """Spark in this process, or where ``--master`` says; under ``spark-submit``, the Spark that was asked for there."""
    from pyspark.sql import SparkSession

    from panes.spark.session import local_session

    settings = dict(_setting(text) for text in conf or ())
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if master is None and not submitted:
        return local_session("panes", more=settings)
    builder = SparkSession.builder.appName("panes")
    if master is not None:
        builder = builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise PanesError(f"--conf {text!r} is no setting: write --conf name=value.")
    return name, value
