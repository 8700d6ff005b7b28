"""Jobs whose partition groups move between slots all the time: a module that a job imports lets random moves
(lab/fuzz/random_places.py) replace the decisions of the distribution manager. In half of the jobs, slots also change
their plans at random (lab/fuzz/random_plans.py). Nothing else of the job is different.

All processes of the job are armed as well (lab/chaos/strikes.py), and the driver counts the groups that moved.
"""

from __future__ import annotations

from pathlib import Path

from eddyline.protocol.adapted import Adapted, AfterBatch
from eddyline.protocol.balancer import place_by
from eddyline.runtime.running.spec import plan_by
from lab.chaos import strikes
from lab.fuzz.random_places import RandomPlaces
from lab.fuzz.random_plans import random_plans

MOVED = "moved"


class Restless:
    """Draws the slot of each group before each batch, and writes to a file how many groups move. A move counts when the
    commit that decides it is written."""

    def __init__(self, folder: Path, seed: int, tracks: bool) -> None:
        self._file, self._places, self._decided = folder / MOVED, RandomPlaces(seed, tracks), 0

    def __call__(self, so_far: Adapted, after: AfterBatch) -> Adapted:
        """The slot of each group in the next batch."""
        found = self._places(so_far, after)
        self._decided = int((found.slot_map.places != so_far.slot_map.places).sum())
        return found

    def reached(self, point: str) -> None:
        """Called at every fault point of the driver."""
        if point == "after commit" and self._decided:
            with self._file.open("a", encoding="utf-8") as file:
                file.write(f"{self._decided}\n")
            self._decided = 0


def module(folder: Path, checkpoint: Path, seed: int, tracks: bool) -> str:
    """The path of a module that makes the job that imports it restless. With `tracks` groups move by parallel track
    too; a query with a ROWS window has none."""
    path = folder / "restless_job.py"
    given = f"Path({str(folder)!r}), Path({str(checkpoint)!r}), {seed}, {tracks}"
    folder.mkdir(exist_ok=True)
    path.write_text(f"from pathlib import Path\nfrom {__name__} import arm\narm({given})\n")
    return str(path)


def arm(folder: Path, checkpoint: Path, seed: int, tracks: bool) -> None:
    """From now on the groups of jobs in this process move at random, and the process has the faults planned in a
    folder."""
    restless = Restless(folder, seed, tracks)
    place_by(restless)
    plan_by(random_plans(seed if seed % 2 else None))
    strikes.arm(folder, checkpoint, restless.reached)


def groups_moved(folder: Path) -> int:
    """The number of groups that moved in jobs armed with this folder; a group counts each time."""
    path = folder / MOVED
    return sum(map(int, path.read_text(encoding="utf-8").split())) if path.exists() else 0
