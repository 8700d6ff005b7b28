"""`bench kafka-lag`: how far a job is behind topics of Kafka that never stop (kafka_load.py writes them).

The job is the three-way join of `bench kafka`: a normal `eddyline run --follow` with a checkpoint, in processes of its
own. There are four phases:

1. The job reads messages that were written before it began. Its rows a second are its throughput.
2. Rows come at half of the throughput, for some minutes.
3. A burst: five times as many messages as in a usual minute. The writer needs a minute for it, or longer on a slow
   machine.
4. Rows come at half of the throughput again, until the job has caught up.

Each second we note three numbers: the messages that no commit of the job contains, the age of the newest row of the
newest commit, and the memory of all processes of the job. Memory includes the state on /dev/shm; it is the proportional
set size, so shared pages count once. The job is stopped when it has read everything. Then no row may be late, and the
number of results must be exact. The writer, the broker and the job share the machine.
"""

from __future__ import annotations

import csv
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from statistics import median
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from confluent_kafka import Consumer, TopicPartition

from eddyline.errors import InternalError, JobError, SettingError
from eddyline.extras import install
from lab.bench import Result
from lab.bench.kafka import JOIN, PARTITIONS, script
from lab.chaos.run import processes
from lab.servers.kafka_broker import NoKafka, kafka_broker
from lab.servers.valkey import free_port

ENGINES = ("spark", "local")
FILL_RATE, FILL_SECONDS = 150_000, 20
"""Rows that are there before the job, by their times."""
SHARE, BURST, BURST_SECONDS = 0.5, 5, 60.0
WARM, CATCH_UP, AFTER = 30.0, 900.0, 60.0
"""Seconds of the load that do not count, the most seconds that the job may take to work the burst off, and the seconds
that it is watched after that."""
LATENESS = 1
"""Seconds; as the job declares it."""
RETENTION = 1_200_000
"""Milliseconds that the broker keeps messages."""
LAG, GROWTH, LEAST, MEMORY = 15.0, 1.5, 2.0, 1.15
"""Bars: the most seconds of input that the job may be behind; the median lag of the last quarter of the time over that
of the first, which other work of the machine moves too; the least lag in the last quarter, because a job that is too
slow never catches up; median memory of the last quarter over that of the first."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Sample:
    """The state of things at a moment. `phase` is steady, burst, after or end."""

    second: float
    phase: str
    written: int
    read: int
    behind: float
    """Seconds since the newest row that the job has committed."""
    memory: float
    """Megabytes."""

    @property
    def lag(self) -> int:
        """Messages that are written and not committed."""
        return max(0, self.written - self.read)


def run(part: str = "spark", minutes: float = 20, out: str = ".") -> list[Result]:
    """Measure an engine, `part`, for so many minutes before the burst; write kafka-lag.csv and .png to `out`."""
    if part not in ENGINES:
        raise SettingError(f"--part {part}: the parts of this benchmark are {', '.join(ENGINES)}")
    place = Path(tempfile.mkdtemp(prefix="eddyline-bench-"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, place, ignore_errors=True)
        try:
            broker = stack.enter_context(kafka_broker({"log.segment.bytes": str(1 << 26)}))
        except NoKafka as error:
            raise SettingError(f"bench kafka-lag needs a broker: {error}") from None
        for topic in JOIN.columns:
            broker.create(topic, PARTITIONS, retention_ms=RETENTION)
        writer = _Writer(broker.servers)
        stack.callback(writer.kill)
        job = _Job(part, broker.servers, place)
        stack.callback(job.kill)
        rate, samples = _measured(writer, job, _Watch(broker.servers, job), minutes * 60)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    _write(samples, folder / f"kafka-lag-{part}.csv")
    _draw(samples, f"{part}: {rate:,.0f} rows/s, {BURST} times as many for a minute", folder / f"kafka-lag-{part}.png")
    return _results(part, rate, samples)


def _measured(writer: _Writer, job: _Job, watch: _Watch, seconds: float) -> tuple[float, list[Sample]]:
    """Run the course; returns the rate and the samples. InternalError if the job is not exact."""
    rate = SHARE * watch.throughput()
    _log.info("throughput %.0f rows/s", rate / SHARE)
    writer.rate(rate)
    watch.watch("steady", seconds + WARM)
    usual = max(sample.lag for sample in _settled(watch.samples))
    writer.rate(rate * BURST)
    burst = watch.samples[-1].written + BURST * rate * BURST_SECONDS
    watch.watch("burst", 5 * BURST_SECONDS, lambda sample: sample.written >= burst)
    writer.rate(rate)
    watch.watch("after", CATCH_UP, lambda sample: sample.lag <= usual)
    watch.watch("after", AFTER)
    samples, written = list(watch.samples), writer.end()
    watch.watch("end", CATCH_UP, lambda sample: sample.read >= written)
    summary = job.stop()
    found = [summary[name] for name in ("rows_in", "rows_out", "rows_late", "rows_dead")]
    if found != [written, written // len(JOIN.columns), 0, 0]:
        raise InternalError(f"{written} rows were written; rows read, results, late and dead rows are {found}")
    return rate, samples


def _settled(samples: Sequence[Sample]) -> list[Sample]:
    """The samples before the burst that count."""
    return [s for s in samples if s.phase == "steady" and s.second >= samples[0].second + WARM]


def _results(part: str, rate: float, samples: Sequence[Sample]) -> list[Result]:
    steady = _settled(samples)
    burst, after = ([s for s in samples if s.phase == phase] for phase in ("burst", "after"))
    quarter = max(1, len(steady) // 4)
    first, last = steady[:quarter], steady[-quarter:]
    usual = max(s.lag for s in steady)
    lasted = burst[-1].second - burst[0].second
    # Worked off: from then on the lag is never again larger than before the burst.
    over = [s.second for s in after if s.lag > usual]
    worked_off = (over[-1] if over else burst[-1].second) - burst[-1].second
    least = min(s.lag for s in last) / rate
    growth = median(s.lag for s in last) / max(1, median(s.lag for s in first))
    memory = median(s.memory for s in last) / median(s.memory for s in first)
    minutes = (steady[-1].second - steady[0].second) / 60
    case = f"{part}, {rate:,.0f} rows/s for {minutes:.0f} minutes"
    return [
        Result(case, "throughput", rate / SHARE, "rows/s"),
        Result(case, "median lag", median(s.lag for s in steady) / rate, "s of input"),
        Result(case, "largest lag", usual / rate, "s of input", LAG, usual / rate <= LAG),
        Result(case, "age of the newest committed row, median", median(s.behind for s in steady), "s"),
        Result(case, "median lag, last quarter / first", growth, "", GROWTH, growth <= GROWTH),
        Result(case, "smallest lag in the last quarter", least, "s of input", LEAST, least <= LEAST),
        Result(case, "memory of the job, last quarter", median(s.memory for s in last), "MB"),
        Result(case, "memory, last quarter / first", memory, "", MEMORY, memory <= MEMORY),
        Result(case, f"seconds for {BURST} times the messages of {BURST_SECONDS:.0f} seconds", lasted, "s"),
        Result(case, "largest lag after the burst", max(s.lag for s in samples) / rate, "s of input"),
        Result(case, "burst worked off after", worked_off, "s", CATCH_UP, worked_off < CATCH_UP),
        Result(case, "memory, end / first quarter", after[-1].memory / median(s.memory for s in first), ""),
    ]


class _Writer:
    """The process that writes the topics; they are filled when it is there."""

    def __init__(self, servers: str) -> None:
        command = [sys.executable, "-m", "lab.bench.kafka_load", servers, str(FILL_RATE), str(FILL_SECONDS)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "filled\n":
            raise InternalError("the writer failed")

    def rate(self, rate: float) -> None:
        """From now on so many rows a second."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{rate}\n")
        self._process.stdin.flush()

    def end(self) -> int:
        """Stop writing; returns how many rows were written in all."""
        return int(self._process.communicate()[0])

    def kill(self) -> None:
        """End the process, if it is there."""
        self._process.kill()
        self._process.wait()


class _Job:
    """The processes of the job. Its metrics say how far it is."""

    def __init__(self, engine: str, servers: str, place: Path) -> None:
        (place / "job.sql").write_text(script(servers, str(place / "out")), encoding="utf-8")
        self._port = free_port()
        command = [sys.executable, "-m", "eddyline.cli", "run", str(place / "job.sql"), "--engine", engine, "--follow"]
        command += ["--json", "--checkpoint", str(place / "checkpoint"), "--set", f"metrics_port={self._port}"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)

    def metrics(self) -> dict[str, float]:
        """Its metrics, by name; none as long as it starts."""
        if self._process.poll() is not None:
            raise InternalError("the job has ended")
        try:
            with urlopen(f"http://127.0.0.1:{self._port}/metrics", timeout=30) as answer:
                text = answer.read().decode()
        except URLError:
            return {}
        return {name: float(value) for name, value in re.findall(r"^eddyline_(\w+) (\S+)$", text, re.MULTILINE)}

    @property
    def memory(self) -> float:
        """The megabytes of all its processes."""
        found = 0
        for process in processes(self._process.pid):
            with suppress(OSError):  # it has just ended
                text = Path(f"/proc/{process.pid}/smaps_rollup").read_text(encoding="ascii")
                found += sum(map(int, re.findall(r"^Pss: +(\d+) kB", text, re.MULTILINE)))
        return found / 1024

    def stop(self) -> dict[str, Any]:
        """Stop it as a user does; returns its summary."""
        self._process.send_signal(signal.SIGTERM)
        summary: dict[str, Any] = json.loads(self._process.communicate(timeout=300)[0].splitlines()[-1])
        return summary

    def kill(self) -> None:
        """End its processes, if they are there."""
        for process in processes(self._process.pid):
            with suppress(OSError):
                os.kill(process.pid, signal.SIGKILL)
        self._process.wait()


class _Watch:
    """Looks at the broker and at the job once a second."""

    def __init__(self, servers: str, job: _Job) -> None:
        self._consumer = Consumer({"bootstrap.servers": servers, "group.id": "eddyline-bench"})
        self._job = job
        self._places = [TopicPartition(topic, part) for topic in JOIN.columns for part in range(PARTITIONS)]
        self._began = time.monotonic()
        self.samples: list[Sample] = []

    def throughput(self) -> float:
        """Rows a second of the job while it works off what is there, without the first third."""
        moments: dict[float, float] = {}
        while not (known := self._job.metrics()).get("rows_in"):
            time.sleep(0.2)
        while known["rows_in"] < FILL_RATE * FILL_SECONDS - len(self._places):
            time.sleep(0.1)
            known = self._job.metrics()
            moments[known["rows_in"]] = known["seconds"]
        (rows, begin), *_ = [item for item in moments.items() if item[0] >= FILL_RATE * FILL_SECONDS / 3]
        last, end = max(moments.items())
        return (last - rows) / (end - begin)

    def watch(self, phase: str, seconds: float, until: Callable[[Sample], bool] = lambda sample: False) -> None:
        """Take samples for so long, or until one of them is as wanted."""
        end = time.monotonic() + seconds
        while (now := time.monotonic()) < end:
            sample = self._sample(phase, now - self._began)
            self.samples.append(sample)
            if len(self.samples) % 30 == 0:
                _log.info("%.0f s, %s: %d messages behind, %.0f MB", sample.second, phase, sample.lag, sample.memory)
            if until(sample):
                return
            time.sleep(max(0.0, now + 1 - time.monotonic()))

    def _sample(self, phase: str, second: float) -> Sample:
        known = self._job.metrics()
        age = time.time() - known["watermark"] - LATENESS
        written = sum(self._consumer.get_watermark_offsets(place, timeout=60)[1] for place in self._places)
        read, memory = int(known["rows_in"]), round(self._job.memory, 1)
        return Sample(round(second, 1), phase, written, read, round(age, 2), memory)


def _write(samples: Sequence[Sample], path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow([*(field.name for field in fields(Sample)), "lag"])
        table.writerows((*astuple(sample), sample.lag) for sample in samples)


def _draw(samples: Sequence[Sample], title: str, path: Path) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise JobError(f"the plot needs matplotlib: {install('plots')}") from None
    figure = Figure(figsize=(7.6, 6.4), dpi=80, layout="constrained")
    minutes, panels = [s.second / 60 for s in samples], figure.subplots(3, sharex=True)
    for name in ("written", "read"):
        panels[0].plot(minutes, [getattr(s, name) / 1e6 for s in samples], label=name)
    panels[0].legend(fontsize="small")
    panels[1].plot(minutes, [s.lag / 1e6 for s in samples])
    panels[2].plot(minutes, [s.memory for s in samples])
    panels[2].set(ylim=(0, None), xlabel="minutes")
    for axes, label in zip(panels, ("millions of messages", "lag, millions", "memory of the job, MB"), strict=True):
        axes.set_ylabel(label)
        axes.grid(alpha=0.3)
    figure.suptitle(title)
    figure.savefig(path)
