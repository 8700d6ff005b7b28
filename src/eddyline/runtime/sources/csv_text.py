"""The text of csv files, cut into blocks of whole rows, with rows whose quote is never closed taken out.

Without `multiLine` every line is a row, whatever its quotes, so a stray quote costs only its own line. With `multiLine`
a row ends at the first line break outside quotes. Quotes are recognised as in Arrow, which parses the rows afterwards:
a quote at the start of a field opens, the next that is not doubled or escaped closes, all others are plain characters.
The regular expressions here express this without backtracking, so they take one pass. (They use atomic groups: Python
before 3.11.5 matches possessive groups wrongly.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv

from eddyline.errors import CorruptFile, JobError

_BLOCK = 1 << 20
_LONGEST = 1 << 28
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_LINE = re.compile(rb"[^\r\n]*(?:\r\n|[\r\n])?")


@dataclass(frozen=True)
class CsvOptions:
    """The layout of the text."""

    header: str = "auto"
    sep: str = ","
    quote: str = '"'
    escape: str = ""
    null_value: str = ""
    multi_line: bool = False

    @property
    def null_values(self) -> list[str]:
        """The fields that stand for NULL if they are not in quotes. An empty field always does."""
        return list(dict.fromkeys(("", self.null_value)))

    def parse_options(self, handler: object = None) -> pcsv.ParseOptions:
        """The same options for pyarrow."""
        return pcsv.ParseOptions(
            delimiter=self.sep,
            quote_char=self.quote or False,
            escape_char=self.escape or False,
            newlines_in_values=self.multi_line,
            invalid_row_handler=handler,
        )

    def blocks(self, path: Path) -> Iterator[tuple[bytes, list[bytes]]]:
        """The text of a file in blocks of rows, and (only with `multiLine`, at the end) lines that open a quote that is
        never closed."""
        tail, start = b"", b"\xef\xbb\xbf"
        with pa.input_stream(str(path), compression="detect") as stream:
            while data := stream.read(max(_BLOCK, len(tail))):
                if start and data.startswith(_UTF_16):
                    raise CorruptFile(
                        f"{path} is text in UTF-16; convert it, as in: iconv -f UTF-16 -t UTF-8 OLD > NEW"
                    )
                text = tail + data.removeprefix(start)
                start = b""
                end = self._end_of_rows(text)
                if end:
                    yield text[:end], []
                tail = text[end:]
                if len(tail) > _LONGEST:
                    cause = "is a quote never closed? without multiLine" if self.multi_line else "in csv"
                    raise JobError(f"{path} has a row of more than {_LONGEST >> 20} MB; {cause} every line is a row")
        if tail:
            yield self.split(tail + b"\n") if self.multi_line else (tail + b"\n", [])

    def split(self, text: bytes) -> tuple[bytes, list[bytes]]:
        """The whole rows of a text, and the lines that are not rows because their quote is not closed."""
        good, bad, start = [], [], 0
        while start < len(text):
            end = self._rows.match(text, start).end()  # type: ignore[union-attr]  # it matches nothing at all, too
            good.append(text[start:end])
            start = end
            if start < len(text):
                start = _LINE.match(text, start).end()  # type: ignore[union-attr]
                bad.append(text[end:start].rstrip(b"\r\n"))
        return b"".join(good), bad

    def first_row(self, text: bytes) -> int:
        """The end of the first row of a text; 0 if its quote is not closed."""
        found = self._row.match(text)
        return found.end() if found else 0

    def rows(self, text: bytes) -> list[bytes]:
        """The rows of a text that has only whole rows."""
        return [row for row in self._row.findall(text) if row.strip(b"\r\n")]

    def is_sound(self, text: bytes, rows: int) -> bool:
        """Whether every line is a row in a text that Arrow reads as `rows` rows, as it must be without `multiLine`.

        A row takes at least one line that is not blank, and further lines only to close a quote. So if there are as
        many rows as lines, all quotes are closed, except perhaps the last.
        """
        if self.multi_line or not self._is_special(text):
            return True
        data = np.frombuffer(text, dtype=np.uint8)
        ends = np.flatnonzero((data == 10) | (data == 13))
        lines = int(np.count_nonzero(np.diff(ends, prepend=-1) > 1))
        last = text.rstrip(b"\r\n")
        last = last[max(last.rfind(b"\n"), last.rfind(b"\r")) + 1 :]
        return rows == lines and self.first_row(last + b"\n") > 0

    def _end_of_rows(self, text: bytes) -> int:
        if self.multi_line and self._is_special(text):
            return self._rows.match(text).end()  # type: ignore[union-attr]
        return max(text.rfind(b"\n"), text.rfind(b"\r")) + 1

    def _is_special(self, text: bytes) -> bool:
        """Whether anything in the text could hide a line break."""
        return any(c and c.encode() in text for c in (self.quote, self.escape))

    @cached_property
    def _rows(self) -> re.Pattern[bytes]:
        return re.compile(rb"(?>(?:%s)*)" % self._row.pattern)

    @cached_property
    def _row(self) -> re.Pattern[bytes]:
        sep, quote, escape = (re.escape(c.encode()) for c in (self.sep, self.quote, self.escape))
        escaped = rb"|%s%s" % (escape, rb"[\s\S]" if self.multi_line else rb"[^\r\n]") if escape else b""
        plain = rb"(?>(?:[^%s%s\r\n]++%s)*)" % (sep, escape, escaped)
        field = plain
        if quote:
            inside = rb"[^%s%s%s]++" % (quote, escape, b"" if self.multi_line else rb"\r\n")
            closed = rb"%s(?>(?:%s|%s%s%s)*)%s" % (quote, inside, quote, quote, escaped, quote)
            field = rb"(?:%s%s|(?!%s)%s)" % (closed, plain, quote, plain)
        return re.compile(rb"%s(?>(?:%s%s)*)(?:\r\n|[\r\n])" % (field, sep, field))
