"""The level search against brute force over every node, and wrong questions."""

from __future__ import annotations

import numpy as np
import pytest
from dbt_veil.criteria import Closeness, DistinctDiversity, EntropyDiversity, View
from dbt_veil.frequency import Column, FloatArray, Table
from dbt_veil.search import Policy, SearchError, search
from levels_reference import Case, criterion, random_case, solve

METRICS = ["loss", "discernibility", "average_class", "entropy", "precision", "height"]


def check(case: Case, k: int, limit: float, metric: str, model: tuple[str, float] | None = None) -> int:
    """Compare one search with brute force; returns the number of feasible nodes."""
    table = case.table()
    criteria = () if model is None else (criterion(*model, len(set(case.sensitive))),)
    policy = Policy(k, criteria, limit)
    expected = solve(case, k, limit, metric, model)
    if not expected:
        with pytest.raises(SearchError, match=r"none of the .* nodes satisfies the policy"):
            search(table, policy, metric=metric)
        return 0
    ranked = sorted((round(score, 9), node) for node, (score, _) in expected.items())[:4]
    quick = search(table, policy, metric=metric, top=4)
    full = search(table, policy, metric=metric, top=4, count=True)
    for answer in (quick, full):
        got = [(round(r.score, 9), tuple(r.levels[name] for name in sorted(case.names))) for r in answer.releases]
        assert got == ranked
        assert [r.suppressed_people for r in answer.releases] == [expected[node][1] for _, node in ranked]
        assert answer.exact
    assert full.feasible == len(expected)
    if full.minimal is not None:
        least = {
            n for n in expected if not any(m != n and all(a <= b for a, b in zip(m, n, strict=True)) for m in expected)
        }
        assert {tuple(own[name] for name in sorted(case.names)) for own in full.minimal} == least
    return len(expected)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("limit", [0.0, 0.1])
def test_every_metric_finds_the_best_nodes_of_brute_force(metric: str, limit: float) -> None:
    found = [check(random_case(seed), 3, limit, metric) for seed in range(12)]
    assert len(set(found)) > 1


@pytest.mark.parametrize("limit", [0.0, 0.15])
@pytest.mark.parametrize(
    "model",
    [
        ("distinct_l", 2),
        ("entropy_l", 1.7),
        ("recursive_l", 2),
        ("t_equal", 0.25),
        ("t_ordered", 0.2),
        ("beta", 1.0),
        ("delta", 1.2),
        ("alpha", 0.8),
    ],
)
def test_every_model_finds_the_best_nodes_of_brute_force(model: tuple[str, float], limit: float) -> None:
    found = [check(random_case(100 + seed), 2, limit, "loss", model) for seed in range(10)]
    assert len(set(found)) > 1


@pytest.mark.parametrize("model", [None, ("distinct_l", 2), ("entropy_l", 1.7), ("t_equal", 0.25)])
@pytest.mark.parametrize("limit", [0.0, 0.2])
@pytest.mark.parametrize("metric", ["loss", "discernibility"])
def test_a_person_with_rows_in_several_classes_is_counted_once_in_each(
    model: tuple[str, float] | None, limit: float, metric: str
) -> None:
    found = [check(random_case(200 + seed, several=True), 3, limit, metric, model) for seed in range(6)]
    assert len(set(found)) > 1


def test_the_order_of_the_columns_changes_nothing() -> None:
    for seed in range(6):
        case = random_case(seed)
        turned = Case(
            names=case.names[::-1],
            rows=[row[::-1] for row in case.rows],
            labels=case.labels[::-1],
            sensitive=case.sensitive,
            units=case.units,
        )
        one, other = (search(own.table(), Policy(2, (), 0.05), top=9) for own in (case, turned))
        assert one.releases == other.releases
        assert one.checked == other.checked


def test_limits_weights_and_ties() -> None:
    values = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    columns = tuple(Column.from_labels(name, [[0, 1], ["*", "*"]]) for name in ("b", "a"))
    table = Table(columns, values, np.full(4, 3), np.full(4, 3))
    tied = search(table, Policy(6), top=3, count=True)
    assert [r.levels for r in tied.releases] == [{"a": 0, "b": 1}, {"a": 1, "b": 0}, {"a": 1, "b": 1}]
    assert (tied.feasible, tied.nodes, tied.releases[0].loss) == (3, 4, pytest.approx(2**0.5 - 1))
    assert search(table, Policy(6), weights={"a": 1, "b": 2}).releases[0].levels == {"a": 1, "b": 0}
    assert search(table, Policy(6), max_level={"b": 0}).releases[0].levels == {"a": 1, "b": 0}
    assert search(table, Policy(3), min_level={"b": 1}).releases[0].levels == {"a": 0, "b": 1}


def test_a_lattice_too_large_for_an_exact_answer_says_so_and_ends() -> None:
    case = random_case(4, rows=60)
    best = min(score for score, _ in solve(case, 3, 0.0, "loss").values())
    answer = search(case.table(), Policy(3), exact_nodes=2)
    assert not answer.exact
    assert answer.feasible is None
    assert answer.releases[0].score == pytest.approx(best)
    for exact_nodes in (2, 10**6):
        ended = search(case.table(), Policy(3), exact_nodes=exact_nodes, time_limit=0.0)
        assert not ended.exact
        assert ended.releases[0].smallest >= 3


def test_rows_without_a_person_are_dropped_at_a_cost_but_nobody_is_left_out() -> None:
    columns = (Column.from_labels("a", [[0, 1, 2], ["x", "x", "y"], ["*", "*", "*"]]),)
    rows = np.array([4, 4, 1])
    table = Table(columns, np.array([[0], [1], [2]]), np.array([4, 4, 0]), rows)
    best = search(table, Policy(3), top=3).releases
    assert [r.levels["a"] for r in best] == [0, 1, 2]
    assert [r.suppressed_people for r in best] == [0, 0, 0]
    assert [r.suppressed_rows for r in best] == [1, 1, 0]
    assert [r.loss for r in best] == pytest.approx([1 / 9, (8 / 2 + 1) / 9, 1])


def test_a_lattice_of_more_nodes_than_a_machine_word_counts() -> None:
    draw = np.random.default_rng(2)
    columns = tuple(
        Column.from_labels(f"c{i:02}", [range(8), [v // 2 for v in range(8)], [v // 4 for v in range(8)], ["*"] * 8])
        for i in range(40)
    )
    values = draw.integers(0, 8, size=(50, 40))
    answer = search(Table(columns, values, np.ones(50, np.int64), np.ones(50, np.int64)), Policy(5), time_limit=5)
    assert answer.nodes == 4**40
    assert not answer.exact
    assert answer.releases[0].smallest >= 5


def test_wide_keys_are_grouped_without_overflow() -> None:
    draw = np.random.default_rng(5)
    values = draw.integers(0, 1000, size=(1000, 8))
    columns = []
    for position in range(8):
        own, values[:, position] = np.unique(values[:, position], return_inverse=True)
        labels = [list(range(len(own))), [v // 400 for v in range(len(own))], ["*"] * len(own)]
        columns.append(Column.from_labels(f"c{position}", labels))
    table = Table(tuple(columns), values, np.ones(1000, dtype=np.int64), np.ones(1000, dtype=np.int64))
    node = (0, 0, 0, 1, 0, 0, 0, 0)
    expected = np.unique(np.where(np.arange(8) == 3, values // 400, values), axis=0)
    classes = table.classes(node, table.classes((0,) * 8))
    assert len(classes.first) == len(expected)
    assert table.assign(node).max() + 1 == len(expected)
    coarse = (2, 1, 2, 1, 2, 2, 2, 2)
    assert (table.classes(coarse, classes).people == np.bincount(table.assign(coarse))).all()


@pytest.mark.parametrize(
    ("policy", "arguments", "message"),
    [
        (Policy(99), {}, "`k` must not be above the number of people. Got: 99, and 12 people"),
        (Policy(0), {}, "`k` must be at least 1. Got: 0"),
        (Policy(2, (), 1.5), {}, "`suppress_up_to` must be between 0 and 1. Got: 1.5"),
        (Policy(2), {"metric": "los"}, "`metric` must be one of loss, discernibility, average_class, entropy"),
        (Policy(2), {"top": 0}, "`top` must be at least 1. Got: 0"),
        (Policy(2), {"weights": {"ag": 1}}, "`weights` must name quasi-identifiers (`a`, `b`). Got: `ag`"),
        (Policy(2), {"weights": {"a": -1}}, "`weights` of `a` must be a number of at least 0. Got: -1"),
        (Policy(2), {"weights": {"a": 0, "b": 0}}, "`weights` must leave at least one column above 0"),
        (Policy(2), {"max_level": {"c": 1}}, "`max_level` must name quasi-identifiers (`a`, `b`). Got: `c`"),
        (Policy(2), {"max_level": {"a": 2}}, "`max_level` of `a` must be between 0 and 1"),
        (
            Policy(9),
            {"max_level": {"a": 0}},
            "With every column at its highest level that `max_level` allows: smallest class 6 people",
        ),
    ],
)
def test_a_wrong_question_is_refused_at_once(policy: Policy, arguments: dict[str, object], message: str) -> None:
    values = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    columns = tuple(Column.from_labels(name, [[0, 1], ["*", "*"]]) for name in ("a", "b"))
    table = Table(columns, values, np.full(4, 3), np.full(4, 3))
    with pytest.raises(SearchError) as caught:
        search(table, policy, **arguments)  # type: ignore[arg-type]
    assert message in str(caught.value)


def test_an_empty_table_is_refused() -> None:
    table = random_case(1).table()
    with pytest.raises(SearchError, match="the table is empty"):
        search(table.select(np.zeros(len(table.values), dtype=bool)), Policy(2))


def test_levels_that_are_not_nested_are_refused_without_a_value() -> None:
    with pytest.raises(ValueError, match="`age`: level 2 is not a function of level 1") as caught:
        Column.from_labels("age", [[31, 32, 33], ["30s", "30s", "other"], ["low", "high", "high"]])
    assert "30s" not in str(caught.value)
    with pytest.raises(ValueError, match="`age` has a value twice"):
        Column.from_labels("age", [[31, 31], ["*", "*"]])


def view(counts: FloatArray, reference: FloatArray, missing: int) -> View:
    return View(counts, counts.sum(axis=1), reference, missing)


def test_figures_of_known_classes() -> None:
    """Salaries 3 to 11: Li et al. 2007, section 4.2; a, a, a, b, b: 1.96 effective values."""
    whole = np.full(9, 1 / 9)
    classes = np.zeros((2, 9))
    classes[0, [0, 1, 2]] = classes[1, [3, 5, 8]] = 1
    ordered = Closeness("salary", 0.2, "ordered", positions=np.arange(3.0, 12.0))
    assert ordered.figures(view(classes, whole, -1)) == pytest.approx([0.375, 1 / 6])
    assert ordered.holds(view(classes, whole, -1)).tolist() == [False, True]
    income = Closeness("income", 0.5, "numeric", positions=np.array([10.0, 20, 100]))
    assert income.figures(view(np.eye(3)[[0, 2]], np.full(3, 1 / 3), -1)) == pytest.approx([0.37037, 0.62963], abs=1e-5)
    alone = Closeness("income", 0.5, "numeric", positions=np.array([7.0]))
    assert alone.figures(view(np.array([[3.0]]), np.array([1.0]), -1)).tolist() == [0.0]
    apart = Closeness("income", 0.5, "ordered", positions=np.array([1.0, 2.0, np.nan]))
    assert apart.figures(view(np.array([[0.0, 0, 1]]), np.array([0.5, 0.25, 0.25]), -1)) == pytest.approx([0.75])
    effective = EntropyDiversity("x", 2).figures(view(np.array([[3.0, 2.0]]), np.array([0.6, 0.4]), -1))
    assert effective == pytest.approx([1.9601], abs=1e-4)
    assert DistinctDiversity("x", 2).figures(view(np.array([[3.0, 2.0]]), np.array([0.6, 0.4]), 1)).tolist() == [1.0]


def test_hierarchical_distance_of_a_small_tree() -> None:
    """Four leaves under two groups: moving within a group costs 1/2, across 1 (Li et al. 2007, section 4.3)."""
    model = Closeness("illness", 0.5, "hierarchical", groups=(np.array([0, 0, 1, 1]),))
    whole = np.full(4, 0.25)
    classes = np.array([[1.0, 0, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0], [1, 1, 1, 1]])
    assert model.figures(view(classes, whole, -1)) == pytest.approx([0.25 / 2 + 0.5, 0.5, 0.25, 0.0])
