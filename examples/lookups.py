"""Clicks enriched from a table in PostgreSQL and from an HTTP service, both of which change: examples/lookups.sql.

    ./run python examples/lookups.py

It starts a PostgreSQL server of its own; where there is none, the users are in a file of SQLite.
"""

import contextlib
import json
import os
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlparse

import eddyline as el
from lab.servers.postgres import NoPostgres, postgres_server

SCRIPT = Path(__file__).with_name("lookups.sql").read_text(encoding="utf-8")
CLICKS, MATCHES = 1200, 900
"""A quarter of the clicks is on 'sku-7', which nobody sells, or by users who are not known."""


class Prices(BaseHTTPRequestHandler):
    """The service: things cost 10, and more later."""

    price, asked = 10.0, 0

    def do_GET(self) -> None:
        sku = parse_qs(urlparse(self.path).query)["sku"][0]
        Prices.asked += 1
        found = None if sku == "sku-7" else {"sku": sku, "price": Prices.price}
        self.send_response(200 if found else 404)
        self.end_headers()
        self.wfile.write(json.dumps(found).encode() if found else b"")

    def log_message(self, *args: object) -> None:
        """Says nothing."""


@contextlib.contextmanager
def database() -> Iterator[tuple[str, Callable[[str], object]]]:
    """The script, and a function that runs SQL in the database of the users."""
    with contextlib.ExitStack() as stack:
        try:
            server = stack.enter_context(postgres_server())
        except NoPostgres as why:
            print(f"{why}; the users are in SQLite")
            of_users = sqlite3.connect("shop.db", isolation_level=None)
            stack.callback(of_users.close)
            yield SCRIPT.replace("postgres", "sqlite").replace("url_env 'PG_URL'", "path 'shop.db'"), of_users.execute
            return
        import psycopg

        os.environ["PG_URL"] = server.url
        yield SCRIPT, stack.enter_context(psycopg.connect(server.url, autocommit=True)).execute


def write_clicks(part: int) -> None:
    """Half of the clicks, of 120 users on ten things."""
    with open("new", "w", encoding="utf-8") as file:
        for number in range(part * CLICKS // 2, (part + 1) * CLICKS // 2):
            second = f"2026-01-01T12:{number // 60:02}:{number % 60:02}"
            file.write(json.dumps({"ts": second, "user_id": number * 37 % 120, "sku": f"sku-{number % 10}"}) + "\n")
    os.rename("new", f"clicks/{part}.json")


def main() -> None:
    """Starts the service, runs the query, prints some of its rows."""
    service = ThreadingHTTPServer(("localhost", 0), Prices)
    threading.Thread(target=service.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), database() as (script, execute):
        execute("CREATE TABLE users (id BIGINT PRIMARY KEY, name VARCHAR)")
        execute("INSERT INTO users VALUES " + ", ".join(f"({number}, 'user {number}')" for number in range(100)))
        os.mkdir("clicks")
        write_clicks(0)
        run = el.query(script.replace("localhost:8080", f"localhost:{service.server_port}")).start(follow=True)
        rows: list[dict[str, object]] = []
        for batch in run:
            rows += batch.to_pylist()
            if len(rows) == MATCHES // 2:  # all clicks so far: now the table and the prices change
                print(rows[-1])
                execute("UPDATE users SET name = 'gold ' || name")
                Prices.price += 1
                time.sleep(1)  # until answers are older than their time to live
                write_clicks(1)
            elif len(rows) == MATCHES:
                print(rows[-1])
                run.stop()
    service.shutdown()
    gold = sum(str(row["name"]).startswith("gold") and row["price"] == 11 for row in rows)
    print(
        f"{len(rows)} clicks have a user and a price, {gold} of them the new ones; {Prices.asked} prices were asked for"
    )


if __name__ == "__main__":
    main()
