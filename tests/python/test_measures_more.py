"""Risk, populations, releases side by side, correlated columns, small cells, rings and trees: worked out by hand."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from dbt_veil.cells import recoverable, suppress
from harness import Project, Result


def entry(name: str, test: str, **arguments: Any) -> dict[str, Any]:
    return {f"veil.{test}": {"name": name, "arguments": arguments, "config": {"store_failures": True}}}


MODELS: dict[str, str] = {
    # classes of 1, 2 and 3
    "sample": "select * from (values (1, 'a'), (2, 'b'), (2, 'c'), (3, 'd'), (3, 'e'), (3, 'f')) as t(q, person)",
    # of the population 2, 4, 3 and 5 share them; class 4 is not in the sample
    "everyone": "select case when i < 2 then 1 when i < 6 then 2 when i < 9 then 3 else 4 end as q"
    " from range(14) as r(i)",
    "before": "select * from (values ('n', 'a', 'flu'), ('n', 'b', 'hiv'), ('s', 'c', 'flu'), ('s', 'd', 'none'))"
    " as t(q, person, s)",
    "after": "select * from (values ('x', 'a', 'flu'), ('x', 'c', 'none'), ('y', 'b', 'hiv'), ('y', 'd', 'none'),"
    " ('y', 'z', 'flu'))"
    " as t(q, person, s)",
    # in class 1 four codes, one chapter
    "codes": "select * from (values (1, 'c1', 'cancer'), (1, 'c2', 'cancer'), (1, 'c3', 'cancer'), (1, 'c4', 'cancer'),"
    " (2, 'h1', 'heart'), (2, 'c1', 'cancer')) as t(q, code, chapter)",
    # columns that say nothing of one another
    "unrelated": "select * from (values (1, 'a', 'x'), (1, 'b', 'x'), (2, 'a', 'y'), (2, 'b', 'y')) as t(q, s, u)",
    "cells": "select * from (values ('n', 'f', 1), ('n', 'm', 20), ('s', 'f', 30), ('s', 'm', 40))"
    " as t(region, sex, people)",
    "one_out": "select * from (values ('n', 'f', null), ('n', 'm', 20), ('s', 'f', 30), ('s', 'm', 40))"
    " as t(region, sex, people)",
    "protected": "{{ veil.suppress_small_cells(ref('cells'), ['region', 'sex'], 'people', 5, [['region'], ['sex']]) }}",
    # a three by three map; the middle differs from its ring, and (9, 9) has no neighbours
    "map": "select x, y, case when x = 1 and y = 1 then 'b' else 'a' end as s from range(3) as a(x), range(3) as b(y),"
    " range(2) union all select 9, 9, 'b'",
    "near": "select * from (values ('m', 'n'), ('n', 'm'), ('m', 'm')) as t(cell, neighbour)",
    "areas": "select * from (values ('m', 'a'), ('m', 'b'), ('n', 'a'), ('o', 'b')) as t(area, s)",
    "jobs": "select * from (values (1, 'clerk'), (1, 'typist'), (2, 'smith'), (2, 'clerk')) as t(q, s)",
}

FIGURES: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "prosecutor": (
        "select classes, people, max_risk, mean_risk, unique_people, unique_share from"
        " ({{ veil.reidentification_risk(ref('sample'), ['q']) }})",
        [(3, 6, 1.0, 0.5, 1, 1 / 6)],
    ),
    # journalist 1/2, 1/4, 1/3; marketer (1/2 + 2/4 + 3/3) / 6
    "journalist": (
        "select max_journalist_risk, marketer_risk, classes_not_in_population from"
        " ({{ veil.reidentification_risk(ref('sample'), ['q'], population=ref('everyone')) }})",
        [(0.5, 1 / 3, 0)],
    ),
    "mapped": ("{{ veil.k_map(ref('sample'), ref('everyone'), ['q']) }}", [(1, 1, 1, 2), (2, 2, 2, 4), (3, 3, 3, 3)]),
    "presence": (
        "select q, presence from ({{ veil.delta_presence(ref('sample'), ref('everyone'), ['q']) }})",
        [(1, 0.5), (2, 0.5), (3, 1.0), (4, 0.0)],
    ),
    "survivors": (
        "select q, people, shared_values from"
        " ({{ veil.republication(ref('after'), ref('before'), ['q'], 'person', sensitive_column='s') }}) order by all",
        [("x", 1, 1), ("x", 1, 2), ("y", 1, 2), ("y", 1, 2)],
    ),
    "crossing": (
        "select q, diverse_column, homogeneous_column, effective_values, top_share, association from"
        " ({{ veil.cross_attribute(ref('codes'), ['q'], ['code', 'chapter']) }})",
        [(1, "code", "chapter", 4.0, 1.0, 1.0)],
    ),
    "no_link": (
        "select distinct association from ({{ veil.cross_attribute(ref('unrelated'), ['q'], ['s', 'u']) }})",
        [(0.0,)],
    ),
    "kept_out": (
        "select region, sex, people from {{ ref('protected') }}",
        [("n", "f", None), ("n", "m", None), ("s", "f", None), ("s", "m", None)],
    ),
    # the corner's ring: a a b; an edge's: 4 a, 1 b; the middle's: all a
    "ring": (
        "select x, y, t, reference_scope from"
        " ({{ veil.t_closeness(ref('map'), ['x', 'y'], 's', reference='ring', x='x', y='y') }})"
        " where y = 1 or y > 2 or x + y = 0",
        [
            (0, 0, 1 / 3, "ring"),
            (0, 1, 1 / 5, "ring"),
            (1, 1, 1.0, "ring"),
            (2, 1, 1 / 5, "ring"),
            (9, 9, 16 / 19, "global, the ring is empty"),
        ],
    ),
    "wide_ring": (
        "select t from ({{ veil.t_closeness(ref('map'), ['x', 'y'], 's', reference='ring', x='x', y='y', radius=2) }})"
        " where x + y = 0",
        [(1 / 8,)],
    ),
    "listed_ring": (
        "select area, t, reference_scope from"
        " ({{ veil.t_closeness(ref('areas'), ['area'], 's', reference='ring', cell='area', neighbours=ref('near')) }})",
        [("m", 0.5, "ring"), ("n", 0.5, "ring"), ("o", 0.5, "global, the ring is empty")],
    ),
    # office {clerk, typist} and craft {smith} under one root, height 2. All: clerk 1/2, typist 1/4, smith 1/4.
    # 1: typist has 1/4 too much, smith lacks 1/4, carried over the root at 1: 1/4.
    # 2: smith has 1/4 too much, typist lacks 1/4: again 1/4.
    "tree": (
        "select q, t from ({{ veil.t_closeness(ref('jobs'), ['q'], 's', distance='hierarchical', hierarchy=TREE) }})",
        [(1, 0.25), (2, 0.25)],
    ),
    # with smith in the office as well, all is carried one level up of two: half of that
    "low_tree": (
        "select q, t from ({{ veil.t_closeness(ref('jobs'), ['q'], 's', distance='hierarchical', hierarchy=LOW) }})",
        [(1, 0.125), (2, 0.125)],
    ),
}
TREE = "{'kind': 'tree', 'tree': {'office': ['clerk', 'typist'], 'craft': ['smith']}}"
LOW = "{'kind': 'tree', 'tree': {'work': ['clerk', 'typist', 'smith'], 'craft': ['cook']}}"

TESTS: dict[str, list[tuple[dict[str, Any], int]]] = {
    "sample": [
        (entry("risk_ok", "reidentification_risk", quasi_identifiers=["q"], max_risk=1, mean_risk=0.5), 0),
        (entry("risk_max", "reidentification_risk", quasi_identifiers=["q"], max_risk=0.5), 1),
        (entry("risk_mean", "reidentification_risk", quasi_identifiers=["q"], mean_risk=0.4), 1),
        (entry("risk_unique", "reidentification_risk", quasi_identifiers=["q"], max_unique_share=0.1), 1),
        (
            entry(
                "risk_journalist",
                "reidentification_risk",
                quasi_identifiers=["q"],
                max_risk=0.3,
                mean_risk=0.3,
                population="ref('everyone')",
            ),
            3,
        ),
        (entry("map_2", "k_map", quasi_identifiers=["q"], population="ref('everyone')", k=2), 0),
        (entry("map_3", "k_map", quasi_identifiers=["q"], population="ref('everyone')", k=3), 1),
        (
            entry(
                "presence_half", "delta_presence", quasi_identifiers=["q"], population="ref('everyone')", delta_max=0.5
            ),
            1,
        ),
        (
            entry(
                "presence_some",
                "delta_presence",
                quasi_identifiers=["q"],
                population="ref('everyone')",
                delta_min=0.1,
                delta_max=1,
            ),
            1,
        ),
    ],
    "after": [
        (entry("again_1", "republication", quasi_identifiers=["q"], previous="ref('before')", unit="person", k=1), 0),
        (entry("again_2", "republication", quasi_identifiers=["q"], previous="ref('before')", unit="person", k=2), 4),
        (
            entry(
                "again_m",
                "republication",
                quasi_identifiers=["q"],
                previous="ref('before')",
                unit="person",
                k=1,
                sensitive_column="s",
                m=2,
            ),
            1,
        ),
    ],
    "codes": [
        (entry("crossed", "cross_attribute", quasi_identifiers=["q"], sensitive_columns=["code", "chapter"]), 1),
        (entry("crossed_5", "cross_attribute", quasi_identifiers=["q"], sensitive_columns=["code", "chapter"], l=5), 0),
    ],
    "unrelated": [
        (
            entry(
                "uncrossed",
                "cross_attribute",
                quasi_identifiers=["q"],
                sensitive_columns=["s", "u"],
                min_association=0.1,
            ),
            0,
        ),
    ],
    "cells": [
        (entry("small", "small_cells", quasi_identifiers=["region", "sex"], count_column="people", min_cell=5), 1)
    ],
    "one_out": [
        (entry("hidden", "small_cells", quasi_identifiers=["region", "sex"], count_column="people", min_cell=5), 0),
        (
            entry(
                "given_away",
                "small_cells",
                quasi_identifiers=["region", "sex"],
                count_column="people",
                min_cell=5,
                margins=[["region"]],
            ),
            1,
        ),
    ],
    "protected": [
        (
            entry(
                "complementary",
                "small_cells",
                quasi_identifiers=["region", "sex"],
                count_column="people",
                min_cell=5,
                margins=[["region"], ["sex"]],
            ),
            0,
        )
    ],
}


@pytest.fixture(scope="module")
def built(shared_project: Project) -> tuple[Project, Result]:
    project = shared_project
    for name, sql in MODELS.items():
        project.model(name, sql, config={"materialized": "table"}, data_tests=[t for t, _ in TESTS.get(name, [])])
    for name, (sql, _) in FIGURES.items():
        text = sql.replace("=TREE", "=" + TREE).replace("=LOW", "=" + LOW)
        project.model(f"f_{name}", text, config={"materialized": "table"})
    assert (build := project.dbt("run")).success, build.text
    return project, project.dbt("test")


@pytest.mark.parametrize("name", FIGURES)
def test_the_figures(built: tuple[Project, Result], name: str) -> None:
    project, _ = built
    found = project.query(f"select * from f_{name} order by all nulls last")
    assert len(found) == len(FIGURES[name][1])
    for row, expected in zip(found, FIGURES[name][1], strict=True):
        assert row == tuple(pytest.approx(v, abs=1e-9) if isinstance(v, float) else v for v in expected)


@pytest.mark.parametrize(
    ("name", "failures"),
    [(next(iter(test.values()))["name"], failures) for tests in TESTS.values() for test, failures in tests],
)
def test_each_test_catches_what_fails(built: tuple[Project, Result], name: str, failures: int) -> None:
    _, result = built
    assert result.status(name) == ("fail" if failures else "pass"), result.message(name)
    assert result.failures(name) == failures


def test_a_bridge_between_two_squares_is_recoverable_though_no_line_has_one_unknown() -> None:
    # rows and columns of two 2 x 2 blocks, and one cell that joins row 2 to column 3
    blocks = [(1, 1), (1, 2), (2, 1), (2, 2), (3, 3), (3, 4), (4, 3), (4, 4), (2, 3)]
    assert recoverable([[f"r{i}", f"c{j}"] for i, j in blocks]) == [False] * 8 + [True]


def test_recoverable_agrees_with_the_null_space() -> None:
    generator = np.random.default_rng(7)
    for _ in range(40):
        cells = [c for c in itertools.product(range(4), range(4), range(2)) if generator.random() < 0.4]
        lines = [[f"a{i}{j}", f"b{j}{k}", f"c{i}{k}"] for i, j, k in cells]
        names = sorted({line for own in lines for line in own})
        system = np.array([[float(name in own) for own in lines] for name in names])
        _, sizes, vectors = np.linalg.svd(system)
        free = vectors[int((sizes > 1e-9).sum()) :]
        assert recoverable(lines) == [bool(np.all(np.abs(free[:, c]) < 1e-9)) for c in range(len(cells))]


def test_a_margin_that_cannot_be_protected_is_refused_without_a_value() -> None:
    with pytest.raises(ValueError, match="Do not publish that margin"):
        suppress([3, 40], [["r1"], ["r2"]], 5)


def test_what_is_left_out_of_a_line_is_never_below_the_floor() -> None:
    assert suppress([1, 1, 9, 50], [["r"]] * 4, 5) == [True, True, True, False]
