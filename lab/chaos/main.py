"""Jobs that are killed again and again with SIGKILL and must give the right results in the end.

    python -m lab.chaos.main --kills 100 --seed 7 [--migrate|--spill|--balance|--access|--kafka|--servers]
        [--engine spark|cluster|local] [--continue]

With `--interrupt` jobs are stopped by signals in place of SIGKILL (interrupt.py), and with `--disk` calls
on their files fail (disk.py).

A job is a normal `eddyline run` in processes of its own. `cluster` is Spark with two executors that share no arenas, as
if each were on a host of its own. A kill has a victim (the driver's Python, its JVM, an executor, a Python worker of
Spark) and a moment: some time after the start, or the instant when a file of the protocol appears (a decision, a log
segment, a staged or published file, a commit, an offset of Spark's). After a kill the job is started again, sometimes
with other settings. A run must survive the death of a worker or an executor: Spark starts its tasks again. With
`--migrate` every start sets another plan, so jobs are migrating most of the time, with either strategy, in steps so
small that a migration takes several batches. With `--balance` partition groups move between slots at random
(restless.py), slots come and go, some jobs also change their plans or have little memory, and half of the kills
come where a slot gives groups away or takes them over. With `--access` tables are in a PostgreSQL that answers slowly
and are asked; half of the kills come in the turn of a slot; and a key whose answer was committed before a kill may not
be asked after it before the answer is too old (asked_database.py). With `--servers` streams are in topics of a
Kafka broker or keys of a Valkey server, results go to topics or to tables of Delta, Iceberg or PostgreSQL, to which
somebody else writes too, and some jobs ask a table behind HTTP, in Valkey or in PostgreSQL; the servers are killed too,
and start again with their data; a job that ends because a server is away is started again; half of the other kills come
while a batch is delivered (servers.py). `--kafka` does the same with topics and Delta tables only. When a
job has finished, its files are compared with the oracle (jobs.py), and the next job begins, until all
kills are used. A finished job may leave no file, no arena and no process.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path

from lab.chaos import disk as chaos_disk
from lab.chaos.asked_database import AskedDatabase, asked_database
from lab.chaos.interrupt import Interrupts
from lab.chaos.jobs import ASKED, QUERIES, ChaosJob, make_job, verify
from lab.chaos.kill import COUNTS, DELIVERING, SOON, Kill, draw_kill
from lab.chaos.restless import groups_moved, module
from lab.chaos.run import ChaosRun, names
from lab.chaos.servers import SERVERS, Servers, servers
from lab.chaos.strikes import module as armed
from lab.fuzz.fault_points import fault_points
from lab.ledger import Entry, entered, stoppable
from lab.servers.kafka_broker import NoKafka
from lab.servers.postgres import NoPostgres

RETRIES = 3
"""The number of dead workers and executors that a run must survive: Spark tries a task four times."""
TREES = {
    "join": ("mjoin", "((a b) c)", "(a (b c))", "((a c) b)"),
    "rows": ("mjoin", "((a b) t)", "(a (b t))"),
}
"""The plans of each query that has more than one."""
ENOUGH = 10
"""Kills of which some must meet a group on disk."""
LITTLE = ("40KB", "60KB", "90KB")
"""Less memory than the jobs need, and more than the cells of a group-by, which do not leave it."""
MUCH = "1GB"
"""Memory for any job. A job with groups on disk cannot go on without a limit of memory."""
TTL = 4.0
"""Seconds after which the answers of a table are forgotten, in some jobs."""
MOVES = tuple(name for name in fault_points() if name.startswith("balance: "))
"""The fault points at which a slot gives groups away or takes them over."""
TURNS = tuple(name for name in fault_points() if name.startswith("turn: "))
"""The fault points in the turn of a slot."""
DELIVERIES = tuple(name for name in fault_points() if name.startswith(("kafka: ", "table: a", "table: b")))
"""The fault points at which a batch is delivered to a topic or a table."""
OF_SERVERS = 0.5
"""The share of kills whose victim is a server."""
AWAY = "do not answer", "no answer for", "connection", "Connection"
"""Words of a job that ends because a server is away."""


@dataclass
class Chaos:
    """Jobs and kills of one seed."""

    engine: str
    seed: int
    told: Callable[[str], None] = lambda line: None
    migrate: bool = False
    spill: bool = False
    balance: bool = False
    access: bool = False
    servers: tuple[str, ...] = ()
    files: int = 24
    """The number of files of each stream. A job of fewer files ends sooner."""
    first: int = 0
    """The kills of this seed that earlier runs have struck: other jobs and moments follow them."""
    kills: int = 0
    starts: int = 0
    finished: int = 0
    victims: Counter[str] = field(default_factory=Counter)
    migrating: int = 0
    """The number of kills during a migration, as the newest commit says."""
    spilling: int = 0
    """The number of kills while groups were on disk."""
    moved: int = 0
    """The number of groups that moved to another slot; a group counts each time."""
    moving: int = 0
    """The number of kills in a batch that begins with a move, as the newest commit says, or at one of MOVES."""
    waiting: int = 0
    """The number of kills while rows waited for answers, as the newest commit says."""
    asking: int = 0
    """The number of kills while the server answered."""
    lookups: int = 0
    """The number of keys that the server was asked for."""
    gave_up: int = 0
    """The number of runs that ended because a server that was killed did not answer."""
    kept: int = 0
    """The number of keys that were answered and committed at a kill; a key counts each time."""
    wrong: list[str] = field(default_factory=list)
    _database: AskedDatabase | None = None
    _servers: Servers | None = None

    def run(self, kills: int) -> None:
        """Run jobs to their ends until `kills` kills have struck."""
        rng = random.Random(f"{self.seed}/{self.first}" if self.first else self.seed)
        queries = [name for name in QUERIES if name in TREES or not self.migrate]
        queries = [name for name in queries if name != "rows" or not self.spill]  # counted rows do not leave
        with contextlib.ExitStack() as stack:
            if self.access:
                queries = list(ASKED)
                self._database = stack.enter_context(asked_database(stack.enter_context(_folder())))
            if self.servers:
                queries += [name for name in ("enriched", "counted") if "http" in self.servers]
                self._servers = stack.enter_context(servers(self.servers))
            while self.kills < kills and not self.wrong:
                name = queries[(self.finished + self.first) % len(queries)]
                if self._database is not None:
                    self._database.begin(ttl=rng.choice((inf, TTL)))
                with _folder() as folder:
                    there = None if self._servers is None else (self._servers, self.finished)
                    job = make_job(
                        name, folder, rng.randrange(1 << 30), self.files, database=self._database, servers=there
                    )
                    with (
                        contextlib.nullcontext()
                        if job.places is None
                        else job.places.written_by_others(job.folder, job.schema)
                    ):
                        self._job(job, rng, min(kills, self.kills + max(2, kills // (10 if self.servers else 5))))
                    self._check(job)
                self.finished += 1

    def _job(self, job: ChaosJob, rng: random.Random, kills: int) -> None:
        """Run one job to its end, with at most `kills` kills in all so far."""
        arenas, done, let_go = False, False, list[ChaosRun]()
        while not done and not self.wrong:
            settings = self._settings(job, rng)
            tracks, seed = job.name != "rows", rng.randrange(1 << 30) if self.balance else 0
            modules = [module(job.faults, job.checkpoint, seed, tracks)] if self.balance else []
            modules += [armed(job.faults, job.checkpoint)] if self.access or self.servers else []
            if seed % 2:  # the plan changes: the states of the plan to come cannot leave memory
                settings["memory"] = MUCH
            struck = self._of_servers
            with ChaosRun(job, self.engine, settings, modules=modules) as run:
                self.starts += 1
                try:
                    deadly = self._kill(run, job, rng, kills)
                    done = run.wait() == 0 or "is finished" in run.said
                except TimeoutError as error:
                    self.wrong.append(f"{job.name}: {error}")
                    break
                arenas = arenas or run.arenas_seen
                if not done and self._of_servers > struck and any(words in run.said for words in AWAY):
                    self.gave_up += 1
                elif not done and not deadly:
                    self.wrong.append(f"{job.name}: the run failed by itself: {run.said}")
                if done or self.access or rng.random() < 0.7:  # processes that go on may ask
                    self.wrong += [f"{job.name}: a process stays: {left}" for left in run.wait_for_all()]
                else:
                    let_go.append(run.let_go())
        self.wrong += [f"{job.name}: a process stays: {left}" for run in let_go for left in run.wait_for_all()]
        self.moved += groups_moved(job.faults)
        if self._database is not None:
            self.lookups += sum(len(lookup.keys) for lookup in self._database.lookups)
            self.kept += self._database.kept
            self.wrong += [f"{job.name}: {wrong}" for wrong in self._database.wrong()]
        if not self.wrong and self.engine == "spark" and not arenas:
            self.wrong.append(f"{job.name}: no arenas were ever seen in {job.arenas}")

    def _check(self, job: ChaosJob) -> None:
        """Compare a finished job with the oracle."""
        if not self.wrong:
            self.wrong += [f"{job.name}: {wrong}" for wrong in verify(job, self.engine != "local")]
        self.told(f"{job.name} job finished: {'; '.join(self.wrong) or 'the sink equals the oracle, nothing is left'}")

    def _settings(self, job: ChaosJob, rng: random.Random) -> dict[str, object]:
        settings = draw_settings(rng)
        if self.migrate:  # another number of slots would rebuild the state in the requested plan, without a migration
            settings |= {"slots": 2, "plan": rng.choice(TREES[job.name]), "pause_ms": rng.choice([0, 1])}
            settings["migration"] = rng.choice(["moving-state", "parallel-track"])
        if self.balance:
            settings |= {"balance": "auto", "slots": rng.choice([2, 2, 3, 5])}
            settings |= {"plan": rng.choice(["auto", *TREES.get(job.name, ())]), "pause_ms": rng.choice([0, 1])}
        if self.spill or self.balance:
            memory = [*LITTLE, *([MUCH] * len(LITTLE) if self.balance else ())]
            settings |= {"memory": rng.choice(memory), "spill_share": rng.choice([0.1, 0.3, 1.0])}
        if job.name in ASKED:  # the number of slots cannot change
            settings |= {"slots": 2, "batch_seconds": rng.choice([0.02, 0.2])}
        if job.name == "rows" and "memory" in settings:
            settings["memory"] = MUCH  # its rows wait for the watermark in memory
        return settings

    def _kill(self, run: ChaosRun, job: ChaosJob, rng: random.Random, kills: int) -> bool:
        """Strike the run until it cannot go on (True), or ends or no kills are left (False)."""
        helpers = 0
        while self.kills < kills and run.running:
            kill = self._draw(job, rng)
            if helpers == RETRIES and not self._is_server(kill):
                kill = replace(kill, victim="driver", point="")
            if self._carry_out(kill, run, rng):
                if self._database is not None:
                    self.asking += bool(self._database.in_flight())
                    self._database.committed(job.checkpoint)
                self.kills += 1
                self.victims[kill.victim] += 1
                commits = sorted(names(job.checkpoint / "commits"))
                at = next((name for name in reversed(commits) if name.isdigit()), "none")
                moving = self.balance and bool(kill.point)
                with contextlib.suppress(OSError):  # the file may be deleted meanwhile
                    commit = (job.checkpoint / "commits" / at).read_text()
                    self.migrating += '"to": {' in commit
                    self.spilling += '"left": {}' not in commit
                    self.waiting += '"waits": true' in commit
                    moving = moving or _moves(commit)
                self.moving += moving
                self.told(f"kill {self.kills}: {job.name}, {kill}; newest commit {at}; {run.settings}")
                if kill.victim in ("driver", "jvm"):
                    return True
                helpers += not self._is_server(kill)
        return False

    def _draw(self, job: ChaosJob, rng: random.Random) -> Kill:
        counts = SOON if self.migrate or self.access or self.servers else COUNTS
        if job.places is None:
            return draw_kill(rng, self.engine, counts, MOVES if self.balance else TURNS if self.access else ())
        kill = draw_kill(rng, self.engine, counts, DELIVERIES, DELIVERING)
        if rng.random() < OF_SERVERS:
            return replace(kill, victim=rng.choice(job.places.servers), point="")
        return replace(kill, victim="driver") if kill.point else kill  # the driver delivers

    def _carry_out(self, kill: Kill, run: ChaosRun, rng: random.Random) -> bool:
        if self._servers is None or not self._is_server(kill):
            return run.carry_out(kill, rng)
        if not run.wait_for(kill):
            return False
        server = self._servers.killed[kill.victim]
        server.kill()
        time.sleep(rng.choice([0.0, 0.0, 1.0]))
        server.start()
        return True

    def _is_server(self, kill: Kill) -> bool:
        return kill.victim in self.servers

    @property
    def _of_servers(self) -> int:
        return sum(self.victims[name] for name in self.servers)

    def missed(self) -> list[str]:
        """What the kills should have met and did not."""
        found = []
        if self.spill and self.kills >= ENOUGH and not self.spilling:
            found.append("no kill met a group on disk: the jobs had too much memory")
        if self.balance and not (self.moved and self.moving):
            found.append("no kill met a group that moves")
        if self.access and self.kills >= ENOUGH and not (self.waiting and self.asking and self.kept):
            found.append("no kill met rows that wait, or lookups in flight, or answers that were committed")
        return found


def _moves(commit: str) -> bool:
    """Whether groups move before the batch after a commit."""
    read = json.loads(commit.partition("\n")[2])
    return bool(read["slot_map"] != read["next_map"])


def draw_settings(rng: random.Random) -> dict[str, object]:
    """Random settings for the next run; none of them may change the results."""
    return {
        "slots": rng.choice([1, 2, 3]),
        "router": rng.choice(["auto", "auto", "random", "lottery"]),
        "packet": rng.choice(["adaptive", "adaptive", 64]),
        "batch_rows": rng.choice([300, 600, 1500]),
    }


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="eddyline-chaos-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main(arguments: list[str] | None = None) -> int:
    """The command line; exit status 1 if rows were lost or duplicated, anything was left behind, or a run was stuck."""
    parser = argparse.ArgumentParser(prog="chaos", description="jobs killed at random moments, compared with DuckDB")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--migrate", action="store_true", help="every start asks for another plan")
    parser.add_argument("--spill", action="store_true", help="jobs have so little memory that groups go to disk")
    parser.add_argument("--balance", action="store_true", help="groups move between slots all the time")
    parser.add_argument("--access", action="store_true", help="tables are in PostgreSQL and are asked")
    parser.add_argument("--kafka", action="store_true", help="from Kafka topics to topics and Delta tables")
    parser.add_argument("--servers", action="store_true", help="from Kafka and Valkey to topics and tables")
    parser.add_argument("--interrupt", action="store_true", help="Ctrl-C and SIGTERM in place of SIGKILL")
    parser.add_argument("--disk", action="store_true", help="one call on a file fails, in place of SIGKILL")
    parser.add_argument("--count", type=int, default=100, help="how many signals (--interrupt) or faults (--disk)")
    parser.add_argument("--engine", choices=("spark", "cluster", "local", "both"), default="spark")
    parser.add_argument("--continue", dest="continues", action="store_true", help="go on where the ledger ends")
    given = parser.parse_args(arguments)
    seed = random.randrange(1 << 31) if given.seed is None else given.seed
    begin = time.monotonic()

    def told(line: str) -> None:
        sys.stdout.write(f"{time.monotonic() - begin:7.1f} s  {line}\n")
        sys.stdout.flush()

    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))  # so that the job is stopped too
    told(f"seed {seed}, engine {given.engine}")
    kinds = "migrate", "spill", "balance", "access", "kafka", "servers", "interrupt", "disk"
    command = " ".join(["chaos", *(f"--{kind}" for kind in kinds if getattr(given, kind)), f"--engine {given.engine}"])
    with entered("chaos", command, seed, given.continues) as entry:
        if given.disk:
            return chaos_disk.main(given.engine, seed, given.count, told, entry)
        if given.interrupt:
            return _interrupt(given.engine, seed, given.count, told, entry)
        return _kills(given, seed, told, entry)


def _kills(given: argparse.Namespace, seed: int, told: Callable[[str], None], entry: Entry) -> int:
    killed = SERVERS if given.servers else ("kafka",) if given.kafka else ()

    def noted(line: str) -> None:
        entry.cases, entry.differences = chaos.kills, len(chaos.wrong)
        told(line)

    flags = given.migrate, given.spill, given.balance, given.access
    chaos = Chaos(given.engine, seed, noted, *flags, servers=killed, first=entry.first)
    try:
        chaos.run(given.kills - entry.first)
    except NoPostgres as none:
        told(f"--access and --servers need PostgreSQL: {none}")
        return 1
    except NoKafka as none:
        told(f"--kafka and --servers need a broker: {none}")
        return 1
    chaos.wrong += chaos.missed() if chaos.kills else []
    entry.cases, entry.differences = chaos.kills, len(chaos.wrong)
    for wrong in chaos.wrong:
        sys.stdout.write(f"WRONG: {wrong}\n")
    struck = ", ".join(f"{victim} {count}" for victim, count in chaos.victims.most_common())
    told(
        f"{chaos.kills} kills ({struck}; {chaos.migrating} while a plan was changing,"
        f" {chaos.spilling} while groups were on disk, {chaos.moving} while groups moved)"
    )
    if given.balance:
        told(f"{chaos.moved} groups moved to another slot")
    if given.access:
        told(f"{chaos.waiting} kills while rows waited for answers, {chaos.asking} while the server answered")
        told(f"{chaos.lookups} keys asked; {chaos.kept} committed answers at kills")
    if killed:
        told(f"{chaos.gave_up} runs ended because a server did not answer, and were continued")
    told(f"{chaos.starts} starts, {chaos.finished} jobs finished, {len(chaos.wrong)} wrong")
    return 1 if chaos.wrong else 0


def _interrupt(engine: str, seed: int, count: int, told: Callable[[str], None], entry: Entry) -> int:
    def noted(line: str) -> None:
        entry.cases, entry.differences = interrupts.signals, len(interrupts.wrong)
        told(line)

    interrupts = Interrupts(engine, seed, noted, first=entry.first)
    interrupts.run(count - entry.first)
    for wrong in interrupts.wrong:
        sys.stdout.write(f"WRONG: {wrong}\n")
    answers = ", ".join(f"{times} {answer}" for answer, times in interrupts.answers.most_common())
    told(
        f"{interrupts.signals} signals, {interrupts.starting} of them before the job ran ({answers});"
        f" {interrupts.finished} jobs finished, {len(interrupts.wrong)} wrong"
    )
    return 1 if interrupts.wrong else 0


if __name__ == "__main__":
    sys.exit(stoppable(main))
