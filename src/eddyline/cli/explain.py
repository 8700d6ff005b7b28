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
    slots, arenas = settings.slots or 1, None
    if options.engine == "local":
        query = bind_only(text, seed=settings.seed)
    else:
        from eddyline.spark.checks import check_memory, opener, slots_here
        from eddyline.state.own_folder import host_memory

        master = conf.get("spark.master", "local[*]")
        check_memory(settings, master)
        slots, arenas = settings.slots or slots_here(master) or 1, settings.arena_dir or host_memory()
        try:
            query = bind_only(text, seed=settings.seed, opener=opener(conf, follow=False))
        except ColumnsUnknown as error:
            raise SettingError(f"{error}; declare them in the script to see its plan") from None
    from eddyline.plan.explain import explain
    from eddyline.plan.partition import partition
    from eddyline.plan.plan import Plan
    from eddyline.plan.tree import shape
    from eddyline.runtime.running.memory_share import with_memory

    tree = shape(settings.plan, [source.alias for source in query.sources])
    partitioning = partition(Plan(query), settings.slots or 1, settings.groups)
    print(explain(query, partitioning, tree, with_memory(settings, slots, arenas)))
    return 0
