"""Drift scripts: a script becomes a list of segments of event time in which every setting changes linearly.

    30 s: a.domain = 0..9, rate = 50000; 60 s: rate ~ 1000

At 30 s of event time the domain and the rate jump; between 30 s and 60 s the rate falls steadily to 1000 (`~` starts
at the last step that names the same setting, or at 0). Within a segment nothing jumps, so a block of rows needs two
values of a setting, at the segment's start and end, and the place of each row between them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from eddyline.cql.names import did_you_mean
from eddyline.errors import SettingError
from eddyline.runtime.options import duration
from eddyline.runtime.sources.generate.values import Value, blend, read_value

_STEP = re.compile(r"\s*([\w.]+)\s*([=~])\s*([^=~]+)$")


@dataclass(frozen=True)
class DriftSegment:
    """A stretch of event time (microseconds from the start; `end` is None for the last one) and all settings at both
    ends."""

    start: int
    end: int | None
    first: Mapping[str, Value]
    last: Mapping[str, Value]


@dataclass(frozen=True)
class _DriftPoint:
    time: int
    value: Value
    gradual: bool


def segments(settings: Mapping[str, Value], script: str) -> tuple[DriftSegment, ...]:
    """The segments of a drift script (`""`: one, without end) over the settings at the start.

    >>> [s.first["rate"] for s in segments({"rate": 10.0}, "5 s: rate = 20; 9 s: rate ~ 40")]
    [10.0, 20.0, 40.0]
    """
    points = {key: [_DriftPoint(0, value, False)] for key, value in settings.items()}
    times = [0]
    for time, steps in _steps(script, settings):
        if time <= times[-1]:
            raise SettingError("drift: its times must be above 0 and grow")
        times.append(time)
        for key, gradual, value in steps:
            points[key].append(_DriftPoint(time, value, gradual))
    return tuple(
        DriftSegment(
            start,
            end,
            {key: _at(key, track, start, False) for key, track in points.items()},
            {key: _at(key, track, start if end is None else end, end is not None) for key, track in points.items()},
        )
        for start, end in zip(times, [*times[1:], None], strict=True)
    )


def _steps(script: str, known: Mapping[str, Value]) -> list[tuple[int, list[tuple[str, bool, Value]]]]:
    found = []
    for part in filter(None, (part.strip() for part in script.split(";"))):
        time, colon, changes = part.partition(":")
        if not colon:
            raise SettingError(f"drift: '{part}' is not a step such as '30 s: rate = 50000, a.domain ~ 0..9'")
        steps = []
        for change in changes.split(","):
            match = _STEP.match(change)
            if match is None:
                raise SettingError(
                    f"drift: '{change.strip()}' is not a change such as 'rate = 50000' or 'rate ~ 50000'"
                )
            key = match[1].lower()
            if key not in known:
                raise SettingError(f"drift: nothing is called '{key}'{did_you_mean(key, known)}")
            steps.append((key, match[2] == "~", read_value(key, match[3])))
        found.append((duration(time, "the time of a drift step"), steps))
    return found


def _at(key: str, track: list[_DriftPoint], time: int, before: bool) -> Value:
    """The value of a setting at a time; with `before`, its value just before a jump at that time."""
    past = [i for i, point in enumerate(track) if point.time < time or (point.time == time and not before) or i == 0]
    here, after = track[past[-1]], track[past[-1] + 1 : past[-1] + 2]
    if not after or not after[0].gradual:
        return here.value
    return blend(key, here.value, after[0].value, (time - here.time) / (after[0].time - here.time))
