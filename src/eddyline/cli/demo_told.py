"""The text of `eddyline demo` before and after the runs, for readers who have never heard of eddies."""

from __future__ import annotations

from pathlib import Path

from eddyline.cli.demo_job import PARTNERS, STREAMS, WATCHED, WINDOW, phases, script
from eddyline.cli.demo_runs import Demo
from eddyline.cli.tables import table_text
from eddyline.errors import InternalError

FIRST = 3
"""The number of a phase's decisions that are shown."""
_BEFORE = """\
Four streams (orders, payments, parcels, alarms) are joined by one key within {window} s, {where}: {seconds} s of event
time, as fast as they can be processed.
A row can look for its partners in the other three streams in any order; the results are the same, the work is not: a
stream in which hardly any row has a partner should be asked first, because each of the others has about {partners}, and
asking those first multiplies rows for nothing. The data drifts, so that no order is good for ever:

{drift}

Nobody tells the engine. It measures what each step does to the rows and takes another order when that has become
cheaper: watch the routes. The job, which is also in {file}:

{text}"""
_AFTER = """
Both orders, and Spark's own joins, gave the same results as far as they ran ({counted}); this was checked. It is
one run each, one after the other on this machine, so small differences are noise."""


def introduction(seconds: int, engine: str, file: Path) -> str:
    """The text before the runs."""
    where = "on Spark on this machine" if engine == "spark" else "in this process"
    drift = "\n".join(f"  {p.begin:>3} to {p.end:>3} s  {p.what}" for p in phases(seconds))
    text = script(seconds, f"{file.stem}-out")
    return _BEFORE.format(
        window=WINDOW, seconds=seconds, where=where, partners=PARTNERS, drift=drift, file=file, text=text
    )


def told(demo: Demo, file: Path, picture: Path | None) -> str:
    """The text after the runs."""
    lines = [
        "",
        "What the routes did",
        *_routes(demo),
        "",
        "What it was worth",
        *_worth(demo),
        *_own(demo),
        _after(demo),
    ]
    if picture is not None:
        lines += ["", f"The picture: {picture}"]
    lines += [
        "",
        f"Next: change the script and watch it with  ./run eddyline run {file} --live",
        "docs/guide.md goes on.",
    ]
    return "\n".join(lines)


def _routes(demo: Demo) -> list[str]:
    """For each phase the first decisions about the watched stream, and its route in the end."""
    ran, name, lines = demo.adaptive, STREAMS[WATCHED], list[str]()
    alias = _alias(demo)
    for phase in phases(demo.seconds):
        last = phase.end == demo.seconds
        mine = [
            (when, d)
            for when, d in ran.decisions
            if phase.begin < when and (when <= phase.end or last) and f"{alias}: " in f" {d.what}"
        ]
        lines += ["", f"  {phase.begin} to {phase.end} s: {phase.what}"]
        lines += [f"    by {when:.1f} s  {d.what}" for when, d in mine[:FIRST]]
        lines += [f"    ... and {len(mine) - FIRST} more decisions about {name}"] * (len(mine) > FIRST)
        lines.append(f"    so {name} went {ran.route(phase.end) or '?'}")
    counts = 0 if ran.summary is None else sum(ran.summary.decisions.values())
    return [*lines, "", f"  {counts:,} decisions in all, about every stream and in every slot."]


def _alias(demo: Demo) -> str:
    return demo.adaptive.marks[0].route.split(" ")[0] if demo.adaptive.marks else ""


def _worth(demo: Demo) -> list[str]:
    """Rows a second by phase, up to the point that both runs reached."""
    rows: list[tuple[str, str, str]] = []
    for phase in phases(demo.seconds):
        end = min(phase.end, demo.until)
        both = end > phase.begin
        stop = end if both else phase.end
        mine = f"{demo.adaptive.rate(phase.begin, stop):,.0f} rows/s"
        other = f"{demo.fixed.rate(phase.begin, stop):,.0f} rows/s" if both else "not run"
        rows.append((f"{phase.begin} to {stop} s", mine, other))
        if both and end < phase.end:
            rest = f"{demo.adaptive.rate(end, phase.end):,.0f} rows/s"
            rows.append((f"{end} to {phase.end} s", rest, "not run"))
    table = table_text(("event time", "routes that follow", "a fixed order"), rows, right=(1, 2))
    lines = ["", *(f"  {line}" for line in table.splitlines())]
    drift = phases(demo.seconds)[1].begin
    after = demo.adaptive.rate(drift, demo.until), demo.fixed.rate(drift, demo.until)
    if min(after) > 0:
        lines += [
            "",
            f"  After the data changed at {drift} s the fixed order, that of the script, was "
            + (f"{after[0] / after[1]:.1f} times slower." if after[0] >= after[1] else "not slower this time."),
        ]
    return lines


def _own(demo: Demo) -> list[str]:
    if demo.own is None:
        return []
    mine, own = demo.adaptive.rate(0, phases(demo.seconds)[0].end), demo.own
    return [
        "",
        f"  Spark's own stream-stream joins, in the order of the script, over the first {own.until} s:"
        f" {own.rate:,.0f} rows/s",
        "  (from files, its first batch not counted). That is the part of the data which suits this order.",
        f"  Eddyline in the first third, making its rows as it went: {mine:,.0f} rows/s,"
        f" {mine / own.rate:.1f} times that.",
    ]


def _after(demo: Demo) -> str:
    if demo.adaptive.summary is None:
        raise InternalError("the demo has not run")
    parts = [f"{demo.results:,} in {demo.until} s"]
    parts += [f"{demo.own.results:,} in {demo.own.until} s"] if demo.own is not None else []
    text = _AFTER if demo.own is not None else _AFTER.replace("Both orders, and Spark's own joins,", "Both orders")
    return text.format(counted=", ".join(parts))
