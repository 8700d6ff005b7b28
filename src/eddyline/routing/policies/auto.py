"""Auto: takes the cheapest order of all steps that are left, judged by a profile and kept up to date by the traffic.

Where tuples first have a choice (a *fork*), a few of them are shown to every step, whatever the route: this is the
profile of the fork. It shows correlations between steps, so correlated predicates do not mislead it. The profile is
small, but the traffic is large: selectivities measured on the current route are believed, and the profile tells only
what they do not (see kernels/orders.py). Costs, and the selectivities of steps that become possible only later, are
those of the modules. The cheapest order is found among all orders, or by rank if there are many. Later signatures use
the profile of their fork, as far as tuples of the profile came through the same steps.

An order is left for one that is cheaper by a margin and by some standard errors. Both are judged on the same samples,
so the difference between them is known better than the cost of either. Measured costs of calls are noisy, too: when all
is calm, an order must be found cheapest twice. The cost of samples is kept below `explore`, a share of all the work,
and the cost of decisions below another share. While nothing changes, samples become rare and count for a long time.
When a step on the route does something clearly different than before, samples become frequent again, old ones fade
fast, and packets become smaller, down to a size that still spreads the fixed cost of a call, so that a new order is
taken soon.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from eddyline.kernels import orders
from eddyline.plan.explain import text
from eddyline.plan.plan import Plan
from eddyline.routing.decisions import Decision, DecisionLog
from eddyline.routing.policies.forks import GUESS_SELECTIVITY, Fork, Forks, Note
from eddyline.routing.policies.learned import Learned
from eddyline.routing.policies.policy import Policy
from eddyline.routing.routing_arrays import Entry, RoutingArrays, Traffic
from eddyline.routing.statistics import TINY, Work
from eddyline.routing.tuning import DEFAULT, RoutingTuning

MOST = 60
"""The most sources and selections together for which orders are searched: sets of them are bits of an integer. Beyond
it the order of the plan is kept."""


class Auto(Policy):
    """Takes the cheapest order, and samples within a budget."""

    def __init__(
        self,
        plan: Plan,
        routes: RoutingArrays,
        work: Work,
        decisions: DecisionLog,
        explore: float,
        clock: Callable[[], float],
        tuning: RoutingTuning = DEFAULT,
    ) -> None:
        self._plan, self._routes, self._work, self._decisions = plan, routes, work, decisions
        self._explore, self._clock, self._tuning = explore, clock, tuning
        self._spent = self._thought = 0.0
        self._began = clock()
        self._sources = len(plan.query.sources)
        self._many = self._sources + len(plan.graph.selections) > MOST
        self._random = np.random.default_rng(0)
        self._forks = Forks(plan, tuning)

    # Deciding

    def decide(self, entry: Entry) -> Traffic:
        """The first step of the cheapest order."""
        if len(entry.steps) == 1 or self._many:
            return entry.steps[0]
        note = self._forks.note(entry)
        if entry.chosen is None or note.follows != self._work.moment:
            begin, tuning = self._clock(), self._tuning
            news = note.news != note.fork.news or note.fork.restless(self._work.moment)
            if news and self._thought <= tuning.grace + tuning.think * (begin - self._began):
                note.news = note.fork.news
                self._order(entry, note)
                self._thought += min(self._clock() - begin, tuning.grace)
            self._lead(entry, note)
        assert entry.chosen is not None
        return entry.chosen

    def _order(self, entry: Entry, note: Note) -> None:
        """Take the cheapest order if it is clearly cheaper than the current one."""
        modules, fork, moment = note.modules, note.fork, self._work.moment
        for place, key in enumerate(note.keys):
            level = self._work.levels.get(key)
            if level is not None and level.cost > 0.0:
                note.cost[place], note.level[place] = level.cost, level.selectivity
                if key[0] < self._sources:
                    note.each[place] = level.cost
        counts, ages, half = fork.samples(moment)
        if ages.size < self._tuning.few_samples:
            return
        note.order = note.order or self._written(entry, note)
        length, best, gain, error = orders.judge(
            counts,
            ages,
            half,
            *self._route(entry, fork),
            fork.is_selection,
            note.done,
            note.column,
            note.level,
            note.cost,
            note.each,
            note.first,
            note.any_of,
            note.all_of,
            np.array(note.order, np.int64),
            note.found,
        )
        found, note.value = note.found[:length].tolist(), best + gain
        calm = fork.calm(moment)
        margin = self._tuning.calm_margin if calm else self._tuning.margin
        cheaper = gain > margin * (best + gain) and gain > fork.sure * error
        again, note.tried = found == note.tried, found if cheaper else []
        if cheaper and (again or not calm):
            self._record(entry, [modules[i] for i in note.order], best + gain, [modules[i] for i in found], best)
            note.order, note.value = found, best

    def _written(self, entry: Entry, note: Note) -> list[int]:
        """The order of the plan, as the first order."""
        at, order = entry, []
        while at is entry or not at.whole:
            order.append(note.modules.index(at.steps[0].bit))
            at = self._routes.entry(at.steps[0].after)
        return order

    def _route(self, entry: Entry, fork: Fork) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The sampled steps on the current route, and their selectivities in the traffic."""
        route, selectivities = [], []
        at: Entry | None = entry
        while at is not None and at.chosen is not None and (at is entry or not at.whole):
            column = fork.columns.get(at.chosen.bit)
            if column is not None:
                recent = at.chosen.recent
                believed = recent.weight(self._work) >= self._tuning.evidence
                route.append(column)
                selectivities.append(recent.produced / recent.tuples if believed else -1.0)
            at = self._routes.entries.get(at.chosen.after)
        return np.array(route, np.int64), np.array(selectivities, np.float64)

    def _lead(self, entry: Entry, note: Note) -> None:
        """Let every entry on the way of the order take its next step."""
        if not note.order:
            entry.chosen = entry.chosen or entry.steps[0]
            return
        if note.led != note.order or note.has_ways:
            note.path, note.led = self._path(entry, note), note.order
        moment = self._work.moment
        for at, traffic, further in note.path:
            at.chosen = traffic
            if further is not None:
                further.follows = moment

    def _path(self, entry: Entry, note: Note) -> list[tuple[Entry, Traffic, Note | None]]:
        """The entries on the way, the step to take at each, and the note on the entry after it."""
        at, path = entry, []
        for place in note.order:
            steps = [t for t in at.steps if t.bit == note.modules[place]]
            if not steps:
                break
            traffic = min(steps, key=self.seconds)
            after = self._routes.entry(traffic.after)
            path.append((at, traffic, None if after.whole else self._forks.note(after)))
            at = after
            note.has_ways = note.has_ways or len(steps) > 1
        return path

    def seconds(self, traffic: Traffic) -> float:
        """What a step costs a tuple, to choose among the keys by which a source can be probed. The key that finds more
        rows costs more, although all checks together leave the same. As long as no tuple of this signature has taken
        the step, what tuples of others found by this key counts."""
        recent = traffic.recent
        level = self._work.levels.get((traffic.bit, traffic.partner), traffic.module)
        return recent.seconds / recent.tuples if recent.tuples else level.cost * (1.0 + level.selectivity)

    # Sampling

    def sample(self, entry: Entry, size: int) -> int:
        """How many tuples of a fork to sample; 0 if it is not time or the budget is spent."""
        if len(entry.steps) < 2 or self._many:
            return 0
        fork, work, tuning = self._forks.note(entry).fork, self._work, self._tuning
        if fork.entry is not entry:
            return 0
        few, some = tuning.few_samples, tuning.telling_sample
        if fork.profile.size >= few and work.moment - fork.sampled < fork.every * min(1.0, size / some):
            return 0
        now = self._clock()
        calm_share = tuning.calm_explore * self._explore / len(self._forks.found)
        if fork.calm(work.moment) and calm_share * (now - fork.sampled_at) < fork.took:
            return 0
        left = tuning.grace + self._explore * (now - self._began) - self._spent
        late, cost = self.late(entry), TINY
        for number, traffic in enumerate(entry.steps):
            cost += traffic.module.cost * (entry.chosen.module.selectivity if number in late and entry.chosen else 1.0)
        worth = max(some, int(len(entry.steps) * work.call / cost))
        samples = min(size, tuning.many_samples, worth, int(left / cost))
        if samples < min(size, few):
            return 0
        fork.sampling(work.moment, now, samples * cost)
        return samples if fork.profile.size else min(samples, some)

    def late(self, entry: Entry) -> frozenset[int]:
        """Selections that are known to cost more, alone, than the whole route: no good order begins with them."""
        note, late, fresh = self._forks.note(entry), set(), self._work.moment - self._tuning.fresh_rows
        for number, traffic in enumerate(entry.steps):
            dear = traffic.module.cost > note.value > 0.0 and traffic.module.told >= fresh
            if dear and note.fork.is_selection[number] and traffic is not entry.chosen:
                late.add(number)
        return frozenset(late)

    def learn(self, entry: Entry, counts: NDArray[np.float64], seconds: NDArray[np.float64]) -> None:
        """Add a sample to the profile."""
        note = entry.note
        assert isinstance(note, Note)
        fork, moment, tuning = note.fork, self._work.moment, self._tuning
        unseen = np.isnan(counts)
        rows = len(counts) - unseen.sum(axis=0)
        for column, traffic in enumerate(entry.steps):
            module, is_selection, made = traffic.module, fork.is_selection[column], counts[:, column]
            if rows[column] and (is_selection or not module.tuples):  # caches make samples of probes seem expensive
                alike = seconds[(fork.is_selection == is_selection) & (rows > 0)]
                units = rows[column] + (0 if is_selection else made.sum())
                cost = (seconds[column] - min(tuning.alike * alike.min(), 2.0 * self._work.call)) / units
                if module.hint(int(rows[column]), float(cost), moment) and is_selection:
                    self.surprised(entry)
            if not module.tuples:  # no packet has told anything about it yet
                self._work.levels.setdefault((traffic.bit, traffic.partner), module)
                module.selectivity = float(np.nanmean(made)) if rows[column] else GUESS_SELECTIVITY
            if rows[column] < len(counts):
                others = unseen[:, column]
                made[others] = self._random.random(len(counts) - rows[column]) < module.selectivity
        fork.profile.add(counts, moment)
        fork.news += 1
        fork.took = min(float(seconds.sum()), max(tuning.grace, 4.0 * fork.expected))  # compilation does not count
        self._spent += fork.took
        entry.left = 0

    def surprised(self, entry: Entry) -> None:
        """Record a surprise: sample often again, and let samples fade fast."""
        if isinstance(entry.note, Note):
            entry.note.fork.surprise(self._work.moment)

    def about(self, entry: Entry) -> int | None:
        """The packet size of a fork: small, so that its order can change soon, but not so small that calls dominate."""
        note = entry.note
        if not isinstance(note, Note) or note.fork.entry is not entry or entry.chosen is None:
            return None
        tuning = self._tuning
        share = tuning.calm_call_share if note.fork.calm(self._work.moment) else tuning.call_share
        return max(tuning.smallest_packet, int(self._work.call / (share * (entry.chosen.module.cost + 1e-9))))

    # Handing over

    def saved(self) -> Learned:
        """A snapshot for another process: the profiles, the decided orders, and the time spent."""
        now, notes = self._clock(), [(e.signature, e.note) for e in self._routes.entries.values()]
        return Learned(
            spent=self._spent,
            thought=self._thought,
            worked=now - self._began,
            forks=tuple(fork.saved(now) for fork in self._forks.found),
            notes=tuple(note.saved(signature) for signature, note in notes if isinstance(note, Note)),
        )

    def restore(self, saved: Learned | None) -> None:
        """Restore from a snapshot. Forks are restored in the order in which they were found, so each is a fork
        again."""
        if saved is None:
            return
        now = self._clock()
        self._spent, self._thought, self._began = saved.spent, saved.thought, now - saved.worked
        for of_fork in saved.forks:
            self._forks.note(self._routes.entry(of_fork.signature)).fork.restore(of_fork, now)
        for of_note in saved.notes:
            self._forks.note(self._routes.entry(of_note.signature)).restore(of_note)

    # Telling

    def _record(self, entry: Entry, old: list[int], was: float, new: list[int], will_be: float) -> None:
        query = self._plan.query
        came = " ".join(s.alias for i, s in enumerate(query.sources) if entry.signature[0] >> i & 1)
        done = entry.signature[1].bit_count()
        came += f" after {done} selection{'s' * (done > 1)}" if done else ""
        before, after = tuple(map(self._name, old)), tuple(map(self._name, new))
        self._decisions.add(
            Decision(
                "reroute",
                self._work.moment,
                f"{came}: {', '.join(after)} instead of {', '.join(before)}",
                f"the rest of the route costs {will_be * 1e6:.3g} us a tuple, the old one {was * 1e6:.3g} us",
                {"expected": will_be, "instead_of": was},
                {"us per tuple": will_be * 1e6, "us per tuple before": was * 1e6},
                about=f"route {entry.signature[0]} {entry.signature[1]}",
                subject=came,
                before=before,
                after=after,
            )
        )

    def _name(self, module: int) -> str:
        query = self._plan.query
        if module < self._sources:
            return query.sources[module].alias
        return text(self._plan.graph.selections[module - self._sources], query)
