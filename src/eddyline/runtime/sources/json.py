"""Files of newline-delimited JSON, a block of lines at a time (json_text.py reads the lines)."""

from __future__ import annotations

import functools
import io
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.json as pjson

from eddyline.bound.inferred_text import from_file
from eddyline.errors import CorruptFile, JobError, SettingError
from eddyline.os_errors import why
from eddyline.runtime.sources.inference import inferred
from eddyline.runtime.sources.json_text import JsonText, begin_as_objects
from eddyline.runtime.sources.paths import files, filled, has_end, unreadable
from eddyline.runtime.sources.source import Chunk, Found, Piece, Wanted, text_piece

_BLOCK = 1 << 20
_ARRAY = re.compile(rb"\s*\[\s*(\{|$)")
"""The beginning of a file that is one array; any other line that is an array is a dead row."""


class JsonFormat:
    """Files with one schema: the declared one, or one inferred from the first file that is not blank."""

    def __init__(self, path: str, declared: pa.Schema | None) -> None:
        self._files = filled(path, files(path), declared is not None)
        self.schema = declared if declared is not None else _inferred(self._files)

    def is_rowless(self, file: Found) -> bool:
        """Whether the file is empty."""
        return not file.size

    def is_complete(self, file: Found) -> bool:
        """Whether the file has its end, if it is compressed; other text does not show it."""
        return has_end(file)

    def pieces(self, file: Found, time: str | None = None) -> list[Piece]:
        """The whole file as one piece."""
        return [text_piece(file)]

    def count(self, file: Found) -> int:
        """The number of rows of a file: its lines that are not blank."""
        return sum(len(lines) for lines in _blocks(Path(file.path)))

    def read_piece(self, piece: Piece, wanted: Wanted) -> Iterator[Chunk]:
        """The rows of the file."""
        return self.read_file(piece.file, wanted)

    def read_file(self, file: Found, wanted: Wanted) -> Iterator[Chunk]:
        """The rows of a file."""
        text = JsonText(self.schema)
        for lines in _blocks(Path(file.path)):
            yield from text.chunks(lines, wanted)


def _blocks(path: Path) -> Iterator[list[bytes]]:
    """Lists of lines that are not blank, about a block of text each; JobError if the file is one array."""
    first = True
    for lines in _lines_of(path):
        if first and _ARRAY.match(lines[0].removeprefix(b"\xef\xbb\xbf")):
            raise CorruptFile(f"{path} is one JSON array; newline-delimited JSON is read: one object per line")
        first = False
        yield lines


def _lines_of(path: Path) -> Iterator[list[bytes]]:
    tail = b""
    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            while data := stream.read(_BLOCK):
                head, newline, rest = data.rpartition(b"\n")
                if newline and len(tail) + len(data) >= _BLOCK:
                    yield from _lines(tail + head)
                    tail = rest
                else:
                    tail += data
        yield from _lines(tail)
    except (pa.ArrowException, OSError) as error:
        raise unreadable(path, "json", error) from None


def _lines(text: bytes) -> Iterator[list[bytes]]:
    lines = [line for line in text.split(b"\n") if line and not line.isspace()]
    if lines:
        yield lines


def _inferred(paths: Sequence[Path]) -> pa.Schema:
    """The schema of the first file that has a line."""
    for path in paths:
        if lines := next(_blocks(path), []):
            return from_file(_infer(path, lines), path)
    raise SettingError(f"{paths[0]} is empty, there are no columns to take from it; declare them")


def _infer(path: Path, lines: list[bytes]) -> pa.Schema:
    """The schema of the first block without the lines that are not JSON objects."""
    complaint = "none is an object"
    for candidate in (lines, [line for line in lines if _is_object(line)]):
        if not begin_as_objects(candidate):  # Arrow must not see others
            continue
        try:
            table_of = functools.partial(_table_of, b"\n".join(candidate))
            return inferred(table_of([]), table_of, lambda row: path.name, csv=False)
        except pa.ArrowException as error:
            complaint = why(error)
    raise JobError(f"{path}: the columns cannot be told from the first lines ({complaint}); declare them")


def _table_of(block: bytes, texts: list[str]) -> pa.Table:
    """A block as Arrow infers it, with some columns as text."""
    options = pjson.ParseOptions(explicit_schema=pa.schema([pa.field(name, pa.string()) for name in texts]))
    return pjson.read_json(io.BytesIO(block), pjson.ReadOptions(block_size=len(block) + 1), options)


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
