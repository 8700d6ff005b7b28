"""What ran at one moment of a record, and the decisions that led there, as sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

from eddyline.errors import SettingError
from eddyline.routing.report import number, percent
from eddyline.runtime.recording.feed import Event
from eddyline.runtime.recording.story import Told, is_new_plan, new_plan, one
from eddyline.runtime.recording.words import seconds, size

_CLOCK = re.compile(r"(?:(\d{4}-\d{2}-\d{2})[T ])?(\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d+)?))?")


def time_of(text: str, record: Told) -> float:
    """A time of the run from what a user wrote: seconds since the first batch such as 12.5, or a clock time in UTC such
    as 20:15:30, with the date in front or without. SettingError if it is neither, or not within the record."""
    if re.fullmatch(r"\d+(\.\d+)?", text):
        t = float(text)
    elif (match := _CLOCK.fullmatch(text.removesuffix("Z"))) is not None and "began" in record.run:
        began = datetime.fromisoformat(record.run["began"])
        day = began.date() if match[1] is None else datetime.fromisoformat(match[1]).date()
        at = datetime(day.year, day.month, day.day, tzinfo=began.tzinfo)
        at += timedelta(hours=int(match[2]), minutes=int(match[3]), seconds=float(match[4] or 0))
        if match[1] is None and at < began - timedelta(seconds=1):
            at += timedelta(days=1)  # the run went on over midnight
        t = (at - began).total_seconds()
    else:
        raise SettingError(f"--at {text}: write seconds of the run, such as 12.5, or a time in UTC, such as 20:15:30")
    if not -1.0 <= t <= record.last + 1.0:
        raise SettingError(f"--at {text} is not within the record, which is from 0 to {record.last:.1f} s")
    return max(0.0, t)


def moment(record: Told, t: float) -> Iterator[str]:
    """What ran at `t`, a line for each sentence."""
    before = [sample for sample in record.samples if sample["t"] <= t + 1e-9]
    if not before:
        first = f"; the first sample is of {seconds(record.samples[0]['t'])}" if record.samples else ""
        yield f"At {seconds(t)} nothing was measured yet{first}."
        return
    now = before[-1]
    after = record.samples[len(before)] if len(before) < len(record.samples) else None
    yield f"At {seconds(t)} (the sample of {seconds(now['t'])}): {_standing(before, after)}."
    yield f"The plan was {now['tree']}."
    taken = [d for d in record.decisions if d["t"] <= t and is_new_plan(d)]
    newest: dict[int | None, Event] = {d["slot"]: d for d in taken}
    for decision in newest.values():
        yield f"  {new_plan(record, decision)}"
    if not newest:
        yield "  It is the plan with which the run began."
    for route in now.get("routes", ()):
        if route["steps"]:
            share = "" if route["share"] is None else f" ({percent(route['share'])} of its tuples)"
            yield f"Rows of {route['source']} went to {', then '.join(route['steps'])}{share}."
            chosen = _route_of(record, route["source"], t)
            yield f"  {one(record, chosen)}" if chosen else "  That is the order with which the run began."
    others = [d for d in record.decisions if t - 10.0 <= d["t"] <= t and d["kind"] not in ("route", "plan")]
    if others:
        yield "In the ten seconds before:"
        yield from (f"  {one(record, decision)}" for decision in others[-10:])


def _standing(before: list[Event], after: Event | None) -> str:
    now = before[-1]
    first, last = (now, after) if after is not None else (before[-2] if len(before) > 1 else now, now)
    took = last["t"] - first["t"]
    parts = [f"{now['rows_in']:,} rows in, {now['rows_out']:,} out"]
    parts += [f"{number((last['rows_in'] - first['rows_in']) / took)} rows/s"] if took > 0 else []
    parts.append(f"state {now['state_rows']:,} rows, {size(now['memory_bytes'])}")
    parts += [f"{now['disk']['groups']:,} groups on disk"] if now.get("disk", {}).get("groups") else []
    return ", ".join(parts)


def _route_of(record: Told, alias: str, t: float) -> Event | None:
    """The newest decision on the route of a source."""
    for decision in reversed(record.decisions):
        of = decision["what"].rpartition(": ")[0].rpartition(": ")[2]
        if decision["t"] <= t and decision["kind"] == "route" and of == alias:
            return decision
    return None
