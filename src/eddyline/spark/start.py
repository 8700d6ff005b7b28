"""A script made ready to run on Spark: the session, the sources, the runner."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TextIO

from eddyline.cql.script import parse
from eddyline.runtime.job import prepare
from eddyline.settings import Settings
from eddyline.spark.frames import opener
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
    follow: bool = False,
) -> Iterator[SparkRunner]:
    """A runner, and a session for as long as it is used; one that was there before stays."""
    parse(text)  # what is wrong with the text is known before Spark is started
    spark, ours = session(conf)
    try:
        job = prepare(text, seed=settings.seed, out=out, opener=opener(spark, follow))
        yield SparkRunner(job, text, settings, spark, checkpoint, modules, began, follow)
    finally:
        if ours:
            spark.stop()
