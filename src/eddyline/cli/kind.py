"""The kind of run that a command line means, for sentences about settings."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from eddyline.cli.checked import check_options
from eddyline.settings import Settings

if TYPE_CHECKING:
    from eddyline.runtime.running.without_effect import RunKind


def kind_of(options: argparse.Namespace, settings: Settings) -> RunKind:
    """The kind of a run with these options, as far as they tell; no JVM is started."""
    from eddyline.runtime.running.without_effect import RunKind

    checkpoint = True if getattr(options, "checkpoint", None) is not None else None
    if options.engine == "local":
        return RunKind("local", settings.slots or 1, checkpoint)
    from eddyline.spark.checks import slots_here

    cores = slots_here(check_options(options).get("spark.master", "local[*]"))
    slots = settings.slots or cores or 1
    return RunKind("spark", slots, checkpoint, cores=cores, more_slots=cores is None and settings.slots is None)
