"""Accounting against published totals, and the order in which the methods must stand."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from dbt_veil import accounting
from dbt_veil.accounting import Cost

DELTA = Decimal("1e-6")


def gaussian(sigma: float, *, continuous: bool = False) -> Cost:
    return Cost("continuous_gaussian" if continuous else "gaussian", Decimal(1), DELTA, sigma, 1, 1, 1.0)


def laplace(epsilon: str, *, continuous: bool = False) -> Cost:
    kind = "continuous_laplace" if continuous else "laplace"
    return Cost(kind, Decimal(epsilon), Decimal(0), 1 / float(epsilon), 1, 1, 1.0)


def test_published_totals() -> None:
    ten = [gaussian(5.0, continuous=True)] * 10
    assert accounting.pld(ten, DELTA) == pytest.approx(2.921600591, abs=1e-6)
    assert accounting.zcdp(ten, DELTA) == pytest.approx(3.131056, abs=1e-6)
    hundred = [laplace("0.1", continuous=True)] * 100
    assert accounting.pld(hundred, DELTA) == pytest.approx(4.692667, abs=2e-6)
    assert accounting.summed(hundred) == (Decimal(10), Decimal(0))
    mixed = [laplace("0.2", continuous=True)] * 5 + [gaussian(8.0, continuous=True)] * 10
    mixed += [Cost("approximate", Decimal("0.1"), Decimal("1e-8"))] * 3
    assert accounting.pld(mixed, DELTA) == pytest.approx(2.586637660, abs=1e-6)


def test_discrete_laplace_costs_more_than_the_continuous_one() -> None:
    # At sensitivity 1 its loss is +-epsilon with odds e^epsilon, the worst of all pure mechanisms; the binomial sum
    # over 100 such signs gives delta at any epsilon exactly.
    total = accounting.pld([laplace("0.1")] * 100, DELTA)
    assert total == pytest.approx(4.7746, abs=1e-3)

    def delta(epsilon: float) -> float:
        p = math.exp(0.1) / (1 + math.exp(0.1))
        terms = ((math.comb(100, k) * p**k * (1 - p) ** (100 - k), 0.1 * (2 * k - 100)) for k in range(101))
        return sum(weight * -math.expm1(epsilon - loss) for weight, loss in terms if loss > epsilon)

    assert delta(total) <= 1e-6 <= delta(total - 0.01)


def test_bounded_groups_compose_coordinate_by_coordinate() -> None:
    shape = {"kind": "laplace", "epsilon": Decimal("0.3"), "delta": Decimal(0), "scale": 10.0, "sensitivity": 3.0}
    known, unknown = Cost(**shape, l0=3, linf=1), Cost(**shape)
    assert accounting.pld([known] * 20, DELTA) == pytest.approx(accounting.pld([laplace("0.1")] * 60, DELTA), rel=1e-3)
    assert accounting.pld([known] * 20, DELTA) < accounting.pld([unknown] * 20, DELTA) <= 6.0001


def test_laplace_is_infinite_by_pld_at_delta_zero_and_finite_by_sum() -> None:
    found = accounting.totals([laplace("0.5", continuous=True)] * 2, Decimal(0))
    assert found["sum"] == 1.0
    assert found["zcdp"] == math.inf
    assert min(found.values()) <= 1.0


def test_zcdp_conversion_and_its_inverse() -> None:
    assert accounting.zcdp_epsilon(0.0, 1e-6) == 0.0
    assert accounting.zcdp_epsilon(0.1, 0.0) == math.inf
    for rho in (1e-6, 0.01, 1.0, 50.0):
        epsilon = accounting.zcdp_epsilon(rho, 1e-6)
        assert epsilon <= rho + 2 * math.sqrt(rho * math.log(1e6))
        assert accounting.zcdp_rho(epsilon, 1e-6) == pytest.approx(rho, rel=1e-6)
        orders = (1 + 10 ** (k / 50) for k in range(-300, 600))
        grid = min(a * rho + math.log1p(-1 / a) - math.log(a * 1e-6) / (a - 1) for a in orders)
        assert epsilon == pytest.approx(max(grid, 0), rel=1e-2, abs=1e-6)
        assert epsilon <= max(grid, 0) + 1e-9


def test_thresholds_spend_delta_in_every_method() -> None:
    costs = [Cost("threshold", Decimal(0), Decimal("4e-7"))] * 2 + [gaussian(5.0)]
    assert accounting.zcdp(costs, DELTA) > accounting.zcdp([gaussian(5.0)], DELTA)
    assert accounting.zcdp([*costs, costs[0]], DELTA) == math.inf
    assert accounting.pld(costs[:2], Decimal("1e-7")) == math.inf
    assert accounting.pld([], DELTA) == 0.0
