"""The Kafka source against a real broker."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition

from eddyline.cql.declaration import Declaration
from eddyline.cql.script import parse
from eddyline.errors import JobError, SettingError
from eddyline.runtime.running.job import prepare
from eddyline.runtime.running.runner import LocalRunner
from eddyline.runtime.sinks.callback import CallbackSink
from eddyline.runtime.sources.kafka import BEGINNING, KafkaSource, PartitionOffsets, places, topic_ids
from eddyline.runtime.sources.source import Chunk, Wanted
from eddyline.settings import from_mapping
from lab.servers.kafka_broker import PASSWORD, USER, KafkaBroker, client

COLUMNS = "(ts TIMESTAMP, k BIGINT, v VARCHAR)"
WANTED = Wanted(("ts", "k", "v"), ("ts", "k", "v"))
START = datetime(2026, 1, 1)


def declared(options: str, columns: str = COLUMNS) -> Declaration:
    text = f"CREATE STREAM s {columns} USING kafka OPTIONS ({options}) TIMESTAMP BY ts; SELECT 1 FROM s"
    return parse(text).declarations[0]


@pytest.fixture
def open_(kafka: KafkaBroker) -> Iterator[Callable[..., KafkaSource]]:
    """Opens topics."""
    opened: list[KafkaSource] = []

    def make(topic: str, options: str = "", columns: str = COLUMNS, **more: Any) -> KafkaSource:
        given = f"servers '{kafka.servers}', topic '{topic}'{options}"
        opened.append(KafkaSource(declared(given, columns), **more))
        return opened[-1]

    yield make
    for source in opened:
        source.close()


Sent = tuple[int, int, bytes | None]
"""A partition, a time in seconds, and a value."""


def send(
    kafka: KafkaBroker, topic: str, messages: Iterable[Sent], key: str | bytes | None = None, **settings: Any
) -> None:
    producer = Producer({"bootstrap.servers": kafka.servers, **settings})
    for partition, seconds, value in messages:
        producer.produce(topic, value, key, partition, timestamp=_milliseconds(seconds))
        producer.poll(0)
    assert producer.flush(30) == 0


def _milliseconds(seconds: float) -> int:
    return round((START + timedelta(seconds=seconds) - datetime(1970, 1, 1)).total_seconds() * 1000)


def row(seconds: int, v: str = "", k: int | None = None) -> bytes:
    when = START + timedelta(seconds=seconds)
    return json.dumps({"ts": when.isoformat(), "k": seconds if k is None else k, "v": v}).encode()


def values(chunks: Iterable[Chunk], name: str = "k") -> list[Any]:
    return [value for chunk in chunks for value in chunk.rows.column(name).to_pylist()]


def dead(chunks: Iterable[Chunk]) -> list[str]:
    return [reason for chunk in chunks if chunk.dead is not None for reason in chunk.dead.column("reason").to_pylist()]


def batches(
    source: KafkaSource, limit: int, start: PartitionOffsets = BEGINNING
) -> Iterator[tuple[Any, Any, list[Any]]]:
    """The batches up to the end: their offsets and rows."""
    at = start
    while not source.ended(at):
        end = source.plan(at, limit)
        rows = [value for piece in source.between(at, end) for value in values(source.read_piece(piece, WANTED))]
        yield at, end, rows
        at = end


def test_messages_are_rows(kafka: KafkaBroker, open_: Callable[..., KafkaSource]) -> None:
    topic = kafka.create(partitions=3)
    send(kafka, topic, [(n % 3, n, row(n, f"v{n}")) for n in range(1000)])
    source = open_(topic)
    assert places(source.plan(BEGINNING, 10)) == {f"{topic}/{p}": 0 for p in range(3)}
    assert values(source.read(WANTED)) == list(range(1000))  # by their timestamps
    again = open_(topic)
    found = list(batches(again, 100))
    assert sorted(k for _, _, rows in found for k in rows) == list(range(1000))
    assert len(found) > 8 and all(len(rows) <= 100 for _, _, rows in found)
    for at, end, rows in found[1:]:  # what runs again reads the same, and partitions are read side by side
        pieces = source.between(json.loads(json.dumps(at)), end)
        assert [k for piece in pieces for k in values(source.read_piece(piece, WANTED))] == rows
        assert max(rows) - min(rows) < 110
    assert again.backlog(found[4][1]) == 1000 - sum(len(rows) for _, _, rows in found[:5])


def test_partitions_of_different_size_are_read_side_by_side(
    kafka: KafkaBroker, open_: Callable[..., KafkaSource]
) -> None:
    topic = kafka.create(partitions=2)
    send(kafka, topic, [(0, n, row(n)) for n in range(2000)] + [(1, n, row(n)) for n in range(0, 2000, 50)])
    newest = -1
    for _, _, rows in batches(open_(topic), 200):
        assert not rows or min(rows) >= newest - 60
        newest = max([newest, *rows])
    same = kafka.create(partitions=2)
    send(kafka, same, [(0, 7, row(n)) for n in range(300)] + [(1, 7, row(n)) for n in range(30)])
    sizes = [len(rows) for _, _, rows in batches(open_(same), 33)]
    assert sum(sizes) == 330 and max(sizes) <= 33 and len(sizes) < 14  # all have one time: each gives its share


def test_only_committed_messages(kafka: KafkaBroker, open_: Callable[..., KafkaSource]) -> None:
    topic = kafka.create(partitions=2)
    producer = Producer({"bootstrap.servers": kafka.servers, "transactional.id": topic})
    producer.init_transactions(30)
    kept: list[int] = []
    for turn in range(6):
        producer.begin_transaction()
        for n in range(turn * 10, turn * 10 + 10):
            producer.produce(topic, row(n), partition=turn % 2, timestamp=_milliseconds(n))
        producer.flush(30)
        if turn in (2, 5):  # the last messages of partition 1 are aborted ones
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
            kept += range(turn * 10, turn * 10 + 10)
    producer.begin_transaction()
    producer.produce(topic, row(99), partition=0)
    producer.flush(30)
    try:
        assert values(open_(topic).read(WANTED)) == kept
        found = list(batches(open_(topic), 7))
        assert sorted(k for _, _, rows in found for k in rows) == kept
        everything = open_(topic, ", isolation 'read_uncommitted'")
        assert sorted(values(everything.read(WANTED))) == [*range(60), 99]
    finally:
        producer.abort_transaction(30)


def test_compacted_topics_have_gaps(kafka: KafkaBroker, open_: Callable[..., KafkaSource]) -> None:
    config = {
        "cleanup_policy": "compact",
        "segment_ms": 50,
        "min_cleanable_dirty_ratio": 0.01,
        "max_compaction_lag_ms": 50,
    }
    topic = kafka.create(**config)
    for n in range(30):
        send(kafka, topic, [(0, n, row(n))], key=str(n % 3))
    send(kafka, topic, [(0, 30, None)], key="0")

    def offsets() -> list[int]:
        chunks = open_(topic, columns="(ts TIMESTAMP, _offset BIGINT)").read(Wanted(("_offset",), ("_offset",)))
        return values(chunks, "_offset")

    while len(offsets()) > 20:
        send(kafka, topic, [(0, 31, row(31))], key="roll")  # closes a segment
    found = list(batches(open_(topic), 7))
    assert found[-1][1][f"{topic}/0"] >= 31
    read = [k for _, _, rows in found for k in rows]
    assert {28, 29} <= set(read) and None in read and len(read) < 25


def test_start_and_end(kafka: KafkaBroker, open_: Callable[..., KafkaSource]) -> None:
    topic = kafka.create(partitions=2)
    send(kafka, topic, [(n % 2, n, row(n)) for n in range(10)])
    assert values(open_(topic, ", start '2026-01-01 00:00:05'").read(WANTED)) == [5, 6, 7, 8, 9]
    assert values(open_(topic, ", start '2026-01-02'").read(WANTED)) == []
    for early in ("1960-01-01", "1969-12-31 23:59:59.999"):
        assert sorted(values(open_(topic, f", start '{early}'").read(WANTED))) == list(range(10))
    source, latest = open_(topic), open_(topic, ", start 'latest'", follow=True)
    begin, at = source.plan(BEGINNING, 5), latest.plan(BEGINNING, 5)
    send(kafka, topic, [(0, 10, row(10))])
    end = source.plan(begin, 100)
    assert source.ended(end) and source.plan(end, 100) == end
    assert sum(piece.rows for piece in source.between(begin, end)) == 10
    assert latest.plan(BEGINNING, 5) != at and not latest.ended(at)
    assert [values(latest.read_piece(p, WANTED)) for p in latest.between(at, latest.plan(at, 100))] == [[10]]


def test_new_partitions_and_topics(
    kafka: KafkaBroker, open_: Callable[..., KafkaSource], monkeypatch: pytest.MonkeyPatch
) -> None:
    from confluent_kafka.cimpl import NewPartitions

    monkeypatch.setattr("eddyline.runtime.sources.kafka._LOOK", 0.0)
    first, second = kafka.create(), kafka.create()
    source = open_(first, ", start 'latest'", follow=True)
    at = source.plan(BEGINNING, 10)
    admin = client(kafka.servers)
    admin.create_partitions([NewPartitions(first, 2)])[first].result(30)
    while len(places(end := source.plan(at, 10))) < 2:
        pass
    send(kafka, first, [(1, 1, row(1)), (0, 2, row(2))])
    assert source.plan(at, 10)[f"{first}/1"] == 0  # new partitions are read whole
    later = source.plan(end, 10)
    assert sorted(k for piece in source.between(end, later) for k in values(source.read_piece(piece, WANTED))) == [1, 2]
    send(kafka, second, [(0, 3, row(3))])
    both = open_(f"{first}, {second}")
    end = both.plan(later, 10)
    assert places(end) == {**places(later), f"{second}/0": 0} and not both.ended(end)
    assert [k for *_, rows in batches(both, 9, later) for k in rows] == [3]


def test_bad_messages_are_dead(kafka: KafkaBroker, open_: Callable[..., KafkaSource]) -> None:
    topic = kafka.create()
    bad = [
        b"",
        b"  ",
        b"{",
        b"[1]",
        b"7",
        b'{"k": 1}{"k": 2}',
        b'{"k": 1}\n{"k": 2}',
        b'{"k": "x"}',
        b"\xff",
        b'{"v": "\xff"}',
    ]
    good = [b'{\n "k": 5}', b'  {"k": 6} \n', row(7), b'{"k": 8, "more": [1, {}]}', None]
    send(kafka, topic, [(0, n, value) for n, value in enumerate([*bad, *good])])
    chunks = list(open_(topic).read(WANTED))
    assert sorted(map(str, values(chunks))) == ["5", "6", "7", "8", "None"]
    reasons = dead(chunks)
    assert len(reasons) == len(bad)
    assert sorted(int(r.split("offset ")[1].split(":")[0]) for r in reasons) == list(range(len(bad)))
    assert f"topic {topic}, partition 0, offset 7: column k: 'x' is not a value of type BIGINT" in reasons
    assert any(r.startswith(f"topic {topic}, partition 0, offset 2: not a JSON object of this stream") for r in reasons)


def test_parts_of_messages(kafka: KafkaBroker, open_: Callable[..., KafkaSource]) -> None:
    topic = kafka.create(partitions=2)
    producer = Producer({"bootstrap.servers": kafka.servers})
    producer.produce(topic, b'{"k": 1}', b"17", 1, timestamp=_milliseconds(5), headers=[("h", b"x"), ("n", None)])
    producer.produce(topic, b'{"k": 2}', b"\xff", 0, timestamp=_milliseconds(6))
    producer.produce(topic, None, b"18", 1, timestamp=_milliseconds(7))
    producer.flush(30)
    names = ("_key", "_timestamp", "_topic", "_partition", "_offset", "k")
    columns = "(k BIGINT, _key BIGINT, _timestamp TIMESTAMP, _topic VARCHAR, _partition INTEGER, _offset BIGINT)"
    chunks = list(open_(topic, columns=columns).read(Wanted(names, names)))
    assert [tuple(r.values()) for c in chunks for r in c.rows.to_pylist()] == [
        (17, START + timedelta(seconds=5), topic, 1, 0, 1),
        (18, START + timedelta(seconds=7), topic, 1, 1, None),
    ]
    assert dead(chunks) == [f"topic {topic}, partition 0, offset 0: column _key: the key is not a value of type BIGINT"]
    raw = open_(topic, ", format 'raw'", columns="")
    found = [r for c in raw.read(Wanted((), tuple(raw.schema.names))) for r in c.rows.to_pylist()]
    assert [(r["key"], r["value"], r["offset"]) for r in found] == [
        (b"17", b'{"k": 1}', 0),
        (b"\xff", b'{"k": 2}', 0),
        (b"18", None, 1),
    ]
    assert found[0]["headers"] == [{"key": "h", "value": b"x"}, {"key": "n", "value": None}]
    text = open_(topic, ", format 'raw'", columns="(value VARCHAR, timestamp TIMESTAMP)")
    assert values(text.read(Wanted(("value",), ("value",))), "value") == ['{"k": 1}', '{"k": 2}', None]


def test_csv(kafka: KafkaBroker, open_: Callable[..., KafkaSource]) -> None:
    topic = kafka.create()
    lines = [b"2026-01-01,1,a", b"2026-01-01,2", b'2026-01-01,3,"x,y"', b"", b"2026-01-01,z,b"]
    lines += [b"a\nb", b'1,"', b'2026-01-01,4,"l\nm"', b"2026-01-01,5,\xff"]
    send(kafka, topic, [(0, n, line) for n, line in enumerate(lines * 3)])
    chunks = list(open_(topic, ", format 'csv'", "(ts TIMESTAMP, k BIGINT, v VARCHAR, _offset BIGINT)").read(WANTED))
    rows = [(k, v) for c in chunks for k, v in zip(values([c]), values([c], "v"), strict=True)]
    assert sorted(set(rows)) == [(1, "a"), (3, "x,y")] and len(rows) == 6
    reasons = dead(chunks)
    assert sorted({int(r.split("offset ")[1].split(":")[0]) % len(lines) for r in reasons}) == [1, 3, 4, 5, 6, 7, 8]
    assert len(reasons) == 21
    piped = kafka.create()
    send(kafka, piped, [(0, 1, b"2026-01-01|1|~"), (0, 2, b"2026-01-01|1|")])
    chunks = list(open_(piped, ", format 'csv', sep '|', nullValue '~'").read(WANTED))
    assert values(chunks, "v") == [None, None]


def test_retention_is_noticed(kafka: KafkaBroker, open_: Callable[..., KafkaSource]) -> None:
    topic = kafka.create()
    send(kafka, topic, [(0, n, row(n)) for n in range(10)])
    source = open_(topic)
    at = source.plan(BEGINNING, 10)
    end = source.plan(at, 10)
    admin = client(kafka.servers)
    admin.delete_records([TopicPartition(topic, 0, 4)])[TopicPartition(topic, 0)].result(30)
    told = rf"^kafka at {kafka.servers}: topic {topic}, partition 0 begins at offset 4, but was read up to 0: messages"
    with pytest.raises(JobError, match=told):
        open_(topic).plan(at, 10)
    with pytest.raises(JobError, match=r"partition 0 has no offset 0 any more: messages were removed by retention"):
        list(source.read_piece(source.between(at, end)[0], WANTED))
    assert values(open_(topic).read(WANTED)) == [4, 5, 6, 7, 8, 9]
    with pytest.raises(JobError, match=r"ends at offset 10, but was read up to 99: it is not the topic that it was$"):
        open_(topic, sleep=lambda _: None).plan({f"{topic}/0": 99}, 1)


@pytest.mark.parametrize("follow", [False, True])
def test_a_partition_that_is_gone(kafka: KafkaBroker, open_: Callable[..., KafkaSource], follow: bool) -> None:
    topic = kafka.create(partitions=1)
    send(kafka, topic, [(0, n, row(n)) for n in range(3)])
    with pytest.raises(JobError, match=rf"there is no partition 1 of topic {topic} any more$"):
        open_(topic, follow=follow).plan({f"{topic}/0": 1, f"{topic}/1": 1}, 10)


def test_a_topic_is_known_by_its_id(kafka: KafkaBroker, open_: Callable[..., KafkaSource]) -> None:
    topic = kafka.create()
    send(kafka, topic, [(0, n, row(n)) for n in range(10)])
    source = open_(topic)
    at = source.plan(BEGINNING, 10)
    half, end = source.plan(at, 5), source.plan(at, 10)
    assert places(end) == {f"{topic}/0": 10} and topic_ids(end) == topic_ids(at) != {}
    assert open_(topic).plan(places(end), 10) == end  # a checkpoint of an older version takes the id
    kafka.create_again(topic)
    send(kafka, topic, [(0, n, row(n, "again")) for n in range(10)])
    sentence = rf"^kafka at {kafka.servers}: topic {topic} was deleted and made again: it is not the topic that the job"
    with pytest.raises(JobError, match=sentence):  # there is nothing new
        open_(topic).plan(end, 10)
    with pytest.raises(JobError, match=sentence):  # it was planned before
        list(open_(topic).read_between(half, end, WANTED))
    with pytest.raises(JobError, match=sentence):  # tasks have read it
        open_(topic).check_same(end)
    assert values(open_(topic).read(WANTED), "v") == ["again"] * 10


JOIN = """
CREATE STREAM s {columns} USING kafka OPTIONS (servers '{servers}', topic '{one}') TIMESTAMP BY ts;
CREATE STREAM t {columns} USING kafka OPTIONS (servers '{servers}', topic '{two}') TIMESTAMP BY ts;
SELECT s.k, s.v AS v, t.v AS w FROM s [RANGE 1 HOUR], t [RANGE 1 HOUR] WHERE s.k = t.k
"""


def run(text: str, settings: Mapping[str, object], checkpoint: Path | None = None) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    sink = CallbackSink(lambda batch: rows.extend(tuple(r.values()) for r in batch.to_pylist()))
    chosen = from_mapping(settings)
    LocalRunner(prepare(text, sink=sink, seed=1), chosen, str(checkpoint) if checkpoint else None).run()
    return rows


def test_a_job_does_not_go_on_with_a_topic_that_was_made_again(kafka: KafkaBroker, tmp_path: Path) -> None:
    one, two = kafka.create(), kafka.create()
    text = JOIN.format(columns=COLUMNS, servers=kafka.servers, one=one, two=two)
    for topic in (one, two):
        send(kafka, topic, [(0, n, row(n)) for n in range(10)])
    assert len(run(text, {}, tmp_path / "ck")) == 10
    kafka.create_again(two)
    send(kafka, two, [(0, n, row(n)) for n in range(20)])
    with pytest.raises(JobError, match=f"topic {two} was deleted and made again"):
        run(text, {}, tmp_path / "ck")


@pytest.mark.parametrize("batch_rows", ["auto", 40])
def test_a_join_that_is_continued(kafka: KafkaBroker, tmp_path: Path, batch_rows: object) -> None:
    """Rows that arrive between two runs are joined with those of the first run, and no result comes twice."""
    one, two = kafka.create(partitions=2), kafka.create(partitions=3)
    text = JOIN.format(columns=COLUMNS, servers=kafka.servers, one=one, two=two)
    found = []
    for turn in range(3):
        numbers = range(turn * 100, turn * 100 + 100)
        send(kafka, one, [(n % 2, n, row(n, f"s{n}")) for n in numbers])
        send(kafka, two, [(n % 3, n, row(n, f"t{n}", k=n - 50)) for n in numbers])
        found += run(text, {"batch_rows": batch_rows}, tmp_path / "ck")
    assert sorted(found) == [(n, f"s{n}", f"t{n + 50}") for n in range(250)]
    assert sorted(run(text, {})) == sorted(found)


def test_the_first_offsets_are_kept(kafka: KafkaBroker, tmp_path: Path) -> None:
    """A job that begins at the latest message sees those that come after its first run, though that had no rows."""
    topic = kafka.create()
    stream = (
        f"CREATE STREAM s {COLUMNS} USING kafka OPTIONS (servers '{kafka.servers}', topic '{topic}', start 'latest')"
    )
    text = f"{stream} TIMESTAMP BY ts; SELECT k FROM s"
    assert run(text, {}, tmp_path) == []
    send(kafka, topic, [(0, 1, row(1))])
    assert run(text, {}, tmp_path) == [(1,)]
    assert run(text, {}, tmp_path) == []


def test_a_broker_that_restarts(kafka: KafkaBroker, open_: Callable[..., KafkaSource]) -> None:
    topic = kafka.create(partitions=2)
    send(kafka, topic, [(n % 2, n, row(n)) for n in range(100)])
    source = open_(topic, page=10)
    chunks = source.read(WANTED)
    found = values([next(chunks), next(chunks)])
    kafka.kill()
    kafka.start()
    assert found + values(chunks) == list(range(100))


def test_tls_and_sasl(kafka: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = kafka.create()
    send(kafka, topic, [(0, 1, row(1))])
    login = f"security 'sasl_plaintext', sasl_user '{USER}', sasl_password_env 'KAFKA_SECRET'"
    given = f"servers '{kafka.sasl_servers}', topic '{topic}', {login}"
    with pytest.raises(SettingError, match="KAFKA_SECRET, which is not set"):
        KafkaSource(declared(given))
    monkeypatch.setenv("KAFKA_SECRET", PASSWORD)
    assert values(KafkaSource(declared(given)).read(WANTED)) == [1]
    monkeypatch.setenv("KAFKA_SECRET", "wrong-word")
    with pytest.raises(JobError, match=r"^kafka at .*(?i:authentication)") as caught:
        KafkaSource(declared(given)).plan(BEGINNING, 1)
    assert "wrong-word" not in str(caught.value) and "\n" not in str(caught.value)
    by_tls = f"servers '{kafka.tls_servers}', topic '{topic}', {login.replace('plaintext', 'ssl')}"
    if kafka.certificate is not None:
        monkeypatch.setenv("KAFKA_SECRET", PASSWORD)
        assert values(KafkaSource(declared(f"{by_tls}, ssl_ca '{kafka.certificate}'")).read(WANTED)) == [1]
    monkeypatch.setattr("eddyline.runtime.sources.kafka_cluster._FIRST", 1.0)
    if kafka.certificate is not None:
        with pytest.raises(JobError, match=r"^kafka at .*(?i:no answer|ssl|certificate)"):
            KafkaSource(declared(by_tls)).plan(BEGINNING, 1)  # nobody says that the broker's certificate is right
    with pytest.raises(JobError, match=r"^kafka at .*(?i:no answer|ssl)"):
        KafkaSource(declared(f"servers '{kafka.servers}', topic '{topic}', security 'ssl'")).plan(BEGINNING, 1)


def test_what_cannot_be_reached(
    kafka: KafkaBroker, open_: Callable[..., KafkaSource], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eddyline.runtime.sources.kafka_cluster._FIRST", 0.5)
    with pytest.raises(JobError, match=rf"^kafka at {kafka.servers}: there is no topic nowhere$"):
        open_("nowhere").plan(BEGINNING, 1)
    with pytest.raises(JobError, match=r"^kafka at 127.0.0.1:1: no answer for .* seconds \(.*\)$"):
        KafkaSource(declared("servers '127.0.0.1:1', topic 'a'")).plan(BEGINNING, 1)


@pytest.mark.parametrize(
    ("options", "columns", "why"),
    [
        ("topic 'a'", COLUMNS, "kafka needs an option servers"),
        ("servers 'a:1'", COLUMNS, "kafka needs an option topic"),
        ("servers 'a:1', topic 'a,a'", COLUMNS, "option topic is a list of different topics"),
        ("servers 'a:1', topic 'a', format 'xml'", COLUMNS, "option format is json or avro or csv or raw, not 'xml'"),
        ("servers 'a:1', topic 'a', start 'now'", COLUMNS, "option start is earliest, latest or a time"),
        ("servers 'a:1', topic 'a', startingOffsets 'x'", COLUMNS, "kafka has no option 'startingOffsets'"),
        ("servers 'a:1', topic 'a'", "", "kafka needs the columns, CREATE STREAM s .*, unless format is 'raw'"),
        ("servers 'a:1', topic 'a', format 'csv'", "(l BIGINT[])", "column l: .* cannot be read from csv"),
        ("servers 'a:1', topic 'a', format 'raw'", "(k BIGINT)", "column k: a message has key, value, topic"),
        ("servers 'a:1', topic 'a'", "(_offset VARCHAR)", "column _offset: the offset of a message is BIGINT"),
        ("servers 'a:1', topic 'a', format 'avro'", COLUMNS, "format 'avro' needs a schema"),
    ],
)  # fmt: skip
def test_wrong_options(options: str, columns: str, why: str) -> None:
    with pytest.raises(SettingError, match=why):
        KafkaSource(declared(options, columns))
