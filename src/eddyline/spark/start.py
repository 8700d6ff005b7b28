"""A script made ready to run on Spark: the session, the sources, the runner."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TextIO

from eddyline.runtime.job import prepare
from eddyline.settings import Settings
from eddyline.spark.runner import SparkRunner
from eddyline.spark.session import session


@contextmanager
def on_spark(
    text: str,
    settings: Settings,
    conf: Mapping[str, str],
    checkpoint: str | None,
    modules: Sequence[str],
    out: TextIO,
    began: float,
) -> Iterator[SparkRunner]:
    """A runner, and a session for as long as it is used; one that was there before stays."""
    job = prepare(text, seed=settings.seed, out=out)
    spark, ours = session(conf)
    try:
        yield SparkRunner(job, text, settings, spark, checkpoint, modules, began)
    finally:
        if ours:
            spark.stop()
