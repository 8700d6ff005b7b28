"""`eddyline validate`: checks a script for its engine without reading a row."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from eddyline.cli.checked import check
from eddyline.cli.kind import kind_of
from eddyline.cli.streams import say
from eddyline.cql.declaration import Declaration
from eddyline.cql.script import parse
from eddyline.runtime.running.check import is_finished
from eddyline.settings import Settings


def command(options: argparse.Namespace) -> int:
    """Print what was checked, and how each table with access methods is reached; raises an EddylineError for a
    mistake."""
    known = check(options)
    script = parse(known.text)
    engine = "Spark" if options.engine == "spark" else "the local engine"
    declared = [d for d in script.declarations if d.name not in known.unknown]
    parts = [_count(declared, kind) for kind in ("stream", "table", "sink") if _count(declared, kind)]
    parts += ["the settings"] if known.job is None else ["the query", "the settings"]
    parts += [f"the checkpoint {options.checkpoint}"] if options.checkpoint and known.job is not None else []
    text = f"{options.script} is right for {engine}; checked: {', '.join(parts)}"
    if known.job is None:
        names, it = ", ".join(known.unknown), "it" if len(known.unknown) == 1 else "them"
        text += (
            f"; not checked: {names} and the query, because only Spark knows the columns"
            f" (declare them, as in CREATE STREAM {known.unknown[0]} (ts TIMESTAMP, ...), to check {it} too)"
        )
    if options.checkpoint and is_finished(options.checkpoint):
        text += (
            f"; the checkpoint {options.checkpoint} is finished: a run would do nothing, and new rows would be refused"
            " (to read more, give the job a new checkpoint folder)"
        )
    say(text)
    if known.job is not None and known.settings != Settings():
        from eddyline.runtime.running.without_effect import notes_of

        for sentence in notes_of(known.job, known.settings, kind_of(options, known.settings))[0]:
            say(f"warning: {sentence}")
    if known.job is not None and known.job.asked:
        from eddyline.plan.explain import access_lines

        say("\n".join(access_lines(known.job.query)))
    return 0


def _count(declared: Sequence[Declaration], kind: str) -> str:
    number = sum(d.kind.lower() == kind for d in declared)
    return f"{number} {kind}{'s' if number > 1 else ''}" if number else ""
