"""Remedies: coarsen the sensitive column, merge, leave out, in this order and measured again after every pass."""

from __future__ import annotations

from typing import Any

import pytest
from harness import Project, Result, columns, rows

TREE = {"kind": "tree", "tree": {"cancer": ["lung", "breast"], "airways": ["flu", "asthma"]}}
# a and b are even once coarsened; c and d are one-sided however coarse, and even together
PATIENTS = [
    (zip_code, diagnosis)
    for zip_code, diagnoses in {
        "a": ["lung", "lung", "flu", "flu"],
        "b": ["breast", "breast", "asthma", "asthma"],
        "c": ["lung"] * 4,
        "d": ["flu"] * 4,
    }.items()
    for diagnosis in diagnoses
]
# e has one value, and nobody to merge with
# g and h are one-sided, and even together as they are: no need to coarsen what is merged
SIDES = [("g", "lung")] * 4 + [("h", "flu")] * 4
UNEVEN = [("e", "flu")] * 4 + [("f", "flu"), ("f", "lung"), ("f", "lung"), ("f", "asthma")]

POLICIES: dict[str, tuple[str, dict[str, Any]]] = {
    "mended": ("patients", {"t": {"diagnosis": 0.2}}),
    "left_out": ("uneven", {"l": {"diagnosis": {"l": 2, "kind": "distinct"}}, "suppress_up_to": 0.5}),
    "too_much_left_out": ("uneven", {"l": {"diagnosis": {"l": 2, "kind": "distinct"}}, "suppress_up_to": 0.1}),
    "not_asked": ("uneven", {"l": {"diagnosis": {"l": 2, "kind": "distinct"}}, "remedy": False}),
    "together": ("sides", {"t": {"diagnosis": 0.2}}),
    "without_unit": ("rows_alone", {"t": {"diagnosis": 0.2}}),
    "contracted": ("patients", {"t": {"diagnosis": 0.2}}),
}


@pytest.fixture(scope="module")
def built(shared_project: Project) -> tuple[Project, Result]:
    project = shared_project
    project.configure(vars={"veil__hierarchies": {"diagnosis": TREE}})
    roles = {"person": "unit", "zip": "quasi_identifier", "diagnosis": {"role": "sensitive", "hierarchy": "diagnosis"}}
    for name, people in {"patients": PATIENTS, "uneven": UNEVEN, "sides": SIDES}.items():
        seed = rows("person,zip,diagnosis", *[f"p{i},{z},{d}" for i, (z, d) in enumerate(people)])
        project.seed(name, seed, columns=columns(roles))
    nobody = {name: role for name, role in roles.items() if name != "person"}
    project.model("rows_alone", "select zip, diagnosis from {{ ref('patients') }}", columns=columns(nobody))
    for name, (seed_name, policy) in POLICIES.items():
        veil = {"k": 4, "levels": {"zip": 0}, "remedy": True, **policy}
        extra: dict[str, Any] = {}
        if name == "contracted":
            extra["columns"] = [{"name": n, "data_type": "varchar"} for n in ("zip", "diagnosis")]
        contract = {"contract": {"enforced": True}} if extra else {}
        config = {"materialized": "release", "meta": {"veil": veil}, **contract}
        project.model(name, f"{{{{ veil.anonymize(ref('{seed_name}')) }}}}", config=config, **extra)
    measures = "{'t': {'diagnosis': 0.2}, 'l': {'diagnosis': {'l': 2, 'kind': 'distinct'}}}"
    project.model(
        "advice",
        f"{{{{ veil.remedies(ref('patients'), ['zip'], {measures}, hierarchies={{'diagnosis': 'diagnosis'}}) }}}}",
        config={"materialized": "table"},
    )
    return project, project.dbt("build")


def test_a_class_is_coarsened_first_and_merged_where_that_is_not_enough(built: tuple[Project, Result]) -> None:
    project, result = built
    assert result.status("mended") == "success", result.message("mended")
    counts = project.query("select zip, diagnosis, count(*) from mended group by all order by all")
    assert counts == [
        ("*", "airways", 4),
        ("*", "cancer", 4),
        ("a", "airways", 2),
        ("a", "cancer", 2),
        ("b", "airways", 2),
        ("b", "cancer", 2),
    ]
    assert project.query("select column_name from (describe mended)") == [("zip",), ("diagnosis",)]
    for other in ("contracted", "without_unit"):
        assert project.query(f"select zip, diagnosis, count(*) from {other} group by all order by all") == counts
    assert "classes coarsened 5, merged 2, left out 0" in result.text


def test_merged_classes_are_judged_as_they_were_before_they_were_coarsened(built: tuple[Project, Result]) -> None:
    project, _ = built
    counts = project.query("select zip, diagnosis, count(*) from together group by all order by all")
    assert counts == [("*", "flu", 4), ("*", "lung", 4)]


def test_what_no_merge_can_mend_is_left_out_within_the_limit(built: tuple[Project, Result]) -> None:
    project, result = built
    assert project.query("select distinct zip from left_out") == [("f",)]
    message = result.message("too_much_left_out")
    assert "4 of 8 people (50.00 %) would be left out, and `suppress_up_to` allows 10.00 %" in message
    assert "l (distinct) of `diagnosis` must be at least 2. Got: 1 in the worst class" in result.message("not_asked")


def test_remedies_names_the_cheapest_step_of_each_class(built: tuple[Project, Result]) -> None:
    project, _ = built
    assert project.query("select zip, people, failing, remedy from advice order by zip") == [
        ("a", 4, 1, "coarsen_attribute"),
        ("b", 4, 1, "coarsen_attribute"),
        ("c", 4, 2, "merge_or_suppress"),
        ("d", 4, 2, "merge_or_suppress"),
    ]


def test_remedies_that_do_not_settle_stop_the_build_and_keep_the_last_table(built: tuple[Project, Result]) -> None:
    project, _ = built
    result = project.dbt("run", "--select", "mended", "--vars", "{veil__remedy_passes: 1}")
    assert result.status("mended") == "error"
    assert "the remedies did not settle: after 1 passes 0 classes would be coarsened, 2 merged" in result.message(
        "mended"
    )
    assert "the pass that did not settle is `merge`" in result.message("mended")
    assert project.scalar("select count(*) from mended") == 16
