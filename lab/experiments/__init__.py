"""Experiments: figures of the papers measured again, on this machine and with this engine.

An experiment is a name and a function of one of the modules here, which is imported when the experiment runs. It gives
a `Figure`: the table of measurements and the chart drawn from it. All sides of a figure run on the same code, and
differ in settings only; their runs take turns, so that other load on the machine affects all of them (see rounds.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module

from eddyline.errors import SettingError
from lab.experiments.chart import Chart, Series
from lab.experiments.table import Table

Say = Callable[[str], None]
"""A function that is called with a line about the progress."""


@dataclass(frozen=True)
class Figure:
    """The result of an experiment: the table of all measurements, the chart, and further columns of the summary."""

    table: Table
    chart: Chart
    beside: Series = field(default_factory=dict)

    def summary(self) -> Table:
        """The points of the chart, a row for each x. `rounds apart` is the slowest round of a side over its fastest,
        the largest over all sides: far above 1, the machine was busy with other work."""
        series = {**self.chart.series, **self.beside}
        rows = list(dict.fromkeys(x for points in series.values() for x, _ in points))
        table = Table((self.chart.x, *series))
        for x in rows:
            table.add(x, *(dict(points).get(x, "") for points in series.values()))
        return table


@dataclass(frozen=True)
class Experiment:
    """An experiment by its name; `about` describes it in one line."""

    name: str
    about: str
    module: str
    function: str

    def run(self, quick: bool, say: Say) -> Figure:
        """Run the experiment; `quick` runs a small version of it."""
        figure: Figure = getattr(import_module(f"lab.experiments.{self.module}"), self.function)(quick, say)
        return figure


EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        Experiment("teddies-6", "run time of packets over one queue of tuples, by selectivity", "teddies", "figure_6"),
        Experiment("teddies-7", "occupancy of the meta-queues when scheduled, by selectivity", "teddies", "figure_7"),
        Experiment("teddies-8", "packets over tuples, by the cost of a routing decision", "teddies", "figure_8"),
        Experiment("overheads-5", "eddies over predicates in the scan: three selections", "overheads", "figure_5"),
        Experiment("overheads-6", "eddies and static trees over hash joins: 3 to 5 streams", "overheads", "figure_6"),
        Experiment("overheads-7", "eddies over static plans: tables asked by an index", "overheads", "figure_7"),
        Experiment("access-8-output", "simulated: results of an index join by time", "index_joins", "figure_8_output"),
        Experiment("access-8-probes", "simulated: probes of the index by time", "index_joins", "figure_8_probes"),
        Experiment("access-8-caches", "simulated: two indexes, one cache or two", "index_joins", "figure_8_caches"),
        Experiment(
            "access-8-aliases", "simulated: two joins, one cache or one for each", "index_joins", "caches_of_aliases"
        ),
        Experiment("access-11", "simulated: results while a source stalls", "spanning_tree", "figure_11"),
        Experiment("access-11-slow", "simulated: the same, the stream comes slowly", "spanning_tree", "slow"),
        Experiment("access-12", "simulated: results by index, by scan and by both", "hybrid", "figure_12"),
        Experiment("access-13", "simulated: preferred results and others, by both", "preferring", "figure_13"),
        Experiment("access-13-early", "simulated: the same, the stream is there early", "preferring", "early"),
        Experiment("plans-1", "what plans need of the CPU and memory there is, table 8.1", "plan_sets", "figure_1"),
        Experiment("plans-2", "results by time, set 1 of table 8.1", "plan_sets", "figure_2"),
        Experiment("plans-3", "tuples in states and input queues by time, set 1", "plan_sets", "figure_3"),
        Experiment("plans-4", "results by time, set 2", "plan_sets", "figure_4"),
        Experiment("plans-5", "rows in input queues by time, set 2", "plan_sets", "figure_5"),
        Experiment("plans-6", "results by time, set 3", "plan_sets", "figure_6"),
        Experiment("plans-7", "bytes of state by time, set 3", "plan_sets", "figure_7"),
        Experiment("plans-8", "results by time, set 4", "plan_sets", "figure_8"),
        Experiment("plans-9", "bytes of state by time, set 4", "plan_sets", "figure_9"),
        Experiment("strategies-10", "how often a qualified plan is found, by streams", "strategies", "figure_10"),
        Experiment("strategies-11", "how long it is looked for, by streams", "strategies", "figure_11"),
        Experiment("strategies-13", "what the qualified plans for 3 streams use", "strategies", "figure_13"),
        Experiment("strategies-14", "what the qualified plans for 5 streams use", "strategies", "figure_14"),
        Experiment("strategies-15", "what the qualified plans for 10 streams use", "strategies", "figure_15"),
        Experiment("migration-1", "length of parallel track by window", "migration_length", "figure_1"),
        Experiment("migration-2", "length of moving state by window", "migration_length", "figure_2"),
        Experiment("migration-3", "length of both by the rate of a stream", "migration_length", "figure_3"),
        Experiment(
            "migration-4", "where moving state becomes slower than parallel track", "migration_length", "figure_4"
        ),
        Experiment(
            "migration-5", "intermediate tuples while a plan is changed, low load", "migration_load", "figure_5"
        ),
        Experiment("migration-6", "output rate while a plan is changed, low load", "migration_load", "figure_6"),
        Experiment(
            "migration-7", "intermediate tuples while a plan is changed, high load", "migration_load", "figure_7"
        ),
        Experiment("migration-8", "output rate while a plan is changed, high load", "migration_load", "figure_8"),
        Experiment("migration-9", "throughput with an optimizer where nothing changes", "migration_payoff", "figure_9"),
        Experiment("migration-10", "throughput with one change of plan at run time", "migration_payoff", "figure_10"),
        Experiment("migration-11", "state with one change of plan at run time", "migration_payoff", "figure_11"),
        Experiment("migration-12", "throughput with many changes of plan at run time", "migration_payoff", "figure_12"),
        Experiment("migration-13", "state with many changes of plan at run time", "migration_payoff", "figure_13"),
        Experiment("spill-6", "what a small join costs, divided over 1 to 5 slots", "partitioned", "figure_6"),
        Experiment("spill-7", "how far a large join comes, by slots with a limit each", "partitioned", "figure_7"),
        Experiment("spill-9", "results by time, by how much state leaves memory at a time", "spilling", "figure_9"),
        Experiment("spill-10", "state in memory by time, of the same runs", "spilling", "figure_10"),
        Experiment("spill-11", "results by which groups leave first, three join ratios", "spilling", "figure_11"),
        Experiment("spill-12", "results by which groups leave first, one join ratio", "spilling", "figure_12"),
        Experiment(
            "spill-alternating", "results by which groups leave first, load that alternates", "spilling", "alternating"
        ),
        Experiment("spill-delay", "results by time, by how long they may wait for rows on disk", "spilling", "delays"),
        Experiment("spill-14", "real slots: CPU by the ratio below which groups move", "moving_groups", "figure_14"),
        Experiment("spill-15", "real slots: CPU by the least time between moves", "moving_groups", "figure_15"),
        Experiment("spill-16", "real slots: state of two slots that are busy in turns", "moving_groups", "figure_16"),
        Experiment("spill-17", "real slots: results with relocation, memory is enough", "moving_groups", "figure_17"),
        Experiment("spill-20", "real slots: results and clean-up with lazy-disk", "moving_groups", "figure_20"),
        Experiment("spill-21", "real slots: results with lazy-disk and active-disk", "moving_groups", "figure_21"),
        Experiment(
            "balance-stages",
            "a chain on three keys: one stage that replicates over two with a shuffle",
            "stages",
            "gain",
        ),
        Experiment("balance-plans", "results where slots choose plans and groups move", "local_plans", "throughput"),
        Experiment("balance-plans-state", "tuples in states, of the same runs", "local_plans", "state"),
        Experiment("balance-ways", "groups move by moving state and by parallel track", "move_ways", "ways"),
        Experiment("balance-ways-late", "the same after rates have fallen", "move_ways", "late"),
        Experiment("balance-sim-load", "simulated: the most loaded of 1,000 slots over the mean", "balancing", "drift"),
        Experiment("balance-sim-memory", "simulated: state of machines that are busy in turns", "balancing", "memory"),
        Experiment("balance-sim-disk", "simulated: results with lazy-disk and active-disk", "balancing", "disk"),
        Experiment("balance-sim-time", "how long the distribution manager decides, by slots", "balancing", "decisions"),
    )
}


def chosen(name: str) -> list[Experiment]:
    """The experiment of this name, or all of them; SettingError if there is no such experiment.

    >>> [experiment.name for experiment in chosen("teddies-7")]
    ['teddies-7']
    """
    if name == "all":
        return list(EXPERIMENTS.values())
    if name not in EXPERIMENTS:
        raise SettingError(f"there is no experiment '{name}'; there is {', '.join(EXPERIMENTS)}, or all")
    return [EXPERIMENTS[name]]
