"""The numbers that tune the optimizer. None of them changes a result."""

from __future__ import annotations

from dataclasses import dataclass

from eddyline.optimizer.costs import StepCosts


@dataclass(frozen=True, slots=True)
class OptimizerTuning:
    """How soon, how hard and how boldly a slot looks for another plan."""

    costs: StepCosts | None = None
    """The costs of steps on this machine; None: they are measured when a slot first looks for a plan."""

    # When (timing.py, trend.py)
    first_windows: float = 1.0
    """Event time before the first look, in longest windows."""
    first_rows: int = 20_000
    """Rows before the first look."""
    interval_rows: int = 50_000
    """The fewest rows between two looks."""
    longest_interval: int = 64
    """The factor up to which the interval between looks may grow."""
    longest_glance: int = 8
    """The factor up to which the interval between glances at the library may grow."""
    threshold: float = 1.3
    """The factor by which a statistic must change to count."""
    near: float = 0.9
    """The share of its limit from which on the state is near it."""
    busy: float = 1.5
    """How many times as long as it should take a batch may take before it is too long."""
    keep: float = 0.7
    """The weight of past CPU beside that of the last batch."""
    trend_parts: int = 4
    """The number of parts into which the last batches are divided; each must be larger than the one before."""
    trend_batches: int = 3
    """Batches per part."""
    grows: float = 1.1
    """The factor by which a part must be larger than the one before."""

    # What is observed (observed.py)
    half_life: float = 2.0
    """The number of longest windows after which evidence counts half."""
    few: float = 30.0
    """Tuples after which a probe is believed a little, and a selection at all."""
    most: float = 3000.0
    """Tuples above which a probe is believed no more."""
    guess: float = 0.05
    """The weight of the guess of a selectivity beside a probe with few tuples."""
    other: float = 1.5
    """The factor by which the number of tuples that a probe makes must differ to count as a change."""
    sure: float = 10.0
    """The number of standard deviations by which it must differ, too."""

    # How hard (rules/, dominating.py, refine.py and others)
    search_seconds: float = 0.05
    """Seconds of searching where there are too many plans to compare all."""
    exhaustive_sources: int = 6
    """Sources up to which all plans are compared."""
    climb_effort: int = 4000
    """The effort of each rule that tries marks, in units of about ten microseconds."""
    refine_effort: int = 800
    """The effort of refining a plan that is above its limits, in the same units."""
    refine_effort_small: int = 12_000
    """The same for queries of few sources, where it comes near to the result of exhaustive search."""
    small_sources: int = 8
    """The most sources of such a query."""
    star_sources: int = 10
    """The most sources of a star whose smallest tree is found exactly."""
    candidates: int = 6
    """Candidates for a state that are priced before the best of them is taken; more if none of them saves CPU."""
    marked_children: int = 8
    """The most children of an operator with marked children for which all orders are compared. With more children, the
    order is the one without marks."""

    # How boldly (worth.py, trials.py, library.py)
    gain: float = 0.3
    """The share of CPU that another plan must save to be considered."""
    stable: float = 4.0
    """The least time for which statistics are expected to stay the same, in longest windows."""
    back: float = 1.0
    """How many times its own cost a change must save in that time."""
    trial_windows: float = 1.0
    """The length of a trial in longest windows."""
    trial_batches: int = 5
    """The least number of batches in a trial."""
    rest: float = 4.0
    """The time for which a tree is not considered after its first loss, in longest windows."""
    library_size: int = 32
    """The number of plans that the library keeps."""
    library_step: float = 1.3
    """The factor within which two statistics are near each other."""


DEFAULT = OptimizerTuning()
