"""A profile: a sample of tuples of one signature, and for each tuple how many tuples every step would make of it.

Sampled tuples take all steps, so the profile shows correlations between steps, whatever the route: its counts,
multiplied over some steps, are a sample of the tuples that come through these steps. Counting tuples on the current
route cannot tell this. Samples fade with age; the reader decides how fast.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eddyline.codec import Snapshot
from eddyline.routing.tuning import DEFAULT, RoutingTuning


class ProfileSnapshot(Snapshot, frozen=True):
    """The samples, as the bytes of their arrays."""

    counts: bytes
    moments: bytes
    moment: int


class Profile:
    """Samples of one signature: `counts[i, step]`, taken at moment `moments[i]`."""

    def __init__(self, steps: int, tuning: RoutingTuning = DEFAULT) -> None:
        self._kept, self._enough = tuning.profile_size, tuning.profile_least
        self.counts: NDArray[np.float64] = np.empty((0, steps))
        self.moments: NDArray[np.int64] = np.empty(0, np.int64)
        self.moment = -1
        """The moment of the last addition."""

    @property
    def size(self) -> int:
        """The number of samples."""
        return self.moments.size

    def age(self, moment: int) -> int:
        """The age of the newest samples that always count: faster fading would leave too few."""
        return moment - int(self.moments[-self._enough :][0]) if self.size else 0

    def newest(self, moment: int, oldest: float) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """(counts, ages) of the samples that are at most `oldest` rows old."""
        first = int(np.searchsorted(self.moments, moment - oldest))
        return self.counts[first:], moment - self.moments[first:]

    def add(self, counts: NDArray[np.float64], moment: int) -> None:
        """Add samples."""
        self.counts = np.concatenate([self.counts, counts])[-self._kept :]
        self.moments = np.concatenate([self.moments, np.full(len(counts), moment)])[-self._kept :]
        self.moment = moment

    def saved(self) -> ProfileSnapshot:
        """A snapshot for another process."""
        return ProfileSnapshot(self.counts.tobytes(), self.moments.tobytes(), self.moment)

    def restore(self, saved: ProfileSnapshot) -> None:
        """Restore from a snapshot."""
        self.moment, self.moments = saved.moment, np.frombuffer(saved.moments, np.int64)
        columns = self.counts.shape[1]
        self.counts = np.frombuffer(bytearray(saved.counts), np.float64).reshape(self.moments.size, columns)
