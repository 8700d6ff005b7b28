"""Columns in the names of folders, as Hive and Spark lay files out: `path/country=de/day=2026-01-01/x.parquet`.

Invariant: a column that folders name is read from the folders and never from a file, so all rows of a file have the
same value of it. Its type is the declared one; otherwise it is a whole number or a date if all values are, else text.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa

from eddyline.bound.inferred_text import with_file_of
from eddyline.bound.types import sql_type
from eddyline.errors import JobError, SettingError
from eddyline.runtime.sources.file_source import FileFormat
from eddyline.runtime.sources.paths import files, folder_of, is_hidden
from eddyline.runtime.sources.source import Chunk, Found, Piece, Wanted, dead_rows, no_rows
from eddyline.runtime.values.arrow import convert

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""The value of a folder whose rows have NULL."""
_LARGEST = 2**63


def with_folder_columns(
    path: str, declared: pa.Schema | None, open_: Callable[[pa.Schema | None], FileFormat]
) -> FileFormat:
    """A format that reads the files at a path with the columns of their folders. `open_` makes the format that reads
    only the files. Declared columns that folders name are taken from the folders; folders of columns that are not
    declared are ignored."""
    named = {name.lower(): name for name in _names(path)}
    if declared is not None:
        mine = [field for field in declared if field.name.lower() in named]
        if not mine:
            return open_(declared) if files(path) else _InFolders(path, open_(declared), pa.schema([]), declared)
        if len(mine) == len(declared):
            raise SettingError(f"all declared columns are folders of {path}; declare a column of the files, too")
        return _InFolders(path, open_(pa.schema([f for f in declared if f not in mine])), pa.schema(mine), declared)
    source = open_(None)
    if not named:
        return source
    values = [_values(path, str(file)) for file in files(path)]
    mine = [pa.field(name, _type([of_file.get(key) for of_file in values])) for key, name in named.items()]
    rest = [field for field in source.schema if field.name.lower() not in named]
    return _InFolders(path, source, pa.schema(mine), with_file_of(pa.schema([*rest, *mine]), source.schema))


class _InFolders:
    """Reads files and adds the values of their folders to each row."""

    def __init__(self, path: str, files: FileFormat, folders: pa.Schema, schema: pa.Schema) -> None:
        self._path, self._files, self._folders, self.schema = path, files, folders, schema

    def is_rowless(self, file: Found) -> bool:
        """Whether the file need not be read."""
        return self._files.is_rowless(file)

    def is_complete(self, file: Found) -> bool:
        """Whether the file's writer has finished it."""
        return self._files.is_complete(file)

    def pieces(self, file: Found, time: str | None = None) -> list[Piece]:
        """The pieces of a file."""
        return self._files.pieces(file, time)

    def count(self, file: Found) -> int:
        """The number of rows of a file."""
        return self._files.count(file)

    def read_file(self, file: Found, wanted: Wanted) -> Iterator[Chunk]:
        """The rows of a file."""
        return self._with_values(file, self._files.read_file(file, self._of_files(wanted)), wanted)

    def read_piece(self, piece: Piece, wanted: Wanted) -> Iterator[Chunk]:
        """The rows of a piece."""
        return self._with_values(piece.file, self._files.read_piece(piece, self._of_files(wanted)), wanted)

    def _of_files(self, wanted: Wanted) -> Wanted:
        """The wanted columns that files have; at least one column, because rows must be counted."""
        mine = set(self._folders.names)
        columns = tuple(name for name in wanted.columns if name not in mine) or tuple(self._files.schema.names[:1])
        return Wanted(tuple(name for name in wanted.needed if name not in mine), columns)

    def _with_values(self, file: Found, chunks: Iterator[Chunk], wanted: Wanted) -> Iterator[Chunk]:
        values = _values(self._path, file.path)
        if not self._folders.names and (new := [n for n in self.schema.names if n.lower() in values]):
            raise JobError(f"{file.path}: no folder named the column {new[0]} when the job began; start it again")
        for chunk in chunks:
            yield from self._whole(chunk, values, wanted)

    def _whole(self, chunk: Chunk, values: Mapping[str, str | None], wanted: Wanted) -> Iterator[Chunk]:
        rows, arrays, reason = chunk.rows, [], ""
        for name in wanted.columns:
            field = self.schema.field(name)
            if name not in self._folders.names:
                arrays.append(rows.column(name))
                continue
            text = values.get(name.lower())
            one, bad = convert(pa.array([text], pa.string()), field.type)
            arrays.append(pa.repeat(one[0], rows.num_rows))
            if bad is not None and bad.any() and name in wanted.needed:
                reason = reason or f"column {name}: '{text}' is not a value of type {sql_type(field.type)}"
        whole = pa.RecordBatch.from_arrays(arrays, schema=pa.schema([self.schema.field(n) for n in wanted.columns]))
        dead = None if chunk.dead is None else self._dead(chunk.dead, values, chunk.dead.column(-1))
        if reason:
            if dead is not None:
                yield Chunk(no_rows(self.schema, wanted), dead)
            reasons = pa.array([reason] * rows.num_rows, pa.string())
            whole, dead = no_rows(self.schema, wanted), self._dead(rows, values, reasons)
        yield Chunk(whole, dead)

    def _dead(self, rows: pa.RecordBatch, values: Mapping[str, str | None], reasons: pa.Array) -> pa.RecordBatch:
        """Dead rows with the values of their folders, as text."""
        columns = dict(zip(rows.schema.names, rows.columns, strict=True))
        for name in self._folders.names:
            columns[name] = pa.array([values.get(name.lower())] * rows.num_rows, pa.string())
        return dead_rows(self.schema, pa.RecordBatch.from_pydict(columns), reasons)


def _names(path: str) -> list[str]:
    """The columns that the folders of a path name, the outermost first."""
    if not Path(path).is_dir():
        found = files(path) if glob.has_magic(path) else []
        return [name for name, _ in _parts(path, str(found[0]))] if found else []
    names, folder = [], path
    while inner := next((e.path for e in os.scandir(folder) if _is_value(e.name) and e.is_dir()), None):
        names.append(unquote(os.path.basename(inner).partition("=")[0]))
        folder = inner
    return names


def _parts(path: str, file: str) -> list[tuple[str, str]]:
    """The names and values of the folders `name=value` between a path and a file below it."""
    folders = Path(file).parent.relative_to(folder_of(path)).parts
    return [(unquote(part.partition("=")[0]), part.partition("=")[2]) for part in folders if _is_value(part)]


def _values(path: str, file: str) -> dict[str, str | None]:
    """The values of a file's folders, by column in lower case."""
    return {name.lower(): None if value == NO_VALUE else unquote(value) for name, value in _parts(path, file)}


def _is_value(name: str) -> bool:
    return "=" in name[1:] and not is_hidden(name)


def _type(values: Sequence[str | None]) -> pa.DataType:
    """The common type of the values.

    >>> _type(["7", None, "-12"]), _type(["2026-01-01"]), _type(["7", "x"]), _type([])
    (DataType(int64), DataType(date32[day]), DataType(string), DataType(string))
    """
    known = {value for value in values if value is not None}
    if known and all(re.fullmatch("-?[0-9]+", v) and -_LARGEST <= int(v) < _LARGEST for v in known):
        return pa.int64()
    return pa.date32() if known and all(map(_is_date, known)) else pa.string()


def _is_date(text: str) -> bool:
    try:
        return re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text) is not None and bool(date.fromisoformat(text))
    except ValueError:
        return False
