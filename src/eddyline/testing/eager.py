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
from eddyline.routing.tuning import RoutingTuning
from eddyline.state.tuning import StateTuning


def _constants(size: int) -> list[tuple[ModuleType, dict[str, float]]]:
    return [
        (partial, {"TEXT": 4 * size}),
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
    routing = RoutingTuning(
        first_threshold=max(1, size // 4),
        largest_packet=size,
        longest_wait=2,
        gathered_bytes=32 * size,
        enough_tuples=1,
        clearly=0.5,
        telling_packet=1,
        sample_matches=size,
        often=0,
        seldom=0,
        sure=0.0,
        surer=0.0,
        margin=0.0,
        calm_margin=0.0,
        few_samples=1,
        call=0.0,
        smallest_packet=max(1, size // 2),
        evidence=1e-9,
        grace=1e9,
    )
    state = StateTuning(block=max(1, size // 4), unsorted_rows=size, together=max(1, size // 2), moved_bytes=0)
    return Tuning(optimizer=optimizer, migration=MigrationTuning(chunk=size), routing=routing, state=state)


@contextmanager
def eager(size: int | None) -> Iterator[Tuning]:
    """Inside this context no packet has more than about `size` tuples; None changes nothing.

    >>> with eager(4) as tuning:
    ...     tuning.routing.largest_packet
    4
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
