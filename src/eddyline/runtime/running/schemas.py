"""Schemas as text, as part of a job's spec."""

from __future__ import annotations

import base64

import pyarrow as pa


def schema_text(schema: pa.Schema) -> str:
    """A schema as text: base64 of its IPC form."""
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def schema_of(text: str) -> pa.Schema:
    """The schema that `schema_text` serialised.

    >>> schema_of(schema_text(pa.schema([("id", pa.int64())]))).names
    ['id']
    """
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
