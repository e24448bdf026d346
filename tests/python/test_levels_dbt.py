"""Levels from inside dbt: the operations, `levels: auto`, local recoding, the tests, and the measures they share."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
from harness import Project, Result, columns

AGE = {"kind": "intervals", "widths": [10, 20], "range": [0, 100]}
JOB = {"kind": "tree", "tree": {"health": ["nurse", "doctor"], "food": ["cook", "baker"]}}
ROLES = {
    "person": "unit",
    "age": {"role": "quasi_identifier", "hierarchy": AGE},
    "job title": {"role": "quasi_identifier", "hierarchy": JOB},
    "illness": "sensitive",
    "cost": "other",
}
# Twelve people aged 20 to 31, each job three times; and two cooks of 50 and 55.
PEOPLE = [
    {
        "person": number,
        "age": 20 + number,
        "job title": ["nurse", "doctor", "cook", "baker"][number % 4],
        "illness": ["flu", "cold", "gout"][number % 3],
        "cost": 100 + number,
    }
    for number in range(12)
] + [
    {"person": 12, "age": 50, "job title": "cook", "illness": "flu", "cost": 500},
    {"person": 13, "age": 55, "job title": "cook", "illness": "cold", "cost": 700},
]
FROZEN = {"age": 3, "job title": 0}
MEASURED = {"age": 2, "job title": 1}


def release(project: Project, name: str, source: str = "people", tests: Any = (), **keys: Any) -> None:
    config = {"materialized": "release", "meta": {"veil": {"k": 3, **keys}}}
    project.model(name, f"{{{{ veil.anonymize(ref('{source}')) }}}}", config=config, data_tests=list(tests))


def claim(test: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {f"veil.{test}": {"name": name, "arguments": arguments}} if arguments else {f"veil.{test}": {"name": name}}


def measured_people() -> list[dict[str, Any]]:
    """Rows with NULLs, people with several rows, and one sensitive column for each kind of measure."""
    draw = np.random.default_rng(7)
    people = []
    for number in range(160):
        value = int(draw.integers(0, 6) * draw.random())
        people.append(
            {
                "person": int(draw.integers(0, 120)),
                "age": int(draw.integers(18, 60)) if number % 17 else None,
                "job title": ["nurse", "doctor", "cook", "baker"][int(draw.integers(0, 4))],
                "illness": ["flu", "cold", "gout", None, "cough", "ache"][value],
                "stage": ["i", "ii", "iii", "iv", "?", "v"][value],
                "dose": None if value == 3 else value * value,
                "trade": ["nurse", "doctor", "cook", "baker"][value % 4],
                "grade": value,
            }
        )
    return people


SENSITIVE = ("illness", "stage", "dose", "trade", "grade")
MEASURES: dict[str, Any] = {
    "l": {
        "illness": {"l": 1, "kind": "distinct"},
        "stage": {"l": 1, "kind": "entropy"},
        "grade": {"l": 1, "kind": "recursive", "c": 50},
    },
    "t": {
        "illness": {"t": 1, "distance": "equal"},
        "stage": {"t": 1, "distance": "ordered", "order": ["i", "ii", "iii", "iv", "v"]},
        "dose": {"t": 1, "distance": "numeric"},
        "trade": {"t": 1, "distance": "hierarchical", "hierarchy": JOB},
        "grade": {"t": 1, "distance": "ordered", "order": "numeric"},
    },
    "beta": {"illness": 99, "stage": {"beta": 99, "kind": "enhanced"}},
    "delta_disclosure": {"illness": 99, "dose": 99},
    "alpha": {"illness": 1, "grade": 1},
}
ASK = """
{% macro ask(model, levels) %}
    {%- set node = veil._released_node(model, []) -%}
    {%- set policy = veil.policy(node=veil._with_open_levels(node)) -%}
    {%- set request = {'ask': 'find', 'options': {'min_level': levels, 'max_level': levels}} -%}
    {%- set answer = veil._search('find_levels', node, policy, veil._built_input('find_levels', node), request) -%}
    {%- do log('ANSWER ' ~ tojson(answer), info=true) -%}
{% endmacro %}
"""


@pytest.fixture(scope="module")
def clinic(shared_project: Project) -> Project:
    project = shared_project
    project.seed("people", PEOPLE, types={"age": "integer", "cost": "integer"}, columns=columns(ROLES))
    project.seed("movers", PEOPLE, types={"age": "integer", "cost": "integer"}, columns=columns(ROLES))
    roles = {**ROLES, **dict.fromkeys(SENSITIVE, "sensitive")}
    del roles["cost"]
    types = {"age": "integer", "dose": "double", "grade": "integer"}
    project.seed("patients", measured_people(), types=types, columns=columns(roles))
    wrong = [
        {"veil.levels_still_hold": {"name": "with_where", "config": {"where": "1 = 1"}}},
        claim("levels_still_hold", "not_frozen"),
        claim("min_granularity", "too_high", granularity=2),
        claim("max_suppression", "by_nobody", share=0.1, unit="persn"),
        claim("max_suppression", "by_text", share="x", compare_to="people"),
        claim("max_discernibility", "below_0", discernibility=-1),
        claim("utility_preserved", "no_group", aggregate="avg(cost)", max_error="a", group_by="jobtitle"),
    ]
    release(project, "auto", levels="auto", suppress_up_to=0.2, tests=wrong)
    release(project, "diverse", levels="auto", l={"illness": {"l": 3, "kind": "distinct"}}, t=0.3)
    release(
        project,
        "frozen",
        levels=FROZEN,
        tests=[
            claim("levels_still_hold", "frozen_holds"),
            claim("min_granularity", "granular", granularity=0.5857),
            claim("min_granularity", "too_granular", granularity=0.5858),
            claim("max_discernibility", "discernible", discernibility=52),
            claim("max_discernibility", "too_discernible", discernibility=51.9),
            claim("utility_preserved", "mean_kept", aggregate="avg(cost)", max_error=0),
        ],
    )
    release(
        project,
        "partly",
        levels={"age": 2, "job title": 0},
        suppress_up_to=0.15,
        tests=[
            claim("max_suppression", "few_left_out", share=0.143),
            claim("max_suppression", "more_left_out", share=0.142),
            claim("min_granularity", "partly_granular", granularity=0.5388),
            claim("min_granularity", "partly_too_granular", granularity=0.5389),
            claim("max_discernibility", "partly_discernible", discernibility=64),
            claim("max_discernibility", "partly_too_discernible", discernibility=63),
            claim("utility_preserved", "mean_lost", aggregate="avg(cost)", max_error=0.4),
            claim("utility_preserved", "by_job", aggregate="avg(cost)", max_error=0.1, group_by="job title"),
            claim("utility_preserved", "correlated", aggregate='corr("cost", length("illness"))', max_error=9),
        ],
    )
    release(project, "local", recoding="local", tests=[claim("min_granularity", "local_granular", granularity=0.6)])
    release(project, "local_t", recoding="local", t=0.3)
    release(project, "moved", source="movers", levels=FROZEN, tests=[claim("levels_still_hold", "moved_holds")])
    release(project, "figures", source="patients", levels=MEASURED, suppress_up_to=0.5, k=12, **MEASURES)
    release(project, "missing", source="patients", recoding="local", k=4, on_unmapped="suppress")
    release(project, "impossible", levels="auto", k=99)
    release(project, "around", levels="auto", t={"illness": {"t": 1, "reference": "ring", "x": "age", "y": "age"}})
    release(project, "strict", levels="auto", t=0.0001, l={"illness": {"l": 3.5}})
    release(project, "both", recoding="local", levels=FROZEN)
    project.macro("ask", ASK)
    project.built = project.dbt("build")  # type: ignore[attr-defined]
    return project


def operation(project: Project, name: str, arguments: str) -> Result:
    return project.dbt("run-operation", name, "--args", arguments)


def test_levels_auto_builds_the_best_release_and_records_it(clinic: Project) -> None:
    """By hand: 14 people, k 3. Without age four classes of 3, 3, 3, 5; with age the cooks of 50 and 55 are two."""
    assert clinic.query('select age, "job title", count(*) from main.auto group by all order by all') == [
        ("*", "baker", 3),
        ("*", "cook", 5),
        ("*", "doctor", 3),
        ("*", "nurse", 3),
    ]
    levels = clinic.query("select model, levels from veil.releases where model like '%.auto' or model like '%.diverse'")
    assert {json.loads(own)["age"] for _, own in levels} == {3}
    assert len(levels) == 2


def test_local_recoding_keeps_more_and_leaves_nobody_out(clinic: Project) -> None:
    """Nurses and doctors are all in their twenties; one baker is 31 and two cooks are over 50, so those need '*'."""
    assert clinic.query('select age, "job title", count(*) from main.local group by all order by all') == [
        ("*", "baker", 3),
        ("*", "cook", 5),
        ("20-29", "doctor", 3),
        ("20-29", "nurse", 3),
    ]
    classes = clinic.query('select count(*), count(distinct illness) from main.local_t group by age, "job title"')
    assert min(size for size, _ in classes) >= 3
    assert sum(size for size, _ in classes) == 14
    assert clinic.scalar("select suppressed_share from veil.releases where model like '%.local_t'") == 0


def test_local_recoding_with_null_values_and_people_with_several_rows(clinic: Project) -> None:
    assert clinic.scalar("select k_measured from veil.releases where model like '%.missing'") >= 4
    assert clinic.scalar("select suppressed_share from veil.releases where model like '%.missing'") == 0
    assert clinic.scalar("select count(*) from main.missing where age is null") > 0


@pytest.mark.parametrize(
    ("test", "status"),
    [
        ("frozen_holds", "pass"),
        ("moved_holds", "pass"),
        ("granular", "pass"),
        ("too_granular", "fail"),
        ("discernible", "pass"),
        ("too_discernible", "fail"),
        ("mean_kept", "pass"),
        ("few_left_out", "pass"),
        ("more_left_out", "fail"),
        ("partly_granular", "pass"),
        ("partly_too_granular", "fail"),
        ("partly_discernible", "pass"),
        ("partly_too_discernible", "fail"),
        ("mean_lost", "fail"),
        ("by_job", "fail"),
        ("correlated", "pass"),
        ("local_granular", "pass"),
    ],
)
def test_utility_is_a_test(clinic: Project, test: str, status: str) -> None:
    """By hand, `frozen`: loss of age 1, of job 0, so 2 - sqrt(2); classes 9 + 9 + 25 + 9.

    `partly`: age at 0-19, 20-39, …, twelve of 14 rows keep it, two are left out.
    """
    assert clinic.built.status(test) == status  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("test", "message"),
    [
        ("with_where", "veil.levels_still_hold(): it looks at the whole release and at its input: remove `where`"),
        (
            "not_frozen",
            "there is nothing that could no longer hold. Freeze them, from `dbt run-operation veil.find_lev",
        ),
        ("too_high", "veil.min_granularity(): `granularity` must be between 0 and 1. Got: 2"),
        ("by_nobody", "veil.max_suppression(): 2 problems\n    - column `persn` not found"),
        (
            "by_text",
            "veil.max_suppression(): `compare_to` must be a relation, such as `ref('stg_patients')`. Got: 'people'",
        ),
        ("below_0", "veil.max_discernibility(): `discernibility` must be 0 or more. Got: -1"),
        ("no_group", "veil.utility_preserved(): `max_error` must be a number. Got: 'a'"),
    ],
)
def test_wrong_arguments_of_a_test_are_named(clinic: Project, test: str, message: str) -> None:
    assert clinic.built.status(test) == "error"  # type: ignore[attr-defined]
    assert message in clinic.built.message(test)  # type: ignore[attr-defined]


def test_the_search_and_the_gate_measure_alike(clinic: Project) -> None:
    """Every measure of a release with suppression, NULLs and people with several rows, by SQL and by numpy."""
    recorded = json.loads(clinic.scalar("select measures from veil.releases where model like '%.figures'"))
    logged = operation(clinic, "ask", json.dumps({"model": "figures", "levels": MEASURED})).text
    found = re.search(r"ANSWER (\{.*\})", logged)
    assert found is not None, logged
    (answer,) = json.loads(found.group(1))["releases"]
    compared = 0
    for figure in recorded:
        kind = f"{figure['kind']}_l" if figure["measure"] == "l" else figure["measure"]
        assert answer[f"{kind} of {figure['column']}"] == pytest.approx(figure["measured"], abs=1e-9), figure
        compared += 1
    assert compared == 14
    assert 0 < answer["suppressed_share"] < 0.5


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("impossible", "`k` must not be above the number of people. Got: 99, and 14 people: no level can satisfy it"),
        (
            "around",
            "measures each sensitive column alone and against the whole release. `t` of `illness` has `reference",
        ),
        (
            "strict",
            "none of the 12 nodes satisfies the policy. With every column at its highest level: smallest class 14",
        ),
        ("both", "`recoding: local` chooses levels for every group of people. Leave `levels` out"),
    ],
)
def test_a_policy_that_cannot_be_searched_builds_nothing(clinic: Project, model: str, message: str) -> None:
    assert clinic.built.status(model) == "error"  # type: ignore[attr-defined]
    assert message in clinic.built.message(model)  # type: ignore[attr-defined]
    assert clinic.query(f"select 1 from information_schema.tables where table_name = '{model}'") == []


def test_find_levels_prints_the_best_and_what_to_paste(clinic: Project) -> None:
    result = operation(clinic, "veil.find_levels", "{model: partly, count: 'true', top: 3}")
    assert result.success, result.text
    assert 'levels: {age: 3, "job title": 0}' in result.text
    lines = [re.sub(" +", " ", line.strip()) for line in result.text.splitlines()]
    assert "age:3 job title:0 0.00 % 4 3 0.414214 52 3.5" in lines
    assert "age:2 job title:0 14.29 % 4 3 0.461167 64 2.8" in lines
    assert re.search(r"12 nodes, \d+ checked, \d+ more measured, 6 feasible \(1 minimal\)", result.text)


def test_a_sweep_is_a_table_of_privacy_and_utility(clinic: Project) -> None:
    result = operation(clinic, "veil.sweep", "{model: partly, k: [2, 3, 8], suppress_up_to: 0, max_level: [2, 3]}")
    assert result.success, result.text
    lines = [re.sub(" +", " ", line.strip()) for line in result.text.splitlines()]
    assert "2 0.00 % 2 age:2 job title:0 0.00 % 5 2 0.317674 40 2.8" in lines
    assert "3 0.00 % 2 none feasible" in lines
    assert "8 0.00 % 3 age:3 job title:2 0.00 % 1 14 1 196 14" in lines
    uncapped = operation(clinic, "veil.sweep", "{model: partly, k: [8], suppress_up_to: 0}")
    assert uncapped.success, uncapped.text
    assert "age:3 job title:2 0.00 % 1 14 1 196 14" in " ".join(uncapped.text.split())


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("find_levels", "{model: atuo}", "`model` must be the name of a model with a policy"),
        ("find_levels", "{model: auto, metric: los, top: 0}", "`top` must be 1 or more. Got: 0"),
        (
            "find_levels",
            "{model: auto, weights: {agee: 2}}",
            "`weights` must name quasi-identifiers (`age`, `job title`)",
        ),
        ("sweep", "{model: auto, k: [2, x]}", "`k` must be a whole number. Got: 'x'"),
    ],
)
def test_wrong_arguments_of_an_operation_are_named(clinic: Project, name: str, arguments: str, message: str) -> None:
    result = operation(clinic, f"veil.{name}", arguments)
    assert not result.success
    assert f"veil.{name}():" in result.text
    assert message in result.text


def test_levels_that_fresh_data_break_are_reported_with_the_nearest_that_hold(clinic: Project) -> None:
    """With two nurses left, jobs have to go one level up; that is one step, and less lossy than two others."""
    fewer = [row for row in PEOPLE if row["person"] != 0]
    clinic.seed("movers", fewer, types={"age": "integer", "cost": "integer"}, columns=columns(ROLES))
    assert clinic.dbt("seed", "--select", "movers").success
    result = clinic.dbt("test", "--select", "moved_holds")
    assert result.status("moved_holds") == "fail"
    assert 'no longer hold. Nearest that do: {"age": 3, "job title": 1}' in result.text


def test_no_person_s_value_reaches_an_artefact(clinic: Project) -> None:
    assert "veil_recode" in clinic.artefacts()
    assert not re.search("gout|cough", clinic.artefacts())
