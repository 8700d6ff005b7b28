"""A kill of chaos (lab/chaos/main.py): which process dies, and when."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

MOMENTS = {
    "a decision": "checkpoint/decided",
    "a log segment": "checkpoint/log",
    "a staged file": "out/_staged",
    "a published batch": "out",
    "a commit": "checkpoint/commits",
    "an offset of Spark's": "checkpoint/spark/offsets",
    "a commit of Spark's": "checkpoint/spark/commits",
    "a folder of arenas, of Spark's run": "arenas",
    "a batch to deliver": "checkpoint/staged/results",
}
"""Moments of a kill: the thing that appears, and the folder of the job in which it appears."""
WITH_FILES = tuple(moment for moment in MOMENTS if moment != "a batch to deliver")
"""The moments of a job whose results are files."""
DELIVERING = tuple(moment for moment in MOMENTS if moment not in ("a staged file", "a published batch"))
"""The moments of a job whose results are delivered after the commit."""
VICTIMS = {
    "local": ("driver",),
    "spark": ("driver", "driver", "jvm", "worker", "worker"),
    "cluster": ("driver", "jvm", "executor", "executor", "worker"),
}
AT_POINTS = 0.5
"""The share of kills at a fault point, where there are any."""
COUNTS, SOON = (1, 2, 3, 5, 8), (1, 1, 2, 3)
"""The numbers of a folder's changes at which a kill may come; SOON is for runs with migrations, which begin at the
start, and for runs that ask, most of which is early."""


@dataclass(frozen=True)
class Kill:
    """A planned kill: the victim and the moment."""

    victim: str
    moment: str
    """A key of MOMENTS, or "" for a time after the start."""
    count: int
    """The number of the folder's change at which the kill comes."""
    delay: float
    point: str = ""
    """If it is set: after that moment, the first process that reaches this fault point kills itself there."""

    def __str__(self) -> str:
        when = f"at change {self.count} of {self.moment}, " if self.moment else ""
        return f"{self.victim}, {when}{f'then {self.point}' if self.point else f'after {self.delay:.3f} s'}"


def draw_kill(
    rng: random.Random,
    engine: str,
    counts: Sequence[int] = COUNTS,
    points: Sequence[str] = (),
    moments: Sequence[str] = WITH_FILES,
) -> Kill:
    """A random kill; most come at one of these moments, a change of a folder whose number is drawn from `counts`, or at
    one of these fault points, which are in the turns of slots."""
    if points and rng.random() < AT_POINTS:
        victim = "driver" if engine == "local" else "worker"
        return Kill(victim, "a commit", rng.choice(counts), 0.0, rng.choice(points))
    victim = rng.choice(VICTIMS[engine])
    known = [m for m in moments if engine != "local" or "Spark" not in m]
    staged = "a staged file" if "a staged file" in known else "a batch to deliver"
    moment = rng.choice([*known, "a commit", staged]) if rng.random() < 0.85 else ""
    longest = rng.choice([0.0, 0.003, 0.03, 0.3]) if moment else 2.0 if engine == "local" else 12.0
    return Kill(victim, moment, rng.choice(counts), rng.random() * longest)
