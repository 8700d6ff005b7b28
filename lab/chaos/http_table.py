"""A table behind HTTP, as a program: `http_table.py PORT FILE`. The file has the rows of each key, as JSON."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

ROWS: dict[str, list[dict[str, object]]] = {}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        (key,) = parse_qs(urlsplit(self.path).query)["j"]
        self._answer(ROWS.get(key, []))

    def do_POST(self) -> None:
        keys = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._answer([row for key in keys for row in ROWS.get(str(key), [])])

    def _answer(self, rows: list[dict[str, object]]) -> None:
        body = json.dumps(rows).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nobody reads it."""


if __name__ == "__main__":
    ROWS.update(json.loads(Path(sys.argv[2]).read_text(encoding="utf-8")))
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), _Handler).serve_forever()
