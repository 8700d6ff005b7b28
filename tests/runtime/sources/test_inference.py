"""csv and json infer the same types: the same values, written both ways."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow as pa
import pytest

from eddyline.runtime.sources.csv import CsvFormat
from eddyline.runtime.sources.csv_text import CsvOptions
from eddyline.runtime.sources.file_source import FileSource
from eddyline.runtime.sources.json import JsonFormat
from eddyline.runtime.sources.source import Wanted

TIME, MOMENT = pa.timestamp("us"), pa.timestamp("us", "UTC")
CASES: dict[str, tuple[list[object], pa.DataType]] = {
    "days": (["2026-11-16", None, "2026-02-28"], pa.date32()),
    "times": (["2026-11-16 10:11:12", "2026-11-16T10:11:12.5", None], TIME),
    "minutes": (["2026-11-16 10:11", "2026-11-16T10:12"], TIME),
    "zoned": (["2026-11-16T10:11:12Z", "2026-11-16 10:11:12+02:00", "2026-11-16T10:11:12.123456-0530"], MOMENT),
    "some zoned": (["2026-11-16T10:11:12Z", "2026-11-16 10:11:12"], MOMENT),
    "days and times": (["2026-11-16", "2026-11-16 10:11:12"], TIME),
    "nanoseconds": (["2026-11-16 10:11:12.123456789", "2026-11-16 10:11:12"], TIME),
    "clocks": (["10:11:12", "23:59:59"], pa.string()),
    "german": (["16.11.2026", "17.11.2026"], pa.string()),
    "no such day": (["2026-02-30", "2026-02-28"], pa.string()),
    "epoch": ([1763251200000, 1763251260000], pa.int64()),
    "whole": ([1, None, -3], pa.int64()),
    "fractions": ([1.5, 2, None], pa.float64()),
    "flags": ([True, False], pa.bool_()),
    "words": (["a", "2026-11-16"], pa.string()),
    "nothing": ([None, None], pa.string()),
}


@pytest.mark.parametrize("name", CASES)
def test_same_types_and_values(name: str, tmp_path: Path) -> None:
    values, type_ = CASES[name]
    with (tmp_path / "a.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["n", "x"])
        rows.writerows([i, str(v).lower() if isinstance(v, bool) else v] for i, v in enumerate(values))
    (tmp_path / "a.json").write_text("\n".join(json.dumps({"n": i, "x": v}) for i, v in enumerate(values)))
    csv_path, json_path = str(tmp_path / "a.csv"), str(tmp_path / "a.json")
    sources = [
        FileSource(csv_path, CsvFormat(csv_path, None, CsvOptions())),
        FileSource(json_path, JsonFormat(json_path, None)),
    ]
    assert [source.schema.field("x").type for source in sources] == [type_, type_]
    read = []
    for source in sources:
        chunks = list(source.read(Wanted.of(source.schema, ["n", "x"], False)))
        assert all(chunk.dead is None for chunk in chunks)
        read.append([row for chunk in chunks for row in chunk.rows.to_pylist()])
    assert read[0] == read[1] and len(read[0]) == len(values)
