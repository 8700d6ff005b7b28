"""Clicks enriched from a database and from an HTTP service whose prices change: examples/lookups.sql.

    ./run python examples/lookups.py

With the address of a PostgreSQL server in the environment variable PG_URL, the users are in a table there; otherwise
they are in a file of SQLite.
"""

import json
import os
import sqlite3
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlparse

import eddyline as el

SCRIPT = Path(__file__).with_name("lookups.sql").read_text(encoding="utf-8")
USERS = [(number, f"user {number}") for number in range(100)]


class Prices(BaseHTTPRequestHandler):
    """Each answer is a cent more than the one before. Nobody sells 'sku-7'."""

    asked = 0

    def do_GET(self) -> None:
        sku = parse_qs(urlparse(self.path).query)["sku"][0]
        Prices.asked += 1
        found = None if sku == "sku-7" else {"sku": sku, "price": 10 + Prices.asked / 100}
        self.send_response(200 if found else 404)
        self.end_headers()
        self.wfile.write(json.dumps(found).encode() if found else b"")

    def log_message(self, *args: object) -> None:
        """Says nothing."""


def write_clicks(folder: str) -> None:
    """A thousand clicks of a hundred users on ten things."""
    os.mkdir(folder)
    with open(f"{folder}/clicks.json", "w", encoding="utf-8") as file:
        for number in range(1000):
            second = f"2026-01-01T12:{number // 60 % 60:02}:{number % 60:02}"
            click = {"ts": second, "user_id": number * 37 % 120, "sku": f"sku-{number % 10}"}
            file.write(json.dumps(click) + "\n")


def make_users(script: str) -> str:
    """Makes the table of users; returns the script that asks it."""
    if "PG_URL" in os.environ:
        import psycopg

        with psycopg.connect(os.environ["PG_URL"], autocommit=True) as postgres:
            postgres.execute("CREATE TABLE IF NOT EXISTS users (id BIGINT PRIMARY KEY, name VARCHAR)")
            with postgres.cursor() as cursor:
                cursor.executemany("INSERT INTO users VALUES (%s, %s) ON CONFLICT DO NOTHING", USERS)
        return script.replace("USING sqlite OPTIONS (path 'shop.db',", "USING postgres OPTIONS (url_env 'PG_URL',")
    with sqlite3.connect("shop.db") as database:
        database.execute("CREATE TABLE users (id INTEGER, name TEXT)")
        database.executemany("INSERT INTO users VALUES (?, ?)", USERS)
    database.close()
    return script


def main() -> None:
    """Starts the service, runs the query, prints some of its rows."""
    server = ThreadingHTTPServer(("localhost", 0), Prices)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_clicks("clicks")
        script = make_users(SCRIPT.replace("localhost:8080", f"localhost:{server.server_port}"))
        table = el.query(script).start(engine="local").to_arrow()
        os.chdir("/")
    server.shutdown()
    print(table.slice(0, 5).to_pylist())
    print(f"{table.num_rows} clicks have a user and a price; the service was asked {Prices.asked} times")


if __name__ == "__main__":
    main()
