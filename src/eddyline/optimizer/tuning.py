"""The numbers that the optimizer can be tuned by. None of them changes a result."""

from __future__ import annotations

from dataclasses import dataclass

from eddyline.optimizer.costs import StepCosts


@dataclass(frozen=True)
class OptimizerTuning:
    """How soon, how hard and how boldly a slot looks for another plan."""

    costs: StepCosts | None = None
    """What steps cost on this machine; None: measured when a slot first looks."""

    # When (timing.py, trend.py)
    first_windows: float = 1.0
    """The longest windows of event time before the first look."""
    first_rows: int = 20_000
    """The rows before the first look."""
    interval_rows: int = 50_000
    """The fewest rows between two looks."""
    longest_interval: int = 64
    """How many times that the interval between looks may become."""
    longest_glance: int = 8
    """How many times that the interval between glances at the library may become."""
    threshold: float = 1.3
    """The factor by which a statistic must have changed to count."""
    near: float = 0.9
    """State that takes this share of its limit is near it."""
    keep: float = 0.7
    """How much the CPU of the past counts beside that of the last batch."""
    trend_parts: int = 4
    """How many parts the last batches are taken in, each of which must have more than the one before."""
    trend_batches: int = 3
    """The batches of a part."""
    grows: float = 1.1
    """How much more a part must have than the one before."""

    # What is observed (observed.py)
    half_life: float = 2.0
    """Evidence counts half after so many of the longest windows."""
    few: float = 30.0
    """The tuples that a probe must have seen to be believed a little, and a selection at all."""
    most: float = 3000.0
    """A probe that has seen more tuples is believed no more."""
    guess: float = 0.05
    """What the guess of a selectivity weighs beside a probe with few tuples."""
    other: float = 1.5
    """A probe makes another number of tuples than before if it differs by this factor."""
    sure: float = 10.0
    """And by so many standard deviations."""

    # How hard (rules/, dominating.py, refine.py and others)
    search_seconds: float = 0.05
    """Seconds of searching where there are too many plans to look at all."""
    exhaustive_sources: int = 6
    """Sources up to which all plans are looked at."""
    climb_effort: int = 4000
    """The effort of each rule that tries marks, in units of about ten microseconds."""
    refine_effort: int = 800
    """The effort of small changes to a plan that is above its limits, in the same units."""
    refine_effort_small: int = 12_000
    """The same for queries of few sources: there it comes near to what exhaustive search finds."""
    small_sources: int = 8
    """Sources of such a query."""
    star_sources: int = 10
    """Sources of a star whose smallest tree is found exactly."""
    candidates: int = 6
    """Candidates for a state that are priced before the best of them is taken; more if none is of use."""
    marked_children: int = 8
    """Children of an operator over groups, or over tuples that have not passed their selections, for which all orders
    are compared. For more the order is that without marks."""

    # How boldly (worth.py, trials.py, library.py)
    gain: float = 0.3
    """A plan is left for one that takes less CPU by this share."""
    stable: float = 4.0
    """The longest windows for which statistics are taken to stay what they are, at least."""
    back: float = 1.0
    """How many times its cost a change must save in that time."""
    trial_windows: float = 1.0
    """The longest windows that a trial lasts."""
    trial_batches: int = 5
    """The batches that a trial lasts at least."""
    rest: float = 4.0
    """The longest windows for which a tree that lost is not considered, the first time."""
    library_size: int = 32
    """The plans that are remembered."""
    library_step: float = 1.3
    """Statistics within this factor are near each other."""


DEFAULT = OptimizerTuning()
