"""Values of environment variables that options name are in no declaration, spec, plan, log or message."""

from __future__ import annotations

import io
from dataclasses import asdict
from pathlib import Path

import pytest

from eddyline.cli.main import main
from eddyline.cql.script import parse
from eddyline.errors import ScriptError
from eddyline.runtime.running.job import prepare
from eddyline.runtime.running.schemas import schema_text
from eddyline.runtime.running.spec import Spec
from eddyline.runtime.secrets import check_no_secret
from eddyline.settings import Settings

_VALUE = "postgres://ann:hunter2@db/users"
_SCRIPT = """
CREATE STREAM s (k BIGINT, ts TIMESTAMP) USING generate OPTIONS (rows 3) TIMESTAMP BY ts;
CREATE TABLE t (id BIGINT, name VARCHAR) USING postgres OPTIONS ({options}, table 'users') INDEX ON (id);
SELECT t.name FROM s, t WHERE {where};
"""


@pytest.fixture(autouse=True)
def variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PG_URL", _VALUE)


def script(options: str = "url_env 'PG_URL'", where: str = "s.k = t.id") -> str:
    return _SCRIPT.format(options=options, where=where)


def test_neither_job_nor_spec_has_the_value() -> None:
    job = prepare(script(), out=io.StringIO())
    assert job.asked[0].declaration.options["url_env"] == "PG_URL"
    schemas = {i.name: schema_text(i.source.schema) for i in job.inputs}
    spec = Spec(job.text, schemas, {}, asdict(Settings()), [], {}, "ck", None, False, 1, "1")
    for text in (repr(job.asked), repr(parse(job.text)), repr(job.query), spec.as_json(), repr(spec.query)):
        assert "hunter2" not in text


@pytest.mark.parametrize("command", ["validate", "explain", "run"])
@pytest.mark.parametrize("where", ["s.k = t.id", "s.k > 3", "s.kk = t.id"])
def test_no_command_shows_the_value(
    command: str, where: str, in_tmp: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    (in_tmp / "job.sql").write_text(script(where=where))
    assert main([command, "job.sql", "--engine", "local"]) == (0 if where == "s.k = t.id" else 2)
    said = capfd.readouterr()
    assert said.out or said.err
    assert "hunter2" not in said.out + said.err + caplog.text


_NOT_HERE = "must not have a password, a token or a key; put it in an environment variable, and the name into an option"
_NAMES_IT = "is the name of an environment variable, as in"


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (f"url_env '{_VALUE}'", f"{_NAMES_IT} url_env 'MY_SECRET', not its value"),
        (f"url '{_VALUE}'", _NOT_HERE),
        ("url 'http://:hunter2@host/price'", _NOT_HERE),
        ("url 'https://hunter2@host/price'", _NOT_HERE),
        ("url 'http://host/price?id={id}&api_key=hunter2'", _NOT_HERE),
        ("url 'jdbc:postgresql://bob:hunter2@h/db'", _NOT_HERE),
        ("url 'jdbc:sqlserver://h;user=u;password=hunter2'", _NOT_HERE),
        ("url 'host=h user=bob password = hunter2'", _NOT_HERE),
        ('headers \'{"Authorization": "Bearer hunter2"}\'', _NOT_HERE),
        ("sasl_password 'hunter2'", "looks like a secret; put the value in an environment variable and write"),
        ("s3.secret_access_key 'hunter2'", "looks like a secret"),
    ],
)
@pytest.mark.parametrize("wrong_query", [False, True])
def test_a_secret_in_the_script_is_refused_and_not_repeated(option: str, message: str, wrong_query: bool) -> None:
    where = "s.nothing = t.id" if wrong_query else "s.k = t.id"
    text = script(option, where)
    of_method = script(where=where).replace("INDEX ON (id)", f"SCAN INDEX ON (id) OPTIONS ({option})")
    of_stream = script(where=where).replace("rows 3", f"rows 3, {option}")
    for written in (text, of_method, of_stream):
        with pytest.raises(ScriptError) as caught:
            prepare(written, out=io.StringIO())
        assert f": option {option.split()[0]} {message}" in caught.value.message
        assert caught.value.source_line[caught.value.column - 1 :].startswith(option.split()[0])
        assert "hunter2" not in caught.value.pretty()


def test_the_line_of_another_mistake_does_not_show_a_secret() -> None:
    with pytest.raises(ScriptError) as caught:
        prepare(script("password 'hunter2' 7"), out=io.StringIO())
    assert "password '*******'" in caught.value.pretty()


@pytest.mark.parametrize("url", ["http://host:8080/p?at=a:b@c", "postgres://ann@db:5432/users", "users:a@b"])
def test_urls_without_a_password(url: str) -> None:
    check_no_secret(parse(script(f"url '{url}'")).declarations[1])
