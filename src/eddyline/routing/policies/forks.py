"""Forks, where tuples first have a choice, and notes on every signature after them: what `auto` knows, and how fresh
that is. What is decided by it is in auto.py.

A fork has the profile of its tuples. A signature belongs to the first fork whose profile has all steps that its tuples
took since, so that the profile can say what they will do; if there is none, it is a fork itself. A note never changes
its fork, and forks are found in the order in which tuples come: another process that asks for them in the same order
has the same ones.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eddyline.bound.expr import sources_of
from eddyline.plan.plan import Operator, Plan, Probe, Signature
from eddyline.routing.policies.learned import ForkSnapshot, NoteSnapshot
from eddyline.routing.profile import Profile
from eddyline.routing.routing_arrays import Entry, Traffic

SURE, SURER = 0.3, 1.0
"""An order is left for one that is cheaper by so many standard errors: of selections, and where fan-outs multiply."""

OFTEN, SELDOM, SLOWER = 512, 4096, 2.0
"""Rows built between two samples of a fork: after a surprise, and at most; by how much it grows each time."""

SHORT, LONG, REMEMBERED = 3000.0, 65536.0, 0.25
"""Rows after which a sample counts half: this share of the time since the last surprise, within limits."""

FADED = 4.0
"""The age, in half-lives, from which samples do not count."""

RESTLESS, CALM = 4096, 32768
"""Rows built after a surprise while it is thought at every packet, and without one until all is calm."""

GUESS_COST, GUESS_SELECTIVITY = 5e-7, 1.0
"""A module that nobody knows anything about."""

Masks = tuple[int, NDArray[np.int64], NDArray[np.int64]]


class Fork:
    """Where tuples first have a choice."""

    def __init__(self, entry: Entry, operator: Operator, modules: list[int]) -> None:
        self.entry, self.operator, self.modules = entry, operator, modules
        self.profile = Profile(len(entry.steps))
        self.is_selection = np.array([not isinstance(t.step, Probe) for t in entry.steps])
        self.columns: dict[int, int] = {}
        for column, traffic in enumerate(entry.steps):
            self.columns.setdefault(traffic.bit, column)
        self.sure = SURE if self.is_selection.all() else SURER
        self.surprised = self.news = 0
        """When something on its routes was a surprise; how often there was a surprise or a new sample."""
        self.sampled, self.sampled_at, self.expected, self.took = -SELDOM, 0.0, 0.0, 0.0
        """When it was last sampled, in rows and in seconds, and the seconds that was expected to take, and took."""
        self.every: float = OFTEN

    def surprise(self, moment: int) -> None:
        """Sample often again, and forget fast."""
        self.surprised, self.every = moment, OFTEN
        self.news += 1

    def restless(self, moment: int) -> bool:
        """Whether there was a surprise just now."""
        return moment - self.surprised <= RESTLESS

    def calm(self, moment: int) -> bool:
        """Whether there was none for long."""
        return moment - self.surprised > CALM

    def sampling(self, moment: int, now: float, expected: float) -> None:
        """A sample is taken now, which should take `expected` seconds."""
        self.sampled, self.sampled_at, self.expected = moment, now, expected
        self.every = min(SLOWER * self.every, SELDOM) if self.profile.size else OFTEN

    def samples(self, moment: int) -> tuple[NDArray[np.float64], NDArray[np.int64], float]:
        """The samples that count, their ages, and the age at which one counts half."""
        since = max(SHORT, REMEMBERED * (moment - self.surprised))
        half = float(max(min(LONG, since), self.profile.age(moment)))
        return *self.profile.newest(moment, FADED * half), half

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
        """Continue from a snapshot."""
        self.profile.restore(saved.profile)
        self.surprised, self.news, self.sampled = saved.surprised, saved.news, saved.sampled
        self.sampled_at, self.expected, self.took, self.every = now - saved.ago, saved.expected, saved.took, saved.every


class Note:
    """What is known about an entry: its fork, what is left to do there and when it may be done, the order decided."""

    def __init__(self, entry: Entry, fork: Fork, modules: list[int], masks: Masks, keys: list[tuple[int, int]]) -> None:
        self.fork, self.modules, self.keys = fork, modules, keys
        self.first, self.any_of, self.all_of = masks
        self.done = np.array([fork.columns[m] for m in fork.modules if entry.bits >> m & 1], np.int64)
        self.column = np.array([fork.columns.get(m, -1) for m in modules], np.int64)
        self.cost, self.level = np.full(len(modules), GUESS_COST), np.full(len(modules), GUESS_SELECTIVITY)
        self.each = np.zeros(len(modules))
        self.found = np.empty(len(modules), np.int64)
        self.order: list[int] = []
        """Places in `modules`."""
        self.tried: list[int] = []
        """The order that was clearly cheaper when it was last thought about it, if there was one."""
        self.led: list[int] = []
        self.path: list[tuple[Entry, Traffic, Note | None]] = []
        """The order that was last led, and the way it goes."""
        self.value = 0.0
        """What a tuple costs in this order."""
        self.follows = -1
        """The moment at which an order decided further up last went through here."""
        self.news = -1
        """The news of its fork when its order was last decided."""

    def saved(self, signature: Signature) -> NoteSnapshot:
        """A snapshot for another process: what was decided for this signature."""
        return NoteSnapshot(signature, tuple(self.order), tuple(self.tried), self.value, self.news)

    def restore(self, saved: NoteSnapshot) -> None:
        """Continue from a snapshot."""
        self.order, self.tried, self.value, self.news = list(saved.order), list(saved.tried), saved.value, saved.news


class Forks:
    """The forks of an eddy that were found so far, and the notes on its entries."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self._sources = plan, len(plan.query.sources)
        self.found: list[Fork] = []

    def note(self, entry: Entry) -> Note:
        """The note on an entry, which is made the first time."""
        note = entry.note
        if not isinstance(note, Note):
            fork = self._fork(entry)
            modules = [m for m in fork.modules if not entry.bits >> m & 1]
            note = entry.note = Note(entry, fork, modules, self._masks(entry, modules), self._keys(entry, modules))
        return note

    def _fork(self, entry: Entry) -> Fork:
        """The fork whose profile has all steps that the tuples here have taken since; else this is one."""
        bits, operator = entry.bits, self._plan.operator(entry.signature)
        for fork in self.found:
            since = [m for m in fork.modules if bits >> m & 1]
            if fork.operator is operator and fork.entry.bits & ~bits == 0 and all(m in fork.columns for m in since):
                return fork
        modules = [*sorted(operator.bits.values()), *(self._sources + i for i in operator.selections)]
        modules += [t.bit for t in entry.steps]  # what a migration starts may lack selections of operators below
        fork = Fork(entry, operator, [m for m in dict.fromkeys(modules) if not bits >> m & 1])
        self.found.append(fork)
        return fork

    def _masks(self, entry: Entry, modules: list[int]) -> Masks:
        """Which modules may be taken at once, and after which others the rest, by their place in `modules`."""
        place, span = {m: i for i, m in enumerate(modules)}, entry.signature[0]
        operator = self._plan.operator(entry.signature)
        linked, bit_of = self._plan.linked(operator), operator.bit_of
        at_once = {t.bit for t in entry.steps}
        first, any_of, all_of = 0, np.zeros(len(modules), np.int64), np.zeros(len(modules), np.int64)
        for i, m in enumerate(modules):
            if m in at_once:
                first |= 1 << i
            elif m < self._sources:
                any_of[i] = sum(1 << place[s] for s in _numbers(linked[m] & ~span))
            else:
                needed = sources_of(self._plan.graph.selections[m - self._sources])
                all_of[i] = sum(1 << place[bit] for bit in {bit_of[s] for s in needed if not span >> s & 1})
        return first, any_of, all_of

    def _keys(self, entry: Entry, modules: list[int]) -> list[tuple[int, int]]:
        """For each module with which other source it will be probed: the one by which it is reached first."""
        reached, keys = {t.bit: t.partner for t in entry.steps}, dict.fromkeys(modules, -1)
        linked = self._plan.linked(self._plan.operator(entry.signature))
        while reached:
            keys |= reached
            sources = [m for m in modules if m < self._sources and keys[m] == -1 and m not in reached]
            reached = {m: p for p in reached if p < self._sources for m in sources if linked[m] >> p & 1}
        return list(keys.items())


def _numbers(bits: int) -> list[int]:
    """The places of the bits that are set."""
    return [i for i in range(bits.bit_length()) if bits >> i & 1]
