"""The numbers that tune the distribution manager. None of them changes a result."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BalanceTuning:
    """When groups move, how many, and how long the manager waits."""

    # When (measure.py; 002, 20.3 and 004, 5.1)
    ratio: float = 0.8
    """Theta_r: slots are balanced when the least loaded has less than this share of the load of the most loaded."""
    stop: float = 0.9
    """The share at which balancing ends once it has begun, and within which a move keeps the other measure."""
    memory_max: float = 0.5
    """T_max for memory, as a share of the limit: below it no slot is short of memory."""
    memory_min: float = 0.75
    """T_min for memory: above it even the least loaded slot has no room, and spilling helps instead."""
    cpu_max: float = 0.5
    """T_max for CPU, as a share of the time of a batch."""
    cpu_min: float = 0.9
    """T_min for CPU."""
    difference: float = 0.1
    """T_diff, as a share of the limit or of the time of a batch."""
    floor_bytes: int = 64 << 20
    """T_max for memory where there is no limit."""
    interval: float = 45.0
    """The fewest seconds between two decisions that move groups."""
    patience: int = 3
    """Batches in a row in which slots must be out of balance before groups move."""
    smoothing: float = 0.2
    """The weight of the last batch in the CPU of a slot; memory is not smoothed."""

    surprise: float = 1.5
    """How many times the range of chance a slot's CPU must be away from its smoothed CPU, so that the batch counts as a
    change and not as noise."""
    quick: float = 0.7
    """The weight of such a batch."""

    # How much (pairing.py)
    pairs_share: float = 0.25
    """Moves of one decision, as a share of the slots; at least one."""
    least: float = 0.05
    """The share of its load that a sender must lose, or else its moves are not worth it."""

    open_cost: float = 0.5
    """CPU for opening a row of a group that moves, as a share of the CPU for a row that arrives (`bench opening`)."""
    payback: int = 20
    """Batches within which a move for CPU must save what it costs; as many as slots have been out of balance, if that
    is more."""

    # Whether it paid (verdicts.py)
    trial_batches: int = 5
    """Batches after which a move is compared with its prediction."""
    pays: float = 0.3
    """The share of the predicted gain that must be there."""
    rest: float = 4.0
    """Intervals for which a group that moved stays where it is."""
    long_rest: float = 20.0
    """The same, after a move that did not pay."""
    longest: int = 16
    """The factor up to which the interval grows while moves do not pay."""

    # Hot keys (hot_keys.py)
    hot: float = 0.9
    """The load of a key, in multiples of the mean CPU of slots, from which on several slots share it. Below it, groups
    that move can still make slots equal."""
    cool: float = 0.4
    """The load below which they do not any more."""
    part: float = 0.5
    """The load of a key that one slot should have."""
    larger: float = 3.0
    """How many times as many rows of a key another source must have, so that it is spread instead."""
    cool_patience: int = 10
    """Batches in a row after which a key is shared otherwise or not any more."""

    # Spilling on demand (forced.py; 004, section 6)
    times: float = 2.0
    """Lambda: how many times the productivity of a slot another one must have, so that the first is forced to spill."""
    ahead: float = 20.0
    """Batches of growth that count as memory that the query needs."""
    push: float = 0.3
    """The share of the limit that a slot is forced to spill at a time."""


DEFAULT = BalanceTuning()
