"""Delta and PostgreSQL as sinks of a job on Spark: each batch once, also after the driver died between two commits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import psycopg
import pyarrow as pa
import pytest

from eddyline import faults
from eddyline.errors import JobError
from lab.servers.postgres import NoPostgres, binaries, postgres_server
from tests.conftest import Ran


def test_delta_and_postgres(
    run_on_spark: Callable[..., Ran],
    files: Callable[..., str],
    table: Callable[..., pa.Table],
    tmp_path: Path,
) -> None:
    """Results go to Delta and late rows to PostgreSQL. The driver dies after a sink's commit, before the next batch."""
    parts = [table("k", *((second, second % 5) for second in (*range(n, n + 20), 1))) for n in range(0, 80, 20)]
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    expected = [(k, n) for n in range(80) for k in [n % 5]]
    try:
        binaries()
    except NoPostgres as error:
        pytest.skip(str(error))
    with postgres_server() as server:
        late = f"USING postgres OPTIONS (url '{server.url}', table 'late', create 'true')"
        text = (
            f"CREATE STREAM {files('a', *parts)} LATE INTO late; CREATE SINK late {late};"
            f" CREATE SINK out USING delta OPTIONS (path '{out}');"
            " INSERT INTO out SELECT a.k, date_part('epoch', a.ts) AS s FROM a"
        )
        seen: list[str] = []

        def reached(name: str) -> None:
            seen.append(name)
            if name == "table: a step is done" and seen.count(name) == 2:
                raise JobError("the driver dies")

        faults.inject(reached)
        try:
            with pytest.raises(JobError, match="the driver dies"):
                run_on_spark(text, checkpoint, batch_rows=21)
        finally:
            faults.inject(None)
        assert 0 < pl.read_delta(str(out)).height < 80
        summary = run_on_spark(text, checkpoint, batch_rows=21).summary
        rows = pl.read_delta(str(out)).to_dicts()
        with psycopg.connect(server.url) as connection:
            kept = connection.execute("SELECT k FROM late").fetchall()
    start = min(row["s"] for row in rows)
    assert sorted((row["k"], int(row["s"] - start)) for row in rows) == sorted([*expected, (1, 1)])
    assert summary.rows_late == len(kept) == 3
    again = run_on_spark(text.replace(late, "USING print"), batch_rows=50, checkpoint=None)
    assert pl.read_delta(str(out)).height == len(rows) + again.summary.rows_out
