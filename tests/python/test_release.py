"""From a table with roles to a released table: what is published, what is refused, and what stays as it was."""

from __future__ import annotations

import pytest
from harness import Project, columns, rows

AGE = {"kind": "intervals", "widths": [10], "bounds": [0, 100]}
TOWN = {
    "kind": "tree",
    "tree": {"north": ["Alta", "Bodo"], "south": ["Moss", "Lund"]},
}
ROLES = {
    "person": "unit",
    "email": "identifier",
    "age": {"role": "quasi_identifier", "hierarchy": AGE},
    "town": {"role": "quasi_identifier", "hierarchy": TOWN},
    "illness": "sensitive",
    "note": "free_text",
    "ward": "other",
}
# Five people of 20-29 in the north, four of 30-39 in the south, one of 40-49 alone.
PEOPLE = rows(
    "person,email,age,town,illness,note,ward",
    "1,a1@example.org,21,Alta,flu,seen,A",
    "2,a2@example.org,22,Alta,flu,seen,A",
    "3,a3@example.org,23,Bodo,cold,seen,A",
    "4,a4@example.org,24,Bodo,cold,seen,B",
    "5,a5@example.org,29,Bodo,gout,seen,B",
    "6,a6@example.org,31,Moss,gout,seen,B",
    "7,a7@example.org,32,Moss,flu,seen,B",
    "8,a8@example.org,33,Lund,flu,seen,C",
    "9,a9@example.org,34,Lund,cold,seen,C",
    "10,a10@example.org,45,Lund,cold,seen,C",
)
TYPES = {"person": "bigint", "age": "integer"}


def policy(**keys: object) -> dict[str, object]:
    """The YAML config of a release with a policy that PEOPLE can keep, changed by ``keys``."""
    base = {"k": 4, "levels": {"age": 1, "town": 1}, "suppress_up_to": 0.1}
    return {"materialized": "release", "meta": {"veil": base | keys}}


def release(project: Project, name: str = "released", source: str = "people", **keys: object) -> None:
    project.model(name, f"{{{{ veil.anonymize(ref('{source}')) }}}}", config=policy(**keys))


@pytest.fixture(scope="module")
def clinic(shared_project: Project) -> Project:
    shared_project.seed("people", PEOPLE, types=TYPES, columns=columns(ROLES))
    release(shared_project)
    shared_project.model(
        "contracted",
        "{{ veil.anonymize(ref('people')) }}",
        config=policy() | {"contract": {"enforced": True}, "alias": "kept to contract", "schema": "out", "tags": ["x"]},
        columns=[
            {"name": name, "data_type": "varchar", "description": f"the {name}"}
            for name in ("age", "town", "illness", "ward")
        ],
    )
    result = shared_project.dbt("build")
    assert result.success, result.text
    return shared_project


def test_a_release_holds_only_declared_columns_and_whole_classes(clinic: Project) -> None:
    assert clinic.query("select column_name from (describe main.released)") == [
        ("age",),
        ("town",),
        ("illness",),
        ("ward",),
    ]
    assert clinic.query("select age, town, count(*) from main.released group by all order by all") == [
        ("20-29", "north", 5),
        ("30-39", "south", 4),
    ]


def test_a_release_is_recorded_once_with_what_was_measured(clinic: Project) -> None:
    (record,) = clinic.query(
        "select people_in, people_out, rows_in, rows_out, classes, k_required, k_measured, suppressed_share, unit, levels"
        " from veil.releases where model = 'model.consumer.released'"
    )
    assert record == (10, 9, 10, 9, 2, 4, 4, pytest.approx(0.1), "person", '{"age": 1, "town": 1}')


def test_a_contract_alias_and_custom_schema_work_as_for_a_table(clinic: Project) -> None:
    assert clinic.scalar('select count(*) from main_out."kept to contract"') == 9
