"""The numbers that tune a slot, including those of the packages below it. None of them changes a result.

A tuning is passed to a slot when it is made, and to everything that makes slots.
"""

from __future__ import annotations

from dataclasses import dataclass

from eddyline.migration.tuning import DEFAULT as MIGRATION
from eddyline.migration.tuning import MigrationTuning
from eddyline.optimizer.tuning import DEFAULT as OPTIMIZER
from eddyline.optimizer.tuning import OptimizerTuning
from eddyline.routing.tuning import DEFAULT as ROUTING
from eddyline.routing.tuning import RoutingTuning
from eddyline.state.tuning import DEFAULT as STATE
from eddyline.state.tuning import StateTuning


@dataclass(frozen=True, slots=True)
class EngineTuning:
    """How many rows, tuples, cells and bytes a slot handles at a time."""

    # Input (input_batch.py)
    least_input: int = 64
    """The fewest rows of a slice of the input."""
    first_input: int = 8192
    """The rows of the first slice."""
    most_input: int = 262144
    """The most rows of a slice."""
    input_step: float = 4.0
    """The size of slices changes by at most this factor at a time."""
    input_fade: float = 0.6
    """The weight of the old means beside a new slice."""
    pass_seconds: float = 3e-9
    """Seconds to pass over a row that is too new to match."""

    # SteMs (plan/sharing.py)
    shares_stems: bool = True
    """Whether aliases of a stream that always have the same rows keep them in one SteM."""

    # Tables that are asked (lookups.py)
    most_asked: int = 65536
    """While more input waits, a batch does not wait for answers unless more keys than these are asked."""

    # Results (gatherer.py, partial.py, group_by.py, panes.py)
    result_rows: int = 65536
    """The number of complete tuples that are gathered together."""
    result_text: int = 1 << 29
    """About the most bytes of text in one batch of results of a group-by."""
    few_cells: int = 4096
    """Parts of a group-by are not merged while they have at most this many cells."""
    many_parts: int = 64
    """But as soon as there are this many parts."""
    chunk_cells: int = 1 << 14
    """The most cells of a chunk that is emitted at a time."""
    chunk_bytes: int = 1 << 22
    """The most bytes of these cells, repeated for every boundary at which they are live."""

    # Access methods (competing.py, hybrid.py)
    trial_keys: int = 64
    """The most keys that a method is asked which is not the best one."""
    trial_every: int = 32
    """Of so many requests one is also for the methods that are not the best."""
    method_fade: float = 0.5
    """The weight of the earlier answers of a method beside a new one."""
    method_margin: float = 1.5
    """Another method is the best one if it answers so many times sooner."""
    overdue: float = 4.0
    """A key is asked of another method, too, if one takes so many times as long for it as the other would."""
    overdue_least: float = 0.05
    """But not before so many seconds."""
    failed_seconds: float = 30.0
    """A lookup that fails counts as one that takes so long."""
    hybrid_parts: int = 4
    """The parts of a scan after which it is compared with the indexes."""
    hybrid_sample: int = 64
    """The most rows of a part that are looked at to see how many of them are wanted."""
    hybrid_windows: int = 32
    """After so many comparisons without a change the other case is tried again."""
    hybrid_margin: float = 1.1
    """The indexes are left if the scan alone brings so many times as many wanted keys."""
    scan_gain: float = 1.0
    """What a key that the scan brings is worth beside one that an index answers. With 0 indexes are never left."""

    # Sweeps (sweep.py)
    sweep_share: float = 0.2
    """The share of memory that a slice of a sweep may take in any case."""
    sweep_fill: float = 0.9
    """Up to this share of memory the state and a slice take together."""
    sweep_least: int = 1 << 23
    """A slice may have this many bytes however small memory is: each slice has a cost. It is a part of the fixed cost
    of a process (docs/operations.md)."""
    sweep_spread: int = 4
    """The rows of which a slice is made have so many times as many bytes: most of them match nothing, and are not
    copied out of the log."""
    sweep_bytes: int = 1 << 60
    """The most bytes of a slice."""
    most_parts: int = 1024
    """The most sub-partitions of a group."""
    most_blocks: int = 4096
    """The most combinations of blocks of a sub-partition; if that is not enough, slices are larger."""
    staged_bytes: int = 1 << 24
    """The most bytes of results of a sweep that wait for more before they are staged."""


ENGINE = EngineTuning()


@dataclass(frozen=True, slots=True)
class Tuning:
    """How a slot works; it does not change the results."""

    optimizer: OptimizerTuning = OPTIMIZER
    migration: MigrationTuning = MIGRATION
    routing: RoutingTuning = ROUTING
    state: StateTuning = STATE
    engine: EngineTuning = ENGINE


DEFAULT = Tuning()
