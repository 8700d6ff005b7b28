"""Access methods of a table compete: which of them is asked for a key (paper 001, sections 4.3 and 4.5).

A tuple may have values for several indexes, an index may be in several places (replicas), and a scan may bring the rows
without being asked for them. All of them give the same rows, so any choice gives the same result
(docs/design/access.md). Three rules choose:

- Keys go to the method that answers soonest. A method with few measurements gets some of the keys too. So does every
  other method from time to time: then a method that has become faster is noticed.
- If one method takes much longer for a key than another method of the same index, the other method is asked too. So
  keys leave a method that stalls. A lookup has failed only if it has failed with all methods of its index.
- While the scan brings more of the wanted keys than the indexes do, keys wait for it (hybrid.py).

A table that has a single method is not measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from math import inf
from statistics import fmean

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.bound.model import BoundStream
from eddyline.engine.lookups.hybrid import Hybrid
from eddyline.engine.lookups.index import Index
from eddyline.engine.lookups.look_up import Answer, Request
from eddyline.engine.tuning import EngineTuning
from eddyline.routing.decisions import Decision
from eddyline.state.key_values import KeyValues, values

Ints = NDArray[np.int64]

_PATIENCE = 1.0


class MethodPace:
    """How soon one access method answers. We take it that an answer takes some seconds, and that each key that is asked
    before it adds to that."""

    def __init__(self, fade: float) -> None:
        self._fade = fade
        self.owed: dict[KeyValues, tuple[float, int]] = {}
        """The keys that it was asked and has not answered, the oldest first: when, and behind how many others."""
        self.seconds: float | None = None
        """How long an answer takes if nothing else is asked; None if there was none."""
        self._busy = self._keys = self._last = 0.0
        """Seconds in which something was owed and keys that were answered in them, both faded; the last answer."""

    def ask(self, keys: Iterable[KeyValues], now: float) -> None:
        """It is asked for these keys."""
        if not self.owed:
            self._last = now
        new = [key for key in dict.fromkeys(keys) if key not in self.owed]
        self.owed.update((key, (now, ahead)) for ahead, key in enumerate(new, len(self.owed)))

    def answered(self, keys: Sequence[KeyValues], now: float, counts_as: float | None) -> None:
        """It has answered these keys; the answer `counts_as` one that took so many seconds, if that is told."""
        asked = [one for key in keys if (one := self.owed.pop(key, None)) is not None]
        if not asked:
            return
        if now > self._last:
            self._busy, self._keys = self._fade * self._busy + now - self._last, self._fade * self._keys
            self._last = now
        self._keys += len(asked)
        took = now - fmean(at for at, _ in asked) - self._each * fmean(ahead for _, ahead in asked)
        took = max(took, 0.0) if counts_as is None else counts_as
        self.seconds = took if self.seconds is None else self._fade * self.seconds + (1 - self._fade) * took

    @property
    def _each(self) -> float:
        """The seconds that each key adds that is asked before another."""
        return self._busy / self._keys if self._keys else 0.0

    def wait(self, now: float) -> float | None:
        """The seconds that an answer to the next key would take; at least as long as the oldest has taken so far."""
        if self.seconds is None:
            return None
        oldest, _ = next(iter(self.owed.values()), (now, 0))
        return max(self.seconds + self._each * len(self.owed), now - oldest)

    def overdue(self, now: float, seconds: float) -> list[KeyValues]:
        """The keys that it has owed for longer; they are no longer among those that it owes."""
        late = [key for key, _ in takewhile(lambda one: now - one[1][0] > seconds, self.owed.items())]
        if late:
            self.seconds = max(self.seconds or 0.0, now - self.owed[late[0]][0])
            for key in late:
                del self.owed[key]
        return late


class Competing:
    """Chooses among the access methods of one table."""

    def __init__(
        self,
        stream: BoundStream,
        indexes: Mapping[int, Index],
        scan: int | None,
        clock: Callable[[], float],
        tuning: EngineTuning,
        decisions: list[Decision],
    ) -> None:
        """`indexes` by the first access method of each. `decisions` gets a record of each choice."""
        self._stream, self._indexes, self._clock, self._tuning = stream, indexes, clock, tuning
        self._methods = {
            number: [m for m, method in enumerate(stream.methods) if method.columns == index.columns]
            for number, index in indexes.items()
        }
        self.index_of = {method: number for number, methods in self._methods.items() for method in methods}
        """The index that an access method answers for."""
        self._paces = {method: MethodPace(tuning.method_fade) for method in self.index_of}
        self._is_alone = len(self._paces) == 1 and scan is None
        self._hybrid = None if scan is None or not indexes else Hybrid(clock, tuning)
        self._unsent: dict[int, dict[KeyValues, None]] = {number: {} for number in indexes}
        """By index, the keys that wait for the scan."""
        self._failed: dict[int, dict[KeyValues, set[int]]] = {number: {} for number in indexes}
        """By index, the methods that have failed for a key which another one was asked for."""
        self._chosen: dict[tuple[int, ...], int] = {}
        """The method that was chosen last, by those that there were to choose from."""
        self._turn, self._decisions = 0, decisions
        self._came: float | None = None
        """When answers came since `look` was last called."""

    # Tuples ask

    def shares(self, known: Mapping[int, tuple[pa.RecordBatch, Ints]]) -> Iterator[tuple[int, pa.RecordBatch, Ints]]:
        """Which tuples ask which index for which keys, one for each tuple. `known` has the keys by index, and the
        numbers of their tuples; a tuple that has no key of some index matches no row."""
        if len(known) == 1:
            yield from ((number, *keys) for number, keys in known.items())
            return
        left = set.intersection(*(set(which.tolist()) for _, which in known.values()))
        now, trials = self._clock(), list[int]()
        best = self.index_of[self._best([m for number in known for m in self._methods[number]], now)]
        for number, (keys, which) in known.items():
            if number != best and any(self._is_due(method) for method in self._methods[number]):
                trials.append(number)
            if self._indexes[number].asked and self._is_near(number, best, now):
                waits = self._indexes[number].asked.has(keys) & _among(which, left)
                left -= set(which[waits].tolist())
                yield number, keys.filter(pa.array(waits)), which[waits]
        for number in (*trials, best):
            keys, which = known[number]
            mine = np.flatnonzero(_among(which, left))
            mine = mine if number == best else mine[: self._tuning.trial_keys]
            left -= set(which[mine].tolist())
            if mine.size:
                yield number, keys.take(pa.array(mine)), which[mine]

    def ask(self, number: int, keys: pa.RecordBatch, rank: int = 0) -> list[Request]:
        """Tuples wait for these keys of an index; returns who is asked. With a rank some may be asked already, and none
        waits for the scan."""
        if self._is_alone:
            return [Request(self._stream.name, number, keys, rank)]
        listed = list(values(keys))
        if self._hybrid is not None and not self._hybrid.sends:
            if not rank:
                self._unsent[number].update(dict.fromkeys(listed))
                return []
            for key in listed:
                self._unsent[number].pop(key, None)
        methods, now = self._methods[number], self._clock()
        best = self._best(methods, now)
        requests = [self._request(best, keys, listed, now, rank)]
        few = self._tuning.trial_keys
        others = [method for method in methods if method != best and self._is_due(method)]
        self._turn += 1
        return requests + [self._request(other, keys.slice(0, few), listed[:few], now) for other in others]

    def _request(
        self, method: int, keys: pa.RecordBatch, listed: Sequence[KeyValues], now: float, rank: int = 0
    ) -> Request:
        self._paces[method].ask(listed, now)
        return Request(self._stream.name, method, keys, rank)

    def _best(self, methods: Sequence[int], now: float) -> int:
        """The method that answers soonest; the last choice unless another is clearly sooner."""
        waits = {method: wait for method in methods if (wait := self._paces[method].wait(now)) is not None}
        last = self._chosen.get(tuple(methods), methods[0])
        if not waits:
            return last
        best = min(waits, key=lambda method: waits[method])
        if last != best and waits.get(last, 0.0) <= self._tuning.method_margin * waits[best]:
            return last
        if last != best:
            what = f"table {self._stream.name} is asked by {self._text(best)}"
            why = f"it takes {_text(waits[best])}, {self._text(last)} takes {_text(waits[last])}"
            self._decisions.append(Decision("access", 0, what, why, {self._text(m): s for m, s in waits.items()}))
        self._chosen[tuple(methods)] = best
        return best

    def _is_due(self, method: int) -> bool:
        """Whether a method that is not the best is asked, too."""
        pace, few = self._paces[method], self._tuning.trial_keys
        return self._turn % self._tuning.trial_every == 0 or (pace.seconds is None and len(pace.owed) < few)

    def _is_near(self, number: int, best: int, now: float) -> bool:
        """Whether an index answers about as soon as the best one: then a tuple waits for a key that is asked there."""
        waits = [min((self._paces[m].wait(now) or 0.0) for m in self._methods[one]) for one in (number, best)]
        return waits[0] <= self._tuning.overdue * waits[1] + self._tuning.overdue_least

    def look(self) -> list[Request]:
        """After tuples have asked: what is to be asked besides, because an access method is slow."""
        if self._is_alone:
            return []
        now, requests, self._came = self._clock(), list[Request](), None
        if self._hybrid is not None:
            decision = self._hybrid.look(any(pace.owed for pace in self._paces.values()))
            if decision is not None:
                what = "by its indexes as well" if self._hybrid.sends else "by its scan only"
                self._decisions.append(
                    Decision("access", 0, f"table {self._stream.name} is asked {what}", decision.why, decision.measured)
                )
                requests += [] if self._hybrid.sends else self._taken_back()
            requests += self._sent() if self._hybrid.sends else []
        for number, methods in self._methods.items():
            if len(methods) > 1 and self._indexes[number].asked:
                requests += self._overdue(number, methods, now)
        return requests

    @property
    def patience(self) -> float:
        """After how many seconds without an answer `look` may find that a method is slow."""
        return inf if self._is_alone or not any(index.asked for index in self._indexes.values()) else _PATIENCE

    def _sent(self) -> Iterator[Request]:
        """Send the keys that wait for the scan."""
        for number, unsent in self._unsent.items():
            index = self._indexes[number]
            keys = index.asked.among(index.asked.batch(list(unsent)))
            unsent.clear()
            if keys.num_rows:
                yield from self.ask(number, keys)

    def _taken_back(self) -> list[Request]:
        """Take back the keys that no method has begun to look up."""
        none = {number: index.asked.batch([]) for number, index in self._indexes.items()}
        owing = [method for method, pace in self._paces.items() if pace.owed]
        return [Request(self._stream.name, m, none[self.index_of[m]], takes_back=True) for m in owing]

    def _overdue(self, number: int, methods: Sequence[int], now: float) -> Iterator[Request]:
        """Ask another method for the keys that one takes too long for."""
        asked, tuning = self._indexes[number].asked, self._tuning
        for method in methods:
            waits = {m: wait for m in methods if m != method and (wait := self._paces[m].wait(now)) is not None}
            if not waits or not self._paces[method].owed:
                continue
            other = min(waits, key=lambda m: waits[m])
            longest = max(tuning.overdue_least, tuning.overdue * waits[other])
            late = asked.batch(self._paces[method].overdue(now, longest))
            failed, owed = self._failed[number], self._paces[other].owed
            keys = [k for k in values(asked.among(late)) if k not in owed and other not in failed.get(k, ())]
            if keys:
                yield self._request(other, asked.batch(keys), keys, now)

    # Answers come

    def answered(self, answer: Answer) -> None:
        """Take note of an answer of an index, whatever it is."""
        if self._is_alone:
            return
        keys, pace = list(values(answer.keys)), self._paces[answer.method]
        if answer.is_withdrawn:
            for key in keys:
                pace.owed.pop(key, None)
            self._unsent[self.index_of[answer.method]].update(dict.fromkeys(keys))
            return
        if self._came is None:
            self._came = self._clock()
        counts_as = None if answer.error is None else self._tuning.failed_seconds
        pace.answered(keys, self._came, counts_as)
        if answer.error is None:
            failed = self._failed[self.index_of[answer.method]]
            for key in keys if failed else ():
                failed.pop(key, None)
            if self._hybrid is not None:
                self._hybrid.answered(len(keys))

    def failed(self, answer: Answer) -> tuple[pa.RecordBatch, list[Request]]:
        """The lookup of some keys has failed with one method; returns the keys for which there is no other, and who is
        asked for the others."""
        number = self.index_of[answer.method]
        methods, asked, failed = self._methods[number], self._indexes[number].asked, self._failed[number]
        if len(methods) == 1:
            return answer.keys, []
        now, lost, again = self._clock(), list[KeyValues](), dict[int, list[KeyValues]]()
        for key in values(asked.among(answer.keys)):
            failed.setdefault(key, set()).add(answer.method)
            if any(key in self._paces[method].owed for method in methods):
                continue
            untried = [method for method in methods if method not in failed[key]]
            if untried:
                again.setdefault(untried[0], []).append(key)
            else:
                lost.append(key)
                del failed[key]
        return asked.batch(lost), [self._request(m, asked.batch(keys), keys, now) for m, keys in again.items()]

    def scanned(self, rows: pa.RecordBatch) -> None:
        """Rows of the scan came."""
        if self._hybrid is not None:
            some = rows.slice(0, self._tuning.hybrid_sample)
            wanted = np.zeros(some.num_rows, np.bool_)
            for index in self._indexes.values():
                if index.asked:
                    wanted |= index.asked.has(some.select(list(index.columns)))
            self._hybrid.scanned(rows.num_rows, some.num_rows, int(wanted.sum()))

    def ended(self) -> list[Request]:
        """The scan has ended: nobody waits for an index any more."""
        requests = self._taken_back()
        self.begin()
        return requests

    # Begin again

    def begin(self) -> None:
        """Nothing is asked. What is known of the methods stays known."""
        for pace in self._paces.values():
            pace.owed.clear()
        for number in self._indexes:
            self._unsent[number].clear()
            self._failed[number].clear()
        if self._hybrid is not None:
            self._hybrid.begin()

    def saved(self) -> tuple[float | None, ...]:
        """What is known of each method, for another process."""
        return tuple(pace.seconds for pace in self._paces.values())

    def restore(self, saved: Sequence[float | None]) -> None:
        """Restore from a snapshot. It is not known which keys were sent, so all of them are sent beside a scan; the
        others are asked already."""
        self.begin()
        for pace, seconds in zip(self._paces.values(), saved, strict=True):
            pace.seconds = seconds
        if self._hybrid is not None:
            for number, index in self._indexes.items():
                self._unsent[number] = dict.fromkeys(values(index.asked.keys))

    def _text(self, method: int) -> str:
        return f"index {method + 1} on ({', '.join(self._stream.methods[method].columns)})"


def _among(which: Ints, some: set[int]) -> NDArray[np.bool_]:
    return np.fromiter(map(some.__contains__, which.tolist()), np.bool_, which.size)


def _text(seconds: float) -> str:
    return f"{seconds * 1000:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"
