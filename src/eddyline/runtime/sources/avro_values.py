"""The values of messages in Avro: with a schema that the script names, or with the ids of a schema registry.

With a registry each value begins with a zero byte and the four bytes of its schema's id. The registry is asked once for
each id; a schema never changes. fastavro reads one record at a time into a Python object.
"""

from __future__ import annotations

import base64
import io
import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.errors import JobError, SettingError, said
from eddyline.extras import install
from eddyline.runtime.options import Options
from eddyline.runtime.secrets import secret
from eddyline.runtime.sources.beside import Beside
from eddyline.runtime.sources.columns import Converted, chunk_of
from eddyline.runtime.sources.kafka_values import ValueReader, dead_messages, of_value
from eddyline.runtime.sources.source import Chunk, Wanted
from eddyline.runtime.values.python import from_python

_TIMEOUT = 5.0
_TRIES = 4
_PREFIX = 5


class UnknownSchema(Exception):
    """The registry has no schema of this id, or one that is not for Avro."""


@dataclass
class SchemaRegistry:
    """A registry by its address; `variable` is the environment variable with the user's password."""

    url: str
    user: str = ""
    variable: str = ""
    _known: dict[int, Any] = field(default_factory=dict)
    _wrong: dict[int, str] = field(default_factory=dict)
    """Why schemas that the registry has are none for Avro."""

    def schema(self, number: int) -> Any:
        """The schema of an id. Raises UnknownSchema if there is none for Avro, JobError if the registry does not
        answer."""
        import fastavro

        if number not in self._known:
            text = self._ask(number)
            try:
                self._known[number] = None if text is None else fastavro.parse_schema(json.loads(text))
            except Exception as error:  # a schema for Protobuf, or one that refers to others
                self._wrong[number] = f"schema {number} of the registry cannot be read as Avro: {said(error)}"
                self._known[number] = None
        if self._known[number] is None:
            raise UnknownSchema(self._wrong.get(number, f"the schema registry has no schema {number}"))
        return self._known[number]

    def _ask(self, number: int) -> str | None:
        """The text of a schema; None if there is none."""
        request = urllib.request.Request(f"{self.url.rstrip('/')}/schemas/ids/{number}")
        if self.user:
            given = f"{self.user}:{secret('registry_password_env', self.variable) if self.variable else ''}"
            request.add_header("Authorization", "Basic " + base64.b64encode(given.encode()).decode())
        for left in reversed(range(_TRIES)):
            try:
                with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
                    return str(json.loads(answer.read())["schema"])
            except urllib.error.HTTPError as error:
                error.close()
                if error.code == 404:
                    return None
                if error.code < 500 or not left:
                    raise JobError(f"the schema registry {self.url} answers {error.code} {error.reason}") from None
            except (OSError, ValueError, KeyError) as error:
                if not left:
                    raise JobError(f"the schema registry {self.url} does not answer: {said(error)}") from None
            time.sleep(0.2 * (_TRIES - left))
        raise AssertionError


def avro_values(options: Options, schema: pa.Schema) -> ValueReader:
    """Reads values in Avro; takes the options `schema`, `schema_file` and those of the registry. SettingError if they
    are wrong."""
    try:
        import fastavro
        from fastavro.schema import SchemaParseException
    except ModuleNotFoundError as error:
        raise SettingError(f"avro needs fastavro ({error}); type: {install('kafka')}") from None
    text, file, url = options.text("schema"), options.text("schema_file"), options.text("registry")
    user, variable = options.text("registry_user"), options.text("registry_password_env")
    if bool(text) + bool(file) > 1 or not (text or file or url):
        raise SettingError("format 'avro' needs a schema: one of the options schema, schema_file and registry")
    if variable:
        secret("registry_password_env", variable)
    try:
        text = Path(file).read_text(encoding="utf-8") if file else text
        own = fastavro.parse_schema(json.loads(text)) if text else None
    except (OSError, ValueError, SchemaParseException, KeyError) as error:
        raise SettingError(f"option {'schema_file' if file else 'schema'} is no Avro schema: {said(error)}") from None
    registry = SchemaRegistry(url, user, variable) if url else None
    names = of_value(schema)

    def record(value: bytes) -> dict[str, Any]:
        if registry is None:
            assert own is not None
            body, writer, reader = value, own, None
        else:
            if len(value) < _PREFIX or value[0]:
                raise ValueError("the value does not begin with the id of a schema")
            body, writer, reader = value[_PREFIX:], registry.schema(int.from_bytes(value[1:_PREFIX], "big")), own
        stream = io.BytesIO(body)
        found: Any = fastavro.schemaless_reader(stream, writer, reader)
        if stream.tell() != len(body):
            raise ValueError(f"{len(body) - stream.tell()} bytes are left behind the record")
        if not isinstance(found, dict):
            raise TypeError("the value is no record")
        return found

    def read(values: Sequence[bytes], wanted: Wanted, beside: Beside) -> Iterator[Chunk]:
        rows, reasons = list[dict[str, Any]](), dict[int, str]()
        for number, value in enumerate(values):
            try:
                rows.append(record(value))
            except JobError:
                raise
            except Exception as error:  # fastavro raises errors of any kind for bytes that are no record
                reasons[number] = f"not a record of this stream ({said(error)})"
        if reasons:
            dead = np.array(list(reasons), np.int64)
            yield dead_messages(schema, wanted, list(reasons.values()), beside.take(dead))
            beside = beside.take(np.setdiff1d(np.arange(len(values)), dead))
        names_here = [name for name in wanted.columns if name in names]
        raw = {name: _column([row.get(name) for row in rows], schema.field(name).type) for name in names_here}
        yield chunk_of(schema, wanted, raw, len(rows), beside=beside)

    return read


def _column(values: list[Any], type_: pa.DataType) -> Converted:
    def texts(rows: NDArray[np.int64]) -> pa.Array:
        shown = (values[row] for row in rows)
        return pa.array([v if v is None else _shown(v) for v in shown], pa.string())

    array, bad = from_python(values, type_)
    return Converted(array, bad, texts)


def _shown(value: Any) -> str:
    """A value for people."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)
