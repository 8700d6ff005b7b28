"""Files of another format than the script says: parquet by its first bytes, json and csv by their first lines.

A script is refused only if its first file is surely of another format. Rows that cannot be read are no reason: they are
dead rows, and the job goes on.
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa

from eddyline.errors import SettingError
from eddyline.runtime.sources.paths import files, folder_of

_READ = 1 << 16
_SEPARATORS = (b",", b";", b"\t", b"|")


def check_format(path: str, format_: str, objects: bool = False) -> None:
    """SettingError if the first file of a path is surely of another format than this one. Lines of csv may be JSON
    `objects`. Of parquet no file may be of this format: the others are left to the reader."""
    found = [file for file in files(path) if file.is_file() and file.stat().st_size]
    seen = _format_of(found[0]) if found else None
    if seen is None or seen == format_ or (objects and seen == "json"):
        return
    if format_ == "parquet" and any(_is_parquet(file) for file in found):
        return
    what = f"{found[0]} is not {format_}; it looks like {seen}"
    if seen == "parquet":
        what = f"{found[0]} is a parquet file"
    elif format_ == "json":
        what = f"{found[0]}: its first line is not a JSON object; it looks like csv"
    if any(file.suffix == f".{format_}" for file in found):
        raise SettingError(f"{what}: leave it out, as in path '{folder_of(path)}/*.{format_}'", "option path")
    raise SettingError(f"{what}: write USING {seen}", "format")


def _format_of(path: Path) -> str | None:
    """The format that a file surely has; None if that is not clear."""
    try:
        if _is_parquet(path):
            return "parquet"
        with pa.input_stream(str(path), compression="detect") as stream:
            text = stream.read(_READ).removeprefix(b"\xef\xbb\xbf")
    except (pa.ArrowException, OSError):
        return None
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines or b"\0" in text:
        return None
    if any(line.lstrip().startswith((b"{", b"[")) for line in lines):
        return "json" if _is_object(lines[0]) else None
    header, row = lines[0], lines[min(1, len(lines) - 1)]
    return "csv" if any(header.count(sep) == row.count(sep) > 0 for sep in _SEPARATORS) else None


def _is_parquet(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(4) in (b"PAR1", b"PARE")


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
