"""`eddyline explain`: the plan of a script, without running it."""

from __future__ import annotations

import argparse

from eddyline.cli.checked import check_options
from eddyline.cli.inputs import import_udfs, script_text, settings_of
from eddyline.errors import SettingError
from eddyline.runtime.running.job import ColumnsUnknown
from eddyline.runtime.running.job import explain as bind_only


def command(options: argparse.Namespace) -> int:
    """Print the plan for the chosen engine; no JVM is started."""
    conf = check_options(options)
    settings = settings_of(options)
    text = script_text(options.script)
    import_udfs(options.udf)
    if options.engine == "local":
        query = bind_only(text, seed=settings.seed)
    else:
        from eddyline.spark.checks import opener

        try:
            query = bind_only(text, seed=settings.seed, opener=opener(conf, follow=False))
        except ColumnsUnknown as error:
            raise SettingError(f"{error}; declare them in the script to see its plan") from None
    from eddyline.plan.explain import explain
    from eddyline.plan.partition import partition
    from eddyline.plan.plan import Plan
    from eddyline.plan.tree import shape

    tree = shape(settings.plan, [source.alias for source in query.sources])
    print(explain(query, partition(Plan(query), settings.slots or 1, settings.groups), tree, settings))
    return 0
