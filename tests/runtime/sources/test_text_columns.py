"""Inferred columns that are text because of one value, or whose times are not ISO 8601: errors and warnings say why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from eddyline.bound.inferred_text import note_of
from eddyline.errors import ScriptError
from eddyline.runtime.sources.csv import CsvFormat
from eddyline.runtime.sources.csv_text import CsvOptions
from tests.conftest import Ran

Run = Callable[..., Ran]
RIDES = "CREATE STREAM rides USING csv OPTIONS (path 'rides.csv') TIMESTAMP BY at;"
PAYS = "CREATE STREAM pays USING csv OPTIONS (path 'pays.csv') TIMESTAMP BY epoch_ms(paid_ms);"
MISSING = (
    "km of rides is text because of 'n/a' (rides.csv, line 4); set nullValue 'n/a' and such values are NULL,"
    " or declare the columns with km DOUBLE and such rows are dead"
)


@pytest.fixture
def files(in_tmp: Path) -> None:
    Path("rides.csv").write_text(
        "at,Ride No,km\n2026-03-02 10:00,1,1.5\n\n2026-03-02 10:01,2,n/a\n2026-03-02 10:02,3,9\n2026-03-02 10:03,4,\n"
    )
    Path("pays.csv").write_text("paid_ms,card,house\n1772445600000,A,12\n1772445660000,B,12a\n")


def note_for(text: str, column: str = "x") -> tuple[pa.DataType, str, str, tuple[str, ...]]:
    Path("f.csv").write_text(text)
    field = CsvFormat("f.csv", None, CsvOptions()).schema.field(column)
    note = note_of(field)
    return (field.type, "", "", ()) if note is None else (field.type, note.type, note.because, note.formats)


@pytest.mark.parametrize(
    ("values", "type_", "because"),
    [
        (["1", "2", "n/a"], "BIGINT", "'n/a' (f.csv, line 4)"),
        (["1", "2.5", "?", "-"], "DOUBLE", "'?' (f.csv, line 4)"),
        (["2026-01-01", "soon", "2026-01-02"], "DATE", "'soon' (f.csv, line 3)"),
        (["2026-01-01 10:00Z", "2026-01-01 11:00Z", "-"], "TIMESTAMP WITH TIME ZONE", "'-' (f.csv, line 4)"),
        (["1", "a", "b"], "", ""),
        (["a", "b"], "", ""),
        (["1", "2"], "", ""),
    ],
)
def test_the_value_that_made_a_column_text(in_tmp: Path, values: list[str], type_: str, because: str) -> None:
    _, found, told, _ = note_for("\n".join(["x", *values, ""]))
    assert (found, told.removeprefix("is text because of ")) == (type_, because)


def test_the_line_is_left_out_where_lines_are_not_rows(in_tmp: Path) -> None:
    assert note_for("x,y\n1,2\n1,2,3\nn/a,1\n2,1\n")[2] == "is text because of 'n/a' (f.csv)"


@pytest.mark.parametrize(
    ("values", "formats"),
    [
        (["03/04/2026", "03/14/2026"], ("%m/%d/%Y",)),
        (["03/04/2026", "14/03/2026"], ("%d/%m/%Y",)),
        (["03/04/2026", "04/03/2026"], ("%d/%m/%Y", "%m/%d/%Y")),
        (["n/a", "16.11.2026 9:00", "17.11.2026 9:00"], ("%d.%m.%Y %H:%M",)),
        (["yesterday"], ()),
    ],
)
def test_formats_come_from_all_values(in_tmp: Path, values: list[str], formats: tuple[str, ...]) -> None:
    assert note_for("\n".join(["x", *values, ""]))[3] == formats


@pytest.mark.parametrize(
    ("select", "said"),
    [
        ("km FROM rides WHERE km > 5", f"> needs values of one type, but km is VARCHAR and 5 is INTEGER; {MISSING}"),
        ("SUM(km) FROM rides", f"SUM does not take VARCHAR: it takes numbers; {MISSING}"),
        (
            'km FROM rides r, pays p WHERE r."Ride No" = p.card',
            '= needs values of one type, but r."Ride No" is BIGINT and p.card is VARCHAR; write CAST(p.card AS BIGINT)',
        ),
        (
            'km FROM rides r, pays p WHERE p.house = r."Ride No"',
            '= needs values of one type, but p.house is VARCHAR and r."Ride No" is BIGINT; house of pays is text'
            " because of '12a' (pays.csv, line 3); declare the columns with house BIGINT and such rows are dead, or"
            " write CAST(p.house AS BIGINT) and such values are NULL",
        ),
        ("Ride FROM rides", "there is no column 'Ride'; did you mean \"Ride No\" (in double quotes)?"),
        ("r.xx FROM rides r", "r has no column 'xx'; there is at, \"Ride No\", km"),
        (
            "p.ts FROM pays p",
            "p has no column 'ts'; there is paid_ms, card, house; to name the event time, write TIMESTAMP BY"
            " epoch_ms(paid_ms) AS ts",
        ),
        ("cart FROM pays p", "there is no column 'cart'; did you mean 'card'?"),
    ],
)
def test_errors_say_why(files: None, run_script: Run, select: str, said: str) -> None:
    with pytest.raises(ScriptError) as refused:
        run_script(f"{RIDES} {PAYS} SELECT {select}")
    assert refused.value.message == said


def test_the_proposals_work(files: None, run_script: Run) -> None:
    with_option = RIDES.replace("'rides.csv'", "'rides.csv', nullValue 'n/a'")
    assert [row["km"] for row in run_script(f"{with_option} SELECT km FROM rides WHERE km > 0").rows] == [1.5, 9.0]
    named = PAYS.replace("(paid_ms)", "(paid_ms) AS ts")
    assert len(run_script(f"{named} SELECT p.ts FROM pays p WHERE CAST(p.house AS BIGINT) = 12").rows) == 1


@pytest.mark.parametrize(
    ("select", "warnings"),
    [
        ("MAX(km) FROM rides", (MISSING,)),
        ("MAX(a.km) AS m FROM rides a, rides b WHERE a.km = b.km", (MISSING,)),
        ("MAX(CAST(km AS DOUBLE)) AS m FROM rides", ()),
        ('"Ride No" FROM rides', ()),
        ("house FROM pays", ()),  # 12a is no spelling of a missing value: house numbers may be text
    ],
)
def test_a_missing_value_is_warned_of_once(
    files: None, run_script: Run, select: str, warnings: tuple[str, ...]
) -> None:
    found = run_script(f"{RIDES} {PAYS} SELECT {select}").summary.warnings
    assert tuple(w for w in found if "never expire" not in w) == warnings


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (["03/04/2026", "03/14/2026"], "VARCHAR, not TIMESTAMP; write TIMESTAMP BY strptime(at, '%m/%d/%Y')"),
        (
            ["2026-01-01 10:00", "n/a", "2026-01-01 10:01"],
            "VARCHAR, not TIMESTAMP, because of 'n/a' (f.csv, line 3); write TIMESTAMP BY CAST(at AS TIMESTAMP), or"
            " declare the columns, with at TIMESTAMP; such rows are dead",
        ),
        (
            ["soon", "later"],
            "VARCHAR, not TIMESTAMP; write TIMESTAMP BY strptime(at, '%d.%m.%Y %H:%M:%S'), with the format of the text,"
            " or CAST(at AS TIMESTAMP)",
        ),
    ],
)
def test_a_time_column_that_is_text(in_tmp: Path, run_script: Run, values: list[str], said: str) -> None:
    Path("f.csv").write_text("\n".join(["at,n", *(f"{value},1" for value in values), ""]))
    text = "CREATE STREAM s USING csv OPTIONS (path 'f.csv') TIMESTAMP BY at; SELECT n FROM s"
    with pytest.raises(ScriptError) as refused:
        run_script(text)
    assert refused.value.message == f"the time column 'at' is {said}"
    written = said.partition("write ")[2].partition(", or declare")[0]
    if "format of the text" not in written:
        assert run_script(text.replace("TIMESTAMP BY at", written)).summary.rows_out >= 2
