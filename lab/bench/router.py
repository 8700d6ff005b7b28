"""`bench router`: the cost of adapting on stable data, how quickly drift is noticed, and the gain over a whole run."""

from __future__ import annotations

import logging
from random import SystemRandom

from eddyline.errors import SettingError
from lab.bench import Result
from lab.bench.counted import calibrate
from lab.bench.quick import ideas, quick
from lab.bench.stable import stable
from lab.bench.whole_run import whole_run

PARTS = ("stable", "quick", "drifting", "ideas")

_log = logging.getLogger(__name__)


def run(part: str | None = None, seed: int | None = None, seeds: int = 3) -> list[Result]:
    """Run all parts (except ideas, which has no bar), or one. `seeds` random drift scripts are drawn, from `seed` on;
    without a `seed` from a new one."""
    if part is not None and part not in PARTS:
        raise SettingError(f"--part {part}: the parts of this benchmark are {', '.join(PARTS)}")
    first = SystemRandom().randrange(10**6) if seed is None else seed
    _log.info("drift scripts of seeds %d to %d", first, first + seeds - 1)
    costs = calibrate()
    _log.info(
        "a probe costs %.0f ns, a match %.0f ns, a predicate %.0f ns and %.2f ns a pass",
        *(1e9 * seconds for seconds in (costs.probe, costs.match, costs.call, costs.a_pass)),
    )
    results: list[Result] = []
    if part in (None, "stable"):
        results += stable(costs)
    if part in (None, "quick"):
        results += quick(costs, range(first, first + seeds))
    if part in (None, "drifting"):
        results += whole_run(costs)
    if part == "ideas":
        results += ideas(costs)
    return results
