"""Lines of JSON that are no objects: null is a row to Arrow's reader, which crashes if it is the first."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from eddyline.errors import JobError
from eddyline.runtime.sources.beside import Beside
from eddyline.runtime.sources.json import JsonFormat
from eddyline.runtime.sources.json_text import JsonText
from eddyline.runtime.sources.kafka_texts import json_values
from eddyline.runtime.sources.source import Wanted

SCHEMA = pa.schema([("k", pa.int64())])
WANTED = Wanted(("k",), ("k",))
LINES = [b"null", b'{"k": 1}', b' {"k": 2}', b"null", b"true", b'{"k": 3}null']


@pytest.mark.parametrize("lines", [LINES, LINES[1:], LINES[:1], LINES * 50])
def test_lines_that_are_no_objects_are_dead(lines: list[bytes]) -> None:
    beside = Beside({}, np.arange(len(lines)), lambda rows: [str(row) for row in rows])
    for chunks in (JsonText(SCHEMA).chunks(lines, WANTED), json_values(SCHEMA)(lines, WANTED, beside)):
        rows, dead = list[int](), 0
        for chunk in chunks:
            rows += chunk.rows.column("k").to_pylist()
            dead += 0 if chunk.dead is None else chunk.dead.num_rows
        good = [line for line in lines if line.endswith(b"}")]
        assert sorted(rows) == sorted(1 + (b"2" in line) for line in good) and dead == len(lines) - len(good)


def test_columns_are_inferred_from_objects_only(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"\n".join(LINES))
    assert JsonFormat(str(tmp_path / "a.json"), None).schema == SCHEMA
    (tmp_path / "b.json").write_bytes(b"null\nnull")
    with pytest.raises(JobError, match="the columns cannot be told from the first lines"):
        JsonFormat(str(tmp_path / "b.json"), None)
