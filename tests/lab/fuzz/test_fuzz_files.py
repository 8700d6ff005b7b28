"""A share of the fuzzer of files, and that it finds what it looks for."""

from __future__ import annotations

import pyarrow as pa
import pytest

from eddyline.runtime.values import arrow
from lab.fuzz.fuzz_files import Report, main, run_case


def test_a_share_of_the_cases() -> None:
    report = Report(seed=1)
    for index in range(25):
        run_case(1, index, report)
    assert not report.differences, report.differences
    assert report.dead and {"csv", "json", "parquet", "arrow", "avro"} <= report.drawn.keys()


@pytest.mark.long
def test_many_cases(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--cases", "500", "--seed", "2"]) == 0
    assert "seed 2: 500 cases" in capsys.readouterr().out


def test_a_cast_that_cuts_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = arrow._plain

    def cutting(values: pa.Array, type_: pa.DataType) -> tuple[pa.Array, object]:
        if pa.types.is_floating(values.type) and pa.types.is_integer(type_):
            return values.cast(type_, safe=False), None
        return exact(values, type_)

    monkeypatch.setattr(arrow, "_plain", cutting)
    report = Report(seed=1)
    for index in range(200):
        run_case(1, index, report)
        if report.differences:
            break
    assert report.differences
