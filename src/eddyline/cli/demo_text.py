"""The text of `eddyline demo` before and after the runs, for readers who have never heard of eddies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eddyline.cli.demo_job import PARTNERS, STREAMS, WATCHED, WINDOW, phases, script
from eddyline.cli.demo_sides import JoinWork
from eddyline.cli.demo_story import Compared, PhaseStory, names
from eddyline.cli.tables import table_text
from eddyline.routing.report import number, percent

_SHOWN = 4
"""The most changes of a phase that are listed."""
_NAME = STREAMS[WATCHED]
_BEFORE = """\
Four streams ({streams}) are joined by one key within {window} s, {where}: {seconds} s of event
time, as fast as they can be processed.
A row can ask the other three streams for its partners in any order; the results are the same, the work is not. A
stream in which hardly any row has a partner should be asked first: each of the others has about {partners} partners for
a row, so asking those first multiplies rows for nothing. The data drifts, so that no order is good for ever:

{drift}

Nobody tells the engine. It measures what each step does to the rows, and takes another order when that has become
cheaper. The same job with a fixed order, that of the script, runs beside it: the two take turns, batch by batch.
The job, which is also in {file}:

{text}"""


def introduction(seconds: int, engine: str, file: Path) -> str:
    """The text before the runs."""
    return _BEFORE.format(
        streams=", ".join(STREAMS),
        window=WINDOW,
        seconds=seconds,
        where="on Spark on this machine" if engine == "spark" else "in this process",
        partners=PARTNERS,
        drift="\n".join(f"  {p.begin:>3} to {p.end:>3} s  {p.what}" for p in phases(seconds)),
        file=file,
        text=script(seconds, f"{file.stem}-out"),
    )


def report(told: Sequence[PhaseStory], drifted: Compared, results: int, file: Path, picture: Path | None) -> str:
    """The text after the runs."""
    lines = ["", f"What the adaptive order did: which stream {_NAME} asked first"]
    for story in told:
        lines += ["", f"  {story.phase.begin} to {story.phase.end} s: {story.phase.what}", *_changes(story)]
    lines += ["", "What that was worth", "", *(f"  {line}" for line in _table(told, drifted).splitlines()), ""]
    lines += [f"  {line}" for line in verdict(drifted, told[1].phase.begin)]
    lines += [f"  Both orders gave the same {results:,} results; this was checked."]
    lines += [] if picture is None else ["", f"The picture: {picture}"]
    lines += ["", f"Next: change the script and watch it with  ./run eddyline run {file} --live"]
    lines += ["docs/guide.md goes on; docs/peers.md compares with Spark's own joins, Flink and others."]
    return "\n".join(lines)


def _changes(story: PhaseStory) -> list[str]:
    """Sentences about the route of the watched stream."""
    lines = []
    for batch, decision in story.changes[:_SHOWN]:
        slot = "" if decision.slot is None else f" in slot {decision.slot}"
        old, new = (", ".join(names(steps)) for steps in (decision.before, decision.after))
        cost, before = (decision.expected.get(f"us per tuple{which}") for which in ("", " before"))
        expected = f"; expected: {number(cost)} us of CPU a row in place of {number(before)}" if batch.begin else ""
        lines.append(f"    by {batch.end:.1f} s{slot} they ask {new}, not {old}{expected}")
    more = len(story.changes) - _SHOWN
    lines += [f"    ... and {more} more changes"] if more > 0 else []
    if story.first is not None:
        begin = "in the end" if story.changes else "no change:"
        lines.append(f"    {begin} {percent(story.first[1])} of {_NAME} asked {story.first[0]} first")
    return lines


def _table(told: Sequence[PhaseStory], drifted: Compared) -> str:
    rows: list[tuple[str, ...]] = []
    for story in told:
        name = f"{story.phase.begin} to {story.phase.end} s"
        first = "-" if story.first is None else f"{story.first[0]}, {percent(story.first[1])}"
        rows += _both(name, first, STREAMS[0], story.compared)
    rows += _both(f"after {told[1].phase.begin} s", "", "", drifted)
    titles = (
        "event time",
        "order",
        "asked first",
        "rows/s",
        "CPU s a million",
        "tuples made",
        "times the CPU",
        "middle half",
    )
    return table_text(titles, rows, right=(3, 4, 5, 6, 7))


def _both(name: str, mine: str, other: str, compared: Compared) -> list[tuple[str, ...]]:
    low, high = compared.half
    times = f"{compared.times:.1f}", f"{low:.1f} to {high:.1f}"
    return [
        (name, "adaptive", mine, *_cells(compared.adaptive), "", ""),
        ("", "fixed", other, *_cells(compared.fixed), *times),
    ]


def _cells(work: JoinWork) -> tuple[str, ...]:
    return f"{work.rate:,.0f}", f"{work.cpu_per_million:.3f}", f"{work.tuples:,}"


def verdict(drifted: Compared, drift: int) -> list[str]:
    """What the comparison says, as lines."""
    low, high = drifted.half
    spread = f"in the middle half of {len(drifted.pairs)} pairs of batches {low:.1f} to {high:.1f} times"
    if not drifted.is_clear:
        return [
            f"The noise is larger than the difference: after the data changed at {drift} s the fixed order took"
            f" {drifted.times:.1f} times",
            f"the CPU seconds of the adaptive one, {spread}. A longer run (--seconds) tells more.",
        ]
    return [
        f"After the data changed at {drift} s, the fixed order took {drifted.times:.1f} times the CPU seconds of the"
        f" adaptive one",
        f"for the join ({spread}).",
    ]
