"""Thresholds set so low that everything that adapts after many rows does so in a case of a few dozen rows.

Packets, thresholds, samples, new routes, new plans, the size of the input batch, the newest times per block of rows,
sorted indexes, the pages of a SteM: none of them may change a result, and with their normal sizes the small cases of
the fuzzer would hardly use any of them.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from eddyline.engine.tuning import DEFAULT, EngineTuning, Tuning
from eddyline.migration.tuning import MigrationTuning
from eddyline.optimizer.costs import DEFAULTS
from eddyline.optimizer.tuning import OptimizerTuning
from eddyline.routing.tuning import RoutingTuning
from eddyline.state.tuning import StateTuning

_CALL = 1e-9
"""Calls cost next to nothing, so packets need not be large."""


def eager(size: int | None) -> Tuning:
    """For a slot whose packets have at most `size` tuples, and that looks for another plan all the time and takes
    whatever it finds; None is the tuning of every slot.

    >>> eager(4).routing.largest_packet
    4
    """
    if size is None:
        return DEFAULT
    optimizer = OptimizerTuning(
        costs=replace(DEFAULTS, call=_CALL),
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
        call=_CALL,
        smallest_packet=max(1, size // 2),
        evidence=1e-9,
        grace=1e9,
    )
    state = StateTuning(
        block=max(1, size // 4),
        unsorted_rows=size,
        together=max(1, size // 2),
        moved_bytes=0,
        section_bytes=4 * size,
        merged_bytes=32 * size,
    )
    engine = EngineTuning(
        least_input=1,
        first_input=4 * size,
        most_input=8 * size,
        pass_seconds=_CALL / 6,
        result_rows=size,
        result_text=4 * size,
        sweep_bytes=1000 * size,
        most_parts=4,
        most_blocks=16,
        staged_bytes=64 * size,
    )
    return Tuning(optimizer, MigrationTuning(chunk=size), routing, state, engine)


def sliced(tuning: Tuning, seed: int) -> Tuning:
    """A tuning whose log has small sections and whose sweeps have small slices, sub-partitions and blocks of few rows,
    how small is drawn; or in a quarter of the cases the same."""
    rng = Random(f"slices {seed}")
    size = rng.choice([None, 300, 1_000, 5_000])
    if size is None:
        return tuning
    state = replace(tuning.state, section_bytes=rng.choice([1, 100, 1000]), merged_bytes=rng.choice([1, 500, 5000]))
    parts, staged = rng.choice([1, 2, 8]), rng.choice([0, 1000])
    engine = replace(tuning.engine, sweep_bytes=size, most_parts=parts, most_blocks=16, staged_bytes=staged)
    return replace(tuning, state=state, engine=engine)
