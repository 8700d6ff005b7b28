"""From Kafka through a join and a count into a Delta table, each row once: examples/pipeline.sql.

    ./run python examples/pipeline.py [local|spark]

KAFKA_SERVERS names a cluster; without it a broker is started, as the tests do (Maven fetches it once). The job is run
twice: the second run continues from the checkpoint of the first. With Docker:

    docker compose -f examples/compose.yaml up --abort-on-container-exit
"""

import contextlib
import json
import os
import random
import sys
import tempfile
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import deltalake
import pyarrow.compute as pc
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

import eddyline as el
from lab.servers.kafka_broker import kafka_broker

SCRIPT = Path(__file__).with_name("pipeline.sql").read_text(encoding="utf-8")
TOPICS = {"orders": "amount", "payments": "method", "shipments": "carrier"}
"""The topics, and the column of each besides time and order."""
START = datetime(2026, 1, 1, 12)
SECONDS = 1800


@contextlib.contextmanager
def servers() -> Iterator[str]:
    """The cluster: the one that the environment names, or a broker that is started now."""
    if named := os.environ.get("KAFKA_SERVERS"):
        yield named
        return
    with kafka_broker() as broker:
        yield broker.servers


def make_topics(cluster: str) -> None:
    """Makes the topics that are missing, each with four partitions."""
    admin = AdminClient({"bootstrap.servers": cluster})
    there = admin.list_topics(timeout=60).topics
    made = admin.create_topics([NewTopic(topic, 4, 1) for topic in TOPICS if topic not in there])
    for future in made.values():
        future.result()


def send(cluster: str, first: int, last: int) -> None:
    """Sends the orders of these seconds, ten each second; nine of ten are paid and shipped within two minutes."""
    draw, producer = random.Random(first), Producer({"bootstrap.servers": cluster, "linger.ms": 50, "log_level": 4})
    values = {"method": ("card", "transfer", "voucher"), "carrier": ("barge", "rail", "road")}
    for number in range(first * 10, last * 10):
        second = number / 10
        for topic, column in TOPICS.items():
            value = round(draw.uniform(1, 500), 2) if column == "amount" else draw.choice(values[column])
            at = (START + timedelta(seconds=second)).isoformat(timespec="milliseconds")
            message = {"ts": at, "order_id": number, column: value}
            producer.produce(topic, json.dumps(message), str(number))
            producer.poll(0)
            if draw.random() < 0.05:
                break
            second += draw.uniform(1, 5)
    producer.flush()


def main(engine: str) -> None:
    """Fills the topics in two parts, runs the job after each, and reads the table."""
    with servers() as cluster, tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        make_topics(cluster)
        query = el.query(SCRIPT.replace("localhost:9092", cluster))
        for first in (0, SECONDS // 2):
            send(cluster, first, first + SECONDS // 2)
            run = query.start(engine=engine, checkpoint="checkpoint")
            run.wait()
            print(f"{run.progress().rows_in:,} messages so far")
        table = deltalake.DeltaTable("lake/shipped")
        rows = table.to_pyarrow_table()
        os.chdir("/")
    print(f"{rows.num_rows:,} rows in {table.version()} commits of the table; the newest minute:")
    newest = rows.filter(pc.equal(rows["until"], pc.max(rows["until"])))
    for row in newest.sort_by([("carrier", "ascending"), ("method", "ascending")]).to_pylist():
        print(f"  {row['carrier']:<6} {row['method']:<9} {row['orders']:>5} orders {row['amount']:>12,}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "local")
