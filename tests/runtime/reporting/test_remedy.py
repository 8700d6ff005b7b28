"""Remedies for dead rows: the texts, and that the proposed scripts do read the rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from eddyline.bound.time_format import guessed
from eddyline.cli.progress import closing
from eddyline.errors import JobError, ScriptError
from eddyline.runtime.reporting.remedy import remedy
from tests.conftest import Ran

Run = Callable[..., Ran]
_TIME = "declare the columns, with ts as VARCHAR: CREATE STREAM s (ts VARCHAR, k BIGINT) and write TIMESTAMP BY"


@pytest.mark.parametrize(
    ("value", "formats"),
    [
        ("16.11.2026", ["%d.%m.%Y"]),
        ("6.1.26 7:05", ["%d.%m.%y %H:%M"]),
        ("2026/11/16 10:00:00.25", ["%Y/%m/%d %H:%M:%S.%f"]),
        ("16/Nov/2026:10:00:00 +0000", ["%d/%b/%Y:%H:%M:%S %z"]),
        ("Mon, 16 Nov 2026 10:00:00 +0100", ["%a, %d %b %Y %H:%M:%S %z"]),
        ("Nov 16, 2026 9:00 AM", ["%b %d, %Y %I:%M %p"]),
        ("16 November 2026", ["%d %B %Y"]),
        ("20261116", ["%Y%m%d"]),
        ("20261116T103000Z", ["%Y%m%dT%H%M%SZ"]),
        ("11/16/2026", ["%m/%d/%Y"]),
        ("03-04-2026", ["%d-%m-%Y", "%m-%d-%Y"]),
        ("2026-11-16 10:00:00,123456789", ["%Y-%m-%d %H:%M:%S,%n"]),
        ("1767225601", []),
        ("2026-13-45", []),
        ("16.11.2026 noon", []),
        ("", []),
    ],
)
def test_formats_are_guessed(value: str, formats: list[str]) -> None:
    assert list(guessed(value)) == formats


@pytest.mark.parametrize(
    ("value", "type_", "what"),
    [
        ("2.5", "BIGINT", "declare x DOUBLE"),
        ("-1e3", "INTEGER", "declare x DOUBLE"),
        ("3000000000", "INTEGER", "declare x BIGINT"),
        ("9223372036854775808", "BIGINT", "declare x DECIMAL(38, 0)"),
        ("N/A", "DOUBLE", "if 'N/A' stands for NULL in a csv file, set the option nullValue 'N/A'"),
        ("many", "BIGINT", "declare x VARCHAR if such values are right"),
        ("2026-11-16 10:00:00", "DATE", "declare x TIMESTAMP"),
        ("1767225601000", "TIMESTAMP", "declare x BIGINT and write TIMESTAMP BY epoch_ms(x)"),
    ],
)
def test_what_to_declare(value: str, type_: str, what: str) -> None:
    assert remedy(f"column x: '{value}' is not a value of type {type_}") == what


@pytest.mark.parametrize(
    ("reason", "what"),
    [
        ("column my time: '1/2/2026' is not a value of type TIMESTAMP", "BY strptime(\"my time\", '%d/%m/%Y'), or"),
        ("the event time strptime(t, '%Y') is NULL or out of range for t = '16.11.26'", "BY strptime(t, '%d.%m.%y')"),
        (
            "the event time strptime(\"On Day\", '%Y') is NULL or out of range for On Day = '16.11.26'",
            "BY strptime(\"On Day\", '%d.%m.%y')",
        ),
        ("the event time a + b is NULL or out of range for a = 1, b = '16.11.26'", ""),
        ("the event time is NULL or out of range: ts is NULL", "a row needs a time; fill ts"),
        ("the event time epoch_ms(t) is NULL or out of range for t = NULL", "a row needs a time; fill t, or"),
        ("1 column where 2 were expected: 2026-01-01;7", "set sep ';'"),
        ("not a JSON object of this stream (not an object): [1]", "write one object a line"),
        ("something else", ""),
    ],
)
def test_what_to_do(reason: str, what: str) -> None:
    assert what in remedy(reason) and bool(what) == bool(remedy(reason))


def test_the_proposed_script_reads_the_rows(in_tmp: Path, run_script: Run) -> None:
    Path("d").write_text("ts,k\n16.11.2026 10:00,1\n17.11.2026 11:30,2\n")
    text = "CREATE STREAM s (ts TIMESTAMP, k BIGINT) USING csv OPTIONS (path 'd') TIMESTAMP BY ts; SELECT k FROM s"
    (warning,) = run_script(text).summary.warnings
    assert warning.endswith(f"; {_TIME} strptime(ts, '%d.%m.%Y %H:%M')")
    by = warning.rpartition("and write ")[2]
    assert run_script(text.replace("ts TIMESTAMP", "ts VARCHAR").replace("TIMESTAMP BY ts", by)).rows == [
        {"k": 1},
        {"k": 2},
    ]


def test_the_proposed_null_value_leaves_empty_fields_null(in_tmp: Path, run_script: Run) -> None:
    Path("d").write_text('ts,k,v\n2026-01-01,1,a\n2026-01-02,,\n2026-01-03,n/a,""\n2026-01-04,4,"n/a"\n')
    text = "CREATE STREAM s (ts TIMESTAMP, k BIGINT, v VARCHAR) USING csv OPTIONS (path 'd') TIMESTAMP BY ts;"
    first = run_script(f"{text} SELECT k, v FROM s")
    assert closing(first.summary).endswith("set the option nullValue 'n/a')")
    expected = [(1, "a"), (None, None), (None, ""), (4, "n/a")]
    with_option = f"{text} SELECT k, v FROM s".replace("'d'", "'d', nullValue 'n/a'")
    for script in (with_option, with_option.replace(" (ts TIMESTAMP, k BIGINT, v VARCHAR)", "")):
        ran = run_script(script)
        assert [(row["k"], row["v"]) for row in ran.rows] == expected and not ran.summary.rows_dead


def test_text_that_is_not_utf_8(in_tmp: Path, run_script: Run) -> None:
    text = (
        "CREATE STREAM s (ts TIMESTAMP, name VARCHAR) USING {} OPTIONS (path 'd') TIMESTAMP BY ts; SELECT name FROM s"
    )
    Path("d").write_bytes("ts,name\n2026-01-01,Müller\n2026-01-01,Jäger\n".encode("latin-1"))
    assert "iconv -f LATIN1 -t UTF-8 OLD > NEW" in run_script(text.format("csv")).summary.warnings[0]
    Path("d").write_bytes('{"ts": "2026-01-01", "name": "Müller"}\n'.encode("latin-1"))
    assert "iconv -f LATIN1 -t UTF-8 OLD > NEW" in run_script(text.format("json")).summary.warnings[0]
    for encoding in ("utf-16-le", "utf-16-be"):
        Path("d").write_bytes("\ufeffts,name\n2026-01-01,Max\n".encode(encoding))
        for columns in (" (ts TIMESTAMP, name VARCHAR)", ""):
            with pytest.raises(JobError, match=r"^d is text in UTF-16; convert it, as in: iconv -f UTF-16 -t UTF-8"):
                run_script(text.format("csv").replace(" (ts TIMESTAMP, name VARCHAR)", columns))


def test_a_fraction_in_a_column_that_was_inferred_as_whole_numbers(in_tmp: Path, run_script: Run) -> None:
    Path("d").mkdir()
    Path("d/1").write_text("ts,x\n2026-01-01,1\n2026-01-01,2\n")
    Path("d/2").write_text("ts,x\n2026-01-01,1.5\n")
    summary = run_script("CREATE STREAM s USING csv OPTIONS (path 'd') TIMESTAMP BY ts; SELECT x FROM s").summary
    what = "declare the columns, with x as DOUBLE: CREATE STREAM s (ts DATE, x DOUBLE)"
    assert closing(summary).endswith(f"column x: '1.5' is not a value of type BIGINT; {what})")
    declared = what.partition("CREATE ")[2]
    text = f"CREATE {declared} USING csv OPTIONS (path 'd') TIMESTAMP BY ts; SELECT x FROM s"
    assert [row["x"] for row in run_script(text).rows] == [1, 2, 1.5]


def test_a_later_file_whose_header_is_another_one(in_tmp: Path, run_script: Run) -> None:
    text = "CREATE STREAM s USING csv OPTIONS (path 'd') TIMESTAMP BY ts; SELECT id FROM s"
    Path("d").mkdir()
    Path("d/1").write_text("ts,id\n2026-01-01,1\n")
    Path("d/2").write_text("ts,ident\n2026-01-01,2\n")
    said = "has the header ts, ident, which lacks id; the columns are ts, id. Columns are found by name: declare them"
    with pytest.raises(JobError, match=f"^d/2 {said} as every file names them$"):
        run_script(text)
    Path("d/2").write_text("2026-01-02,2\n")
    with pytest.raises(
        JobError, match=r"^d/2 begins with 2026-01-02, 2, .* declare the columns, \(ts DATE, id BIGINT\)"
    ):
        run_script(text)
    declared = text.replace("STREAM s", "STREAM s (ts DATE, id BIGINT)").replace("'d'", "'d', header 'auto'")
    assert run_script(declared).rows == [{"id": 1}, {"id": 2}]


def test_another_separator(in_tmp: Path, run_script: Run) -> None:
    text = "CREATE STREAM s (ts TIMESTAMP, id BIGINT) USING csv OPTIONS (path 'd') TIMESTAMP BY ts; SELECT id FROM s"
    Path("d").write_text("ts;id\n2026-01-01;1\n")
    with pytest.raises(ScriptError, match=r"header ts;id, which lacks ts, id; .* if ; stands .* columns, set sep ';'$"):
        run_script(text)
    Path("d").write_text("2026-01-01;1\n")
    assert run_script(text).summary.warnings[0].endswith("if ; stands between the columns, set sep ';'")
    assert run_script(text.replace("'d'", "'d', sep ';'")).rows == [{"id": 1}]
    Path("d").write_text("ts\tid\n2026-01-01\t1\n")
    inferred = text.replace("(ts TIMESTAMP, id BIGINT) ", "")
    with pytest.raises(ScriptError, match=r"has no column 'ts' .*; if \\t stands between columns, set sep '\\t'$"):
        run_script(inferred)
    assert run_script(inferred.replace("'d'", "'d', sep '\\t'")).rows == [{"id": 1}]


@pytest.mark.parametrize(
    ("text", "column", "said"),
    [
        ("USING cvs OPTIONS (path 'd')", 23, "the local engine does not read 'cvs'; did you mean 'csv'?"),
        ("USING csv OPTIONS (path 'd', nullValu 'x')", 46, "csv has no option 'nullValu'; did you mean 'nullValue'?"),
        ("USING csv OPTIONS (Pth 'd')", 36, "csv has no option 'Pth'; did you mean 'path'?"),
        ("USING csv OPTIONS (path 'd', multiLine 'maybe')", 46, "option multiLine is false or true, not 'maybe'"),
        ("USING csv OPTIONS (path 'nowhere')", 36, "there is no file or folder nowhere"),
    ],
)
def test_the_caret_is_at_the_option_or_the_format(
    in_tmp: Path, run_script: Run, text: str, column: int, said: str
) -> None:
    Path("d").write_text("ts,id\n2026-01-01,1\n")
    with pytest.raises(ScriptError) as refused:
        run_script(f"CREATE STREAM s {text} TIMESTAMP BY ts; SELECT id FROM s")
    assert (refused.value.column, refused.value.message) == (column, said)
