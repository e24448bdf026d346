"""Keys and values leave no trace, wrong keys stop a build, and a key can be rotated under a growing table."""

from __future__ import annotations

import base64
import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import duckdb
import pytest
from dbt_veil.cli import main
from dbt_veil.keys import read_keyring, write_keyring
from harness import Project

KEY = "canary-key-5e1f-that-nobody-may-see"
VALUE = "Zed Q, 12 Elm St"


def _forms(text: str) -> list[str]:
    data = text.encode()
    return [text, data.hex(), data.hex().upper(), base64.b64encode(data).decode(), repr(data)]


def _files(project: Project) -> dict[str, bytes]:
    """Every file below target/ and logs/, and every database file with its log."""
    found = [p for base in ("target", "logs") for p in (project.folder / base).rglob("*") if p.is_file()]
    found += [p for p in project.folder.glob("*.duckdb*") if p.is_file()]
    return {str(path): path.read_bytes() for path in found}


def test_a_canary_leaves_no_trace(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VEIL_TEST_KEY", KEY)
    project.profile(config={"keyring_env": "VEIL_TEST_KEY"})
    project.configure(models={"+materialized": "table"})
    parquet = project.folder / "people.parquet"
    duckdb.sql(
        f"copy (select '{VALUE}' as name, i as id from range(3000) as numbers (i)) to '{parquet}' (format parquet)"
    )
    source = f"from read_parquet('{parquet}')"
    project.model("good", f"select {{{{ veil.pseudonym('name', domain='d') }}}} as name {source}")
    project.model("failing", f"select {{{{ veil.pseudonym('name', domain='d') }}}} as name, error('stop') {source}")
    project.model("udf_error", f"select {{{{ veil.fpe('name', domain='d') }}}} as name {source}")
    project.model("tupled", f"select {{{{ veil.pseudonym(['name', 'id'], domain='d') }}}} as name {source}")
    terminal = io.StringIO()
    with redirect_stdout(terminal), redirect_stderr(terminal):
        built = project.dbt("build", "--log-level-file", "debug")
        documented = project.dbt("docs", "generate")
        debugged = project.dbt("debug")
    assert [built.status(name) for name in ("good", "failing", "udf_error", "tupled")] == [
        "success",
        "error",
        "error",
        "success",
    ]
    assert "of 1 distinct values of this batch, 1 values have a character" in built.message("udf_error")
    said = "\n".join([terminal.getvalue(), built.text, documented.text, debugged.text])
    files = _files(project)
    assert any(name.endswith("manifest.json") for name in files)
    assert any(name.endswith("catalog.json") for name in files)
    assert any(name.endswith("dbt.log") for name in files)
    assert any(name.endswith("warehouse.duckdb") for name in files)
    for secret in (KEY, VALUE):
        for form in _forms(secret):
            assert form not in said
            assert [name for name, content in files.items() if form.encode() in content] == []
    assert project.scalar("select count(distinct name) from main.good") == 1


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (None, "environment variable VEIL_TEST_KEY is not set"),
        ("short", "environment variable VEIL_TEST_KEY is too short: a key has 16 bytes or more"),
    ],
)
def test_without_a_key_no_row_is_written(
    shared_project: Project, monkeypatch: pytest.MonkeyPatch, key: str | None, message: str
) -> None:
    project = shared_project
    if key is None:
        monkeypatch.delenv("VEIL_TEST_KEY", raising=False)
    else:
        monkeypatch.setenv("VEIL_TEST_KEY", key)
    project.profile(config={"keyring_env": "VEIL_TEST_KEY"})
    project.configure(models={"+materialized": "table"})
    project.model("people", "select {{ veil.pseudonym('name', domain='d') }} as name from (select 'ann' as name)")
    result = project.dbt("run")
    assert result.status("people") == "error"
    assert message in result.message("people")
    assert project.query("select 1 from duckdb_tables() where table_name = 'people'") == []


def test_a_rotation_under_a_growing_table(project: Project) -> None:
    ring = project.folder / "ring.json"
    assert main(["key", "new", str(ring)]) == 0
    project.profile(config={"keyring_file": "ring.json"})
    mask = "domain='patients', version_prefix=true"
    people = "(select * from (values ('ann'), ('bob')) as people (name)) as people"
    for name in ("visits", "payments"):
        project.model(
            name,
            f"select {{{{ veil.pseudonym('name', {mask}) }}}} as person, {{{{ var('day') }}}} as day from {people}",
            config={"materialized": "incremental"},
        )
    project.model(
        "ann_everywhere",
        f"""
        with pairs as (select 'ann' as name, visits.person, visits.day from {{{{ ref('visits') }}}} as visits)
        select pairs.day from pairs
        where {{{{ veil.pseudonym_matches('name', 'person', {mask}) }}}}
        """,
        config={"materialized": "table"},
    )
    assert project.dbt("run", "--vars", "day: 1").success
    assert main(["key", "rotate", str(ring)]) == 0
    second = project.dbt("run", "--vars", "day: 2")
    assert second.success, second.text

    joined = "select visits.day, payments.day from main.visits inner join main.payments using (person) order by all"
    assert project.query(joined) == [(1, 1), (1, 1), (2, 2), (2, 2)]
    assert project.query("select distinct day, left(person, 3) from main.visits order by all") == [
        (1, "v1_"),
        (2, "v2_"),
    ]
    assert project.query("select day from main.ann_everywhere order by all") == [(1,), (2,)]

    assert main(["key", "destroy", str(ring), "1", "--yes"]) == 0
    assert project.dbt("run", "--select", "ann_everywhere", "--vars", "day: 2").success
    assert project.query("select day from main.ann_everywhere") == [(2,)]


def test_the_command_never_shows_a_secret(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "ring.json"
    assert main(["key", "new", str(path)]) == 0
    assert main(["key", "new", str(path)]) == 1
    assert main(["key", "rotate", str(path)]) == 0
    assert main(["key", "destroy", str(path), "1"]) == 1
    assert main(["key", "destroy", str(path), "2", "--yes"]) == 1
    assert main(["key", "list", str(path)]) == 0
    assert main(["key", "check", str(path)]) == 0
    assert main(["key", "check", str(tmp_path / "no.json")]) == 1
    assert main(["vault", "new", str(tmp_path / "vault.sqlite")]) == 0
    assert main(["vault", "new", str(tmp_path / "vault.sqlite")]) == 1
    said = capsys.readouterr()
    secrets = [entry["secret"] for entry in json.loads(path.read_text())["keys"]]
    assert len(secrets) == 2
    for secret in secrets:
        assert secret not in said.out + said.err
        assert base64.b64decode(secret).hex() not in said.out + said.err
    assert "a new key in its place would make every pseudonym so far unlinkable" in said.err
    assert "version 1 would be destroyed for ever" in said.err
    assert "key version 2 is current. Rotate first, then destroy it" in said.err
    assert "restore it from its backup" in said.err
    ring = read_keyring(path)
    assert f"ok: key {ring.current.id} (version 2) signs, 2 verify" in said.out
    write_keyring(path, ring.without_secret(1), replace_existing=True)
    assert [key.state for key in read_keyring(path).keys] == ["current", "destroyed"]


@pytest.mark.parametrize("arguments", [["--help"], ["key", "--help"], ["key", "rotate", "--help"], ["vault", "--help"]])
def test_help_reads_well(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 0
    text = capsys.readouterr().out
    assert text.startswith("usage: veil")
    assert max(len(line) for line in text.splitlines()) <= 90
