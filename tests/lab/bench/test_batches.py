"""What `bench batches` judges, of runs that are given."""

from __future__ import annotations

import pytest

from eddyline.errors import SettingError
from lab.bench.batches import Ran, _judged, run


def test_auto_is_compared_with_the_fastest_number_and_with_the_one_it_begins_with() -> None:
    def ran(seconds: float, memory: float, first: float) -> list[Ran]:
        return [Ran(seconds * noise, seconds, memory, first, 3, 7, 0) for noise in (1.0, 1.3)]

    runs = {"auto": ran(2.0, 160, 0.1), "65536": ran(3.0, 90, 0.1), "1000000": ran(1.95, 100, 0.5)}
    found = {r.metric: (round(r.value, 2), r.ok) for r in _judged("x", "local", runs) if r.ok is not None}
    assert found == {
        "auto / 1000000, time": (1.03, True),
        "auto / 1000000, memory": (1.6, False),
        "auto / 65536, first result": (1.0, True),
    }


def test_a_part_that_is_not_there_is_refused() -> None:
    with pytest.raises(SettingError, match="local-join"):
        run("nothing")
