"""veil.publish as an operation: which tables it takes, and what it says when it takes none."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest
from harness import Project, Result, columns, rows

COUNTED = {"materialized": "release", "meta": {"veil": {"audience": "internal", "k": 5, "levels": {"age": 0}}}}


@pytest.fixture(scope="module")
def released(shared_project: Project) -> Project:
    project = shared_project
    people = [f"p{i}@example.org,{30 + i % 4},none" for i in range(40)]
    roles = {"email": "identifier", "age": "quasi_identifier", "diagnosis": "sensitive"}
    project.seed("people", rows("email,age,diagnosis", *people), columns=columns(roles))
    described: list[dict[str, Any]] = [{"name": "age", "description": 'Whole years; it\'s "age".'}]
    sql = "{{ veil.anonymize(ref('people')) }}"
    for name in ("ages", "changed", "dropped"):
        project.model(name, sql, config=COUNTED | {"tags": [name]}, columns=described, description="Released ages.")
    project.model("plain", "select * from {{ ref('people') }}", config={"materialized": "table"})
    result = project.dbt("build")
    assert result.success, result.text
    return project


def publish(project: Project, arguments: str, *flags: str) -> Result:
    return project.dbt("run-operation", "veil.publish", "--args", arguments, *flags)


def test_it_takes_the_released_tables_and_no_other(released: Project) -> None:
    result = publish(released, "{audience: internal, path: out/internal.duckdb}")
    assert result.success, result.text
    assert "published to out/internal.duckdb for the audience internal: ages, changed, dropped" in result.text
    with duckdb.connect(str(released.folder / "out" / "internal.duckdb"), read_only=True) as analyst:
        tables = analyst.execute("select table_name, comment from duckdb_tables() order by 1").fetchall()
        assert [name for name, _ in tables] == ["ages", "changed", "dropped", "releases"]
        assert tables[0][1] == "Released ages."
        columns_found = analyst.execute(
            "select column_name, comment from duckdb_columns() where table_name = 'ages' order by column_index"
        ).fetchall()
        assert columns_found == [("age", 'Whole years; it\'s "age".'), ("diagnosis", None)]
        records = analyst.execute("select people_out, classes, k_measured from veil.releases").fetchall()
        assert records == [(40, 4, 10)] * 3


def test_parquet_holds_the_same(released: Project) -> None:
    result = publish(released, "{audience: internal, path: out/internal, format: parquet}")
    assert result.success, result.text
    files = sorted(path.name for path in (released.folder / "out" / "internal").iterdir())
    assert files == ["main.ages.parquet", "main.changed.parquet", "main.dropped.parquet", "veil.releases.parquet"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("{}", "`audience` must be one of internal, partner, public, mobility. Got: "),
        ("{audience: internol, path: x}", "did you mean `internal`?"),
        ("{audience: internal, path: ' '}", "`path` must be a text. Got: ' '"),
        ("{audience: internal, path: x, format: csv}", "`format` must be one of duckdb, parquet. Got: 'csv'"),
        (
            "{audience: public, path: x}",
            "nothing to publish for the audience `public`: no model is `materialized: release`",
        ),
        ("{audience: internal, path: warehouse.duckdb}", "warehouse.duckdb is a database that this run has open"),
        ("{audience: internal, path: 's3://bucket/x'}", "`path` must be on this machine"),
        ("{audience: internal, path: dbt_project.yml}", "dbt_project.yml exists and was not written by veil.publish"),
    ],
)
def test_refusals_name_the_argument(released: Project, arguments: str, message: str) -> None:
    result = publish(released, arguments)
    assert not result.success
    assert message in result.text
    assert not (released.folder / "x").exists()


def test_a_table_that_is_not_as_it_was_released_stops_all_of_it(released: Project) -> None:
    file = released.folder / "out" / "refused.duckdb"

    def refusal(statement: str, undo: str) -> str:
        for sql, expected in ((statement, False), (undo, True)):
            with duckdb.connect(str(released.warehouse)) as warehouse:
                warehouse.execute(sql)
            result = publish(released, "{audience: internal, path: out/refused.duckdb}")
            assert result.success is expected, result.text
            if not expected:
                assert not file.exists()
                said = result.text
        file.unlink()
        return said

    added = refusal("insert into changed values (99, 'rare')", "delete from changed where age = 99")
    assert "`changed` has 41 rows and 40 were released: it was changed since. Build it again" in added
    assert "rare" not in added
    viewed = refusal(
        "alter table dropped rename to kept; create view dropped as select * from people",
        "drop view dropped; alter table kept rename to dropped",
    )
    assert "`dropped` is no table, or not the one that was released" in viewed
    seeded = refusal(
        "update veil.releases set seeded = true where relation like '%ages%'", "update veil.releases set seeded = false"
    )
    assert "the release of `ages` is marked seeded" in seeded
    other = refusal(
        "update veil.releases set audience = 'public' where relation like '%ages%'",
        "update veil.releases set audience = 'internal'",
    )
    assert "`ages` was released to `public` and its YAML now says `internal`. Build it again" in other


def test_a_model_that_was_never_released_is_left_out_and_said(released: Project) -> None:
    released.model("later", "{{ veil.anonymize(ref('people')) }}", config=COUNTED)
    result = publish(released, "{audience: internal, path: out/some.duckdb}")
    assert result.success, result.text
    assert "not yet released and so not published: later" in result.text
