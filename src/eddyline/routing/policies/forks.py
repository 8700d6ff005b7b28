"""Forks, where tuples first have a choice, and notes on all later signatures: the knowledge of the policy `auto`.
auto.py decides by it.

A fork has the profile of its tuples. A signature belongs to the first fork whose profile has all steps that its tuples
have taken since the fork, so that the profile can predict their further steps. If there is no such fork, the signature
is a fork itself. The fork of a note never changes, and forks are found in the order in which tuples arrive: another
process that asks for them in the same order finds the same forks.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eddyline.bound.expr import sources_of
from eddyline.plan.plan import Operator, Plan, Signature
from eddyline.plan.steps import Probe
from eddyline.routing.policies.learned import ForkSnapshot, NoteSnapshot
from eddyline.routing.profile import Profile
from eddyline.routing.routing_arrays import Entry, Traffic
from eddyline.routing.tuning import DEFAULT, RoutingTuning

GUESS_COST, GUESS_SELECTIVITY = 5e-7, 1.0
"""The cost and the selectivity of a module about which nothing is known."""

Masks = tuple[int, NDArray[np.int64], NDArray[np.int64]]


class Fork:
    """Where tuples first have a choice."""

    def __init__(self, entry: Entry, operator: Operator, modules: list[int], tuning: RoutingTuning) -> None:
        self.entry, self.operator, self.modules, self._tuning = entry, operator, modules, tuning
        self.profile = Profile(len(entry.steps), tuning)
        self.is_selection = np.array([not isinstance(t.step, Probe) for t in entry.steps])
        self.columns: dict[int, int] = {}
        for column, traffic in enumerate(entry.steps):
            self.columns.setdefault(traffic.bit, column)
        self.sure = tuning.sure if self.is_selection.all() else tuning.surer
        self.surprised = self.news = 0
        """The moment of the last surprise on its routes; and the number of surprises and new samples."""
        self.sampled, self.sampled_at, self.expected, self.took = -tuning.seldom, 0.0, 0.0, 0.0
        """The last sample: its moment in rows and in seconds, and the seconds that it was expected to take, and
        took."""
        self.every: float = tuning.often

    def surprise(self, moment: int) -> None:
        """Record a surprise: sample often again, and let samples fade fast."""
        self.surprised, self.every = moment, self._tuning.often
        self.news += 1

    def restless(self, moment: int) -> bool:
        """Whether the last surprise was recent."""
        return moment - self.surprised <= self._tuning.restless

    def calm(self, moment: int) -> bool:
        """Whether the last surprise was long ago."""
        return moment - self.surprised > self._tuning.calm

    def sampling(self, moment: int, now: float, expected: float) -> None:
        """Record that a sample is taken, which should take `expected` seconds."""
        self.sampled, self.sampled_at, self.expected = moment, now, expected
        tuning = self._tuning
        self.every = min(tuning.slower * self.every, tuning.seldom) if self.profile.size else tuning.often

    def samples(self, moment: int) -> tuple[NDArray[np.float64], NDArray[np.int64], float]:
        """The samples that count, their ages, and their half-life."""
        tuning = self._tuning
        since = max(tuning.short_half, tuning.remembered * (moment - self.surprised))
        half = float(max(min(tuning.long_half, since), self.profile.age(moment)))
        return *self.profile.newest(moment, tuning.faded * half), half

    def saved(self, now: float) -> ForkSnapshot:
        """A snapshot for another process."""
        return ForkSnapshot(
            signature=self.entry.signature,
            profile=self.profile.saved(),
            surprised=self.surprised,
            news=self.news,
            sampled=self.sampled,
            ago=now - self.sampled_at,
            expected=self.expected,
            took=self.took,
            every=self.every,
        )

    def restore(self, saved: ForkSnapshot, now: float) -> None:
        """Restore from a snapshot."""
        self.profile.restore(saved.profile)
        self.surprised, self.news, self.sampled = saved.surprised, saved.news, saved.sampled
        self.sampled_at, self.expected, self.took, self.every = now - saved.ago, saved.expected, saved.took, saved.every


class Note:
    """The knowledge about an entry: its fork, the modules that are left and when each is allowed, and the decided
    order."""

    def __init__(self, entry: Entry, fork: Fork, modules: list[int], masks: Masks, keys: list[tuple[int, int]]) -> None:
        self.fork, self.modules, self.keys = fork, modules, keys
        self.first, self.any_of, self.all_of = masks
        self.done = np.array([fork.columns[m] for m in fork.modules if entry.bits >> m & 1], np.int64)
        self.column = np.array([fork.columns.get(m, -1) for m in modules], np.int64)
        self.cost, self.level = np.full(len(modules), GUESS_COST), np.full(len(modules), GUESS_SELECTIVITY)
        self.each = np.zeros(len(modules))
        self.found = np.empty(len(modules), np.int64)
        self.order: list[int] = []
        """The decided order, as places in `modules`."""
        self.tried: list[int] = []
        """The order that was clearly cheaper at the last decision, if there was one."""
        self.led: list[int] = []
        self.path: list[tuple[Entry, Traffic, Note | None]] = []
        """The order that was applied last, and the entries on its way."""
        self.has_ways = False
        """Whether a source on the way can be probed by more than one key."""
        self.value = 0.0
        """The cost of a tuple in this order."""
        self.follows = -1
        """The moment when an order that was decided at an earlier entry was last applied here."""
        self.news = -1
        """The `news` of its fork at the last decision of its order."""

    def saved(self, signature: Signature) -> NoteSnapshot:
        """A snapshot for another process: what was decided for this signature."""
        return NoteSnapshot(signature, tuple(self.order), tuple(self.tried), self.value, self.news)

    def restore(self, saved: NoteSnapshot) -> None:
        """Restore from a snapshot."""
        self.order, self.tried, self.value, self.news = list(saved.order), list(saved.tried), saved.value, saved.news


class Forks:
    """The forks of an eddy found so far, and the notes on its entries."""

    def __init__(self, plan: Plan, tuning: RoutingTuning = DEFAULT) -> None:
        self._plan, self._sources, self._tuning = plan, len(plan.query.sources), tuning
        self.found: list[Fork] = []

    def note(self, entry: Entry) -> Note:
        """The note on an entry, which is made at the first call."""
        note = entry.note
        if not isinstance(note, Note):
            fork = self._fork(entry)
            modules = [m for m in fork.modules if not entry.bits >> m & 1]
            note = entry.note = Note(entry, fork, modules, self._masks(entry, modules), self._keys(entry, modules))
        return note

    def _fork(self, entry: Entry) -> Fork:
        """The fork whose profile has all steps that the tuples here have taken since it; if there is none, a new
        fork."""
        bits, operator = entry.bits, self._plan.operator(entry.signature)
        for fork in self.found:
            since = [m for m in fork.modules if bits >> m & 1]
            if fork.operator is operator and fork.entry.bits & ~bits == 0 and all(m in fork.columns for m in since):
                return fork
        modules = [*sorted(operator.bits.values()), *(self._sources + i for i in operator.selections)]
        modules += [t.bit for t in entry.steps]  # tuples that a migration starts may lack selections of operators below
        fork = Fork(entry, operator, [m for m in dict.fromkeys(modules) if not bits >> m & 1], self._tuning)
        self.found.append(fork)
        return fork

    def _masks(self, entry: Entry, modules: list[int]) -> Masks:
        """The modules that are allowed at once, and for each other module those that must come before it, by their
        place in `modules`."""
        place, span = {m: i for i, m in enumerate(modules)}, entry.signature[0]
        operator = self._plan.operator(entry.signature)
        linked, bit_of = self._plan.linked(operator), operator.bit_of
        at_once = {t.bit for t in entry.steps}
        first, any_of, all_of = 0, np.zeros(len(modules), np.int64), np.zeros(len(modules), np.int64)
        for i, m in enumerate(modules):
            if m in at_once:
                first |= 1 << i
            elif m < self._sources and self._plan.first & ~span and not self._plan.first >> m & 1:
                all_of[i] = sum(1 << place[s] for s in _numbers(self._plan.first & ~span))
            elif m < self._sources:
                any_of[i] = sum(1 << place[s] for s in _numbers(linked[m] & ~span))
            else:
                needed = sources_of(self._plan.graph.selections[m - self._sources])
                all_of[i] = sum(1 << place[bit] for bit in {bit_of[s] for s in needed if not span >> s & 1})
        return first, any_of, all_of

    def _keys(self, entry: Entry, modules: list[int]) -> list[tuple[int, int]]:
        """For each module, the source with which it will be probed: the one by which it is reached first."""
        reached, keys = {t.bit: t.partner for t in entry.steps}, dict.fromkeys(modules, -1)
        linked = self._plan.linked(self._plan.operator(entry.signature))
        while reached:
            keys |= reached
            sources = [m for m in modules if m < self._sources and keys[m] == -1 and m not in reached]
            reached = {m: p for p in reached if p < self._sources for m in sources if linked[m] >> p & 1}
        return list(keys.items())


def _numbers(bits: int) -> list[int]:
    """The numbers of the bits that are set."""
    return [i for i in range(bits.bit_length()) if bits >> i & 1]
