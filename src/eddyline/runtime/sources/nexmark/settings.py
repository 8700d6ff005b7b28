"""What defines a stream of Nexmark events, and which events are persons, auctions and bids.

Events are numbered from 0. They come in epochs: first the persons of the epoch, then its auctions, then its bids. So
the kind of an event, its number among the events of its kind, and its time follow from its number alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from eddyline.errors import SettingError
from eddyline.runtime.options import Options, duration, instant

KINDS = ("person", "auction", "bid")
_START = "2026-01-01"


@dataclass(frozen=True)
class NexmarkSettings:
    """The options of a stream, with the published defaults. `seed` and the rest say what every event is; `events` only
    says how many there are (None: no end)."""

    kind: str
    events: int | None
    seed: int
    rate: int
    start: int
    proportions: tuple[int, int, int]
    hot_auction_ratio: int
    hot_sellers_ratio: int
    hot_bidders_ratio: int
    in_flight_auctions: int
    active_people: int
    bytes: int
    """The average size of a row of this kind, as Nexmark counts it; `extra` fills it up."""

    @staticmethod
    def of(options: Options, seed: int) -> NexmarkSettings:
        """Read the options of a declaration; SettingError if one is wrong."""
        kind = options.required("kind", "bid").lower()
        if kind not in KINDS:
            raise SettingError(f"option kind is person, auction or bid, not '{kind}'", "option kind")
        seed = options.whole("seed", seed)
        rate = options.whole("rate", 10_000, 1)
        start = instant(options.text("start", _START), "start")
        persons, auctions, bids = (
            options.whole(f"{name}_proportion", default, 1) for name, default in zip(KINDS, (1, 3, 46), strict=True)
        )
        hot_auction = options.whole("hot_auction_ratio", 2, 1)
        hot_sellers, hot_bidders = options.whole("hot_sellers_ratio", 4, 1), options.whole("hot_bidders_ratio", 4, 1)
        in_flight, active = options.whole("in_flight_auctions", 100, 1), options.whole("active_people", 1000, 1)
        size = options.whole("avg_bytes", {"person": 200, "auction": 500, "bid": 100}[kind])
        limits = [options.whole("events", 0)] if "events" in options else []
        if "duration" in options:
            limits.append(-(-duration(options.text("duration"), "duration") * rate // 1_000_000))
        return NexmarkSettings(
            kind, min(limits) if limits else None, seed, rate, start - start % 1000, (persons, auctions, bids),
            hot_auction, hot_sellers, hot_bidders, in_flight, active, size,
        )  # fmt: skip

    @property
    def proportion(self) -> int:
        """How many of the events of an epoch are of this kind."""
        return self.proportions[KINDS.index(self.kind)]

    @property
    def epoch(self) -> int:
        """The events of an epoch."""
        return sum(self.proportions)

    @property
    def before(self) -> int:
        """The events of an epoch that come before those of this kind."""
        return sum(self.proportions[: KINDS.index(self.kind)])

    def rows(self, event: int) -> int:
        """The rows of this kind among the events 0 .. event - 1."""
        epochs, rest = divmod(event, self.epoch)
        return epochs * self.proportion + min(max(rest - self.before, 0), self.proportion)

    def events_for(self, rows: int) -> int:
        """About how many events have this many rows of this kind, at least one."""
        return max(1, rows * self.epoch // self.proportion)
