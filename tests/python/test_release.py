"""From a table with roles to a released table: what is published, what is refused, and what stays as it was."""

from __future__ import annotations

import pytest
from dbt_veil.keys import new_keyring, write_keyring
from harness import Project, Result, columns, rows

AGE = {"kind": "intervals", "widths": [10], "range": [0, 100]}
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
        "select people_in, people_out, rows_in, rows_out, classes, k_required, k_measured, suppressed_share, unit,"
        " levels from veil.releases where model = 'model.consumer.released'"
    )
    assert record == (10, 9, 10, 9, 2, 4, 4, pytest.approx(0.1), "person", '{"age": 1, "town": 1}')


def test_a_contract_alias_and_custom_schema_work_as_for_a_table(clinic: Project) -> None:
    assert clinic.scalar('select count(*) from main_out."kept to contract"') == 9


def test_the_order_of_the_rows_is_a_function_of_what_is_released(clinic: Project) -> None:
    hashes = [value for (value,) in clinic.query("select hash(age, town, illness, ward) from main.released")]
    assert hashes == sorted(hashes)


def refused(project: Project, **keys: object) -> str:
    """What a refused build of `released` says, after checking that the last good table and its record are untouched."""
    kept = "select * from main.released order by all"
    records = "select * from veil.releases order by all"
    before = project.query(kept), project.query(records)
    release(project, **keys)
    result = project.dbt("run", "--select", "released")
    assert not result.success
    assert (project.query(kept), project.query(records)) == before
    assert project.query("select table_name from duckdb_tables() where table_name like '%dbt%'") == []
    return result.message("released")


def test_too_many_left_out_is_refused_with_the_two_cheapest_ways_out(clinic: Project) -> None:
    message = refused(clinic, suppress_up_to=0.05)
    assert "veil.release(): model `released`: not published, and the last good table stays as it was" in message
    assert "1 of 10 people (10.00 %) would be left out, and `suppress_up_to` allows 5.00 %" in message
    assert "`levels.age: 2` leaves out 0.00 %" in message
    assert "`suppress_up_to: 0.1` accepts the people left out now" in message


def test_values_that_the_hierarchy_does_not_know_are_counted_not_shown(clinic: Project) -> None:
    hierarchy = {"kind": "tree", "tree": {"north": ["Alta"], "south": ["Moss", "Lund"]}}
    clinic.properties(
        "seeds",
        "people",
        config={"column_types": TYPES},
        columns=columns(ROLES | {"town": {"role": "quasi_identifier", "hierarchy": hierarchy}}),
    )
    message = refused(clinic, k=2)
    clinic.properties("seeds", "people", config={"column_types": TYPES}, columns=columns(ROLES))
    assert "3 rows have a `town` that its hierarchy does not know" in message
    assert "Bodo" not in message


MALFORMED = [
    ({"levls": {"age": 1}}, "`meta.veil` has no key `levls`; did you mean `levels`?"),
    ({"k": "five"}, "`k` must be a whole number. Got: 'five'"),
    ({"k": 0}, "`k` must be 2 or more. Got: 0"),
    ({"k": 2.5}, "`k` must be a whole number. Got: 2.5"),
    ({"suppress_up_to": 1.5}, "`suppress_up_to` must be between 0 and 1. Got: 1.5"),
    ({"k": None}, "`k` or `audience` is missing. The audience sets the floor for k: internal 5"),
    ({"audience": "public"}, "`k` is 4, below the floor of 50 for the audience `public`"),
    ({"audience": "publik"}, "did you mean `public`?"),
    ({"levels": {"age": 1}}, "`levels` has no level for town"),
    ({"levels": {"age": 1, "town": 1, "twon": 0}}, "`levels` names `twon`, which is not a quasi-identifier"),
    ({"levels": {"age": 9, "town": 1}}, "`levels.age` is 9; the top level of the hierarchy written in place is 2"),
    ({"nulls": "grup"}, "`nulls` must be one of group, wildcard, fail. Got: 'grup'; did you mean `group`?"),
    ({"unit": "persn"}, "`unit` names `persn`, which is not a column of the input; did you mean `person`?"),
]


@pytest.fixture(scope="module")
def malformed(clinic: Project) -> Result:
    """One run over a model for each malformed policy."""
    for i, (keys, _) in enumerate(MALFORMED):
        release(clinic, name=f"malformed_{i}", **keys)
    return clinic.dbt("run", "--select", "malformed_*")


@pytest.mark.parametrize("i", range(len(MALFORMED)))
def test_a_malformed_policy_is_refused_before_a_row_is_read(clinic: Project, malformed: Result, i: int) -> None:
    message = malformed.message(f"malformed_{i}")
    assert f"veil.policy(): model `malformed_{i}`: " in message
    assert MALFORMED[i][1] in message
    assert clinic.query(f"select 1 from duckdb_tables() where table_name = 'malformed_{i}'") == []


def test_text_that_is_a_number_is_read_as_one(clinic: Project) -> None:
    release(clinic, name="as_text", k="4", suppress_up_to="0.1", levels={"age": "1", "town": "1"})
    assert clinic.dbt("run", "--select", "as_text").success


def test_people_are_counted_and_not_their_rows(clinic: Project) -> None:
    """One person with five visits is not five people: the class is left out, and nobody else is."""
    visits = rows("person,age,illness", *["1,21,flu"] * 5, *[f"{i},31,flu" for i in range(2, 6)])
    roles = {"person": "unit", "age": ROLES["age"], "illness": "sensitive"}
    clinic.seed("visits", visits, types=TYPES, columns=columns(roles))
    release(clinic, name="visits_released", source="visits", levels={"age": 1}, suppress_up_to=0.5)
    assert clinic.dbt("build", "--select", "visits+").success
    assert clinic.query("select age, count(*) from main.visits_released group by all") == [("30-39", 4)]
    assert clinic.query(
        "select people_in, people_out, rows_in, rows_out from veil.releases where model like '%visits_released'"
    ) == [(5, 4, 9, 4)]


def test_hostile_names_and_values_come_through_unchanged(clinic: Project) -> None:
    """Names that need quoting, a column called like each helper, and NULL, quotes and dashes in values."""
    names = ["order", "Group", "with space", 'a"b', "Ünï", "select", "people", "rows_alike", "veil__unit"]
    line = {name: f'x\'; drop table "{name}" --' for name in names}
    quoted = {name: '"' + name.replace('"', '""') + '"' for name in [*names, "user"]}
    literal = "'" + line["order"].replace("order", "{}").replace("'", "''") + "'"
    values = [f"{literal.format(name)} as {quoted[name]}" for name in names]
    roles = dict.fromkeys(names[:7], "quasi_identifier") | dict.fromkeys([*names[7:], "user"], "other")
    select = f"select i as unit, {', '.join(values)}, null::varchar as {quoted['user']} from range(6) t(i)"
    clinic.model("odd", select, config={"materialized": "table"}, columns=columns({"unit": "unit"} | roles))
    levels = dict.fromkeys(names[:7], 0)
    release(clinic, name="odd_released", source="odd", levels=levels, suppress_up_to=0)
    clinic.model("odd_rows", "select * exclude (unit) from {{ ref('odd') }}", columns=columns(roles))
    release(clinic, name="odd_rows_released", source="odd_rows", levels=levels, suppress_up_to=0)
    result = clinic.dbt("build", "--select", "odd+")
    assert result.success, result.text
    for table in ("odd_released", "odd_rows_released"):
        assert clinic.query(f"select * from main.{table}") == [(*line.values(), None)] * 6


def test_null_is_a_value_of_its_own_or_refused(clinic: Project) -> None:
    table = rows("age,town,illness", *["21,Alta,flu"] * 2, "21,NULL,flu", *["31,Alta,flu"] * 2)
    roles = {"age": ROLES["age"], "town": "quasi_identifier", "illness": "sensitive"}
    clinic.seed("gaps", table, types={"age": "integer"}, columns=columns(roles))
    keys = {"source": "gaps", "k": 2, "levels": {"age": 1, "town": 0}}
    release(clinic, name="gaps_grouped", **keys, suppress_up_to=0.2)
    release(clinic, name="gaps_refused", **keys, suppress_up_to=0.2, nulls="fail")
    release(clinic, name="gaps_wild", **keys, nulls="wildcard")
    result = clinic.dbt("build", "--select", "gaps+")
    assert result.status("gaps_grouped") == "success"
    assert clinic.scalar("select count(*) from main.gaps_grouped where town is null") == 0
    assert "1 rows have no `town`, and the policy says `nulls: fail`" in result.message("gaps_refused")
    assert result.status("gaps_wild") == "success"
    assert clinic.scalar("select count(*) from main.gaps_wild") == 5


def test_an_undeclared_column_stops_the_build_and_the_message_mends_it(clinic: Project) -> None:
    clinic.seed(
        "extra",
        [{"age": 21, "illness": "flu", "shoe_size": 41, "eyes": "grey"}] * 5,
        columns=columns({"age": ROLES["age"], "illness": "sensitive", "sheo_size": "other"}),
    )
    release(clinic, name="extra_released", source="extra", levels={"age": 1})
    message = " ".join(clinic.dbt("build", "--select", "extra+").message("extra_released").split())
    assert "no role is declared for shoe_size, eyes of `extra`. Declare each in its YAML: - name: shoe_size" in message
    assert "`extra` has no column `sheo_size`, for which its YAML declares a role; did you mean `shoe_size`?" in message


@pytest.mark.parametrize("materialized", ["view", "ephemeral", "incremental", "table"])
def test_a_policy_without_the_gate_is_refused(clinic: Project, materialized: str) -> None:
    name = f"ungated_{materialized}"
    clinic.model(name, "{{ veil.anonymize(ref('people')) }}", config=policy() | {"materialized": materialized})
    clinic.model(f"after_{name}", f"select * from {{{{ ref('{name}') }}}}")
    result = clinic.dbt("run", "--select", f"{name}+")
    assert not result.success
    assert "must be `materialized: release`, which publishes it only if its policy holds" in result.text


def refusal(project: Project, name: str) -> str:
    """What the build of one model that must be refused says, in one line."""
    result = project.dbt("run", "--select", name)
    assert result.status(name) == "error"
    return " ".join(result.message(name).split())


def test_sql_around_anonymize_is_refused(clinic: Project) -> None:
    """The gate measures quasi-identifiers; an e-mail address joined back beside them would pass it."""
    wrapped = (
        "with a as (\n{{ veil.anonymize(ref('people')) }}\n)\n"
        "select a.*, p.email as ward from a join {{ ref('people') }} p on p.person = a.veil__unit"
    )
    commented = "-- who sees what\n\n-- {{ 1 + 1 }}\n{{ veil.anonymize(ref('people')) }}\n"
    clinic.model("commented", commented, config=policy())
    assert clinic.dbt("run", "--select", "commented").success
    by_hand = "select person as veil__unit, '*' as age, town, email as illness, ward from {{ ref('people') }}"
    for name, sql in {"wrapped": wrapped, "by_hand": by_hand}.items():
        clinic.model(name, sql, config=policy(suppress_up_to=1))
        assert "holds `{{ veil.anonymize(ref('…')) }}` and nothing around it but comments" in refusal(clinic, name)


def test_rows_of_one_person_linked_by_a_pseudonym_are_refused(clinic: Project) -> None:
    """Ten people with two visits each: k holds for every visit, and the pair of visits singles a person out."""
    visits = [{"person": i, "age": 21 + 10 * (j % 2), "illness": "flu"} for i in range(10) for j in range(2)]
    mask = {"kind": "pseudonym", "domain": "people"}
    roles = {"person": {"role": "unit", "mask": mask}, "age": ROLES["age"], "illness": "sensitive"}
    clinic.seed("linked", visits, types=TYPES, columns=columns(roles))
    release(clinic, name="linked_released", source="linked", levels={"age": 1}, suppress_up_to=0)
    release(
        clinic, name="linked_openly", source="linked", levels={"age": 1}, linked_because="two visits, public anyway"
    )
    keyring = clinic.folder / "keyring.json"
    write_keyring(keyring, new_keyring(), replace_existing=False)
    clinic.profile(config={"keyring_file": str(keyring)})
    assert clinic.dbt("seed", "--select", "linked").success
    message = refusal(clinic, "linked_released")
    assert "20 rows of 10 people leave with `person`, which links the rows of a person" in message
    assert clinic.dbt("run", "--select", "linked_openly").success
    assert clinic.scalar("select exceptions from veil.releases where model like '%linked_openly'") == (
        '{"linked_because": "two visits, public anyway"}'
    )


def test_rows_of_nobody_and_the_wrong_unit_are_refused(clinic: Project) -> None:
    table = [{"person": i if i else None, "visit": i, "age": 21, "illness": "flu"} for i in range(6)]
    roles = {"person": "unit", "visit": "other", "age": ROLES["age"], "illness": "sensitive"}
    clinic.seed("nobody", table, types=TYPES, columns=columns(roles))
    release(clinic, name="nobody_released", source="nobody", levels={"age": 1})
    release(clinic, name="wrong_unit", source="nobody", levels={"age": 1}, unit="visit")
    clinic.seed(
        "no_unit",
        table,
        types=TYPES,
        columns=columns(roles | {"person": {"role": "identifier", "mask": {"kind": "pseudonym", "domain": "d"}}}),
    )
    release(clinic, name="no_unit_released", source="no_unit", levels={"age": 1})
    assert clinic.dbt("seed", "--select", "nobody", "no_unit").success
    assert "1 rows have no `person`, so it is not known whose they are" in refusal(clinic, "nobody_released")
    assert "`unit` is `visit`, and the input gives that role to `person`" in refusal(clinic, "wrong_unit")
    assert "no column has the role `unit`, so rows would be counted as people" in refusal(clinic, "no_unit_released")


def test_a_role_cannot_be_changed_downstream(clinic: Project) -> None:
    clinic.model(
        "relabelled", "{{ veil.anonymize(ref('people')) }}", config=policy(), columns=columns({"email": "other"})
    )
    assert "`columns.email.role` is identifier in `people` and other in this model's own YAML" in refusal(
        clinic, "relabelled"
    )


def test_a_hook_that_changes_what_was_measured_is_refused(clinic: Project) -> None:
    hook = "update {{ this }} set ward = 'canary'"
    clinic.model("hooked", "{{ veil.anonymize(ref('people')) }}", config=policy() | {"post_hook": hook})
    assert "a post-hook changed the table after it was measured" in refusal(clinic, "hooked")
    assert clinic.query("select 1 from duckdb_tables() where table_name = 'hooked'") == []
    unique = {"indexes": [{"columns": ["ward"], "unique": True}]}
    clinic.model("indexed", "{{ veil.anonymize(ref('people')) }}", config=policy() | unique)
    assert "a unique index prints a released value when it fails" in refusal(clinic, "indexed")


def test_an_ephemeral_input_is_refused_with_the_way_out(clinic: Project) -> None:
    clinic.model(
        "passing", "select * from {{ ref('people') }}", config={"materialized": "ephemeral"}, columns=columns(ROLES)
    )
    release(clinic, name="from_ephemeral", source="passing")
    assert "the input `passing` is ephemeral" in refusal(clinic, "from_ephemeral")
