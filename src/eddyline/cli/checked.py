"""A script checked for the engine that is to run it: no row is read, no JVM is started, no kernel is compiled."""

from __future__ import annotations

import argparse
import importlib.abc
import sys
from dataclasses import dataclass, replace
from functools import partial
from typing import TextIO

import pyarrow as pa

from eddyline.cli.inputs import import_udfs, script_text, settings_of
from eddyline.errors import SettingError
from eddyline.runtime.running.job import Job
from eddyline.settings import Settings


@dataclass(frozen=True)
class Checked:
    """A script that is right as far as can be told; without a job only Spark knows the columns of the sources that
    `unknown` names."""

    text: str
    settings: Settings
    job: Job | None
    unknown: tuple[str, ...] = ()


def check(options: argparse.Namespace, out: TextIO | None = None) -> Checked:
    """Checks what the command line names: script, settings, functions, sources, sinks, query, checkpoint. Raises the
    error to tell."""
    conf = check_options(options)
    if options.engine == "local" and not options.udf:
        _without_pandas()
    settings = settings_of(options)
    if getattr(options, "final", False):
        settings = replace(settings, at_end="flush")
    text = script_text(options.script)
    import_udfs(options.udf)
    follow = getattr(options, "follow", False)
    if options.engine == "local":
        from eddyline.runtime.formats import open_source
        from eddyline.runtime.running.job import prepare

        opener = partial(open_source, follow=follow)
        made = prepare(text, seed=settings.seed, out=out, opener=opener, checkpoint=options.checkpoint)
        known = Checked(text, settings, made)
    else:
        from eddyline.spark.checks import check as check_for_spark
        from eddyline.spark.connectors import check_master

        job, unknown = check_for_spark(text, settings.seed, conf, follow, out, options.checkpoint)
        known = Checked(text, settings, job, unknown)
        if options.command == "run":  # a script can be right while its cluster is down
            check_master(conf.get("spark.master", ""))
    if known.job is not None:
        from eddyline.runtime.running.check import check_checkpoint, check_settings

        check_settings(known.job.query, settings, options.checkpoint)
        if options.checkpoint is not None:
            check_checkpoint(text, known.job.query, settings, options.checkpoint)
    return known


class _NoPandas(importlib.abc.MetaPathFinder):
    """Says of pandas that it is not there."""

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


def _without_pandas() -> None:
    """Arrow imports pandas when it makes its first array, which takes half a second. A process that runs no function of
    the user's needs none, so Arrow is made to look for pandas while there is none."""
    if "pandas" not in sys.modules:
        finder = _NoPandas()
        sys.meta_path.insert(0, finder)
        try:
            pa.array([0])
        finally:
            sys.meta_path.remove(finder)


def check_options(options: argparse.Namespace) -> dict[str, str]:
    """Refuses options that do not go together; the settings of Spark."""
    if options.engine not in ("local", "spark"):
        raise SettingError(f"--engine is local or spark, not '{options.engine}'")
    for pair in options.conf:
        if "=" not in pair:
            raise SettingError(f"--conf {pair}: it is SPARK_KEY=VALUE")
    local = options.engine == "local"
    if options.conf and local:
        raise SettingError("--conf is for --engine spark")
    if getattr(options, "follow", False) and options.final:
        raise SettingError("--follow waits for more rows, --final says that there are none: leave one out")
    return dict(pair.split("=", 1) for pair in options.conf)
