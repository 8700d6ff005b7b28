"""A program that tries everything that needs an extra, where no package of an extra can be imported, and prints JSON:
for each attempt the extra, the exit status (None: from Python) and what was said."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import ModuleType

_OF_EXTRAS = (
    "pyspark", "pandas", "polars", "valkey", "psycopg", "aiohttp", "duckdb", "confluent_kafka", "fastavro", "deltalake",
    "pyiceberg", "starlette", "uvicorn", "matplotlib",
)  # fmt: skip
_STREAM = """
CREATE STREAM s (ts TIMESTAMP, k BIGINT) USING generate OPTIONS (rows 9, rate 9, k.domain '0..1') TIMESTAMP BY ts;
"""
_ASKED = (
    _STREAM
    + "CREATE TABLE t (k BIGINT, v VARCHAR) USING {} INDEX ON (k);"
    + "SELECT s.k FROM s [RANGE 1 SECOND], t WHERE s.k = t.k;"
)
_INTO = _STREAM + "CREATE SINK o USING {}; INSERT INTO o SELECT s.k FROM s;"
_READ = "CREATE STREAM s (ts TIMESTAMP, k BIGINT) USING {} TIMESTAMP BY ts; SELECT s.k FROM s;"
_SCRIPTS = (
    ("postgres", _ASKED, "postgres OPTIONS (url 'postgresql://x/y', table 't')"),
    ("redis", _ASKED, "redis OPTIONS (host 'localhost', prefix 'k:')"),
    ("http", _ASKED, "http OPTIONS (url 'http://127.0.0.1:9/{k}')"),
    ("duckdb", _ASKED, "duckdb OPTIONS (path 'x.db', table 't')"),
    ("postgres", _INTO, "postgres OPTIONS (url 'postgresql://x/y', table 't')"),
    ("kafka", _INTO, "kafka OPTIONS (servers '127.0.0.1:9', topic 't')"),
    ("delta", _INTO, "delta OPTIONS (path 'd')"),
    ("iceberg", _INTO, "iceberg OPTIONS (table 'a.b')"),
    ("kafka", _READ, "kafka OPTIONS (servers '127.0.0.1:9', topic 't', format 'json')"),
    ("redis", _READ, "redis-stream OPTIONS (host 'localhost', stream 's')"),
)


class _NotInstalled(MetaPathFinder):
    def find_spec(self, name: str, path: object = None, target: ModuleType | None = None) -> None:
        if name.partition(".")[0] in _OF_EXTRAS:
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)


def main() -> None:
    sys.meta_path.insert(0, _NotInstalled())
    import pyarrow as pa

    import eddyline as el
    from eddyline.cli.main import main as command

    found = []

    def attempt(extra: str, action: Callable[[], object]) -> None:
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            try:
                status = action()
            except el.errors.EddylineError as error:
                status = None
                said.write(f"{error}\n")
        found.append((extra, status, said.getvalue()))

    def on_script(text: str, *arguments: str) -> Callable[[], int]:
        def action() -> int:
            Path("s.sql").write_text(text)
            return command([*arguments, "s.sql"])

        return action

    for extra, text, using in _SCRIPTS:
        attempt(extra, on_script(text.replace("{}", using), "validate", "--engine", "local"))
    attempt("spark", on_script(f"{_STREAM} SELECT s.k FROM s;", "run"))
    attempt("spark", lambda: command(["demo", "--seconds", "12", "--live"]))
    rows = pa.table({"ts": pa.array([0], pa.timestamp("us")), "k": [1]})
    query = el.query("SELECT k FROM s", streams={"s": el.stream(rows, time="ts")})
    attempt("spark", lambda: query.start(engine="spark"))
    run = query.start()
    run.wait()
    attempt("pandas", run.to_pandas)
    attempt("polars", run.to_polars)
    attempt("spark", run.to_spark)
    attempt("plots", run.plot_routes)
    sys.stdout.write(f"{json.dumps(found)}\n")


if __name__ == "__main__":
    main()
