"""The check of a script for its engine, which reads no row, starts no JVM and compiles no kernel."""

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
    """A checked script. `job` is None if only Spark knows the columns of some sources, which `unknown` names."""

    text: str
    settings: Settings
    job: Job | None
    unknown: tuple[str, ...] = ()


def check(options: argparse.Namespace, out: TextIO | None = None) -> Checked:
    """Check what the command line names: script, settings, functions, sources, sinks, query, checkpoint; raises an
    EddylineError for the first mistake."""
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
        from eddyline.spark.checks import check_memory
        from eddyline.spark.connectors import check_master

        check_memory(settings, conf.get("spark.master", "local[*]"))
        job, unknown = check_for_spark(text, settings.seed, conf, follow, out, options.checkpoint)
        known = Checked(text, settings, job, unknown)
        if options.command == "run":  # not for validate: a script can be right while its cluster is down
            check_master(conf.get("spark.master", ""))
    if known.job is not None:
        from eddyline.runtime.running.check import check_estimates, check_settings

        check_settings(known.job.query, settings, options.checkpoint)
        check_estimates(settings, False, spark=options.engine != "local")
    if options.checkpoint is not None:
        from eddyline.runtime.running.check import check_checkpoint

        query = None if known.job is None else known.job.query
        check_checkpoint(text, query, settings, options.checkpoint, spark=options.engine != "local")
    return known


class _NoPandas(importlib.abc.MetaPathFinder):
    """An import finder that reports pandas as missing."""

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


def _without_pandas() -> None:
    """Keep Arrow from importing pandas. Arrow does that when it makes its first array, which takes half a second. A
    process that runs no user function does not need pandas, so Arrow's first array is made while pandas seems to be
    missing."""
    if "pandas" not in sys.modules:
        finder = _NoPandas()
        sys.meta_path.insert(0, finder)
        try:
            pa.array([0])
        finally:
            sys.meta_path.remove(finder)


def check_options(options: argparse.Namespace) -> dict[str, str]:
    """SettingError for options that exclude each other; returns the settings of Spark."""
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
