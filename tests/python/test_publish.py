"""veil.publish as an operation: which tables it takes, and what it says when it takes none."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest
from dbt_veil.keys import new_keyring, write_keyring
from harness import Project, Result, columns, rows
from test_ledger_dbt import COUNT, configure, dp
from test_ledger_dbt import people as guarded_people

COUNTED: dict[str, Any] = {
    "materialized": "release",
    "meta": {"veil": {"audience": "internal", "k": 5, "levels": {"age": 0}}},
}


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
    same_count = refusal(
        "create table veil.kept as from veil.releases;"
        "update veil.releases set content_hash = null where relation like '%ages%';"
        "update changed set diagnosis = 'canary' where age = 30;"
        "alter table dropped rename to kept; create table dropped as select age, diagnosis, email from people",
        "drop table dropped; alter table kept rename to dropped; update changed set diagnosis = 'none';"
        "delete from veil.releases; insert into veil.releases from veil.kept; drop table veil.kept",
    )
    assert "the release of `ages` was recorded without a fingerprint of its rows" in same_count
    assert (
        "`changed` has other columns or values than were released: it was changed since. Build it again" in same_count
    )
    assert "`dropped` has other columns or values than were released" in same_count
    assert "canary" not in same_count


def test_a_policy_that_was_changed_since_the_release_stops_all_of_it(released: Project) -> None:
    stricter = {"materialized": "release", "meta": {"veil": COUNTED["meta"]["veil"] | {"k": 50}}}
    released.model("ages", "{{ veil.anonymize(ref('people')) }}", config=stricter)
    assert not released.dbt("run", "--select", "ages").success
    result = publish(released, "{audience: internal, path: out/stricter.duckdb}")
    released.model("ages", "{{ veil.anonymize(ref('people')) }}", config=COUNTED)
    assert (
        "the policy of `ages` was changed since its release. Build it again: `dbt build --select ages`" in result.text
    )
    assert not (released.folder / "out" / "stricter.duckdb").exists()


def test_a_model_that_was_never_released_is_left_out_and_said(released: Project) -> None:
    released.model("later", "{{ veil.anonymize(ref('people')) }}", config=COUNTED)
    result = publish(released, "{audience: internal, path: out/some.duckdb}")
    assert result.success, result.text
    assert "not yet released and so not published: later" in result.text


def test_the_hook_publishes_only_what_passed_its_tests(project: Project) -> None:
    people = rows("age,diagnosis", *[f"{30 + i % 4},none" for i in range(40)])
    project.seed("people", people, columns=columns({"age": "quasi_identifier", "diagnosis": "sensitive"}))
    k_is = {"quasi_identifiers": ["age"], "k": "{{ var('k', 5) }}"}
    warned = {"name": "warned", "arguments": k_is | {"k": 999}, "config": {"severity": "warn"}}
    tests = [{"veil.k_anonymity": {"name": "crowded", "arguments": k_is}}, {"veil.k_anonymity": warned}]
    project.model("ages", "{{ veil.anonymize(ref('people')) }}", config=COUNTED, data_tests=tests)
    project.model("report", "select max(age) as oldest from {{ ref('ages') }}")
    project.test("young", "select 1 from {{ ref('report') }} as report where oldest > {{ var('oldest', 99) }}")
    hook = "{{ veil.publish(audience='internal', path='hook.duckdb', results=results) }}"
    project.configure(**{"on-run-end": [hook]})
    file = project.folder / "hook.duckdb"
    first = project.dbt("build")
    assert first.status("warned") == "warn"
    assert file.exists(), first.text
    before = file.stat().st_ino
    failed = project.dbt("build", "--vars", "{k: 20}")
    assert "the test `crowded` of `ages` failed. The last publication stays" in failed.text
    assert "the test `young` of `ages` was skipped" in failed.text
    assert "`warned` of" not in failed.text
    downstream = project.dbt("build", "--vars", "{oldest: 30}")
    assert "veil.publish(): the test `young` of `ages` failed. The last publication stays" in downstream.text
    broken = project.dbt("build", "--vars", "{oldest: no_such_column}")
    assert "veil.publish(): the test `young` of `ages` stopped with an error" in broken.text
    assert file.stat().st_ino == before
    assert project.dbt("build").success
    assert file.stat().st_ino != before


def test_tables_of_two_databases_and_tables_that_join(project: Project) -> None:
    keyring = project.folder / "keyring.json"
    write_keyring(keyring, new_keyring(), replace_existing=False)
    attached = [{"path": str(project.folder / "other.duckdb"), "alias": "other"}]
    project.profile(config={"keyring_file": str(keyring)}, attach=attached)
    people = [{"person": i, "age": 30 + i % 4, "town": "AB"[i % 2], "diagnosis": "none"} for i in range(40)]
    unit = {"role": "unit", "mask": {"kind": "pseudonym", "domain": "clinic"}}
    roles = {"person": unit, "age": "quasi_identifier", "town": "quasi_identifier", "diagnosis": "sensitive"}
    project.seed("people", people, columns=columns(roles))

    def release(name: str, levels: dict[str, int], **config: object) -> None:
        policy = {"audience": "internal", "levels": levels}
        config = {"materialized": "release", "meta": {"veil": policy}, **config}
        project.model(name, "{{ veil.anonymize(ref('people')) }}", config=config)

    release("by_age", {"age": 0, "town": 1})
    release("by_town", {"age": 1, "town": 0}, database="other")
    built = project.dbt("build")
    assert built.success, built.text
    result = publish(project, "{audience: internal, path: both.duckdb}")
    assert result.success, result.text
    warning = "`by_age`, `by_town` carry pseudonyms of the same domain `clinic`: joined on them they give a finer table"
    assert warning in result.text
    with duckdb.connect(str(project.folder / "both.duckdb"), read_only=True) as analyst:
        found = analyst.execute("select relation, k_measured from veil.releases").fetchall()
        assert found == [('"other"."main"."by_town"', 20), ('"warehouse"."main"."by_age"', 10)]
    release("by_town", {"age": 1, "town": 0}, database="other", alias="By_age")
    assert project.dbt("run", "--select", "by_town").success
    result = publish(project, "{audience: internal, path: both.duckdb}")
    assert (
        "a publication would have two tables called `main.by_age`. Give one of the models another `alias`"
        in result.text
    )


def test_a_noisy_table_is_as_old_as_its_ledger_says(project: Project) -> None:
    guarded_people(project)
    project.model("counted", COUNT, config=dp("0.4"))
    configure(project)
    assert project.dbt("build", "--exclude", "package:veil").success
    floors = "{veil__audiences: {internal: 7}}"
    result = publish(project, "{audience: internal, path: noisy.duckdb}", "--vars", floors)
    assert result.success, result.text
    project.model("counted", COUNT, config=dp("0.3"))
    result = publish(project, "{audience: internal, path: noisy.duckdb}")
    assert "the policy of `counted` was changed since its release. Build it again" in result.text
    project.model("counted", COUNT, config=dp("0.4"))
    with duckdb.connect(str(project.warehouse)) as warehouse:
        warehouse.execute("update counted set n = n + 1")
    result = publish(project, "{audience: internal, path: noisy.duckdb}")
    assert "it was changed since. Drop it and build it again, which spends its budget again" in result.text
