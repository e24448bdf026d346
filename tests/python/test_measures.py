"""The disclosure measures on tables small enough to work out by hand, and what the tests and the gate make of them."""

from __future__ import annotations

import json
from math import exp, log
from typing import Any

import pytest
from harness import Project, Result

HOSTILE = 'sensitive "value"'


def test_of(name: str, test: str, by: Any, column: Any, **options: Any) -> dict[str, Any]:
    config = options.pop("config", {})
    arguments = {"quasi_identifiers": by, "sensitive_column": column, **options}
    return {f"veil.{test}": {"name": name, "arguments": arguments, "config": {"store_failures": True, **config}}}


test_of.__test__ = False  # type: ignore[attr-defined]

TABLES: dict[str, tuple[str, str]] = {
    # one class, three values of one kind and two of another
    "three_two": ("q, s", "(1,'a'), (1,'a'), (1,'a'), (1,'b'), (1,'b')"),
    # a value that one class lacks: X holds a, Y holds b and c
    "absent": ("q, s", "('X','A'), ('X','A'), ('Y','B'), ('Y','B'), ('Y','C'), ('Y','C')"),
    "income": ("q, s", "('X',10), ('Y',20), ('Z',100)"),
    "salary": (
        "q, s",
        "('low',3), ('low',4), ('low',5), ('mid',6), ('mid',8), ('mid',11), ('high',7), ('high',9), ('high',10)",
    ),
    "eighteen_two": ("q, s", ", ".join(["(1,'a')"] * 18 + ["(1,'b')"] * 2)),
    "missing": ("q, s", "(1,'a'), (1,null), (1,null), (2,null), (2,null), (2,null)"),
    "nan": ("q, s", "(1,1.0::double), (1,'nan'::double), (2,2.0::double), (2,'inf'::double), (2,3.0::double)"),
    "single": ("q, s", "(1,'a')"),
    "constant": ("q, s", "(1,5), (1,5), (2,5)"),
    "nothing": ("q, s", "(1,'a')"),
    "stars": ("q, s", "('*','a'), ('*','a'), ('*',null)"),
    "graded": ("q, s", "(1,'low'), (1,'low'), (2,'high'), (2,'mid')"),
    # one of ten people comes nine times and makes a class of nine a and one b look even
    "visits": (
        "q, person, s",
        ", ".join([f"(1,'p{i}','a')" for i in range(9)] + ["(1,'v','b')"] * 9),
    ),
    "two_sensitive": ("q, s, u", "(1,'a','x'), (1,'b','x'), (1,'a','y'), (1,'b','y'), (1,'c','z'), (1,'c','z')"),
    "quoted": (f'"order", "{HOSTILE.replace(chr(34), chr(34) * 2)}"', "(1,'a'), (1,'b'), (2,'a'), (2,'a')"),
}

# table, macro call after the relation, figures by class in the order of the quasi-identifier
FIGURES: list[tuple[str, str, str, str, list[float]]] = [
    ("distinct", "three_two", "l_diversity", "['q'], 's', kind='distinct'", [2]),
    ("entropy", "three_two", "l_diversity", "['q'], 's'", [exp(-0.6 * log(0.6) - 0.4 * log(0.4))]),
    ("recursive", "three_two", "l_diversity", "['q'], 's', kind='recursive', l=2, c=2", [3 / 2]),
    ("effective", "eighteen_two", "l_diversity", "['q'], 's'", [exp(-0.9 * log(0.9) - 0.1 * log(0.1))]),
    ("null_distinct", "missing", "l_diversity", "['q'], 's', kind='distinct'", [1, 0]),
    ("null_entropy", "missing", "l_diversity", "['q'], 's'", [1, 0]),
    ("tv", "absent", "t_closeness", "['q'], 's'", [2 / 3, 1 / 3]),
    ("ranks", "income", "t_closeness", "['q'], 's', distance='ordered'", [0.5, 1 / 3, 0.5]),
    ("values", "income", "t_closeness", "['q'], 's', distance='numeric'", [100 / 270, 1 / 3, 170 / 270]),
    ("salaries", "salary", "t_closeness", "['q'], 's', distance='ordered'", [17 / 72, 0.375, 1 / 6]),
    ("listed", "graded", "t_closeness", "['q'], 's', distance='ordered', order=['low', 'mid', 'high']", [3 / 8, 3 / 8]),
    ("unlisted", "graded", "t_closeness", "['q'], 's', distance='ordered', order=['low', 'high']", [0.5, 7 / 12]),
    ("null_tv", "missing", "t_closeness", "['q'], 's'", [1 / 6, 1 / 6]),
    ("null_ranks", "missing", "t_closeness", "['q'], 's', distance='ordered', order=['a', 'b']", [1 / 6, 1 / 6]),
    ("no_class", "stars", "t_closeness", "['q'], 's', suppressed_marker='*'", []),
    ("one_row", "single", "t_closeness", "['q'], 's', distance='ordered', order='numeric'", [0]),
    ("one_row_entropy", "single", "l_diversity", "['q'], 's'", [1]),
    ("same_everywhere", "constant", "t_closeness", "['q'], 's', distance='numeric'", [0, 0]),
    ("same_l", "constant", "l_diversity", "['q'], 's'", [1, 1]),
    ("same_beta", "constant", "beta_likeness", "['q'], 's'", [0, 0]),
    ("same_enhanced", "constant", "beta_likeness", "['q'], 's', kind='enhanced'", [0, 0]),
    ("same_delta", "constant", "delta_disclosure", "['q'], 's'", [0, 0]),
    ("same_shift", "constant", "posterior_shift", "['q'], 's'", [0, 0]),
    # NaN is missing; infinity has no place on the line and is a category of its own: 1/5 of all, 1/3 of class 2
    ("nan_l", "nan", "l_diversity", "['q'], 's', kind='distinct'", [1, 3]),
    ("nan_line", "nan", "t_closeness", "['q'], 's', distance='numeric'", [0.55, 0.35]),
    ("beta", "absent", "beta_likeness", "['q'], 's'", [2, 0.5]),
    ("enhanced", "absent", "beta_likeness", "['q'], 's', kind='enhanced'", [log(3), 0.5]),
    ("delta", "absent", "delta_disclosure", "['q'], 's'", [log(3), log(1.5)]),
    ("alpha", "three_two", "alpha_k_anonymity", "['q'], 's'", [0.6]),
    ("top", "eighteen_two", "homogeneity", "['q'], 's'", [0.9]),
    ("shift", "absent", "posterior_shift", "['q'], 's'", [2 / 3, 1 / 3]),
    ("gap", "visits", "person_level_gap", "['q'], 's', unit='person'", [2 - exp(-0.9 * log(0.9) - 0.1 * log(0.1))]),
    ("people_alpha", "visits", "alpha_k_anonymity", "['q'], 's', unit='person'", [0.9]),
    ("quoted_names", "quoted", "t_closeness", f"['order'], {HOSTILE!r}", [0.25, 0.25]),
    ("other_table", "graded", "t_closeness", "['q'], 's', reference=ref('single')", [1, 1]),
]

TESTS: dict[str, list[tuple[dict[str, Any], int]]] = {
    "three_two": [
        (test_of("distinct_2", "l_diversity", ["q"], "s", l=2, kind="distinct"), 0),
        (test_of("entropy_2", "l_diversity", ["q"], "s", l="2"), 1),
        (test_of("entropy_1_96", "l_diversity", ["q"], "s", l=1.96), 0),
        (test_of("recursive_1", "l_diversity", "q", "s", l=2, kind="recursive", c=1.5), 1),
        (test_of("recursive_2", "l_diversity", "q", "s", l=2, kind="recursive", c=1.51), 0),
        (test_of("recursive_3", "l_diversity", "q", "s", l=3, kind="recursive", c=9), 1),
        (test_of("half", "homogeneity", ["q"], "s", max_share=0.5), 1),
        (test_of("most", "homogeneity", ["q"], "s", max_share=0.6), 0),
        (test_of("alpha_and_k", "alpha_k_anonymity", ["q"], "s", alpha=0.6, k=5), 0),
        (test_of("alpha_and_k_6", "alpha_k_anonymity", ["q"], "s", alpha=0.5, k=6), 2),
    ],
    "absent": [
        (test_of("t_half", "t_closeness", ["q"], "s", t=0.5), 1),
        (test_of("t_x", "t_closeness", ["q"], "s", t=0.5, config={"where": "q = 'X'"}), 0),
        (test_of("t_two_thirds", "t_closeness", ["q"], "s", t=0.6666666667), 0),
        (test_of("beta_2", "beta_likeness", ["q"], "s", beta=2), 0),
        (test_of("beta_1", "beta_likeness", ["q"], "s", beta=1), 1),
        # a gain of 2 is beyond -ln(1/3) = 1.0986, whatever the threshold
        (test_of("enhanced_9", "beta_likeness", ["q"], "s", beta=9, kind="enhanced"), 1),
        (test_of("delta_1_1", "delta_disclosure", ["q"], "s", delta=1.1), 0),
        (test_of("delta_1", "delta_disclosure", ["q"], "s", delta=1), 1),
        (test_of("moved_half", "posterior_shift", ["q"], "s", max_difference=0.5), 1),
        (test_of("moved_ratio", "posterior_shift", ["q"], "s", max_ratio=2), 1),
        (test_of("moved_both", "posterior_shift", ["q"], "s", max_difference=0.7, max_ratio=3), 0),
    ],
    "missing": [
        (test_of("null_l", "l_diversity", ["q"], "s", l=1), 1),
        (test_of("null_shown", "l_diversity", ["q"], "s", l=2, show_values=True), 2),
    ],
    "stars": [
        (test_of("stars_t", "t_closeness", ["q"], "s", t=0, suppressed_marker="*"), 0),
        (test_of("stars_l", "l_diversity", ["q"], "s", l=2, suppressed_marker="*"), 0),
        (test_of("stars_kept", "l_diversity", ["q"], "s", l=2), 1),
    ],
    "nothing": [
        (test_of("empty_t", "t_closeness", ["q"], "s", t=0, config={"where": "q = 2"}), 0),
        (test_of("empty_l", "l_diversity", ["q"], "s", l=9, require_rows=True, config={"where": "q = 2"}), 1),
    ],
    "visits": [
        (test_of("gap_half", "person_level_gap", ["q"], "s", unit="person", max_gap=0.5), 1),
        (test_of("by_rows", "homogeneity", ["q"], "s", max_share=0.6), 0),
        (test_of("by_people", "homogeneity", ["q"], "s", max_share=0.6, unit="person"), 1),
    ],
    "two_sensitive": [
        (test_of("each", "l_diversity", ["q"], ["s", "u"], l=3, kind="distinct"), 0),
        (test_of("joint", "l_diversity", ["q"], ["s", "u"], l=2, kind="distinct", joint=True), 2),
    ],
    "quoted": [
        (test_of("quoted_l", "l_diversity", ["order"], HOSTILE, l=2, kind="distinct"), 1),
        (test_of("quoted_t", "t_closeness", ["order"], HOSTILE, t=0.2), 2),
    ],
}


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("l", {"l": "five"}, "`l` must be a number. Got: 'five'"),
    ("l", {"l": 0}, "`l` must be 1 or more. Got: 0"),
    ("l", {"l": 2.5, "kind": "distinct"}, "`l` must be a whole number. Got: 2.5"),
    (
        "l",
        {"l": 2, "kind": "entropi"},
        "`kind` must be one of entropy, distinct, recursive. Got: 'entropi'; did you mean",
    ),
    ("l", {"l": 2, "kind": "recursive"}, "`c` is missing"),
    ("l", {"l": 2, "c": 1}, "`c` goes with `kind: recursive` only"),
    ("l", {}, "`l` is missing"),
    ("t", {"t": 1.5}, "`t` must be between 0 and 1. Got: 1.5"),
    ("t", {"t": "-0.1"}, "`t` must be between 0 and 1. Got: '-0.1'"),
    (
        "t",
        {"t": 0.1, "distance": "rank"},
        "`distance` must be one of equal, ordered, numeric, hierarchical. Got: 'rank'",
    ),
    ("t", {"t": 0.1, "distance": "ordered", "order": "size"}, "`order` must be `numeric`, or a list of at least two"),
    (
        "t",
        {"t": 0.1, "distance": "ordered", "order": ["a", "a"]},
        "`order` must be `numeric`, or a list of at least two",
    ),
    ("t", {"t": 0.1, "reference": "local"}, "`reference` must be `global`, `ring` or a relation. Got: 'local'"),
    ("t", {"t": 0.1, "x": "q"}, "`x` goes with `reference: ring` only"),
    ("t", {"t": 0.1, "reference": "ring", "x": "q"}, "`reference: ring` needs the columns of the cell"),
    ("t", {"t": 0.1, "reference": "ring", "x": "s", "y": "q"}, "`x` must be one of the quasi-identifiers q. Got: 's'"),
    ("t", {"t": 0.1, "joint": "maybe"}, "`joint` must be true or false. Got: 'maybe'"),
    ("beta", {"beta": -2}, "`beta` must be 0 or more. Got: -2"),
    ("posterior_shift", {}, "`max_difference` is missing"),
    ("posterior_shift", {"max_ratio": 0.5}, "`max_ratio` must be 1 or more. Got: 0.5"),
]


@pytest.fixture(scope="module")
def built(shared_project: Project) -> tuple[Project, Result]:
    project = shared_project
    for name, (names, values) in TABLES.items():
        tests = [test for test, _ in TESTS.get(name, [])]
        project.model(name, f"select * from (values {values}) as t({names})", data_tests=tests)
    for name, table, macro, arguments, _ in FIGURES:
        sql = f"{{{{ veil.{macro}(ref('{table}'), {arguments}) }}}}"
        project.model(f"f_{name}", sql, config={"materialized": "table"})
    assert (build := project.dbt("run")).success, build.text
    return project, project.dbt("test")


@pytest.mark.parametrize(("name", "expected"), [(entry[0], entry[4]) for entry in FIGURES])
def test_the_figure_of_each_class(built: tuple[Project, Result], name: str, expected: list[float]) -> None:
    project, _ = built
    figures = [row[3] for row in project.query(f"select * from f_{name} order by 1")]
    assert figures == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "failures"),
    [(next(iter(test.values()))["name"], failures) for tests in TESTS.values() for test, failures in tests],
)
def test_each_test_catches_the_classes_that_fail(built: tuple[Project, Result], name: str, failures: int) -> None:
    _, result = built
    assert result.status(name) == ("fail" if failures else "pass"), result.message(name)
    assert result.failures(name) == failures


def test_only_x_fails_and_its_row_names_the_measure_and_no_value(built: tuple[Project, Result]) -> None:
    project, _ = built
    ((problem, people, row_count, measured, threshold),) = project.query(
        "select problem, people, row_count, measured, threshold from main_dbt_test__audit.t_half"
    )
    assert problem == "t (equal, global reference) of `s` is not at most the threshold"
    assert (people, row_count, measured, threshold) == (2, 2, pytest.approx(2 / 3), 0.5)


def test_wrong_options_are_refused_before_any_sql(built: tuple[Project, Result]) -> None:
    project, _ = built
    project.macro(
        "wrong",
        "{% macro wrong(calls) %}{% for measure, options in calls %}{% set found = [] %}"
        "{% set relation = api.Relation.create(schema='main', identifier='constant') %}"
        "{% do veil._measure_spec('x', measure, relation, 'q', 's', options, none, 'group', none,"
        " found, needs_threshold=true) %}"
        "{% do log('problems ' ~ loop.index0 ~ ': ' ~ found | join(' | '), info=true) %}{% endfor %}{% endmacro %}",
    )
    calls = [[measure, options] for measure, options, _ in WRONG]
    result = project.dbt("run-operation", "wrong", "--args", json.dumps({"calls": calls}))
    assert result.success, result.text
    for index, (_, _, message) in enumerate(WRONG):
        assert [text for text in result.messages if f"problems {index}: " in text and message in text], message
