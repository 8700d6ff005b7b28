"""A record as sentences: what changed in a run, when and why, what was expected, and whether it paid.

Decisions of one kind that follow each other closely are one sentence, so a flood of routes does not hide a new plan. A
migration is told with the plan that it leads to, and a verdict with the decision that it judges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from eddyline.routing.report import number
from eddyline.runtime.recording.feed import Event
from eddyline.runtime.recording.words import cpu, plain, reason, seconds, size

GAP = 10.0
"""Decisions of one kind that are at most so many seconds apart may be one sentence."""
FEW = 3
"""So many are told one by one."""
LISTED = 8
"""The most routes that a sentence lists."""
_SUMMED = ("groups", "rows", "bytes")
_WITH_OTHERS = ("migration", "trial")


@dataclass
class Told:
    """A record, sorted by what is told of it."""

    run: Event
    decisions: list[Event] = field(default_factory=list)
    outcomes: dict[int, Event] = field(default_factory=dict)
    """The last outcome of each decision."""
    samples: list[Event] = field(default_factory=list)
    notes: list[Event] = field(default_factory=list)
    end: Event | None = None

    @property
    def last(self) -> float:
        """The time of the last event."""
        ends = [] if self.end is None else [self.end]
        return max((event["t"] for event in (*self.decisions[-1:], *self.samples[-1:], *ends)), default=0.0)

    @property
    def aliases(self) -> list[str]:
        """The aliases of the sources, by number."""
        return [source["alias"] for source in self.run.get("sources", ())]


def told(events: Iterable[Event]) -> Told:
    """Sort the events of a record; the first is its `run` event."""
    found: Told | None = None
    for event in events:
        kind = event["type"]
        if kind == "run":
            found = found or Told(event)
        elif found is None:
            continue
        elif kind == "outcome":
            found.outcomes[event["of"]] = event
        elif kind == "end":
            found.end = event
        else:
            lists = {"decision": found.decisions, "sample": found.samples, "note": found.notes}
            if kind in lists:
                lists[kind].append(event)
    return found or Told({"type": "run", "t": 0.0})


def story(record: Told) -> Iterator[str]:
    """The whole run, a line for each sentence."""
    yield from _heading(record)
    yield ""
    lines = [(note["t"], _noted(note)) for note in record.notes]
    lines += [(group[0]["t"], line) for group in _groups(record) for line in _sentences(record, group)]
    yield from [line for _, line in sorted(lines, key=lambda timed: timed[0])] or ["Nothing was changed."]
    yield ""
    yield from _sum(record)


def _heading(record: Told) -> Iterator[str]:
    run, slots = record.run, record.run.get("slots", 1)
    began = datetime.fromisoformat(run["began"]).strftime("%Y-%m-%d %H:%M:%S") if "began" in run else "?"
    where = f"{run.get('engine', '?')} engine, {slots} slot{'s' * (slots != 1)}"
    yield f"Run of {began} UTC ({where}), {seconds(record.last)}: {_state(record.end)}."
    if record.samples:
        last = record.samples[-1]
        rate = number(last["rows_in"] / last["t"]) if last["t"] > 0 else "-"
        yield f"{last['rows_in']:,} rows in, {last['rows_out']:,} rows out, {rate} rows/s on average."
        yield f"It began with the plan {record.samples[0]['tree']}."


def _state(end: Event | None) -> str:
    if end is None:
        return "the record has no end: the run goes on, or was killed"
    return f"failed: {plain(end['error'])}" if end["status"] == "failed" else str(end["status"])


# Decisions, in groups


def _groups(record: Told) -> list[list[Event]]:
    """Decisions of one sort that follow each other closely, with no note in between."""
    notes = [note["t"] for note in record.notes]
    found: list[list[Event]] = []
    going: dict[str, list[Event]] = {}
    for decision in record.decisions:
        sort = f"plan {decision['id']}" if is_new_plan(decision) else str(decision["kind"])
        group = going.get(sort)
        is_near = group is not None and decision["t"] <= group[-1]["t"] + GAP
        if group is None or not is_near or any(group[-1]["t"] < note <= decision["t"] for note in notes):
            group = going[sort] = []
            found.append(group)
        group.append(decision)
    return [group for group in found if group[0]["kind"] not in _WITH_OTHERS]


def is_new_plan(decision: Event) -> bool:
    """Whether the optimizer took another plan."""
    return decision["kind"] == "plan" and " -> " in str(decision["what"])


def _sentences(record: Told, group: Sequence[Event]) -> Iterator[str]:
    kind = group[0]["kind"]
    if kind == "plan":
        yield new_plan(record, group[0]) if is_new_plan(group[0]) else _kept_plans(group)
    elif len(group) <= FEW:
        yield from (one(record, decision) for decision in group)
    elif kind == "route":
        yield _many_routes(record, group)
    else:
        yield _many(record, group)


def one(record: Told, decision: Event) -> str:
    """A decision and what came of it."""
    what = str(decision["what"])
    what = _route(what) if decision["kind"] == "route" else what
    return f"At {seconds(decision['t'])}: {what}{_because(decision['why'])}.{_came_of(record, decision)}"


def new_plan(record: Told, decision: Event) -> str:
    """A plan that was taken, its migration, and what came of it."""
    slot, _, change = str(decision["what"]).rpartition(": ")
    old, _, new = change.partition(" -> ")
    whose, why = _capital(slot) if slot else "The run", _because(reason(decision["why"], record.aliases))
    text = f"At {seconds(decision['t'])}: {whose} changed its plan from {old} to {new}{why}."
    text += _expected(decision.get("expected", {}), decision.get("measured", {}), " of the slot" if slot else "")
    return text + _migrated(record, decision) + _came_of(record, decision)


def _expected(expected: Mapping[str, float], measured: Mapping[str, float], whose: str) -> str:
    """What a new plan was expected to bring, as a sentence; `whose` rows they are. The optimizer predicts a share of a
    core; divided by the rows of a second of event time it is the cost of a row, as the outcome tells it."""
    new, old = expected.get("cpu"), expected.get("cpu before")
    if new is None or old is None:
        return ""
    text = f" Expected: {cpu(new)} of a core in place of {cpu(old)}"
    if rate := sum(value for name, value in measured.items() if name.startswith("rate ")):
        text = f" Expected: {number(1e6 * new / rate)} us of CPU a row{whose} in place of {number(1e6 * old / rate)}"
    if expected.get("memory") and expected.get("memory before"):
        text += f", {size(expected['memory'])} of state in place of {size(expected['memory before'])}"
    if expected.get("move seconds") is not None:
        text += f"; the change itself: {number(expected['move seconds'])} s of CPU"
    return text + "."


def _migrated(record: Told, plan: Event) -> str:
    """How the migration to a new plan went, as a sentence."""
    later = (d for d in record.decisions if d["id"] > plan["id"] and d.get("slot") == plan.get("slot"))
    found = next((d for d in later if d["kind"] == "migration"), None)
    return "" if found is None else f" The migration was over at {seconds(found['t'])}: {plain(found['why'])}."


def _kept_plans(group: Sequence[Event]) -> str:
    kept = str(group[-1]["what"]).rpartition(": ")[2].partition(" stays")[0]
    if len(group) == 1:
        return f"{_span(group)}: The optimizer looked for a better plan and kept {kept}."
    return (
        f"{_span(group)}: The optimizer looked {len(group):,} times for a better plan and kept its own, at last {kept}."
    )


def _many_routes(record: Told, group: Sequence[Event]) -> str:
    newest: dict[str, str] = {}
    for decision in group:
        source, _, order = str(decision["what"]).rpartition(": ")
        newest[source] = order.partition(" instead of ")[0]
    routes = "; ".join(f"{source} -> {order}" for source, order in list(newest.items())[:LISTED])
    more = f", and {len(newest) - LISTED} more" if len(newest) > LISTED else ""
    text = f"{_span(group)}: Routes changed {len(group):,} times. Afterwards: {routes}{more}."
    return f"{text} The last change: {plain(group[-1]['why'])}.{_verdicts(record, group)}"


def _many(record: Told, group: Sequence[Event]) -> str:
    last, sums = group[-1], Counter[str]()
    for decision in group:
        sums.update({k: v for k, v in decision.get("measured", {}).items() if k in _SUMMED and v})
    parts = ", ".join(size(v) if k == "bytes" else f"{number(v)} {k}" for k, v in sums.items())
    text = (
        f"{_span(group)}: {len(group):,} decisions of the kind {last['kind']}{f' ({parts} in all)' if parts else ''}."
    )
    return f"{text} The last: {last['what']}{_because(last['why'])}.{_verdicts(record, group)}"


def _because(why: object) -> str:
    return f", because {plain(str(why))}" if why else ""


def _span(group: Sequence[Event]) -> str:
    first, last = seconds(group[0]["t"]), seconds(group[-1]["t"])
    return f"At {first}" if first == last else f"From {first} to {last}"


def _route(what: str) -> str:
    source, _, order = what.rpartition(": ")
    slot, _, alias = source.rpartition(": ")
    return f"{f'{slot}: ' if slot else ''}tuples of {alias} visit {order}"


# Outcomes


def _came_of(record: Told, decision: Event) -> str:
    """Whether a decision paid, as a sentence that begins with a space; empty if nothing is known."""
    outcome = record.outcomes.get(decision["id"])
    if outcome is None:
        return ""
    verdict = {True: "It paid", False: "It did not pay", None: "Whether it paid cannot be told"}[outcome["paid"]]
    return f" {verdict}: {plain(outcome['what'])}."


def _verdicts(record: Told, group: Sequence[Event]) -> str:
    known = [record.outcomes[d["id"]]["paid"] for d in group if d["id"] in record.outcomes]
    if not known:
        return ""
    paid, not_paid = known.count(True), known.count(False)
    return f" {paid:,} paid, {not_paid:,} did not, and for {len(group) - paid - not_paid:,} it cannot be told."


def _sum(record: Told) -> Iterator[str]:
    kinds = Counter(str(d["kind"]) for d in record.decisions)
    if kinds:
        yield f"Decisions: {', '.join(f'{n:,} {kind}' for kind, n in kinds.most_common())}."
    judged = Counter(o["paid"] for o in record.outcomes.values())
    if judged:
        paid, not_paid, unknown = (judged[verdict] for verdict in (True, False, None))
        yield f"Changes with an outcome: {paid:,} paid, {not_paid:,} did not, and for {unknown:,} it cannot be told."


def _noted(note: Event) -> str:
    level = "" if note["level"] == "info" else f"{note['level']}: "
    return f"At {seconds(note['t'])}: {level}{plain(note['text'])}."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
