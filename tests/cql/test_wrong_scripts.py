"""Wrong scripts and their answers, as in tests/golden/wrong_scripts.txt.

The file holds blocks: a script, a line `---`, the answer with its caret. After a change of wording run

    EDDYLINE_GOLDEN=write pytest tests/cql/test_wrong_scripts.py

and read the difference. A script without CREATE is followed by the declarations below.
"""

import os
from pathlib import Path

import pyarrow as pa
import pytest

from eddyline.bound.bind import bind
from eddyline.cql.script import parse
from eddyline.errors import ScriptError

FILE = Path(__file__).parent.parent / "golden" / "wrong_scripts.txt"
RULE, ANSWER = "=" * 100, "---"
DECLARED = """
;CREATE STREAM orders (id BIGINT, ts TIMESTAMP, customer VARCHAR, amount DECIMAL(10, 2), tags VARCHAR[])
    USING json TIMESTAMP BY ts;
CREATE STREAM payments (id BIGINT, order_id BIGINT, ts TIMESTAMP, amount DOUBLE) USING json TIMESTAMP BY ts;
CREATE TABLE carriers (id INTEGER, name VARCHAR) USING json;
CREATE SINK out USING json
"""


def blocks() -> list[tuple[str, str]]:
    parts = FILE.read_text().strip("\n").split(f"\n{RULE}\n")
    return [(script, answer) for script, _, answer in (part.partition(f"\n{ANSWER}\n") for part in parts)]


def answer_to(script: str) -> str:
    text = script if "CREATE" in script or script.startswith("--") else script + DECLARED
    try:
        bind(parse(text), lambda declaration: pa.schema(declaration.columns or []))
    except ScriptError as error:
        return error.pretty(width=10_000)
    return "NOT REFUSED"


if os.environ.get("EDDYLINE_GOLDEN") == "write":
    FILE.write_text(f"\n{RULE}\n".join(f"{script}\n{ANSWER}\n{answer_to(script)}" for script, _ in blocks()) + "\n")


@pytest.mark.parametrize(("script", "answer"), blocks())
def test_answer(script: str, answer: str) -> None:
    assert answer_to(script) == answer != "NOT REFUSED"


def test_there_are_enough() -> None:
    assert len(blocks()) >= 70
    assert len({script for script, _ in blocks()}) == len(blocks())
