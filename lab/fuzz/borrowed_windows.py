"""TUMBLE, HOP, CUMULATE and Spark's window() in random cases, in all their spellings.

A case is drawn with windows of ours; `borrowed` writes those with RANGE and SLIDE as windows with borrowed names. All
of a case begin at the same times. Offsets of a microsecond put boundaries just beside rows, others exactly on them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import replace

from eddyline.testing.case import FromPart
from lab.fuzz.predicates import Alias
from lab.fuzz.timeline import UNITS, amount

_OURS = re.compile(r"RANGE (\d+) ([A-Z]+?)S? SLIDE .*")


def borrowed(
    rng: random.Random, aliases: Sequence[Alias], sources: Sequence[FromPart], slide: int, step: int
) -> tuple[list[FromPart], list[str]]:
    """The same items of FROM with borrowed windows, and the keys of GROUP BY that are windows."""
    offset = rng.choice([0, 0, 0, 1, -1, step, -step, slide // 2, 7 * slide + 3 * step])
    uneven = rng.choice([0, 0, 0, step, slide // 2]) % slide  # how much longer a HOP is than a multiple of its slide
    parts = list(sources)
    ours = [number for number, part in enumerate(sources) if _OURS.fullmatch(part.window)]
    kept = set(rng.sample(ours, len(ours) // 2) if rng.random() < 0.2 else ())
    keys: list[str] = []
    for number, part in enumerate(sources):
        found = _OURS.fullmatch(part.window)
        if found is None or number in kept:
            parts[number] = replace(part, window=part.window.partition(" SLIDE")[0])
            continue
        size = int(found[1]) * UNITS[found[2]]
        kinds = ["HOP"] if uneven else ["HOP", "CUMULATE", *(["TUMBLE"] * 3)]
        kind = rng.choice(kinds)
        lengths = [slide] if kind == "TUMBLE" else [slide, size + uneven]
        window, key = _spelled(rng, aliases[number], kind, lengths, offset, len(sources) == 1)
        parts[number] = replace(part, window=window)
        keys += [key] if key else []
    return parts, keys


def outputs(rng: random.Random, alike: bool) -> list[str]:
    """Items of SELECT that say which window a row is of; `alike` if all windows are of one length."""
    names = ["window_end()", "window_end", "window_time()", "window_time", "window.end", "window_time(window)"]
    starts = ["window_start()", "window_start", "window.start"] if alike else []
    return rng.sample(names, rng.choice([0, 1, 1, 2])) + (
        rng.sample(starts, 1) if starts and rng.random() < 0.5 else []
    )


def _spelled(
    rng: random.Random, alias: Alias, kind: str, lengths: list[int], offset: int, alone: bool
) -> tuple[str, str]:
    """A window as it stands in FROM, and as it stands in GROUP BY; one of them is empty."""
    in_group = [*["group"] * 3, *(["spark"] * 3 if kind != "CUMULATE" else [])] if alone else []
    spelling = rng.choice(["brackets", "call", "table", *in_group])
    if spelling == "brackets":
        number, unit = amount(offset)
        lasts = ", ".join("{} {}".format(*amount(length)) for length in lengths)
        return f"{kind} {lasts}{f' OFFSET {number} {unit}' if offset else ''}", ""
    time, interval = str(alias.time), "INTERVAL '{}' {}"
    if spelling == "spark":
        lengths, interval = [lengths[-1], lengths[0]], "'{} {}s'"
        lengths = lengths[:1] if lengths[0] == lengths[1] and not offset and rng.random() < 0.5 else lengths
    given = ", ".join(interval.format(*amount(length)) for length in [*lengths, *([offset] if offset else [])])
    if spelling in ("group", "spark"):
        return "", f"{'window' if spelling == 'spark' else kind}({alias.ref(time)}, {given})"
    if spelling == "call":
        return f"{kind}({alias.stream}, {f'{time}, ' if rng.random() < 0.7 else ''}{given})", ""
    return f"TABLE({kind}(TABLE {alias.stream}, DESCRIPTOR({time}), {given}))", ""
