"""The archive of Spark's classes: made once, then used, and left alone where the JVM is not the usual one."""

from __future__ import annotations

from pathlib import Path

import pytest

from eddyline.spark.archive import archive_options


def test_it_is_made_and_then_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    for name in ("SPARK_HOME", "SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"):
        monkeypatch.delenv(name, raising=False)
    home = str(tmp_path / "spark-1")
    first = archive_options(home).split()[0]
    assert first.startswith(f"-XX:ArchiveClassesAtExit={home}-")
    archive = Path(first.split("=")[1])
    archive.touch()
    assert archive_options(home).startswith(f"-XX:SharedArchiveFile={archive} -Xlog:disable")
    java.write_text("#!/bin/sh\n# another Java")
    assert "ArchiveClassesAtExit" in archive_options(home)
    assert archive_options(None) == ""
    assert archive_options(str(tmp_path / "a folder")) == ""
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Xverify:none")
    assert archive_options(home) == ""
