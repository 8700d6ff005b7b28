"""A query of queries.py, written for each peer. All forms give the same rows.

| side | how the window is written |
| --- | --- |
| Eddyline | `[RANGE n SECONDS]` on every stream |
| Spark | time bounds between each stream and the one before it, and on numbers to all others (spark/chained_joins.py) |
| Flink | an interval join: `ts` of each stream within the window around every stream before it |
| Flink, multi-way | the same on the number `t`, because a join with time attributes is always binary there |
| DuckDB | one batch query: bounds beside every equality, and one on the greatest and the least time |
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa

from lab.peers.queries import PeerQuery, Tables

_OF_STREAM = re.compile(r"\{(\w+)\.(\w+)\}")


def name_of(stream: str, column: str) -> str:
    """The name of a column in the result."""
    return f"{stream}_{column}"


def condition(text: str, spelled: Callable[[str, str], str]) -> str:
    """A condition with its columns as one peer spells them.

    >>> condition("{a.t} < {b.t}", lambda stream, column: f"{stream}.{column}")
    'a.t < b.t'
    """
    return _OF_STREAM.sub(lambda match: spelled(match[1], match[2]), text)


def _dotted(stream: str, column: str) -> str:
    return f"{stream}.{column}"


def _select(query: PeerQuery) -> str:
    return "SELECT " + ", ".join(f"{s}.{c} AS {name_of(s, c)}" for s, c in query.outputs)


def _where(query: PeerQuery) -> list[str]:
    found = [f"{j.stream}.{j.key} = {j.partner}.{j.partner_key}" for j in query.joins]
    found += [f"{stream}.{text}" for stream, text in query.filters]
    return found + [condition(text, _dotted) for text in query.conditions]


def eddyline_script(query: PeerQuery, folder: str, out: str) -> str:
    """The script of Eddyline."""
    declared = [
        f"CREATE STREAM {s} USING parquet OPTIONS (path '{folder}/{s}') TIMESTAMP BY ts;" for s in query.streams
    ]
    sources = ", ".join(f"{s} [RANGE {query.window} SECONDS]" for s in query.streams)
    sink = f"CREATE SINK out USING parquet OPTIONS (path '{out}', mode 'overwrite');"
    select = f"INSERT INTO out {_select(query)} FROM {sources} WHERE {' AND '.join(_where(query))}"
    return "\n".join([*declared, sink, select])


def _pairs(query: PeerQuery, near: str) -> list[str]:
    names = query.streams
    return [near.format(a=a, b=b, n=query.window) for i, b in enumerate(names) for a in names[:i]]


def duckdb_select(query: PeerQuery) -> str:
    """The query over views of the streams. Only streams with an equality have time bounds of their own: DuckDB would
    join others by their times alone, which is much slower."""
    times = [f"{name}.ts" for name in query.streams]
    near = "{b}.ts BETWEEN {a}.ts - INTERVAL {n} SECOND AND {a}.ts + INTERVAL {n} SECOND"
    where = [*_where(query), *(near.format(a=j.partner, b=j.stream, n=query.window) for j in query.joins)]
    where.append(f"greatest({', '.join(times)}) - least({', '.join(times)}) <= INTERVAL {query.window} SECOND")
    return f"{_select(query)} FROM {', '.join(query.streams)} WHERE {' AND '.join(where)}"


def flink_statements(query: PeerQuery, tables: Tables, folder: str, out: str, multi: bool) -> list[str]:
    """The statements of Flink's SQL: the streams, the sink, and the INSERT."""
    types = {pa.int64(): "BIGINT", pa.string(): "STRING"}
    made = []
    for name in query.streams:
        fields = [field for field in tables[name].schema if field.name not in ("ts", "t")]
        columns = ["t BIGINT", *(f"`{f.name}` {types[f.type]}" for f in fields)]
        if not multi:
            columns += ["ts AS TO_TIMESTAMP_LTZ(t, 3)", "WATERMARK FOR ts AS ts"]
        options = f"'connector' = 'filesystem', 'path' = '{folder}/{name}', 'format' = 'csv'"
        made.append(f"CREATE TABLE `{name}` ({', '.join(columns)}) WITH ({options})")
    kinds = [types[tables[s].schema.field(c).type] for s, c in query.outputs]
    results = ", ".join(f"{name_of(s, c)} {kind}" for (s, c), kind in zip(query.outputs, kinds, strict=True))
    made.append(f"CREATE TABLE out_ ({results}) WITH ('connector' = 'filesystem', 'path' = '{out}', 'format' = 'csv')")
    near = "{b}.ts BETWEEN {a}.ts - INTERVAL '{n}' SECOND AND {a}.ts + INTERVAL '{n}' SECOND"
    if multi:
        near = "ABS({b}.t - {a}.t) <= {n}000"
    where = [*_where(query), *_pairs(query, near)]
    made.append(f"INSERT INTO out_ {_select(query)} FROM {', '.join(query.streams)} WHERE {' AND '.join(where)}")
    return made
