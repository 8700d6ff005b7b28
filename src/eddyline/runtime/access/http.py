"""Rows from an HTTP service, as JSON, by aiohttp.

Options: `url`, a template such as `http://host/price?sku={sku}`, whose places in braces are columns of the key;
`batch_url`, to which several keys are posted as a JSON list (of values, or of objects if a key has several columns);
`authorization_env`, the environment variable with the value of the header Authorization. The answer is an object, or a
list of objects, one for each row, whose values are read as those of JSON files are. An answer to one key may leave the
columns of the key out.

A redirect is followed with the same method and body, and without the header if it leads to another host. A POST that is
answered 303 is refused: what it leads to is no answer to the keys.

| status | is |
| --- | --- |
| 200 | the rows; `null` and an empty list are no row |
| 204, 404 | no row |
| 301, 302, 307, 308 | a redirect |
| 408, 425, 429, 500 and above | TryFailed, until the time that a header Retry-After says |
| 401, 403, 405; 303 to a POST | TableRefused |
| other | KeysRefused |
"""

from __future__ import annotations

import re
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from email.utils import parsedate_to_datetime
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
from eddyline.runtime.access.client import FoundRows, KeysRefused, TableRefused, TryFailed
from eddyline.runtime.access.client_options import ClientKind
from eddyline.runtime.access.fitting import fitted_json
from eddyline.runtime.options import Options
from eddyline.runtime.secrets import secret
from eddyline.runtime.values.json import is_bytes, value_of

_BATCH = 100
_PLACE = re.compile(r"\{([^{}]*)\}")
_LATER, _REFUSED, _MOVED = {408, 425, 429}, {401, 403, 405}, {301, 302, 307, 308}
_REDIRECTS = 10
"""How many redirects are followed, one after the other."""
_UNSENDABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


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
    if _UNSENDABLE.search(headers.get("Authorization", "")):
        raise SettingError(
            f"the environment variable {variable} has a line break or another character that no header can have",
            "option authorization_env",
        )

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
        self._url, self._batch_url, self._schema, self._secret = url, batch_url, schema, headers
        self._row = pa.struct(list(schema))
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=connections),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),  # the lookup has a deadline of its own
        )

    async def lookup(self, columns: Sequence[str], keys: pa.RecordBatch) -> FoundRows:
        """These columns of the rows that the service answers."""
        schema = pa.schema([self._schema.field(name) for name in columns])
        if keys.num_rows == 1 and self._url:
            texts = {name: as_text(keys.column(name))[0].as_py() for name in keys.schema.names}
            url = _PLACE.sub(lambda place: quote(texts[place[1]], safe=""), self._url)
            rows = await self._asked("GET", url, None)
            return fitted_json(rows, schema, keys)
        texts = {c: keys.column(c) for c in keys.schema.names}
        plain = {c: v if _is_json(v.type) else as_text(v) for c, v in texts.items()}
        if not all(pc.all(pc.is_finite(v)).as_py() for v in plain.values() if pa.types.is_floating(v.type)):
            raise KeysRefused("JSON has no NaN and no infinite numbers")
        body = plain[keys.schema.names[0]].to_pylist() if len(plain) == 1 else pa.table(plain).to_pylist()
        rows = await self._asked("POST", self._batch_url, msgspec.json.encode(body))
        for name in keys.schema.names:
            if any(name not in row for row in rows):
                raise TableRefused(f"the answer has an object without {name}, a column of the key")
        return fitted_json(rows, schema, keys)

    def scan(self, columns: Sequence[str]) -> AsyncGenerator[FoundRows, None]:
        """A service is asked for keys only."""
        raise TableRefused("http is asked for keys only")

    async def close(self) -> None:
        """Ends all connections."""
        await self._session.close()

    async def _asked(self, method: str, url: str, body: bytes | None) -> list[dict[str, Any]]:
        try:
            status, reason, headers, text = await self._answered(method, URL(url, encoded=True), body)
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            raise TryFailed(said(error)) from None
        if status in (204, 404):
            return []
        if status != 200:
            message = f"the service answered {status} {reason}".rstrip()
            if status in _LATER or status >= 500:
                raise TryFailed(message, retry_after=_seconds_of(headers.get("Retry-After", "")))
            refused = status in _REFUSED or (status == 303 and method == "POST")
            raise (TableRefused if refused else KeysRefused)(message)
        try:
            decoded = text.decode()
            found = value_of(decoded, self._row if decoded.lstrip()[:1] == "{" else pa.list_(self._row))
        except (ValueError, RecursionError):
            raise KeysRefused("the answer is not JSON") from None
        rows = [] if found is None else found if isinstance(found, list) else [found]
        if not all(isinstance(row, dict) for row in rows):
            raise KeysRefused("the answer is neither an object nor a list of objects")
        return rows

    async def _answered(self, method: str, url: URL, body: bytes | None) -> tuple[int, str, Mapping[str, str], bytes]:
        """The status, reason, headers and text of an answer that is no redirect, or the last of too many."""
        content = {} if body is None else {"Content-Type": "application/json"}
        origin = url.origin()
        for left in reversed(range(_REDIRECTS + 1)):
            headers = {**content, **(self._secret if url.origin() == origin else {})}
            sent = self._session.request(method, url, data=body, headers=headers, allow_redirects=False)
            async with sent as answer:
                text, where = await answer.read(), answer.headers.get("Location", "")
                follows = answer.status in _MOVED or (answer.status == 303 and method == "GET")
                if not (follows and where and left):
                    return answer.status, answer.reason or "", answer.headers, text
            url = url.join(URL(where))
        raise AssertionError("unreachable")


def _seconds_of(retry_after: str) -> float:
    """The seconds that a header Retry-After says, as a number or as a date; 0 if it says nothing sensible."""
    if retry_after.strip().isdecimal():
        return float(retry_after)
    try:
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (ValueError, TypeError):
        return 0.0


def _is_json(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_boolean(type_) or pa.types.is_floating(type_))
