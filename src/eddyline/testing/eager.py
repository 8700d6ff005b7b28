"""Thresholds set so low that everything that adapts after many rows does so in a case of a few dozen rows.

Packets, thresholds, samples, new routes, new plans, the size of the input batch, the newest times per block of rows,
sorted indexes, the pages of a SteM: none of them may change a result, and with their normal sizes the small cases of
the fuzzer would hardly use any of them. The constants are put back afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from eddyline.engine import gatherer, input_batch, partial
from eddyline.engine.tuning import DEFAULT, Tuning
from eddyline.migration.tuning import MigrationTuning
from eddyline.optimizer.tuning import OptimizerTuning
from eddyline.routing import payload, sampling, scheduler, statistics
from eddyline.routing.policies import auto, forks
from eddyline.routing.steps import probe
from eddyline.state.tuning import StateTuning


def _constants(size: int) -> list[tuple[ModuleType, dict[str, float]]]:
    return [
        (scheduler, {"FIRST": max(1, size // 4), "LARGEST": size, "LIMIT": 2}),
        (probe, {"LARGEST": size}),
        (sampling, {"ENOUGH": size}),
        (payload, {"GATHERED": 32 * size}),
        (partial, {"TEXT": 4 * size}),
        (forks, {"OFTEN": 0, "SELDOM": 0, "SURE": 0.0, "SURER": 0.0}),
        (auto, {"FEW": 1, "EVIDENCE": 1e-9, "GRACE": 1e9, "MARGIN": 0.0, "CALM_MARGIN": 0.0}),
        (auto, {"CALL": 0.0, "SMALLEST": max(1, size // 2)}),
        (statistics, {"ENOUGH": 1, "CLEARLY": 0.5, "LARGE": 1}),
        (input_batch, {"LEAST": 1, "FIRST": 4 * size, "MOST": 8 * size, "PASS": 1e-5}),
        (gatherer, {"RESULT_ROWS": size}),
    ]


def eager_tuning(size: int) -> Tuning:
    """For a slot that looks for another plan all the time, and takes whatever it finds."""
    optimizer = OptimizerTuning(
        first_windows=0.0,
        first_rows=1,
        interval_rows=8 * size,
        threshold=1.0,
        search_seconds=0.0,
        gain=-1e9,
        back=-1e9,
    )
    state = StateTuning(block=max(1, size // 4), unsorted_rows=size, together=max(1, size // 2), moved_bytes=0)
    return Tuning(optimizer=optimizer, migration=MigrationTuning(chunk=size), state=state)


@contextmanager
def eager(size: int | None) -> Iterator[Tuning]:
    """Inside this context no packet has more than about `size` tuples; None changes nothing.

    >>> before = scheduler.LARGEST
    >>> with eager(4):
    ...     scheduler.LARGEST
    4
    >>> scheduler.LARGEST == before
    True
    """
    if size is None:
        yield DEFAULT
        return
    before = [(module, name, getattr(module, name)) for module, names in _constants(size) for name in names]
    try:
        for module, names in _constants(size):
            for name, value in names.items():
                setattr(module, name, value)
        yield eager_tuning(size)
    finally:
        for module, name, value in before:
            setattr(module, name, value)
