"""A release under every command that reaches it: compile, show, docs, --empty, sources, eight threads, a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import duckdb
import pytest
from harness import ROOT, Project, columns
from test_release import PEOPLE, ROLES, TYPES, policy, release


@pytest.fixture(scope="module")
def clinic(shared_project: Project) -> Project:
    shared_project.seed("people", PEOPLE, types=TYPES, columns=columns(ROLES))
    release(shared_project)
    assert shared_project.dbt("compile").success, "a model compiles before its input is built"
    assert shared_project.dbt("build").success
    return shared_project


def test_compiled_sql_shows_the_rule_and_docs_can_be_generated(clinic: Project) -> None:
    assert "classes.people >= 4" in clinic.compiled("released")
    assert clinic.dbt("docs", "generate").success


def test_an_empty_run_builds_an_empty_table(clinic: Project) -> None:
    release(clinic, name="emptied")
    result = clinic.dbt("run", "--empty", "--select", "emptied")
    assert result.success, result.text
    assert clinic.scalar("select count(*) from main.emptied") == 0


def test_a_full_refresh_keeps_the_record_and_adds_to_it(clinic: Project) -> None:
    records = "select count(*) from veil.releases where model = 'model.consumer.released'"
    before = clinic.scalar(records)
    for _ in range(2):
        result = clinic.dbt("run", "--full-refresh", "--select", "released")
        assert result.success, result.text
    assert clinic.scalar(records) == before + 2
    assert clinic.scalar("select count(*) from main.released") == 9


def test_show_prints_what_would_be_released_without_the_unit(clinic: Project) -> None:
    result = clinic.dbt("show", "--select", "released")
    assert result.success, result.text
    assert "veil__unit" not in result.text
    assert "20-29" in result.text


def test_a_unit_test_is_told_why_it_cannot_run(clinic: Project) -> None:
    test = {"name": "unit_test", "model": "released", "given": [{"input": "ref('people')", "rows": []}]}
    clinic._yaml("models/unit_tests.yml", {"unit_tests": [test | {"expect": {"rows": []}}]})
    result = clinic.dbt("test", "--select", "test_type:unit")
    (clinic.folder / "models/unit_tests.yml").unlink()
    assert "dbt shows a unit test no graph" in result.text


def test_a_source_with_a_quoted_name_in_another_schema_is_an_input(clinic: Project) -> None:
    with duckdb.connect(str(clinic.warehouse)) as connection:
        connection.execute('create schema "Raw data"')
        connection.execute('create table "Raw data"."People 2024" as select * from main.people')
    table = {"name": "people", "identifier": "People 2024", "columns": columns(ROLES)}
    clinic.properties("sources", "raw", schema="Raw data", tables=[table])
    clinic.model("from_source", "{{ veil.anonymize(source('raw', 'people')) }}", config=policy())
    result = clinic.dbt("run", "--select", "from_source")
    assert result.success, result.text
    assert clinic.scalar("select count(*) from main.from_source") == 9


def test_eight_threads_make_many_releases_at_once(project: Project) -> None:
    """The first release of a new warehouse creates veil.releases: eight that start together must not collide."""
    project.profile(threads=8)
    project.seed("people", PEOPLE, types=TYPES, columns=columns(ROLES))
    for i in range(8):
        release(project, name=f"released_{i}")
    result = project.dbt("build", "--threads", "8")
    assert result.success, result.text
    assert project.scalar("select count(distinct model) from veil.releases") == 8


def test_a_killed_build_leaves_the_last_good_table_and_its_record(project: Project) -> None:
    project.seed("people", PEOPLE, types=TYPES, columns=columns(ROLES))
    release(project)
    assert project.dbt("build").success
    kept = "select * from main.released", "select * from veil.releases"
    before = [project.query(sql) for sql in kept]
    hook = "select count(*) from range(3000000) a, range(3000000) b where a.range + b.range = 7"
    project.model("released", "{{ veil.anonymize(ref('people')) }}", config=policy(k=2) | {"post_hook": hook})
    environment = os.environ | {"PYTHONPATH": str(ROOT / "udfs"), "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
    command = [sys.executable, "-m", "dbt.cli.main", "run", "--profiles-dir", "."]
    process = subprocess.Popen(
        command, cwd=project.folder, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    log = project.folder / "logs" / "dbt.log"
    offset = log.stat().st_size
    deadline = time.monotonic() + 60
    while "from range(3000000)" not in log.read_text(encoding="utf-8")[offset:] and time.monotonic() < deadline:
        time.sleep(0.2)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert "from range(3000000)" in log.read_text(encoding="utf-8")[offset:], "the build was not under way when it died"
    assert [project.query(sql) for sql in kept] == before
    assert project.query("select table_name from duckdb_tables() where table_name like '%dbt%'") == []
