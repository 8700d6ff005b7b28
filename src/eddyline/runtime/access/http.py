"""Rows from an HTTP service, as JSON, by aiohttp.

Options: `url`, a template such as `http://host/price?sku={sku}`, whose places in braces are columns of the key;
`batch_url`, to which several keys are posted as a JSON list (of values, or of objects if a key has several columns);
`authorization_env`, the environment variable with the value of the header Authorization. The answer is an object, or a
list of objects, one for each row. An answer to one key may leave the columns of the key out.

| status | is |
| --- | --- |
| 200 | the rows; `null` and an empty list are no row |
| 204, 404 | no row |
| 408, 425, 429, 500 and above | TryFailed |
| 401, 403, 405 | TableRefused |
| other | KeysRefused |
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

import aiohttp
import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from yarl import URL

from eddyline.bound.as_text import as_text
from eddyline.cql.names import did_you_mean
from eddyline.errors import SettingError, said
from eddyline.runtime.access.client import KeysRefused, TableRefused, TryFailed
from eddyline.runtime.access.client_options import ClientKind
from eddyline.runtime.access.fitting import fitted_values
from eddyline.runtime.options import Options
from eddyline.runtime.secrets import secret
from eddyline.runtime.sources.json_values import is_bytes

_BATCH = 100
_PLACE = re.compile(r"\{([^{}]*)\}")
_LATER, _REFUSED = {408, 425, 429}, {401, 403, 405}


def kind_of(options: Options, schema: pa.Schema, concurrency: int) -> ClientKind:
    """A service by the options of its table."""
    batch_url = options.text("batch_url")
    url = options.text("url") if batch_url else options.required("url", "http://localhost:8080/price?sku={sku}")
    columns = _PLACE.findall(url)
    for name in columns:
        if name not in schema.names:
            raise SettingError(
                f"option url: there is no column '{name}'{did_you_mean(name, schema.names)}", "option url"
            )
    if url and not columns:
        raise SettingError("option url needs the key, as in http://localhost:8080/price?sku={sku}", "option url")
    for option, text in (("url", url), ("batch_url", batch_url)):
        parts = urlsplit(text)
        if text and (parts.scheme not in ("http", "https") or not parts.hostname):
            raise SettingError(f"option {option} begins with http:// or https:// and a host", f"option {option}")
        if parts.password:
            raise SettingError(f"option {option} must not have a password; use authorization_env", f"option {option}")
    variable = options.text("authorization_env")
    headers = {"Authorization": secret("authorization_env", variable)} if variable else {}

    def no_index(index: Sequence[str]) -> str:
        if any(is_bytes(schema.field(name).type) for name in index):
            return "http has no keys of bytes"
        missing = [name for name in columns if name not in index]
        return f"option url needs column {missing[0]} too" if missing else ""

    return ClientKind(
        lambda: HttpClient(url, batch_url, headers, schema, concurrency),
        batch=_BATCH if batch_url else 1,
        no_index=no_index,
        nested=True,
        why_single="a request has one key; several can be posted to a batch_url",
    )


class HttpClient:
    """Asks a service."""

    def __init__(
        self, url: str, batch_url: str, headers: Mapping[str, str], schema: pa.Schema, connections: int
    ) -> None:
        self._url, self._batch_url, self._schema = url, batch_url, schema
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=connections),
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),  # the lookup has a deadline of its own
        )

    async def lookup(self, columns: Sequence[str], keys: pa.RecordBatch) -> pa.RecordBatch:
        """These columns of the rows that the service answers."""
        schema = pa.schema([self._schema.field(name) for name in columns])
        if keys.num_rows == 1 and self._url:
            texts = {name: as_text(keys.column(name))[0].as_py() for name in keys.schema.names}
            url = _PLACE.sub(lambda place: quote(texts[place[1]], safe=""), self._url)
            rows = await self._asked("GET", url, None)
            given = keys.to_pylist()[0]
            values = {name: [row.get(name, given.get(name)) for row in rows] for name in columns}
            return fitted_values(values, schema, json=True)
        texts = {c: keys.column(c) for c in keys.schema.names}
        plain = {c: v if _is_json(v.type) else as_text(v) for c, v in texts.items()}
        if not all(pc.all(pc.is_finite(v)).as_py() for v in plain.values() if pa.types.is_floating(v.type)):
            raise KeysRefused("JSON has no NaN and no infinite numbers")
        body = plain[keys.schema.names[0]].to_pylist() if len(plain) == 1 else pa.table(plain).to_pylist()
        rows = await self._asked("POST", self._batch_url, msgspec.json.encode(body))
        for name in keys.schema.names:
            if any(name not in row for row in rows):
                raise TableRefused(f"the answer has an object without {name}, a column of the key")
        return fitted_values({name: [row.get(name) for row in rows] for name in columns}, schema, json=True)

    def scan(self, columns: Sequence[str]) -> AsyncGenerator[pa.RecordBatch, None]:
        """A service is asked for keys only."""
        raise TableRefused("http is asked for keys only")

    async def close(self) -> None:
        """Ends all connections."""
        await self._session.close()

    async def _asked(self, method: str, url: str, body: bytes | None) -> list[dict[str, Any]]:
        headers = {"Content-Type": "application/json"} if body is not None else None
        try:
            sent = self._session.request(method, URL(url, encoded=True), data=body, headers=headers)
            async with sent as answer:
                status, text = answer.status, await answer.read()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise TryFailed(said(error)) from None
        if status in (204, 404):
            return []
        if status != 200:
            reason = f"the service answered {status} {answer.reason or ''}".rstrip()
            later, refused = status in _LATER or status >= 500, status in _REFUSED
            raise (TryFailed if later else TableRefused if refused else KeysRefused)(reason)
        try:
            found = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise KeysRefused("the answer is not JSON") from None
        rows = [] if found is None else found if isinstance(found, list) else [found]
        if not all(isinstance(row, dict) for row in rows):
            raise KeysRefused("the answer is neither an object nor a list of objects")
        return rows


def _is_json(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_boolean(type_) or pa.types.is_floating(type_))
