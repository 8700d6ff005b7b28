"""`eddyline explain`: the plan of a script, without running it."""

from __future__ import annotations

import argparse

from eddyline.cli.inputs import import_udfs, script_text, settings_of


def command(options: argparse.Namespace) -> int:
    """Prints the plan."""
    settings = settings_of(options)
    text = script_text(options.script)
    import_udfs(options.udf)
    from eddyline.plan.explain import explain
    from eddyline.runtime.job import explain as bind_only

    print(explain(bind_only(text, seed=settings.seed)))
    return 0
