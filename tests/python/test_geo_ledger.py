"""Planar Laplace in a release: what it is charged, and that the policy alone says how much."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from harness import Project, Result, columns

VISITS = "select 'p' || (range % 10) as person, 9.0 + range / 1000 as lon, 50.0 as lat, 'x' as note from range(50)"


def release(**more: Any) -> dict[str, Any]:
    query = {"name": "place", "mechanism": "planar_laplace", "reports": 3} | more
    dp = {"budget": "people", "epsilon": 15, "queries": [{k: v for k, v in query.items() if v is not None}]}
    return {"materialized": "release", "meta": {"veil": {"audience": "internal", "dp": dp}}}


@pytest.fixture(scope="module")
def built(shared_project: Project) -> tuple[Project, Result]:
    project = shared_project
    budget = {"source": "visits", "unit": "person", "epsilon": 50, "delta": 0, "accounting": "sum"}
    project.configure(vars={"veil__budgets": {"people": budget}}, **{"on-run-start": ["{{ veil.plan() }}"]})
    roles = {"person": "unit", "lon": "sensitive", "lat": "sensitive", "note": "other"}
    project.model("visits", VISITS, config={"materialized": "table"}, columns=columns(roles))
    call = "{{ veil.geo_planar_laplace(ref('visits'), area=[8, 49, 10, 51]%s) }}"
    project.model("by_the_data", "{{ veil.geo_planar_laplace(ref('visits')) }}", config=release())
    project.model("noisy", call % "", config=release())
    project.model("noisy_too", call % ", epsilon=5, max_reports=3, unit='person', snap=10", config=release())
    project.model("other_epsilon", call % ", epsilon=15", config=release())
    project.model("other_reports", call % ", max_reports=5", config=release())
    project.model("other_unit", call % ", unit='note'", config=release())
    project.model("endless", call % "", config=release(reports=None))
    project.model("counting", call % "", config=release(mechanism="laplace", reports=None, l1=1))
    return project, project.dbt("build", "--select", "visits", "noisy", "noisy_too")


def test_a_release_of_three_reports_is_charged_three_times_epsilon(built: tuple[Project, Result]) -> None:
    project, result = built
    assert result.success, result.text
    rows = project.query("select epsilon, mechanism from veil.ledger where event = 'reserve' and model like '%.noisy'")
    assert rows == [(Decimal(15), "planar_laplace")]
    reports = project.query("select person, count(lon), count(lat), count(*) from noisy group by person")
    assert {row[1:] for row in reports} == {(3, 3, 5)}


def test_the_noise_has_the_scale_that_was_paid_for(built: tuple[Project, Result]) -> None:
    # Epsilon is 5 a kilometre for each report, so a report moves by 0.4 km in the mean, by 0.25 km along one axis.
    moved = built[0].scalar("select avg(abs(lat - 50.0)) * 111.2 from noisy where lat is not null")
    assert 0.05 < moved < 0.75


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("other_epsilon", "`epsilon` is 15 a kilometre and report, and `dp` pays for 15.000000000000 over 3 reports"),
        ("other_reports", "`max_reports` is 5, and `dp.queries` declares 3: leave it away"),
        ("other_unit", "`unit` is note, and the policy's is person: leave it away"),
        ("by_the_data", "`area` is missing: without it the plane is chosen by everybody's points"),
        ("endless", "needs `reports`: how many points of one person are released at most"),
        ("counting", "must be `mechanism: planar_laplace`. Got: 'laplace'"),
    ],
)
def test_the_policy_alone_says_how_much(built: tuple[Project, Result], name: str, message: str) -> None:
    project = built[0]
    spent = project.scalar("select count(*) from veil.ledger")
    result = project.dbt("compile", "--select", name)
    assert not result.success
    assert message in result.text
    assert project.scalar("select count(*) from veil.ledger") == spent


def test_noise_without_a_reservation_is_not_drawn(built: tuple[Project, Result]) -> None:
    result = built[0].dbt("show", "--select", "noisy")
    assert not result.success
    assert "this process holds no open reservation for the calling model" in result.text
