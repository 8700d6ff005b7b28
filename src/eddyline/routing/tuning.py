"""The numbers that an eddy can be tuned by. None of them changes a result.

An eddy gets them when it is made, and passes them to its parts. Some are read several times for each packet, which
takes longer without slots.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RoutingTuning:
    """How large packets are, how long evidence counts, and how soon and how boldly routes are changed."""

    # Packets (scheduler.py, payload.py, steps/probe.py)
    first_threshold: int = 256
    """The first threshold of a meta-queue."""
    largest_packet: int = 32768
    """The most tuples in a packet, and in a piece of the results of a probe. A queue with this many tuples is served at
    once."""
    longest_wait: int = 8
    """Rounds that a queue may wait before its threshold is halved."""
    gathered_bytes: int = 1 << 29
    """The most bytes of values that are gathered at a time, so that results computed from them fit into Arrow arrays,
    too."""

    # Evidence (statistics.py)
    half_tuples: int = 2048
    """Evidence counts half after this many newer tuples of the step."""
    half_rows: int = 16384
    """Evidence counts half after this many rows were built in the slot."""
    call: float = 40e-6
    """The fixed cost of a call, in seconds: of a build, or of a packet's step with its way through the queues. Where an
    optimizer has measured it, its measurement takes the place of this number (`Work.call`)."""
    interrupted: float = 4.0
    """A call counts at most this many times the time that was expected of it: it may have been interrupted."""
    least_share: float = 0.2
    """The least share of a call's time that counts for its tuples, however small the packet."""
    enough_tuples: int = 50
    """The fewest tuples of a call that can be a surprise."""
    long_tuples: float = 30_000.0
    """The tuples that are remembered for the comparison."""
    joined_share: float = 0.1
    """Tuples that are already joined have rows in common: each counts this much in the comparison."""
    clearly: float = 3.5
    """A selectivity that differs by this many standard errors is a surprise."""
    dearer: float = 2.0
    """A cost that changed by this factor is a surprise."""
    costs_compared: int = 5
    """Packets whose costs are compared."""
    telling_packet: int = 256
    """The fewest tuples of a packet that tell a cost."""
    telling_sample: int = 48
    """The fewest tuples of a sample that tell a cost."""
    blur: float = 1e-5
    """Seconds by which the time of any call may be wrong."""
    telling_seconds: float = 150e-6
    """Seconds of a call from which on that error does not matter."""
    fresh_rows: int = 131072
    """A cost that was observed more than this many rows ago does not count."""

    # Samples (sampling.py, profile.py, policies/forks.py)
    sample_matches: int = 4096
    """The most tuples that a step may make of a sample."""
    profile_size: int = 512
    """The number of newest samples that are kept."""
    profile_least: int = 24
    """How many of them always count."""
    often: int = 512
    """Rows built between two samples of a fork after a surprise."""
    seldom: int = 4096
    """The most rows built between two samples of a fork."""
    slower: float = 2.0
    """The number of rows between samples grows by this factor each time."""
    remembered: float = 0.25
    """The half-life of a sample is this share of the rows since the last surprise."""
    short_half: float = 3000.0
    """The least half-life."""
    long_half: float = 65536.0
    """The greatest half-life."""
    faded: float = 4.0
    """The age, in half-lives, from which on samples do not count."""
    restless: int = 4096
    """For this many rows after a surprise, orders are reconsidered at every packet."""
    calm: int = 32768
    """After this many rows without a surprise, all is calm."""

    # Decisions (policies/)
    sure: float = 0.3
    """An order of selections is left for one that is cheaper by this many standard errors."""
    surer: float = 1.0
    """The same where fan-outs multiply."""
    margin: float = 0.01
    """An order is left for one that is cheaper by this share while things change."""
    calm_margin: float = 0.05
    """The same when all is calm."""
    few_samples: int = 16
    """The fewest samples to judge by."""
    many_samples: int = 256
    """The most samples taken at a time. In between, the number of samples is chosen so that their work costs about as
    much as the calls."""
    calm_explore: float = 0.25
    """The share of the budget for samples that is spent when all is calm."""
    call_share: float = 0.1
    """Packets of a fork are so small that the fixed cost of a call is this share of its time."""
    calm_call_share: float = 0.02
    """The same when all is calm."""
    smallest_packet: int = 1024
    """But a packet has at least this many tuples."""
    evidence: float = 200.0
    """The fewest tuples on the route whose selectivity for a step is believed."""
    alike: float = 0.8
    """A sample is small, so the fixed cost of its calls matters: this share of the quickest call's time is taken for
    the fixed cost, at most twice `call`."""
    grace: float = 0.001
    """Seconds that samples and decisions may take before there is much work to compare with."""
    think: float = 0.12
    """The share of the time that may be spent on decisions."""
    rank_evidence: float = 32.0
    """The fewest tuples of a step that counts as measured, in the policies `rank` and `benefit`."""
    fewest_tickets: float = 100.0
    """Tickets that every module keeps, in the policy `lottery`."""


DEFAULT = RoutingTuning()
