"""What Spark's tasks are told of files: they read them as the local engine does. No session is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from eddyline.cql.script import parse
from eddyline.errors import JobError
from eddyline.runtime.formats import open_source
from eddyline.runtime.running.schemas import schema_text
from eddyline.runtime.running.spec import Spec
from eddyline.runtime.sources.source import Wanted
from eddyline.spark.source import StreamFiles, sources_option


@pytest.mark.parametrize("columns", ["", "(ts TIMESTAMP, k VARCHAR, x VARCHAR) "])
@pytest.mark.parametrize("header", ["", ", header 'auto'", ", header 'true'"])
def test_columns_of_csv_files_are_found_by_name(tmp_path: Path, columns: str, header: str) -> None:
    (tmp_path / "1").write_text("ts,k,x\n2026-01-01 00:00:01,a,b\n")
    (tmp_path / "2").write_text("K,ts\nc,2026-01-01 00:00:02\n")
    text = f"CREATE STREAM s {columns}USING csv OPTIONS (path '{tmp_path}'{header}) TIMESTAMP BY ts; SELECT k FROM s"
    schema = open_source(parse(text).declarations[0], 0).schema
    spec = Spec(text, {"s": schema_text(schema)}, {}, {"seed": 0}, (), {}, "", None, False, 1, "")
    options = {"spec": "", "sources": sources_option(spec, {"s": "ts"}), "follow": "false", "tasks": "1"}
    source = StreamFiles(options | {"rows_file": "", "checkpoint": "", "run": ""})._source("s")
    chunks = list(source.read(Wanted.of(schema, ["ts", "k"], False)))
    assert [row["k"] for chunk in chunks for row in chunk.rows.to_pylist()] == ["a", "c"]
    with pytest.raises(JobError, match=f"^{tmp_path}/2 (seems to have|has) the header K, ts, which lacks x"):
        list(source.read(Wanted.of(schema, ["ts", "k", "x"], False)))
