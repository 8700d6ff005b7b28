"""`bench kafka`: the three-way join over topics of a real broker (JSON values, four partitions each).

On Spark our reader and our join take turns with Spark's own connector and Spark's own joins, in one session. The local
engine is measured too. If the connector is not installed, Spark's own joins read the rows from parquet files, so
they need no time for Kafka and JSON. Spark's own side is slow, so it reads fewer rows; the numbers of results of both
sides are compared. The first batch of a run does not count for the rows a second. The share of decoding is measured on
the local engine by CPU time: the topics are also read without a join, once as JSON and once as bytes.
"""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import time
from statistics import median

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from confluent_kafka import Producer

from eddyline.cql.script import parse
from eddyline.errors import InternalError, SettingError
from eddyline.runtime.running.job import prepare
from eddyline.runtime.running.runner import LocalRunner
from eddyline.runtime.sinks.json_lines import lines
from eddyline.runtime.sources.kafka import BEGINNING, KafkaSource
from eddyline.runtime.sources.source import Wanted
from eddyline.settings import Settings
from eddyline.spark.session import session
from eddyline.spark.tasks import turn_task
from lab.bench import Result
from lab.bench.spark_jobs import JOINS, WINDOW, run_job
from lab.bench.streams import streams
from lab.peers.native_joins import OwnJoin, files_of, topics_of
from lab.peers.native_joins import run as run_own
from lab.servers.kafka_broker import KafkaBroker, NoKafka, connector_jars, kafka_broker

ROWS, OWN_ROWS, PARTITIONS, ROUNDS = 1_000_000, 150_000, 4, 3
BATCH, OWN_BATCH = 600_000, 50_000
"""Rows of a batch of all streams, and messages of a batch of each stream of Spark's own side."""
BAR = 6.0
JOIN = JOINS[0]

_log = logging.getLogger(__name__)


def run() -> list[Result]:
    """Measure; the sides take turns, after a round of each that does not count."""
    place = tempfile.mkdtemp(prefix="eddyline-bench-")
    try:
        try:
            jars = connector_jars()
        except NoKafka as error:
            _log.info("%s: Spark's own joins read files", error)
            jars = []
        with kafka_broker({"log.segment.bytes": str(1 << 30)}) as broker:
            for name, batch in streams(JOIN.columns, ROWS, 100_000, every=100).items():
                _fill(broker, name, batch)
                _fill(broker, f"own-{name}", batch.slice(0, OWN_ROWS))
                _write(f"{place}/own/{name}", batch.slice(0, OWN_ROWS))
                _log.info("topic %s: %d messages", name, ROWS)
            spark, _ = session({"spark.jars": ",".join(map(str, jars))} if jars else {})
            try:
                return _measured(broker.servers, place, bool(jars))
            finally:
                spark.stop()
    except NoKafka as error:
        raise SettingError(f"bench kafka needs a broker: {error}") from None
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _measured(servers: str, place: str, connector: bool) -> list[Result]:
    topics = {name: (f"own-{name}", _columns(name)) for name in JOIN.columns}
    read = topics_of(servers, topics) if connector else files_of(f"{place}/own")
    own_join, each_batch = OwnJoin(read, *JOIN.own, WINDOW), OWN_BATCH if connector else 1
    peer = f"Spark's own {'connector' if connector else 'parquet files'} and joins"
    rates: dict[str, list[float]] = {"on Spark": [], "local engine": [], peer: []}
    shares = []
    for number in range(ROUNDS + 1):
        _, on_spark, _ = run_job(script(servers, f"{place}/out"), place, Settings(batch_rows=BATCH), turn_task)
        seconds, cpu = _local(script(servers, f"{place}/out"))
        shutil.rmtree(f"{place}/own-out", ignore_errors=True)
        own_seconds, own_rows = run_own(session({})[0], own_join, f"{place}/own-out", each_batch)
        decoding = (_read_alone(servers, "json") - _read_alone(servers, "raw")) / cpu
        found = on_spark, len(JOIN.columns) * ROWS / seconds, own_rows / own_seconds
        _log.info("rows/s on Spark %.0f, on the local engine %.0f, Spark's own %.0f; decoding %.2f", *found, decoding)
        if number:
            shares.append(decoding)
            for kept, rate in zip(rates.values(), found, strict=True):
                kept.append(rate)
    _local(script(servers, f"{place}/check", "own-"))
    ours, theirs = (ds.dataset(f"{place}/{name}", format="parquet").count_rows() for name in ("check", "own-out"))
    if ours != theirs:
        raise InternalError(f"the results differ: {ours} rows, and {theirs} by Spark's own joins")
    times = median(one / own for one, own in zip(rates["on Spark"], rates[peer], strict=True))
    return [
        *(Result(f"Kafka, {JOIN.name}", side, median(found), "rows/s") for side, found in rates.items()),
        Result(f"Kafka, {JOIN.name}", "decoding JSON, share of the local engine's CPU time", median(shares), ""),
        Result(f"Kafka, {JOIN.name}", f"on Spark / {peer}", times, "", BAR, times >= BAR),
    ]


def _fill(broker: KafkaBroker, topic: str, batch: pa.RecordBatch) -> None:
    broker.create(topic, PARTITIONS)
    producer = Producer({"bootstrap.servers": broker.servers, "linger.ms": 50, "compression.type": "lz4"})
    step = 10_000
    for number, first in enumerate(range(0, batch.num_rows, step)):
        messages = [{"value": value} for value in lines(batch.slice(first, step)).to_pylist()]
        producer.produce_batch(topic, messages, partition=number % PARTITIONS)
        producer.flush()


def _write(folder: str, batch: pa.RecordBatch) -> None:
    """The rows of Spark's own side as files, one for each batch; Spark reads them in the order of their times."""
    os.makedirs(folder)
    for number, first in enumerate(range(0, batch.num_rows, OWN_BATCH)):
        path = f"{folder}/{number:04}.parquet"
        pq.write_table(pa.Table.from_batches([batch.slice(first, OWN_BATCH)]), path)
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def _columns(name: str) -> str:
    return ", ".join(["ts TIMESTAMP", *(f"{key} BIGINT" for key in JOIN.columns[name]), "v DOUBLE"])


def _declared(name: str, servers: str, prefix: str, format_: str = "json") -> str:
    columns = "value BLOB, timestamp TIMESTAMP" if format_ == "raw" else _columns(name)
    time_ = "timestamp" if format_ == "raw" else "ts"
    options = f"servers '{servers}', topic '{prefix}{name}', format '{format_}'"
    return f"CREATE STREAM {name} ({columns}) USING kafka OPTIONS ({options}) TIMESTAMP BY {time_} LATENESS 1 SECOND;"


def script(servers: str, out: str, prefix: str = "") -> str:
    """The job: the join of three topics, whose results go to files in the folder `out`."""
    sink = f"CREATE SINK out USING parquet OPTIONS (path '{out}', mode 'overwrite');"
    columns = ", ".join(f"{name}.v AS {name}v" for name in JOIN.columns)
    sources = ", ".join(f"{name} [RANGE {WINDOW} SECONDS]" for name in JOIN.columns)
    select = f"INSERT INTO out SELECT {columns} FROM {sources} WHERE {JOIN.where}"
    return "\n".join([*(_declared(name, servers, prefix) for name in JOIN.columns), sink, select])


def _local(text: str) -> tuple[float, float]:
    """Run the job on the local engine; returns seconds and CPU seconds."""
    begin, cpu = time.perf_counter(), time.process_time()
    LocalRunner(prepare(text), Settings(batch_rows=BATCH)).run()
    return time.perf_counter() - begin, time.process_time() - cpu


def _read_alone(servers: str, format_: str) -> float:
    """The CPU seconds for reading all topics and nothing else."""
    cpu, rows = time.process_time(), 0
    for name in JOIN.columns:
        source = KafkaSource(parse(_declared(name, servers, "", format_) + f"SELECT * FROM {name};").declarations[0])
        wanted = Wanted.of(source.schema, source.schema.names, everything=False)
        start = source.plan(BEGINNING, BATCH)
        while (end := source.plan(start, BATCH)) != start:
            for piece in source.between(start, end):
                rows += sum(chunk.rows.num_rows for chunk in source.read_piece(piece, wanted))
            start = end
        source.close()
    if rows != len(JOIN.columns) * ROWS:
        raise InternalError(f"{rows} messages were read")
    return time.process_time() - cpu
