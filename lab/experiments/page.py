"""The page of reproduced figures: prose, and tables and numbers that come from stored results.

`eddyline experiment NAME --out lab/figures` stores NAME.csv (all measurements), NAME.summary.csv (what it prints) and
NAME.png. The page says in comments which table or number belongs where, as a query of DuckDB over these files:

    <!-- results: FROM "teddies-6.summary" -->
    <!-- end -->

What stands between the two comments is written anew: a table, or, where both are in one line, one value.

Invariant: writing a page anew changes nothing unless a stored result or a query has changed; a test holds the page in
the repository to that.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import duckdb

from eddyline.errors import SettingError
from lab.experiments.table import Table, Value, as_text

_PART = re.compile(r"(<!-- results: (.*?) -->)(.*?)(<!-- end -->)", re.DOTALL)
_NAME = re.compile(r'"([\w.-]+)"')


def written(page: str, results: Path) -> str:
    """The page with all tables and numbers from the results in this folder; SettingError if a query is wrong."""
    connection = duckdb.connect(config={"threads": 1})

    def part(found: re.Match[str]) -> str:
        opening, query, before, closing = found.groups()
        table = _answer(connection, query, results)
        if "\n" in before:
            return f"{opening}\n\n{table.markdown()}\n\n{closing}"
        if len(table.rows) != 1 or len(table.columns) != 1:
            raise SettingError(f"a number in the text is one value, not {len(table.rows)} rows: {query}")
        return f"{opening}{as_text(table.rows[0][0])}{closing}"

    with connection:
        return _PART.sub(part, page)


def _answer(connection: duckdb.DuckDBPyConnection, query: str, results: Path) -> Table:
    """What the query gives. A name in double quotes that is a file of results is a table, in the order of the file."""
    try:
        for name in _NAME.findall(query):
            if (file := results / f"{name}.csv").is_file():
                reading = (
                    f"CREATE TABLE IF NOT EXISTS \"{name}\" AS FROM read_csv('{file}', header = true, sample_size = -1)"
                )
                connection.execute(reading)
        answer = connection.execute(query)
        columns = tuple(column[0] for column in answer.description or ())
        rows: list[tuple[Value, ...]] = [tuple("" if v is None else v for v in row) for row in answer.fetchall()]
    except duckdb.Error as error:
        raise SettingError(f"{query}: {error}") from None
    return Table(columns, rows)


def main(arguments: list[str]) -> int:
    """`python -m lab.experiments.page PAGE FOLDER` writes the page anew from the results in the folder."""
    page, results = map(Path, arguments)
    page.write_text(written(page.read_text(encoding="utf-8"), results), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
