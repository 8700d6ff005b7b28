"""The figures of `bench soak`, of moments that are known."""

from __future__ import annotations

import pytest

from eddyline.errors import SettingError
from lab.bench import soak
from lab.bench.soak import Moment


@pytest.mark.parametrize(("growth", "ok"), [(0.04, True), (0.8, False)])
def test_memory_that_grows(growth: float, ok: bool) -> None:
    moments = [Moment(60.0 * minute, 150 + growth * minute, 6000 * 60 * minute, False) for minute in range(60)]
    found = {result.metric: result for result in soak._grown("local", moments)}
    assert found["growth in a minute"].value == pytest.approx(growth) and found["growth in a minute"].ok is ok
    assert found["rows a second"].value == 6000


@pytest.mark.parametrize(("rate", "lines", "ok"), [(99, 2, [True, True]), (50, 12, [False, False])])
def test_a_job_that_is_attacked(rate: int, lines: int, ok: list[bool]) -> None:
    moments, rows = [], 0
    for second in range(40):
        attacked = second // 10 % 2 == 1
        rows += rate if attacked else 100
        moments.append(Moment(float(second), 150.0, rows, attacked))
    found = soak._against(moments, lines)
    assert [result.ok for result in found if result.bar is not None] == ok
    assert [result.value for result in found[:2]] == [100, rate]


def test_parts_have_names() -> None:
    with pytest.raises(SettingError, match="the parts of this benchmark are local, spark, hostile"):
        soak.run(part="all")
