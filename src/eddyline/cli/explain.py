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
    from eddyline.plan.partition import partition
    from eddyline.plan.plan import Plan
    from eddyline.plan.tree import shape
    from eddyline.runtime.job import explain as bind_only

    query = bind_only(text, seed=settings.seed)
    tree = shape(settings.plan, [source.alias for source in query.sources])
    print(explain(query, partition(Plan(query), settings.slots or 1, settings.groups), tree))
    return 0
