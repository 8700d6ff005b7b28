"""A profile: a sample of tuples of one signature, and for each how many tuples every step would make of it.

Sampled tuples take all steps, so the profile knows how steps go together, whatever the route: with the columns of some
steps multiplied it is a sample of the tuples that came through them. That is what a route changes and no counting of
tuples on the current route can tell. Samples fade with age: how fast is up to the reader.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eddyline.codec import Snapshot

KEPT, ENOUGH = 512, 24
"""Samples that are kept, the newest, and how many of them always count."""


class ProfileSnapshot(Snapshot, frozen=True):
    """The samples, as the bytes of their arrays."""

    counts: bytes
    moments: bytes
    moment: int


class Profile:
    """Samples of one signature: `counts[i, step]`, taken at moment `moments[i]`."""

    def __init__(self, steps: int) -> None:
        self.counts: NDArray[np.float64] = np.empty((0, steps))
        self.moments: NDArray[np.int64] = np.empty(0, np.int64)
        self.moment = -1
        """When it was last added to."""

    @property
    def size(self) -> int:
        """How many samples there are."""
        return self.moments.size

    def age(self, moment: int) -> int:
        """How old the newest ENOUGH samples are: to forget faster would leave too few."""
        return moment - int(self.moments[-ENOUGH:][0]) if self.size else 0

    def newest(self, moment: int, oldest: float) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """(counts, ages) of samples that are at most `oldest` rows old."""
        first = int(np.searchsorted(self.moments, moment - oldest))
        return self.counts[first:], moment - self.moments[first:]

    def add(self, counts: NDArray[np.float64], moment: int) -> None:
        """New samples."""
        self.counts = np.concatenate([self.counts, counts])[-KEPT:]
        self.moments = np.concatenate([self.moments, np.full(len(counts), moment)])[-KEPT:]
        self.moment = moment

    def saved(self) -> ProfileSnapshot:
        """A snapshot for another process."""
        return ProfileSnapshot(self.counts.tobytes(), self.moments.tobytes(), self.moment)

    def restore(self, saved: ProfileSnapshot) -> None:
        """Continue from a snapshot."""
        self.moment, self.moments = saved.moment, np.frombuffer(saved.moments, np.int64)
        columns = self.counts.shape[1]
        self.counts = np.frombuffer(bytearray(saved.counts), np.float64).reshape(self.moments.size, columns)
