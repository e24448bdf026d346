"""Equivalence classes and the test k_anonymity: what is a class, who is counted, what a failing row may show."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from harness import Project, Result, rows

TOWNS = rows("age_band,town", "20-29,Alta", "20-29,Alta", "20-29,NULL", "30-39,Alta", "30-39,Alta")
VISITS = rows("zip,person", "1,a", "1,a", "1,a", "2,b", "2,c", "3,NULL", "3,d")
HOSTILE = ["order", "Group", "with space", "uuid-part1", 'a"b', "Ünï", "select", "people", "row_count", "q_1", "user"]


def k_test(name: str, k: Any, by: Any, **options: Any) -> dict[str, Any]:
    config = options.pop("config", {})
    arguments = {"k": k, "quasi_identifiers": by, **options}
    return {"veil.k_anonymity": {"name": name, "arguments": arguments, "config": {"store_failures": True, **config}}}


@pytest.fixture(scope="module")
def built(shared_project: Project) -> tuple[Project, Result]:
    project = shared_project
    by = ["age_band", "town"]
    project.seed(
        "towns",
        TOWNS,
        data_tests=[
            k_test("null_is_a_value", 2, by),
            k_test("null_is_any_value", 2, by, nulls="wildcard"),
            k_test("null_is_any_value_of_three", 3, by, nulls="wildcard"),
            k_test("null_is_refused", 1, by, nulls="fail"),
            k_test("shown", "2", by, show_values="true"),
            k_test("one_name_as_text", 2, "age_band"),
        ],
        columns=[
            {
                "name": "town",
                "data_tests": [{"veil.k_anonymity": {"name": "of_a_column", "arguments": {"k": 2}}}],
            }
        ],
    )
    project.seed(
        "visits",
        VISITS,
        types={"zip": "varchar"},
        data_tests=[
            k_test("rows_of_visits", 2, ["zip"]),
            k_test("people_of_visits", 2, ["zip"], unit="person"),
            k_test("people_where", 2, ["zip"], unit="person", config={"where": "zip = '2'"}),
            k_test("nobody_where", 2, ["zip"], config={"where": "zip = 'none'"}),
            k_test("nobody_required", 2, ["zip"], require_rows=True, config={"where": "zip = 'none'"}),
        ],
    )
    project.seed("stars", rows("a,b,s", "*,*,1", "*,*,2", "*,*,3", "*,*,4"))
    project.model(
        "starred",
        "select * from {{ ref('stars') }}",
        data_tests=[
            k_test("all_suppressed", 2, ["a", "b"], suppressed_marker="*"),
            k_test("too_much_suppressed", 2, ["a", "b"], suppressed_marker="*", max_suppression=0.1),
            k_test("not_suppressed", 5, ["a", "b"]),
        ],
    )
    project.model(
        "hostile",
        "select " + ", ".join(f'1 as "{name.replace(chr(34), chr(34) * 2)}"' for name in HOSTILE),
        data_tests=[k_test("hostile_names", 1, HOSTILE), k_test("hostile_shown", 2, HOSTILE, show_values=True)],
    )
    project.properties(
        "sources",
        "raw",
        schema="main",
        tables=[
            {
                "name": "regions",
                "identifier": "visits",
                "data_tests": [
                    k_test("source_where", 2, ["zip"], config={"where": "zip in ('1', '2')"}),
                    k_test("source", 3, ["zip"]),
                ],
            }
        ],
    )
    (project.folder / "snapshots" / "history.sql").write_text(
        "{% snapshot history %}{{ config(strategy='check', unique_key='person', check_cols='all') }}"
        "select zip, person from {{ ref('visits') }} where person is not null and person <> 'a'{% endsnapshot %}",
        encoding="utf-8",
    )
    project.properties("snapshots", "history", data_tests=[k_test("of_a_snapshot", 2, ["zip"])])
    project.model(
        "class_list",
        "{{ veil.classes(ref('visits'), ['zip'], unit='person') }}",
    )
    project.model("value_list", "{{ veil.class_values(ref('visits'), ['zip'], 'person') }}")
    project.model("hostile_classes", f"{{{{ veil.classes(ref('hostile'), {HOSTILE!r}) }}}}")
    project.model("measured", "{{ veil.k_anonymity(ref('starred'), ['a', 'b'], suppressed_marker='*') }}")
    assert (build := project.dbt("build", "--exclude-resource-type", "test")).success, build.text
    return project, project.dbt("test")


@pytest.mark.parametrize(
    ("name", "failures"),
    [
        ("null_is_a_value", 1),
        ("null_is_any_value", 0),
        ("null_is_any_value_of_three", 1),
        ("null_is_refused", 1),
        ("shown", 1),
        ("one_name_as_text", 0),
        ("of_a_column", 1),
        ("rows_of_visits", 0),
        ("people_of_visits", 2),
        ("people_where", 0),
        ("nobody_where", 0),
        ("nobody_required", 1),
        ("all_suppressed", 0),
        ("too_much_suppressed", 1),
        ("not_suppressed", 1),
        ("hostile_names", 0),
        ("hostile_shown", 1),
        ("source_where", 0),
        ("source", 2),
        ("of_a_snapshot", 1),
    ],
)
def test_k_anonymity_counts_the_classes_that_are_too_small(
    built: tuple[Project, Result], name: str, failures: int
) -> None:
    _, result = built
    assert result.status(name) == ("fail" if failures else "pass"), result.message(name)
    assert result.failures(name) == failures


def test_a_failing_row_holds_a_hash_and_sizes_and_no_value(built: tuple[Project, Result]) -> None:
    project, _ = built
    (row,) = project.query("select * from main_dbt_test__audit.null_is_a_value")
    digest = hashlib.md5(b"5:20-29-").hexdigest()
    assert row == ("fewer than k people", digest, 1, 1, 1.0, 2.0)


def test_values_are_shown_where_asked_for(built: tuple[Project, Result]) -> None:
    project, _ = built
    assert project.query("select age_band, town, people from main_dbt_test__audit.shown") == [("20-29", None, 1)]


def test_classes_count_people_and_a_row_without_a_person_counts_for_nobody(built: tuple[Project, Result]) -> None:
    project, _ = built
    assert project.query("select * from class_list order by zip") == [("1", 1, 3), ("2", 2, 2), ("3", 1, 2)]


def test_class_values_count_people_and_rows_of_each_value(built: tuple[Project, Result]) -> None:
    project, _ = built
    counts = [("1", "a", 3, 3), ("2", "b", 1, 1), ("2", "c", 1, 1), ("3", "d", 1, 1), ("3", None, 1, 1)]
    assert project.query("select * from value_list order by zip, person") == counts


def test_helper_columns_give_way_to_columns_of_the_same_name(built: tuple[Project, Result]) -> None:
    project, _ = built
    names = [name for (name,) in project.query("select column_name from (describe hostile_classes)")]
    assert names == [*HOSTILE, "people_", "row_count_"]


def test_everything_suppressed_has_no_k_and_a_rate_of_one(built: tuple[Project, Result]) -> None:
    project, _ = built
    assert project.query("select classes, k, people, people_suppressed, share_suppressed from measured") == [
        (0, None, 4, 4, 1.0)
    ]


def test_wrong_arguments_are_named_together(project: Project) -> None:
    project.model("one", "select 1 as zip, 2 as z", data_tests=[k_test("bad", "five", [], nulls="wild", unit="")])
    result = project.dbt("parse")
    assert not result.success
    assert "`k` must be a whole number. Got: 'five'" in result.text
    assert "`quasi_identifiers` must be a list of names, with at least one. Got: []" in result.text
    assert "`nulls` must be one of group, wildcard, fail. Got: 'wild'; did you mean `wildcard`?" in result.text
    assert "`unit` must be a text. Got: ''" in result.text


def test_a_missing_column_is_an_error_and_never_the_user_of_the_session(project: Project) -> None:
    project.model(
        "one",
        "select 1 as zip",
        data_tests=[
            k_test("missing", 1, ["user", "zip"]),
            k_test("missing_where", 1, ["user", "zip"], config={"where": "zip = 1"}),
            k_test("letters", 1, "zipp"),
        ],
    )
    result = project.dbt("build")
    assert [result.status(name) for name in ("missing", "missing_where", "letters")] == ["error"] * 3
    assert "veil.k_anonymity(): column `user` not found" in result.message("missing")
    assert "veil.k_anonymity(): column `user` not found" in result.message("missing_where")
    assert "veil.k_anonymity(): column `zipp` not found; did you mean `zip`?" in result.message("letters")
