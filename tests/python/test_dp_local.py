"""Local answers, consistent totals and the preview: each against numbers worked out elsewhere."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from harness import Project, Result, columns, rows
from scipy import optimize

FIGURES = [
    # country, region, town, noisy figure, scale: a country without its own figure, and a town far below zero
    (None, None, None, 130.0, 4.0),
    ("A", None, None, 90.0, 3.0),
    ("A", "x", None, 60.0, 2.0),
    ("A", "x", "p", 41.0, 1.0),
    ("A", "x", "q", 25.0, 2.0),
    ("A", "y", None, 20.0, 2.0),
    ("A", "y", "r", -14.0, 2.0),
    ("A", "y", "s", 30.0, 1.0),
    ("B", "z", None, 50.0, 5.0),
    ("B", "z", "t", 44.0, 2.0),
]


@pytest.fixture(scope="module")
def built(shared_project: Project) -> Result:
    project = shared_project
    project.seed(
        "figures",
        [dict(zip(("country", "region", "town", "n", "n_scale"), row, strict=True)) for row in FIGURES],
        types={"country": "varchar", "region": "varchar", "town": "varchar", "n": "double", "n_scale": "double"},
    )
    project.model(
        "consistent",
        "{{ veil.dp_consistent(ref('figures'), ['country', 'region', 'town'], 'n', non_negative=true) }}",
        config={"materialized": "table"},
    )
    project.model(
        "answers",
        "select if(range < 6100, 'yes', 'no') as answer, if(range < 6100, 100, 0) as x from range(10000)",
        config={"materialized": "table"},
    )
    project.model(
        "estimated",
        "{{ veil.randomized_response_estimate(ref('answers'), 'answer', 1.0986122886681098, values=['yes', 'no']) }}",
        config={"materialized": "table"},
    )
    project.model(
        "estimated_mean",
        "{{ veil.randomized_response_estimate(ref('answers'), 'x', 1.0986122886681098, bounds=[0, 100]) }}",
        config={"materialized": "table"},
    )
    project.seed(
        "people",
        rows("person,place,fee", "1,a,5"),
        columns=columns({"person": "unit", "place": "other", "fee": "sensitive"}),
    )
    project.model(
        "by_place",
        "{{ veil.dp_aggregate(ref('people')) }}",
        config={
            "materialized": "release",
            "meta": {
                "veil": {
                    "dp": {
                        "budget": "people",
                        "epsilon": 1.0,
                        "delta": 1e-5,
                        "group_by": "place",
                        "keys": "private",
                        "max_groups": 1,
                        "max_rows_per_group": 1,
                        "measures": [
                            {"name": "people", "kind": "count_units", "share": 0.5},
                            {"name": "fee_mean", "kind": "mean", "column": "fee", "bounds": [0, 10], "grid": 1},
                        ],
                    }
                }
            },
        },
    )
    # Ten people in two places, 1,000 in another; everyone in two places at most.
    project.model(
        "synthetic",
        "select range as person, 'big' as place, 20 as fee from range(1000) union all "
        "select range, 'small', 5 from range(10)",
        config={"materialized": "table"},
    )
    project.model(
        "preview",
        "{{ veil.dp_preview('by_place', ref('synthetic'), epsilons=[0.5, 1.0], "
        "mechanisms=['laplace', 'gaussian'], max_groups=[1, 2]) }}",
        config={"materialized": "table"},
    )
    project.model(
        "preview_of_sizes",
        "{{ veil.dp_preview('by_place', sizes=[10, 1000], epsilons=[0.5, 1.0]) }}",
        config={"materialized": "table"},
    )
    project.model("preview_of_nothing", "{{ veil.dp_preview('by_place') }}", config={"materialized": "table"})
    project.model(
        "preview_of_people",
        "{{ veil.dp_preview('by_plcae', ref('people')) }}",
        config={"materialized": "table"},
    )
    project.model(
        "preview_private",
        "{{ veil.dp_preview('by_place', ref('people')) }}",
        config={"materialized": "table"},
    )
    project.model("estimated_wrong", "{{ veil.randomized_response_estimate(ref('answers'), 'answer', 0) }}")
    project.model("consistent_wrong", "{{ veil.dp_consistent(ref('figures'), [], 'n') }}")
    return project.dbt("build", "--exclude", "by_place")


def tree() -> tuple[list[tuple[Any, ...]], np.ndarray]:
    """The nodes of the tree with the leaves each covers, in the order of FIGURES."""
    leaves = [row[:3] for row in FIGURES if row[2] is not None]
    matrix = np.array(
        [
            [all(o is None or o == part for o, part in zip(row[:3], leaf, strict=True)) for leaf in leaves]
            for row in FIGURES
        ],
        dtype=float,
    )
    return [row[:3] for row in FIGURES], matrix


def test_consistent_figures_are_the_weighted_least_squares(built: Result, shared_project: Project) -> None:
    assert built.status("consistent") == "success", built.message("consistent")
    nodes, matrix = tree()
    weight = np.array([1 / row[4] for row in FIGURES])
    leaves, *_ = np.linalg.lstsq(matrix * weight[:, None], np.array([row[3] for row in FIGURES]) * weight, rcond=None)
    expected = dict(zip(nodes, matrix @ leaves, strict=True))
    found = shared_project.query("select country, region, town, n_consistent from consistent")
    assert {row[:3]: row[3] for row in found} == pytest.approx(expected)


def test_non_negative_figures_still_add_up(built: Result, shared_project: Project) -> None:
    found = {
        row[:3]: row[3] for row in shared_project.query("select country, region, town, n_non_negative from consistent")
    }
    assert min(found.values()) == 0
    nodes, matrix = tree()
    leaves = np.array([found[node] for node in nodes if node[2] is not None])
    assert np.array([found[node] for node in nodes]) == pytest.approx(matrix @ leaves)
    # The town at -14 +- 2 beside one at 30 +- 1: the nearest two figures of 0 or more with the region's sum, by scipy.
    consistent = {
        row[:3]: row[3] for row in shared_project.query("select country, region, town, n_consistent from consistent")
    }
    assert consistent["A", "y", "r"] < 0
    total = found["A", "y", None]
    nearest = optimize.minimize(
        lambda x: (x[0] + 14) ** 2 / 4 + (x[1] - 30) ** 2,
        [total / 2, total / 2],
        bounds=[(0, None), (0, None)],
        constraints={"type": "eq", "fun": lambda x: x.sum() - total},
    )
    assert [found["A", "y", "r"], found["A", "y", "s"]] == pytest.approx(nearest.x, abs=1e-4)


def test_randomized_answers_are_estimated_without_bias(built: Result, shared_project: Project) -> None:
    # At ln 3 the truth is told with 3/4 and lied with 1/4: (6100 - 2500) / 0.5 people, by hand.
    assert shared_project.query("select answer, people from estimated order by answer") == [
        ("no", pytest.approx(2800)),
        ("yes", pytest.approx(7200)),
    ]
    error = math.sqrt(6100 * 3900 / 10000) / 0.5
    ((low, high),) = shared_project.query("select people_lo95, people_hi95 from estimated where answer = 'yes'")
    assert (low, high) == pytest.approx((7200 - 1.96 * error, 7200 + 1.96 * error))
    ((mean, scale),) = shared_project.query("select mean, mean_scale from estimated_mean")
    assert (mean, scale) == pytest.approx((72, error / 100))


def test_the_preview_tells_error_tau_and_survival(built: Result, shared_project: Project) -> None:
    assert built.status("preview") == "success", built.message("preview")
    found = {
        row[:4]: row[4:]
        for row in shared_project.query(
            "select measure, mechanism, max_groups, epsilon, scale, half_width_95, tau, groups_released, "
            "lost_to_max_groups, clamping_bias, expected_error from preview"
        )
    }
    assert len(found) == 16
    scale, width, tau, released, lost, _, error = found["people", "laplace", 1, 1.0]
    assert scale == 2.0  # half of epsilon 1
    assert width == 6  # the smallest t with 2 a^(t + 1) / (1 + a) <= 0.05, a = exp(-1/2)
    assert error == pytest.approx(math.sqrt(2 * math.exp(-0.5)) / (1 - math.exp(-0.5)))
    # exp(-k / 2) / (1 + exp(-1 / 2)) <= 1e-5 from k = 23 on: 1 + 23. Of the two groups, 995 people pass and 5 do not.
    assert tau == 24
    assert released == pytest.approx(0.5, abs=1e-3)
    assert lost == pytest.approx(10 / 1010)
    assert found["people", "laplace", 2, 1.0][4] == 0
    assert found["fee_mean", "laplace", 1, 1.0][5] == pytest.approx(-10 * 1000 / 1010)
    assert found["people", "gaussian", 1, 0.5][0] > found["people", "gaussian", 1, 1.0][0]


def test_the_preview_of_given_sizes(built: Result, shared_project: Project) -> None:
    sql = (
        "select epsilon, median_people, relative_error, groups_released from preview_of_sizes where measure = 'people'"
    )
    found = {row[:2]: row[2:] for row in shared_project.query(sql)}
    # Half of epsilon is the measure's: the deviation at epsilon 0.5 is sqrt(2 a) / (1 - a) with a = exp(-1/2).
    deviation = math.sqrt(2 * math.exp(-0.5)) / (1 - math.exp(-0.5))
    assert found[1.0, 10][0] == pytest.approx(deviation / 10)
    assert found[1.0, 1000] == (pytest.approx(deviation / 1000), pytest.approx(1))
    assert found[1.0, 10][1] < 0.01 < found[0.5, 1000][1]


def test_wrong_arguments_are_refused(built: Result) -> None:
    assert "`release` must be a model with a `dp` policy: by_place. Got: 'by_plcae'; did you mean" in built.message(
        "preview_of_people"
    )
    assert "give `relation`, public or synthetic, or `sizes`" in built.message("preview_of_nothing")
    assert "a preview of it would be a release that nobody pays for" in built.message("preview_private")
    assert "`epsilon` must be above 0 and at most 100" in built.message("estimated_wrong")
    assert "`hierarchy` must be a list of names, with at least one. Got: []" in built.message("consistent_wrong")
