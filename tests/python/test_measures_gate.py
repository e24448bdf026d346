"""What the release gate makes of the measures a policy names: enforced, recorded, and refused by name when wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest
from harness import Project, Result, columns, rows

PATIENTS = rows(
    "person,zip,diagnosis,income",
    *[f"p{i},10,{d},{n}" for i, (d, n) in enumerate([("flu", 1), ("flu", 2), ("flu", 3), ("flu", 4), ("hiv", 9)])],
    *[f"q{i},20,{d},{n}" for i, (d, n) in enumerate([("flu", 1), ("none", 2), ("hiv", 3), ("none", 4), ("flu", 9)])],
)
ROLES: dict[str, Any] = {
    "person": "unit",
    "zip": "quasi_identifier",
    "diagnosis": "sensitive",
    "income": {"role": "sensitive", "order": "numeric"},
}

POLICIES: dict[str, dict[str, Any]] = {
    "kept": {
        "l": {"diagnosis": {"l": 1.6}, "income": {"l": 5, "kind": "distinct"}},
        "t": {"diagnosis": 0.3, "income": {"t": 0.1, "distance": "ordered"}},
        "beta": {"diagnosis": {"beta": 1, "kind": "enhanced"}},
        "delta_disclosure": {"diagnosis": 2},
        "alpha": 0.8,
    },
    "refused": {"l": {"diagnosis": {"l": 3, "kind": "distinct"}}, "t": {"diagnosis": 0.1}},
    "refused_recursive": {"l": {"diagnosis": {"l": 2, "kind": "recursive", "c": 4}}},
    "refused_joint": {"l": {"diagnosis": {"l": 2, "kind": "distinct", "joint": True}}},
}


def released(project: Project, name: str, policy: dict[str, Any]) -> None:
    project.model(
        name,
        "{{ veil.anonymize(ref('patients')) }}",
        config={"materialized": "release", "meta": {"veil": {"k": 5, "levels": {"zip": 0}, **policy}}},
    )


@pytest.fixture(scope="module")
def built(shared_project: Project) -> tuple[Project, Result]:
    project = shared_project
    project.seed("patients", PATIENTS, types={"zip": "varchar", "income": "integer"}, columns=columns(ROLES))
    for name, policy in POLICIES.items():
        released(project, name, policy)
    return project, project.dbt("build")


def test_a_release_that_keeps_its_policy_records_every_figure(built: tuple[Project, Result]) -> None:
    project, result = built
    assert result.status("kept") == "success", result.message("kept")
    figures = json.loads(project.scalar("select measures from veil.releases where model like '%.kept'"))
    # class 10: flu 4, hiv 1; class 20: flu 2, hiv 1, none 2; all: flu 6, hiv 2, none 2. Income has five values in both.
    recorded = {(f["measure"], f["column"]): (f["kind"], f["reference"], f["measured"], f["failing"]) for f in figures}
    assert recorded[("l", "diagnosis")] == ("entropy", None, pytest.approx(1.649385), 0)
    assert recorded[("l", "income")] == ("distinct", None, 5, 0)
    assert recorded[("t", "diagnosis")] == ("equal", "global", pytest.approx(0.2), 0)
    assert recorded[("t", "income")] == ("ordered", "global", 0, 0)
    assert recorded[("beta", "diagnosis")] == ("enhanced", "global", pytest.approx(1), 0)
    assert recorded[("alpha", "income")] == (None, None, pytest.approx(0.2), 0)
    assert recorded[("delta_disclosure", "diagnosis")][2] == pytest.approx(0.693147, abs=1e-6)


def test_a_refusal_says_what_failed_and_by_how_much(built: tuple[Project, Result]) -> None:
    project, result = built
    assert [result.status(name) for name in POLICIES] == ["success", "error", "error", "error"]
    assert (
        "l (distinct) of `diagnosis` must be at least 3. Got: 2 in the worst class; 1 of 2 classes fail"
        in result.message("refused")
    )
    assert (
        "t (equal, global reference) of `diagnosis` must be at most 0.1. Got: 0.2 in the worst class; "
        "2 of 2 classes fail" in result.message("refused")
    )
    assert (
        "l (recursive) of `diagnosis` must be below c = 4 at l = 2. Got: 4 in the worst class; 1 of 2 classes fail"
        in result.message("refused_recursive")
    )
    assert "within the other sensitive columns must be at least 2. Got: 1" in result.message("refused_joint")
    assert not {"flu", "hiv"} & set(result.text.replace("'", " ").split())
    assert project.query("select model from veil.releases") == [("model.consumer.kept",)]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"l": "five"}, "`l` must be a number. Got: 'five'"),
    ({"l": 0}, "`l` must be 1 or more. Got: 0"),
    ({"t": {"diagnosis": 1.5}}, "`t.diagnosis` must be between 0 and 1. Got: 1.5"),
    ({"t": {"diagnoses": 0.1}}, "`t` names `diagnoses`, which is not a sensitive column of the input; did you mean"),
    ({"l": {"diagnosis": {"l": 2.5, "kind": "distinct"}}}, "`l.diagnosis.l` must be a whole number. Got: 2.5"),
    ({"l": {"diagnosis": {"l": 2, "knd": "distinct"}}}, "`l.diagnosis` has no key `knd`; did you mean `kind`?"),
    ({"l": {"diagnosis": {"l": 2, "kind": "recursive"}}}, "`l.diagnosis.c` is missing"),
    ({"t": {"diagnosis": {"t": 0.2, "distance": "hierarchical"}}}, "`t.diagnosis.hierarchy` is missing"),
    ({"t": {"income": {"t": 0.2, "reference": "ring"}}}, "`t.income.reference: ring` needs the columns of the cell"),
    ({"t": {"income": {"distance": "equal"}}}, "`t.income.t` is missing"),
]


def test_a_wrong_measure_is_refused_by_name(built: tuple[Project, Result]) -> None:
    project, _ = built
    sensitive = [
        {"name": "diagnosis", "role": "sensitive", "order": None, "hierarchy": None},
        {"name": "income", "role": "sensitive", "order": "numeric", "hierarchy": None},
    ]
    project.macro(
        "problems",
        "{% macro problems(policies, sensitive) %}{% for policy in policies %}{% set found = [] %}"
        "{% do veil._measure_policy(policy, sensitive, found) %}"
        "{% do log('problems ' ~ loop.index0 ~ ': ' ~ found | join(' | '), info=true) %}{% endfor %}{% endmacro %}",
    )
    arguments = {"policies": [policy for policy, _ in WRONG], "sensitive": sensitive}
    result = project.dbt("run-operation", "problems", "--args", json.dumps(arguments))
    assert result.success, result.text
    for index, (_, message) in enumerate(WRONG):
        assert [text for text in result.messages if f"problems {index}: " in text and message in text], message
