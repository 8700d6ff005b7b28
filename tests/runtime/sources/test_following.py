"""Files are read once each, whatever their names and whenever they appear; `follow` waits for more."""

from __future__ import annotations

import errno
import gzip
import os
import random
import shutil
import subprocess
import sys
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest

from eddyline.cql.script import parse
from eddyline.errors import CorruptFile, JobError
from eddyline.optimizer.pressure import Pressure
from eddyline.protocol.checkpoint import Checkpoint
from eddyline.protocol.coordinator import Coordinator
from eddyline.runtime.formats import open_source
from eddyline.runtime.reporting.summary import Progress, Summary
from eddyline.runtime.running.job import prepare
from eddyline.runtime.running.runner import LocalRunner
from eddyline.runtime.sinks.callback import CallbackSink
from eddyline.runtime.sources.file_chunks import COUNT_EVERY, FileChunks
from eddyline.runtime.sources.file_progress import FileProgress
from eddyline.runtime.sources.file_source import FileSource
from eddyline.runtime.sources.paths import unreadable
from eddyline.runtime.sources.register import Register
from eddyline.runtime.sources.source import Files, Found, Wanted
from eddyline.settings import from_mapping
from eddyline.state.log.labelled import LabelledFiles
from eddyline.state.log.store import Store
from eddyline.testing.clock import ManualClock
from tests.conftest import at

SCRIPT = "CREATE STREAM s USING {} OPTIONS (path 'in'{}) TIMESTAMP BY ts LATENESS 1 HOUR; SELECT k FROM s"


class Job:
    """A job over the folder `in`, in this process; `rows` has its results, also while it runs."""

    def __init__(self, text: str, checkpoint: bool = True, **settings: Any) -> None:
        self.text, self.checkpoint, self.settings = text, checkpoint, from_mapping(settings)
        self.rows: list[dict[str, Any]] = []
        self.watch: Callable[[Progress], None] = lambda progress: None

    @property
    def keys(self) -> list[int]:
        return sorted(row["k"] for row in self.rows)

    def run(self, follow: bool = False, stop: Callable[[], bool] = lambda: False) -> Summary:
        sink = CallbackSink(lambda batch: self.rows.extend(batch.to_pylist()))
        job = prepare(self.text, sink=sink, opener=partial(open_source, follow=follow))
        if self.checkpoint:
            return LocalRunner(job, self.settings, "checkpoint", follow=follow).run(stop, self.watch)
        return LocalRunner(job, self.settings, follow=follow).run(stop, self.watch)

    @contextmanager
    def following(self) -> Iterator[Callable[[Callable[[], bool]], None]]:
        """A run that waits for files; gives a function that waits until something is so, or the run has failed."""
        stopping, failed = threading.Event(), list[BaseException]()

        def work() -> None:
            try:
                self.run(True, stopping.is_set)
            except BaseException as error:
                failed.append(error)
                stopping.set()

        def until(so: Callable[[], bool]) -> None:
            for _ in range(30_000):
                if so() or stopping.wait(0.02):
                    break
            assert so() or failed

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield until
        finally:
            stopping.set()
            thread.join()
        if failed:
            raise failed[0]


@pytest.fixture
def write(in_tmp: Path, table: Callable[..., pa.Table]) -> Callable[..., Path]:
    """Writes a file of the stream, whole, with these keys; their times are as many seconds."""
    (in_tmp / "in").mkdir()

    def one(name: str, *keys: int) -> Path:
        file, hidden = in_tmp / "in" / name, in_tmp / "in" / f".{name}"
        if name.endswith(".parquet"):
            pq.write_table(table("k", *((k, k) for k in keys)), hidden, row_group_size=2)
        else:
            lines = [f'{{"ts": "{at(k)}", "k": {k}}}' for k in keys]
            hidden.write_text("\n".join(lines) + "\n")
        hidden.rename(file)
        return file

    return one


@pytest.mark.parametrize("ending", ["parquet", "json"])
@pytest.mark.parametrize("checkpoint", [True, False])
def test_a_file_whose_name_sorts_before_those_that_were_read(ending: str, checkpoint: bool, write: Any) -> None:
    job = Job(SCRIPT.format(ending, ""), checkpoint)
    write(f"5.{ending}", 1, 2, 3)
    with job.following() as until:
        until(lambda: len(job.rows) == 3)
        write(f"2.{ending}", 4, 5)
        until(lambda: len(job.rows) == 5)
        write(f"3.{ending}", 6)
        until(lambda: len(job.rows) == 6)
    assert job.keys == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("batch_rows", [1, 2, 3, 100])
def test_a_run_that_goes_on_reads_only_what_is_new(batch_rows: int, write: Any) -> None:
    job = Job(SCRIPT.format("parquet", ""), batch_rows=batch_rows)
    write("5.parquet", 1, 2, 3)
    first = job.run()
    write("2.parquet", 4, 5)
    seen = iter([False, False, True])
    job.run(stop=lambda: next(seen))  # in the middle of the file
    write("1.parquet", 6)
    assert job.run().rows_in == 6 and first.rows_in == 3
    assert job.keys == [1, 2, 3, 4, 5, 6] and job.run().batches == 0


@pytest.mark.parametrize("ending", ["parquet", "json"])
def test_a_file_that_changed_after_it_was_read(ending: str, write: Any) -> None:
    job = Job(SCRIPT.format(ending, ""))
    file = write(f"1.{ending}", 1, 2)
    job.run()
    write(f"1.{ending}", 1, 2, 3)
    with pytest.raises(JobError, match=rf"in/1.{ending} changed after it was read: .*\(cp -p\).*new checkpoint folder"):
        job.run()
    write(f"1.{ending}", 1, 2)
    os.utime(file, (1, 1))
    with pytest.raises(JobError, match="changed after it was read"):
        job.run()
    assert job.keys == [1, 2]


def test_a_file_with_fewer_rows_than_were_read_is_named(write: Any) -> None:
    """Its size and its time are the same."""
    job = Job(SCRIPT.format("json", ""), batch_rows=2)
    file = write("1.json", 1, 2, 3)
    seen, then = iter([False, True]), file.stat()
    job.run(stop=lambda: next(seen))
    first, *rest = file.read_text().splitlines()
    file.write_text(first + " " * sum(len(line) + 1 for line in rest) + "\n")
    os.utime(file, ns=(then.st_atime_ns, then.st_mtime_ns))
    with pytest.raises(JobError, match=r"in/1.json of s has fewer rows than the job has already read"):
        job.run()


def test_a_file_that_changes_while_it_is_followed(write: Any) -> None:
    job = Job(SCRIPT.format("json", ""))
    file = write("1.json", 1)
    with pytest.raises(JobError, match=r"1.json changed after it was read"), job.following() as until:
        until(lambda: len(job.rows) == 1)
        with file.open("a") as out:
            out.write('{"ts": "2026-01-01", "k": 2}\n')
        until(lambda: False)


def test_a_file_that_changes_between_two_batches(write: Any) -> None:
    """It is read in part: the rest must not come from another file."""
    job = Job(SCRIPT.format("parquet", ""), batch_rows=2)
    write("1.parquet", 1, 2, 3, 4)
    seen = iter([False, True])
    job.run(stop=lambda: next(seen))
    write("1.parquet", 1, 2, 30, 40)
    with pytest.raises(JobError, match=r"1.parquet changed after it was read"):
        job.run()
    assert job.keys == [1, 2]


def test_a_parquet_file_without_a_footer_is_waited_for(write: Any, caplog: pytest.LogCaptureFixture) -> None:
    job = Job(SCRIPT.format("parquet", ""))
    whole = write("2.parquet", 1, 2)
    bytes_, half = whole.read_bytes(), whole.with_name("1.parquet")
    half.write_bytes(bytes_[:-5])
    os.utime(half, (1, 1))
    with job.following() as until:
        until(lambda: len(job.rows) == 2 and len(caplog.records) == 1)
        with half.open("ab") as out:
            out.write(bytes_[-5:])
        until(lambda: len(job.rows) == 4)
    assert job.keys == [1, 1, 2, 2]
    assert "1.parquet has no end yet, and is read when its writer has finished it" in caplog.text


def test_a_file_that_is_finished_while_it_is_looked_at_is_found_as_it_is_then(write: Any) -> None:
    """Its size was taken before: a file that seems to change after it was read ends the job."""
    whole = write("1.parquet", 1, 2)
    bytes_ = whole.read_bytes()
    whole.write_bytes(bytes_[:-5])

    class Finishing:
        def is_rowless(self, file: Found) -> bool:
            return False

        def is_complete(self, file: Found) -> bool:
            if file.size < len(bytes_):
                Path(file.path).write_bytes(bytes_)
            return True

    source = FileSource("in", Finishing(), follow=True)  # type: ignore[arg-type]
    assert source.found() == []
    assert [file.size for file in source.found()] == [len(bytes_)]


def test_a_corrupt_file_stops_the_job_unless_it_may_be_dead(write: Any) -> None:
    bad = write("1.parquet", 1, 2)
    data = bytearray(bad.read_bytes())
    data[-9] ^= 255  # the length of the footer
    bad.write_bytes(data)
    write("2.parquet", 3)
    columns = SCRIPT.replace("STREAM s", "STREAM s (ts TIMESTAMP, k BIGINT)")
    job = Job(columns.format("parquet", ""))
    with pytest.raises(JobError, match=r"in/1.parquet cannot be read as parquet.* set corrupt 'dead'$"):
        job.run(follow=True)
    dead = "CREATE SINK dead USING json OPTIONS (path 'dead');" + columns
    job = Job(dead.format("parquet", ", corrupt 'dead'").replace("1 HOUR", "1 HOUR DEAD INTO dead"), checkpoint=False)
    assert job.run().rows_dead == 1 and job.keys == [3]
    assert "in/1.parquet cannot be read as parquet" in "".join(f.read_text() for f in Path("dead").rglob("*.json"))


def test_results_that_the_watermark_has_passed_do_not_wait(write: Any) -> None:
    text = "CREATE STREAM s USING parquet OPTIONS (path 'in') TIMESTAMP BY ts;"
    job = Job(text + "SELECT COUNT(*) AS k FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS]")
    write("1.parquet", 1, 2, 12)
    with job.following() as until:
        until(lambda: len(job.rows) == 1)
    assert job.keys == [2]


def test_a_run_with_a_checkpoint_keeps_what_waits_until_the_streams_have_ended(write: Any) -> None:
    text = "CREATE STREAM s USING parquet OPTIONS (path 'in') TIMESTAMP BY ts;"
    text += "SELECT COUNT(*) AS k FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS]"
    write("1.parquet", 1, 2)
    job = Job(text)
    assert job.run().waiting == 1 and job.keys == []
    write("2.parquet", 3, 11)
    assert job.run().waiting == 1 and job.keys == [3]
    assert Job(text, checkpoint=False).run().waiting == 0
    job.settings = from_mapping({"at_end": "flush"})
    assert job.run().waiting == 0 and job.keys == [1, 3]
    write("3.parquet", 30)
    with pytest.raises(JobError, match="the job of this checkpoint is finished"):
        job.run()


def test_a_corrupt_file_that_was_read_in_part_takes_no_rows_of_the_next(write: Any) -> None:
    with gzip.open("in/1.json.gz", "wt") as out:
        out.writelines(f'{{"ts": "{at(k)}", "k": {k}, "x": "{random.random()}"}}\n' for k in range(40_000))
    whole = Path("in/1.json.gz").read_bytes()
    Path("in/1.json.gz").write_bytes(whole[: len(whole) * 9 // 10])
    write("2.json", *range(50_000, 50_100))
    columns = SCRIPT.replace("STREAM s", "STREAM s (ts TIMESTAMP, k BIGINT)")
    job = Job(columns.format("json", ""), batch_rows=5000)
    with pytest.raises(JobError, match=r"in/1.json.gz cannot be read as json"):
        job.run()
    assert 5000 <= len(job.rows) < 40_000
    job.text = columns.format("json", ", corrupt 'dead'")
    assert job.run().rows_dead == 1
    assert job.keys[-100:] == list(range(50_000, 50_100)) and job.run().rows_dead == 1


def test_a_finished_job_that_is_followed_ends(write: Any) -> None:
    write("1.json", 1)
    job = Job(SCRIPT.format("json", ""), at_end="flush")
    job.run()
    assert not job.run(follow=True).stopped


def test_a_link_to_a_folder_that_is_read_anyway(write: Any) -> None:
    job = Job(SCRIPT.format("json", ""))
    Path("in/m").mkdir()
    write("1.json", 1).rename("in/m/1.json")
    assert job.run().rows_in == 1
    for name in ("a", "z"):
        Path(f"in/{name}").symlink_to("m")
    assert job.run().rows_in == 1


def test_files_behind_a_glob_may_go(write: Any) -> None:
    columns = SCRIPT.replace("STREAM s", "STREAM s (ts TIMESTAMP, k BIGINT)").replace("'in'", "'in/*.json'")
    job = Job(columns.format("json", ""))
    write("1.json", 1).rename("in/2.json")
    job.run()
    Path("in/2.json").unlink()
    assert job.run().rows_in == 1
    write("3.json", 3)
    assert job.run().rows_in == 2


def test_a_folder_that_names_a_column_after_the_job_began(write: Any) -> None:
    columns = SCRIPT.replace("STREAM s", "STREAM s (ts TIMESTAMP, k BIGINT, c VARCHAR)")
    job = Job(columns.replace("SELECT k", "SELECT k, c").format("json", ""))
    with pytest.raises(JobError, match="no folder named the column c when the job began"), job.following() as until:
        until(lambda: Path("checkpoint/commits").exists())
        Path("in/.c=de").mkdir()
        write("1.json", 1).rename("in/.c=de/1.json")
        Path("in/.c=de").rename("in/c=de")
        until(lambda: False)
    assert job.run().rows_in == 1 and job.rows == [{"k": 1, "c": "de"}]


def test_streams_of_any_name(write: Any) -> None:
    write("1.json", 1)
    text = SCRIPT.format("json", "")
    for name in ('"../../evil"', '".."', '"a/b"'):
        job = Job(text.replace("STREAM s", f"STREAM {name}").replace("FROM s", f"FROM {name} AS s"))
        for _ in range(2):
            assert job.run().rows_in == 1
        shutil.rmtree("checkpoint")
    assert not Path("evil").exists() and not Path("../evil").exists()


def test_more_generated_rows(in_tmp: Path) -> None:
    text = "CREATE STREAM g (ts TIMESTAMP, k BIGINT) USING generate OPTIONS (rows 10) TIMESTAMP BY ts; SELECT k FROM g"
    Job(text).run()
    with pytest.raises(JobError, match="10 generated rows were read, and now there are 20"):
        Job(text.replace("10", "20")).run()


# Batches that many tasks read


def files_in(folder: str) -> LabelledFiles:
    """The files of a checkpoint, which is made if it is not there."""
    checkpoint = Checkpoint(Store(folder))
    if not checkpoint.begun:
        checkpoint.open({})
    return checkpoint.files


def progress(format_: str = "parquet", corrupt: str = "stop") -> FileProgress:
    declaration = parse(SCRIPT.format(format_, f", corrupt '{corrupt}'")).declarations[0]
    source = open_source(declaration, 0)
    assert isinstance(source, Files)
    made = FileProgress(source, files_in("checkpoint"), "s", "ts")
    made.look()
    return made


def test_offsets_mean_the_same_pieces_whatever_comes(write: Any) -> None:
    write("5.parquet", *range(7))
    first = progress()
    pieces = first.unread((0, 0))
    assert [p.group for p in pieces] == [0, 1, 2, 3]
    half = first.after((0, 0), pieces[:3])
    write("1.parquet", 8)
    again = progress()  # another process
    assert again.between((0, 0), half) == pieces[:3]
    rest = again.unread(half)
    end = again.after(half, rest)
    assert (
        [(p.file.name, p.group) for p in rest]
        == [("5.parquet", 3), ("1.parquet", 0)]
        == [(p.file.name, p.group) for p in progress().between(half, end)]
    )
    assert progress().unread(end) == []


@pytest.mark.parametrize("corrupt", ["stop", "dead"])
def test_a_file_that_goes_before_all_of_it_is_planned(corrupt: str, write: Any) -> None:
    file = write("1.parquet", *range(7))
    first = progress(corrupt=corrupt)
    half = first.after((0, 0), first.unread((0, 0))[:2])
    write("2.parquet", 8)
    file.unlink()
    gone = r"1\.parquet is gone, and not all of it was read"
    with pytest.raises(JobError, match=gone):
        progress(corrupt=corrupt).unread(half)
    with pytest.raises(JobError, match=gone):
        progress(corrupt=corrupt).between((0, 0), half)


def test_a_file_of_a_batch_that_was_never_done_may_change(write: Any) -> None:
    write("1.parquet", 1)
    first = progress()
    end = first.after((0, 0), first.unread((0, 0)))
    write("1.parquet", 1, 2, 3)
    with pytest.raises(JobError, match="changed after it was read"):
        progress().between((0, 0), end)
    again = progress()
    again.see_anew((0, 0), end)
    assert [p.rows for p in again.between((0, 0), end)] == [2, 1]
    assert progress().unread(end) == []


# The register


def found(name: str, size: int = 1, changed: int = 2, number: int = 0) -> Found:
    return Found(f"/there/{name}", name, size, changed, number)


def test_the_register_knows_a_renamed_file(tmp_path: Path) -> None:
    files = files_in(str(tmp_path))
    register = Register(found, files, "s")
    register.add([found("a", number=7), found("b", 2, number=8)])
    register.save()
    rotated = [found("b", number=7), found("c", 2, number=8), found("a", 3, number=9)]
    assert register.unread(rotated) == [found("a", 3)]
    register.save()
    again = Register(found, files, "s")
    assert [again[place].name for place in range(2)] == ["b", "c"] and again.unread(rotated) == [found("a", 3)]
    linked = [*rotated[:2], found("d", number=7)]
    assert again.unread(linked) == [found("d")]  # a second name of a file is read, too
    again.keep(1)
    assert [file.name for file in again.unread(rotated)] == ["c", "a"]


@pytest.mark.parametrize("ending", ["parquet", "json"])
def test_a_renamed_file_is_the_same(ending: str, write: Any) -> None:
    job = Job(SCRIPT.format(ending, ""), batch_rows=2)
    first, second = write(f"1.{ending}", 1, 2), write(f"2.{ending}", 3, 4, 5)
    with job.following() as until:
        until(lambda: len(job.rows) == 5)
        second.rename(second.with_name(f"3.{ending}"))
        first.rename(second)
        write(f"1.{ending}", 6)
        until(lambda: len(job.rows) == 6)
    write(f"4.{ending}", 7, 8, 9, 10)
    seen = iter([False, True])
    job.run(stop=lambda: next(seen))  # in the middle of the file
    (Path("in") / f"4.{ending}").rename(Path("in") / f"9.{ending}")
    assert job.run().rows_in == 10 and job.keys == [*range(1, 11)]


@pytest.mark.parametrize("ending", ["json", "csv"])
def test_followed_compressed_text_is_read_when_it_has_its_end(
    ending: str, in_tmp: Path, caplog: pytest.LogCaptureFixture
) -> None:
    columns = SCRIPT.replace("STREAM s", "STREAM s (ts TIMESTAMP, k BIGINT)")
    job = Job(columns.format(ending, ""), batch_rows=100)
    (in_tmp / "in").mkdir()

    def lines(*keys: int) -> bytes:
        head = "" if ending == "json" else "ts,k\n"
        line = '{{"ts": "{}", "k": {}}}\n' if ending == "json" else "{},{}\n"
        return (head + "".join(line.format(at(k), k) for k in keys)).encode()

    whole = gzip.compress(lines(*range(1, 3000)))
    half = Path("in") / f"1.{ending}.gz"
    half.write_bytes(whole[: len(whole) // 2])
    os.utime(half, (1, 1))
    (in_tmp / "in" / f"2.{ending}").write_bytes(lines(3000))
    with job.following() as until:
        until(lambda: len(job.rows) == 1 and f"1.{ending}.gz has no end yet" in caplog.text)
        with half.open("ab") as out:
            out.write(whole[len(whole) // 2 :])
        until(lambda: len(job.rows) == 3000)
    assert job.keys == [*range(1, 3001)]


@pytest.mark.parametrize("ending", ["parquet", "json", "csv"])
@pytest.mark.parametrize("checkpoint", [True, False])
def test_a_file_that_is_rewritten_while_it_is_read(ending: str, checkpoint: bool, in_tmp: Path) -> None:
    """As `cp` does it, with as many bytes: no row of the new text is published."""
    file, rows = in_tmp / "in" / f"1.{ending}", 200_000
    texts = []
    file.parent.mkdir()
    for x in (1, 2):
        ts = pa.array([at(0)], pa.timestamp("us")).take(pa.array([0] * rows))
        columns = pa.table({"ts": ts, "k": range(10**6, 10**6 + rows), "x": [x] * rows})
        if ending == "parquet":
            pq.write_table(columns, file, row_group_size=5000, compression="none", use_dictionary=False)
        elif ending == "csv":
            pcsv.write_csv(columns, file)
        else:
            file.write_text("".join(f'{{"ts": "{at(0)}", "k": {10**6 + k}, "x": {x}}}\n' for k in range(rows)))
        texts.append(file.read_bytes())
    file.write_bytes(texts[0])
    columns_ = SCRIPT.replace("STREAM s", "STREAM s (ts TIMESTAMP, k BIGINT, x BIGINT)").replace("SELECT k", "SELECT x")
    job = Job(columns_.format(ending, ""), checkpoint, batch_rows=3000)

    def rewrite(progress: Progress) -> None:
        with file.open("r+b") as out:
            out.truncate()
            out.write(texts[1])

    job.watch = rewrite
    with pytest.raises(JobError, match=rf"1.{ending} changed after it was read"):
        job.run()
    assert 0 < len(job.rows) < rows and {row["x"] for row in job.rows} == {1}


def test_a_parquet_file_that_is_cut_off_while_it_is_read(write: Any) -> None:
    """A mapped one would kill the process."""
    file = write("1.parquet", *range(50_000))
    program = f"""
from tests.runtime.sources.test_following import SCRIPT, Job
job = Job(SCRIPT.format("parquet", ""), batch_rows=2000)
job.watch = lambda progress: open({str(file)!r}, "w").close()
try:
    job.run()
except Exception as error:
    print(type(error).__name__, error)
"""
    where = os.pathsep.join([str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")])
    ran = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": where}, capture_output=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith(b"JobError") and b"1.parquet changed after it was read" in ran.stdout


def test_the_register_is_as_it_was_whatever_was_added_and_dropped(tmp_path: Path) -> None:
    files, expected = files_in(str(tmp_path)), list[str]()
    for number in range(200):
        register = Register(found, files, "S")
        if number % 7 == 3:
            expected = expected[: len(expected) - number % 3]
        register.keep(len(expected))
        new = [f"{number}-{i}" for i in range(number % 4)]
        register.add(found(name) for name in new)
        register.save()
        expected += new
        names = [register[place].name for place in range(len(register))]
        again = Register(found, files, "S")
        assert [again[place].name for place in range(len(expected))] == expected == names
        assert len(again) >= len(expected)  # what was dropped, and nothing came after it, is dropped again
        assert [f.name for f in again.unread([found("new"), *map(found, expected[-3:])])] == ["new"]
    assert len(list((tmp_path / "files" / "s").iterdir())) < 10


def test_a_damaged_register_is_refused(tmp_path: Path) -> None:
    files = files_in(str(tmp_path))
    register = Register(found, files, "s")
    register.add([found("a")])
    register.save()
    (file,) = (tmp_path / "files" / "s").iterdir()
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(JobError, match="files/s/00000001 does not match its checksum"):
        Register(found, files, "s")


def test_how_many_rows_wait_in_files(write: Any) -> None:
    """Files that are not begun are taken to have as many rows for each byte as those that were read."""
    for number in range(3):
        write(f"{number}.json", *[10 + number] * 100)
    source = open_source(parse(SCRIPT.format("json", "")).declarations[0], 0)
    assert isinstance(source, Files)
    clock = ManualClock()
    chunks = FileChunks(source, Wanted.of(source.schema, ("ts", "k"), False), follow=True, clock=clock)
    assert chunks.backlog() == 0, "nothing was found yet"
    assert next(chunks).rows.num_rows == 100 and chunks.backlog() > 0
    assert next(chunks).rows.num_rows == 100 and chunks.backlog() == 100
    write("3.json", *[13] * 100)
    assert chunks.backlog() == 100, "it does not look after every batch"
    clock.advance(COUNT_EVERY)
    assert chunks.backlog() == 200
    assert [next(chunks).rows.num_rows for _ in range(2)] == [100, 100] and chunks.backlog() == 0


@pytest.mark.parametrize("checkpoint", [False, True])
def test_engines_learn_how_many_rows_wait(checkpoint: bool, write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pressures: list[Pressure] = []
    original = Coordinator.begin

    def spy(*args: Any, **named: Any) -> Any:
        told = [value for value in (*args, *named.values()) if isinstance(value, Pressure)]
        pressures.extend(told if "load" not in args and "end" not in args else ())
        return original(*args, **named)

    monkeypatch.setattr(Coordinator, "begin", spy)
    for number in range(4):
        write(f"{number}.json", *[10 + number] * 100)
    Job(SCRIPT.format("json", ""), checkpoint, batch_rows=100, slots=2).run()
    first, *others = [pressure.backlog for pressure in pressures if pressure.backlog]
    assert first > 0 and others == [100, 50], "the first is a guess: no file is read whole yet"


@pytest.mark.parametrize("checkpoint", [True, False])
def test_results_of_late_answers_come_without_another_file(
    checkpoint: bool, write: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer comes when the batch that asked is over, and nothing comes after it."""
    answer = threading.Event()

    def doubled(keys: pa.RecordBatch) -> pa.RecordBatch:
        answer.wait(600)
        return pa.record_batch({"k": keys["k"], "d": pc.multiply(keys["k"], 2)})

    monkeypatch.setitem(sys.modules, "doubling", types.SimpleNamespace(doubled=doubled))
    options = "function 'doubling:doubled', timeout '600 seconds'"
    table = f"CREATE TABLE t (k BIGINT, d BIGINT) USING python OPTIONS ({options})"
    text = SCRIPT.format("parquet", "").replace("SELECT k FROM s", f"{table} INDEX ON (k);")
    job = Job(f"{text} SELECT s.k, d FROM s [RANGE 1 HOUR], t WHERE s.k = t.k", checkpoint, batch_seconds=0.01)
    write("1.parquet", 1, 2)
    progress = list[Progress]()
    job.watch = progress.append
    with job.following() as until:
        until(lambda: bool(progress))  # the batch that asked has ended
        assert job.rows == []
        answer.set()
        until(lambda: len(job.rows) == 2)
    assert sorted(row["d"] for row in job.rows) == [2, 4]


@pytest.mark.parametrize("number", [errno.EIO, errno.EMFILE])
def test_a_file_that_a_disk_does_not_give_is_not_taken_for_a_corrupt_one(number: int) -> None:
    of_disk = unreadable("a.csv", "csv", OSError(number, os.strerror(number)))
    of_arrow = unreadable("a.csv", "csv", OSError(f"Error reading. Detail: [errno {number}] {os.strerror(number)}"))
    assert type(of_disk) is type(of_arrow) is JobError
    assert str(of_arrow).startswith(f"a.csv cannot be read as csv: {os.strerror(number)}")
    assert isinstance(unreadable("a.csv", "csv", OSError("Truncated compressed stream")), CorruptFile)
