"""`eddyline explain`: the plan of a script, without running it."""

from __future__ import annotations

import argparse

from eddyline.cli.checked import check_options
from eddyline.cli.inputs import import_udfs, script_text, settings_of
from eddyline.cli.kind import kind_of
from eddyline.cli.streams import say
from eddyline.errors import SettingError
from eddyline.runtime.running.job import ColumnsUnknown
from eddyline.runtime.running.job import explain as bind_only

_LONGEST = 1000
"""The most characters of a line."""


def command(options: argparse.Namespace) -> int:
    """Print the plan for the chosen engine; no JVM is started."""
    conf = check_options(options)
    settings = settings_of(options)
    text = script_text(options.script)
    import_udfs(options.udf)
    arenas = None
    if options.engine == "local":
        query = bind_only(text, seed=settings.seed)
    else:
        from eddyline.spark.checks import check_memory, opener
        from eddyline.state.own_folder import host_memory

        master = conf.get("spark.master", "local[*]")
        check_memory(settings, master)
        arenas = settings.arena_dir or host_memory()
        try:
            query = bind_only(text, seed=settings.seed, opener=opener(conf, follow=False))
        except ColumnsUnknown as error:
            raise SettingError(f"{error}; declare them in the script to see its plan") from None
    from eddyline.plan.explain import explain
    from eddyline.plan.partition import partition
    from eddyline.plan.plan import Plan
    from eddyline.plan.tree import shape
    from eddyline.runtime.running.memory_share import with_memory
    from eddyline.runtime.running.without_effect import balance_line, without_effect

    tree = shape(settings.plan, [source.alias for source in query.sources])
    partitioning = partition(Plan(query), settings.slots or 1, settings.groups)
    kind = kind_of(options, settings)
    settings = with_memory(settings, kind.slots, arenas)
    for line in explain(query, partitioning, tree, settings).split("\n"):
        say(_cut(line))
    if partitioning.slots > 1 or settings.balance != "off":
        say(f"\n{balance_line(query, settings, kind)}")
    for sentence in without_effect(query, settings, kind):
        if not sentence.startswith("balance="):  # the line above says it
            say(f"\nwarning: {sentence}")
    return 0


def _cut(line: str) -> str:
    """A line without the middle of a long list of values or conditions.

    >>> _cut("filter a.k IN (" + "7, " * 9_000 + "7)")[-54:]
    ', 7, 7, 7, 7, 7, 7, 7, 7... 26,017 more characters ...'
    """
    more = len(line) - _LONGEST
    return line if more <= 0 else f"{line[:_LONGEST]}... {more:,} more characters ..."
