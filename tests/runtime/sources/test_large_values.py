"""A value of 64 MB passes through a job exactly, from files and to files of each format."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import eddyline as el

SIZE = 64 * 1024 * 1024
TEXT = ("0123456789abcdé" * (SIZE // 16))[: SIZE - 4] + "end."


@pytest.mark.long
@pytest.mark.parametrize("type_", ["VARCHAR", "BLOB"])
@pytest.mark.parametrize("format_", ["csv", "json", "parquet"])
def test_a_value_of_64_mb(format_: str, type_: str, tmp_path: Path) -> None:
    data = TEXT.encode()
    given = tmp_path / "in"
    given.mkdir()
    written = base64.b64encode(data).decode() if type_ == "BLOB" and format_ == "json" else TEXT
    if format_ == "csv":
        (given / "a.csv").write_text(f'ts,v\n2026-01-01,"{written}"\n2026-01-02,small\n')
    elif format_ == "json":
        small = "c21hbGw=" if type_ == "BLOB" else "small"
        rows = ({"ts": "2026-01-01", "v": written}, {"ts": "2026-01-02", "v": small})
        (given / "a.json").write_text("\n".join(map(json.dumps, rows)))
    else:
        kind = pa.binary() if type_ == "BLOB" else pa.string()
        values = pa.array([data, b"small"] if type_ == "BLOB" else [TEXT, "small"], kind)
        times = pa.array([1_767_225_600_000_000, 1_767_312_000_000_000], pa.timestamp("us"))
        pq.write_table(pa.table({"ts": times, "v": values}), given / "a.parquet")
    header = ", header true" if format_ == "csv" else ""
    sink = "parquet" if type_ == "BLOB" and format_ == "csv" else format_  # csv has no bytes
    script = f"""
        CREATE STREAM t (ts TIMESTAMP, v {type_}) USING {format_} OPTIONS (path '{given}'{header}) TIMESTAMP BY ts;
        CREATE SINK out USING {sink} OPTIONS (path '{tmp_path}/out');
        INSERT INTO out SELECT v FROM t"""
    summary = el.query(script).start().wait()
    assert summary is not None and summary.rows_dead == 0
    (path,) = (tmp_path / "out").glob(f"*.{sink}")
    small, large = sorted(_values(path, type_), key=len)
    assert small == b"small" and hashlib.sha256(large).digest() == hashlib.sha256(data).digest()


def _values(path: Path, type_: str) -> list[bytes]:
    """The values in a file, read by another reader than ours."""
    if path.suffix == ".parquet":
        found = pq.read_table(path).column("v").to_pylist()
    elif path.suffix == ".csv":
        csv.field_size_limit(2 * SIZE)
        with path.open(newline="") as file:
            found = [row["v"] for row in csv.DictReader(file)]
    else:
        found = [json.loads(line)["v"] for line in path.read_text().splitlines()]
        found = [base64.b64decode(value) for value in found] if type_ == "BLOB" else found
    return [value if isinstance(value, bytes) else value.encode() for value in found]
