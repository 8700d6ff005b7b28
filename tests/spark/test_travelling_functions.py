"""User functions get to Spark's workers, wherever they are defined."""

from __future__ import annotations

import importlib
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from pyspark.sql import SparkSession

import eddyline as el
from eddyline.bound.udf import called
from eddyline.errors import SettingError
from eddyline.runtime.running.modules import import_all, texts
from eddyline.spark.functions import by_value, carried, module_of
from tests.conftest import Ran

FILE = """
import eddyline as el
from beside import MORE

@el.udf(returns="BIGINT")
def from_a_file(v):
    return v + MORE
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    folder = tmp_path / "functions"
    folder.mkdir()
    (folder / "of_a_file.py").write_text(FILE)
    (folder / "beside.py").write_text("MORE = 1000\n")
    return str(folder / "of_a_file.py")


def test_a_module_named_by_its_path(
    run_on_spark: Callable[..., Ran], files: Callable[..., str], table: Callable[..., pa.Table], file: str
) -> None:
    text = f"CREATE STREAM {files('a', table('v', (1, 1), (2, 2)))}; SELECT from_a_file(v) AS w FROM a"
    assert sorted(row["w"] for row in run_on_spark(text, modules=(file,)).rows) == [1001, 1002]


def test_a_file_is_imported_once_and_anew_when_it_changed(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "of_a_file", raising=False)  # another file of this name, of another test
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if not folder.endswith("functions")])
    path = Path(file)
    path.write_text("TIMES = globals().get('TIMES', 0) + 1\n")
    import_all((), texts([file]))
    first = sys.modules["of_a_file"]
    import_all((), texts([file]))
    assert sys.modules["of_a_file"] is first
    path.write_text("TIMES = 'changed'\n")
    import_all((), texts([file]))
    assert sys.modules["of_a_file"].TIMES == "changed"


def test_functions_that_live_in_the_program_go_by_value(spark: SparkSession) -> None:
    more = 5

    @el.udf(returns="BIGINT")
    def local_to_a_test(v: NDArray[np.int64]) -> NDArray[np.int64]:
        return v + more

    rows: list[int] = []
    streams = {"a": el.stream(_streaming(spark), time="timestamp")}
    run = el.query("SELECT local_to_a_test(a.value) AS w FROM a", streams=streams).start(
        sink=lambda batch: rows.extend(batch["w"].to_pylist()), follow=True, settings={"slots": 1}
    )
    try:
        while not rows and run.wait(0.05) is None:
            pass
    finally:
        run.stop()
    assert min(rows) == 5


def _streaming(spark: SparkSession) -> object:
    return spark.readStream.format("rate").option("rowsPerSecond", "50").load()


def test_which_functions_travel_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @el.udf(returns="BIGINT")
    def here(v: NDArray[np.int64]) -> NDArray[np.int64]:
        return v

    (tmp_path / "a_module_of_its_own.py").write_text(FILE.replace("from beside import MORE", "MORE = 1"))
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("a_module_of_its_own")
    names = {function.name: module_of(function) for function in called("SELECT HERE(v), from_a_file(v)")}
    assert names == {"here": None, "from_a_file": "a_module_of_its_own"}
    by_name, values = carried("SELECT here(v), from_a_file(v)")
    assert by_name == ["a_module_of_its_own"] and values
    assert carried("SELECT v FROM a") == ([], "")


def test_a_function_that_cannot_travel_is_refused() -> None:
    lock = threading.Lock()

    @el.udf(returns="BIGINT")
    def holds_a_lock(v: NDArray[np.int64]) -> NDArray[np.int64]:
        return v + lock.locked()

    with pytest.raises(SettingError, match=r"holds_a_lock cannot be sent .*; put it into a module"):
        by_value(called("holds_a_lock"))


@pytest.mark.long
def test_functions_of_a_script(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(MAIN)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.stdout.split() == ["7", "8", "9"], done.stderr


MAIN = """
import eddyline as el
from eddyline.spark.session import session

@el.udf(returns="BIGINT")
def of_main(v):
    return v + 7

spark, _ = session({"spark.log.level": "OFF", "spark.master": "local[1]", "spark.driver.memory": "512m"})
spark.sql("SELECT timestamp_seconds(id) AS ts, id AS v FROM range(3)").write.parquet("in")
frame = spark.readStream.schema("ts timestamp, v bigint").parquet("in")
rows = []
el.query("SELECT of_main(v) AS w FROM a", streams={"a": el.stream(frame, time="ts", lateness="9 s")}).start(
    sink=lambda batch: rows.extend(batch["w"].to_pylist()), settings={"slots": 1}
).wait()
spark.stop()
print(*sorted(rows))
"""
