"""Noise: calibration against published figures, the distributions as SQL draws them, refusal without a reservation.

Every statistical check accepts a right sampler with probability 1 - 1e-6 (the stated false-alarm rate), and a check of
its power beside it must reject a wrong one.
"""

from __future__ import annotations

import json
import math
from decimal import Decimal

import duckdb
import numpy as np
import pytest
from dbt_veil import noise
from dbt_veil.noise import Mechanism, Reservation
from dbt_veil.udf import Session
from scipy import stats

FALSE_ALARM = 1e-6


def connect(*mechanisms: Mechanism, threads: int = 2, **config: object) -> duckdb.DuckDBPyConnection:
    """A database with the noise UDFs and one open reservation called ``r``."""
    connection = duckdb.connect(config={"threads": threads})
    session = Session(config=config, connection=connection)
    for udf in noise.udfs(session):
        udf.register(connection)
    session.reservations["r"] = Reservation("r", {item.query: item for item in mechanisms}, set())
    return connection


def laplace(scale: float, query: str = "q") -> Mechanism:
    return Mechanism(query, "laplace", Decimal(1), Decimal(0), scale)


def gaussian(scale: float, query: str = "q") -> Mechanism:
    return Mechanism(query, "gaussian", Decimal(1), Decimal("1e-6"), scale)


def draws(mechanism: Mechanism, size: int, value: str = "0") -> np.ndarray:
    connection = connect(mechanism)
    sql = f"select veil_{mechanism.kind}('r', 'q', {value}, {mechanism.scale!r}) as x from range({size})"
    return connection.execute(sql).fetchnumpy()["x"].astype(np.float64)


def pmf(kind: str, scale: float, values: np.ndarray) -> np.ndarray:
    """Probabilities of the discrete distributions, from their definitions."""
    if kind == "laplace":
        decay = math.exp(-1 / scale)
        return (1 - decay) / (1 + decay) * decay ** np.abs(values)
    support = np.arange(-40 * math.ceil(scale), 40 * math.ceil(scale) + 1)
    return np.exp(-(values**2) / (2 * scale**2)) / np.exp(-(support**2) / (2 * scale**2)).sum()


def chi_square(kind: str, scale: float, sample: np.ndarray, cut: int) -> float:
    """p-value of a chi-square test with one bin a whole number within ``cut`` and one for each tail."""
    values = np.arange(-cut, cut + 1)
    expected = pmf(kind, scale, values)
    tail = (1 - expected.sum()) / 2
    observed = [(sample < -cut).sum(), *[(sample == value).sum() for value in values], (sample > cut).sum()]
    return float(stats.chisquare(observed, np.array([tail, *expected, tail]) * len(sample)).pvalue)


# Calibration


@pytest.mark.parametrize(
    ("epsilon", "delta", "sigma"),
    [
        (1, 1e-5, 3.730631635),
        (1, 1e-6, 4.224678889),
        (math.log(3), 1e-5, 3.424662398),
        (10, 1e-5, 0.499888620),
        (0.1, 1e-6, 36.304690426),
        (20, 1e-5, 0.29004),
    ],
)
def test_sigma_is_the_analytic_one(epsilon: float, delta: float, sigma: float) -> None:
    assert noise.analytic_gaussian_sigma(epsilon, delta) == pytest.approx(sigma, abs=2e-6 if epsilon == 20 else 1e-9)
    assert noise.analytic_gaussian_sigma(epsilon, delta, 7.0) == pytest.approx(7 * sigma, rel=1e-5)


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-5), (1, 1e-6), (10, 1e-5), (0.1, 1e-6), (0.5, 1e-9)])
@pytest.mark.parametrize(("l0", "linf"), [(1, 1), (3, 1), (2, 10)])
def test_discrete_gaussian_keeps_its_delta(epsilon: float, delta: float, l0: int, linf: int) -> None:
    sigma = noise.gaussian_scale(Decimal(str(epsilon)), Decimal(str(delta)), l0=l0, linf=linf)
    analytic = noise.analytic_gaussian_sigma(epsilon, delta, linf * math.sqrt(l0))
    assert analytic <= sigma <= 1.06 * analytic
    # Delta from the definition: the sum over all outcomes of (P - e^epsilon Q)+ for the worst shift, coordinates
    # convolved one by one.
    reach = math.ceil(14 * sigma) + l0 * linf
    support = np.arange(-reach, reach + 1)
    one = pmf("gaussian", sigma, support)
    whole = one
    for _ in range(l0 - 1):
        whole = np.convolve(whole, one)
    sums = np.arange(-l0 * reach, l0 * reach + 1)
    loss = (linf * sums + l0 * linf**2 / 2) / sigma**2
    assert (whole * np.clip(-np.expm1(epsilon - loss), 0, None)).sum() <= delta * (1 + 1e-6)


def test_analytic_sigma_alone_would_not_do_on_a_coarse_grid() -> None:
    assert noise.discrete_gaussian_delta(noise.analytic_gaussian_sigma(1, 1e-5), 1.0) == pytest.approx(
        1.035e-5, rel=1e-3
    )
    assert noise.gaussian_scale(Decimal(1), Decimal("1e-5"), l0=1, linf=1) == pytest.approx(3.7411, abs=5e-4)
    shapeless = noise.gaussian_scale(Decimal(1), Decimal("1e-5"), l2=100) / 100
    assert 1.07 < shapeless / 3.730631635 < 1.09


def test_laplace_scale_is_never_below_the_exact_one() -> None:
    from fractions import Fraction

    for epsilon in ("0.1", "0.3", "0.7", "1", "0.090909090909", "3"):
        for size in (1, 3, 10**15 + 1):
            scale = noise.laplace_scale(size, Decimal(epsilon))
            exact = Fraction(size) / Fraction(epsilon)
            assert exact <= Fraction(scale) <= exact * (1 + Fraction(1, 2**50))


def test_discrete_laplace_has_the_published_shape() -> None:
    for epsilon, zero, variance in ((1.0, 0.462117157, 1.841347), (math.log(3), 0.5, 1.5)):
        values = np.arange(-200, 201)
        probability = pmf("laplace", 1 / epsilon, values)
        assert probability[200] == pytest.approx(zero, abs=1e-9)
        assert (probability * values**2).sum() == pytest.approx(variance, abs=1e-6)
        assert probability[np.abs(values) <= 3].sum() > 0.95 > probability[np.abs(values) <= 2].sum()


def test_response_truth_is_the_published_one() -> None:
    assert noise.response_truth(1.0, 10) == pytest.approx(0.2319693, abs=5e-8)


# As drawn through SQL


@pytest.mark.parametrize(("mechanism", "cut"), [(laplace(2.0), 12), (gaussian(3.0), 8), (laplace(1.0), 6)])
def test_sql_draws_the_right_distribution(mechanism: Mechanism, cut: int) -> None:
    sample = draws(mechanism, 60_000)
    assert chi_square(mechanism.kind, mechanism.scale, sample, cut) > FALSE_ALARM
    assert chi_square(mechanism.kind, mechanism.scale * 1.05, sample, cut) < FALSE_ALARM


@pytest.mark.audit
@pytest.mark.parametrize(("mechanism", "cut"), [(laplace(2.0), 8), (gaussian(3.0), 7)])
def test_a_million_draws_tell_one_percent_of_scale(mechanism: Mechanism, cut: int) -> None:
    sample = draws(mechanism, 1_000_000)
    assert chi_square(mechanism.kind, mechanism.scale, sample, cut) > FALSE_ALARM
    assert chi_square(mechanism.kind, mechanism.scale * 1.01, sample, cut) < FALSE_ALARM
    assert chi_square(mechanism.kind, mechanism.scale / 1.01, sample, cut) < FALSE_ALARM


def approximate_dp(zero: np.ndarray, one: np.ndarray, epsilon: float) -> float:
    """Estimate of delta at ``epsilon`` from draws on two neighbouring counts: the larger of both directions."""
    bins = np.arange(-200, 202) - 0.5
    shares = [np.histogram(sample, bins)[0] / len(sample) for sample in (zero, one)]
    return max(float(np.clip(a - math.exp(epsilon) * b, 0, None).sum()) for a, b in (shares, (shares[1], shares[0])))


@pytest.mark.parametrize(
    ("size", "bound"),
    [pytest.param(60_000, 0.04, id="short"), pytest.param(8_000_000, 0.0025, marks=pytest.mark.audit, id="long")],
)
def test_neighbouring_counts_are_indistinguishable_at_epsilon(size: int, bound: float) -> None:
    # The losses of all outcomes at or below 0 are exactly epsilon, so the statistic is all sampling error: at these
    # sizes its mean plus five standard deviations stay below the bound.
    epsilon = math.log(3)
    honest = laplace(noise.laplace_scale(1, noise.amount(epsilon, noise.EPSILON_STEP) or Decimal(0)))
    assert approximate_dp(draws(honest, size), draws(honest, size, "1"), epsilon) < bound
    understated = laplace(honest.scale * (1 - 0.175))
    assert approximate_dp(draws(understated, 60_000), draws(understated, 60_000, "1"), epsilon) > bound


def test_exponential_and_response_have_the_published_shares() -> None:
    choice = Mechanism("q", "exponential", Decimal(1), Decimal(0), 2.0, 1, 1, 1.0)
    answer = Mechanism("a", "randomized_response", Decimal(1), Decimal(0), noise.response_truth(1, 10), categories=10)
    connection = connect(choice, answer)
    picked = connection.execute(
        "select veil_exponential('r', 'q', [0, -1, -2, -3], 2.0) from range(10000)"
    ).fetchnumpy()
    counts = np.bincount(next(iter(picked.values())), minlength=5)[1:]
    expected = np.array([0.45505, 0.27600, 0.16741, 0.10154])
    assert stats.chisquare(counts, expected * 10_000).pvalue > FALSE_ALARM
    # Permute-and-flip, which the same library offers under the same name, gives 0.532 to the best.
    assert stats.chisquare(counts, np.array([0.53225, 0.245, 0.13995, 0.0828]) * 10_000).pvalue < FALSE_ALARM

    told = connection.execute("select veil_randomized_response('r', 'a', 3, 10, 1.0) from range(100000)").fetchnumpy()
    counts = np.bincount(next(iter(told.values())), minlength=10)
    expected = np.full(10, (1 - 0.2319693) / 9)
    expected[3] = 0.2319693
    assert len(counts) == 10
    assert stats.chisquare(counts, expected * 100_000).pvalue > FALSE_ALARM
    nulls = connection.execute(
        "select veil_randomized_response('r', 'a', null, 10, 1.0) from range(100000)"
    ).fetchnumpy()
    counts = np.bincount(next(iter(nulls.values())), minlength=10)
    assert stats.chisquare(counts, np.full(10, 10_000.0)).pvalue > FALSE_ALARM


@pytest.mark.parametrize("threads", [1, 8])
def test_constant_arguments_are_drawn_row_by_row(threads: int) -> None:
    connection = connect(laplace(1e12), gaussian(1e12, "g"), threads=threads)
    for rows in (100, 3_000, 130_000 if threads == 8 else 20_000):
        sql = f"select veil_laplace('r', 'q', 10, 1e12) as x, veil_laplace('r', 'q', 10, 1e12) as y from range({rows})"
        x, y = (column.astype(np.float64) for column in connection.execute(sql).fetchnumpy().values())
        # 260,000 draws over 1e12 or so values: by the birthday bound some 0.01 pairs would agree by chance.
        assert len(np.unique(np.concatenate([x, y]))) >= 2 * rows - 4
    assert connection.execute(
        "select count(distinct veil_gaussian('r', 'g', 10, 1e12)) from range(3000)"
    ).fetchone() == (3000,)


def test_a_value_drawn_once_stays_itself() -> None:
    answer = Mechanism("a", "randomized_response", Decimal("0.000001"), Decimal(0), 0.25, categories=4)
    connection = connect(laplace(20.0), answer)
    # Read from a CTE by a filter and by a self-join, a noisy value does not change in between.
    counts = "with n as materialized (select range as g, veil_laplace('r', 'q', 10, 20.0) as x from range(3000)) "
    assert connection.execute(
        counts + "select count(*) from (select x from n where x >= 10) where x < 10"
    ).fetchone() == (0,)
    assert connection.execute(
        counts + "select count(*) from n as a join n as b using (g) where a.x <> b.x"
    ).fetchone() == (0,)
    # CASE over the stored draw: each outcome a quarter, nothing left for ELSE.
    drawn = (
        "with d as materialized (select veil_randomized_response('r', 'a', null, 4, 0.000001) as a from range(40000)) "
    )
    case = "case a when 0 then 0 when 1 then 1 when 2 then 2 when 3 then 3 else 4 end"
    shares = dict(connection.execute(drawn + f"select {case}, count(*) from d group by 1").fetchall())
    assert sorted(shares) == [0, 1, 2, 3]
    assert stats.chisquare(list(shares.values())).pvalue > FALSE_ALARM


def test_null_is_zero_with_noise_and_large_sums_are_exact() -> None:
    connection = connect(laplace(0.001))
    sql = "select veil_laplace('r', 'q', x, 0.001) from (values (null), (27000000000000000000), (-5)) t(x)"
    assert connection.execute(sql).fetchall() == [(0,), (27000000000000000000,), (-5,)]
    small = "select veil_laplace('r', 'q', x, 0.001) from (values (null), (-5), (4000000000000000000)) t(x)"
    assert connection.execute(small).fetchall() == [(0,), (-5,), (4000000000000000000,)]
    edge = (
        "select veil_laplace('r', 'q', x, 0.001) from (values (99999999999999999999999999999999999999::hugeint)) t(x)"
    )
    assert connection.execute(edge).fetchall() == [(10**38 - 1,)]


def test_neighbouring_tables_share_one_grid() -> None:
    zero, one = draws(laplace(3.0), 20_000), draws(laplace(3.0), 20_000, "1")
    assert {value % 1 for value in (*zero, *one)} == {0.0}
    assert set(range(-9, 10)) <= set(zero) & set(one)


# Refusals


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("veil_laplace('other', 'q', 1, 2.0)", "holds no open reservation"),
        ("veil_laplace(null, 'q', 1, 2.0)", "holds no open reservation"),
        ("veil_laplace('r', 'other', 1, 2.0)", "reserves no laplace query"),
        ("veil_gaussian('r', 'q', 1, 2.0)", "reserves no gaussian query"),
        ("veil_laplace('r', 'q', 1, 1.999)", "at the scale that was reserved"),
        ("veil_laplace('r', 'q', 1, null)", "at the scale that was reserved"),
        ("veil_laplace('r', 'q', 1, 'nan'::double)", "at the scale that was reserved"),
        ("veil_exponential('r', 'e', null, 2.0)", "must not be empty or NULL"),
        ("veil_exponential('r', 'e', []::bigint[], 2.0)", "must not be empty or NULL"),
        ("veil_randomized_response('r', 'a', 1, 3, 1.0)", "must be the reserved number"),
    ],
)
def test_a_udf_draws_only_what_was_reserved(call: str, message: str) -> None:
    choice = Mechanism("e", "exponential", Decimal(1), Decimal(0), 2.0, 1, 1, 1.0)
    answer = Mechanism("a", "randomized_response", Decimal(1), Decimal(0), noise.response_truth(1, 10), categories=10)
    connection = connect(laplace(2.0), choice, answer)
    with pytest.raises(duckdb.Error, match=message) as refusal:
        connection.execute(f"select {call} from (values (717171), (717171)) t(secret)").fetchall()
    assert "717171" not in str(refusal.value)


BAD_NUMBERS = [0, -1, float("nan"), float("inf"), 5e-324, "text", "", True, [1], "1/0"]


@pytest.mark.parametrize("bad", BAD_NUMBERS)
def test_bad_amounts_are_refused_all_at_once(bad: object) -> None:
    query = {"name": "q", "l1": bad, "share": bad}
    mechanisms, problems = noise.resolve({"epsilon": bad, "delta": "x", "queries": [query]})
    assert mechanisms == []
    text = "\n".join(problems)
    for argument in ("`epsilon`", "`delta`", "`share`", "`l1`"):
        assert argument in text
    _, problems = noise.resolve(
        {"epsilon": 1, "delta": bad, "mechanism": "gaussian", "queries": [{"name": "q", "l2": bad}]}
    )
    assert any("`l2`" in problem for problem in problems)
    assert any("`delta`" in problem for problem in problems)


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        ({}, "`epsilon` must be"),
        ({"queries": []}, "`queries` must be a list"),
        ({"epsilon": 1, "queries": [{"name": "q"}]}, "without a sensitivity there is no noise"),
        ({"epsilon": 1, "queries": [{"name": "q", "l0": 1}]}, "without a sensitivity there is no noise"),
        ({"epsilon": 1, "queries": [{"name": "q", "l1": 1}, {"name": "q", "l1": 1}]}, "twice"),
        (
            {"epsilon": 1, "queries": [{"name": "a", "l1": 1, "share": 0.6}, {"name": "b", "l1": 1, "share": 0.5}]},
            "at most 1",
        ),
        ({"epsilon": 1, "queries": [{"name": "a", "l1": 1, "share": 1}, {"name": "b", "l1": 1}]}, "leave something"),
        (
            {"epsilon": 1, "mechanism": "gaussian", "queries": [{"name": "q", "l2": 1}]},
            "`delta` of query 'q' must be above 0",
        ),
        ({"epsilon": 1, "mechanism": "cauchy", "queries": [{"name": "q", "l1": 1}]}, "must be one of laplace"),
        ({"epsilon": 1, "queries": [{"name": "q", "l1": 1, "sens": 2}]}, "has no key 'sens'"),
        ({"epsilon": 1, "delta": 1e-6, "queries": [{"name": "q", "l1": 1, "delta": 1e-6}]}, "laplace spends none"),
        ({"epsilon": 1e-6, "queries": [{"name": "q", "l1": 9 * 10**18}]}, "choose a coarser grid"),
        ({"epsilon": 1, "queries": [{"name": "q'; drop", "l1": 1}]}, "letters, digits and underscores"),
        ({"epsilon": 1, "queries": [{"name": "q", "l0": 3, "linf": 2, "l1": 5}]}, "below `l0` times `linf`"),
    ],
)
def test_a_request_that_cannot_be_meant_is_refused(request_: dict[str, object], problem: str) -> None:
    mechanisms, problems = noise.resolve(request_)
    assert mechanisms == []
    assert any(problem in text for text in problems), problems


def test_shares_and_deltas_are_parted() -> None:
    request = {
        "epsilon": "1.0",
        "delta": 1e-6,
        "mechanism": "gaussian",
        "queries": [
            {"name": "a", "l0": 1, "linf": 1, "share": 0.5},
            {"name": "b", "mechanism": "laplace", "l1": 3},
            {"name": "keys", "mechanism": "threshold", "delta": 1e-7},
        ],
    }
    answer = json.loads(noise.plan(json.dumps(request)))
    assert answer["problems"] == []
    a, b, keys = answer["queries"]
    assert (Decimal(a["epsilon"]), Decimal(a["delta"])) == (Decimal("0.5"), Decimal("9e-7"))
    assert (Decimal(b["epsilon"]), Decimal(b["delta"]), b["scale"]) == (Decimal("0.5"), 0, 6.0)
    assert (Decimal(keys["epsilon"]), Decimal(keys["delta"])) == (0, Decimal("1e-7"))
    assert a["scale"] == noise.gaussian_scale(Decimal("0.5"), Decimal("9e-7"), l0=1, linf=1)


def test_harness_noise_is_repeatable_marked_and_spelled_out() -> None:
    first, second = (connect(laplace(5.0), harness_noise=7) for _ in range(2))
    sql = "select veil_laplace('r', 'q', 0, 5.0) from range(50)"
    assert first.execute(sql).fetchall() == second.execute(sql).fetchall()
    off = connect(laplace(5.0), harness_noise="off")
    assert set(off.execute(sql).fetchall()) == {(0,)}
    assert noise.sampler({"harness_noise": 7}).seeded
    assert not noise.sampler({}).seeded
    with pytest.raises(ValueError, match="`harness_noise` must be a whole number or 'off'"):
        noise.sampler({"harness_noise": "yes"})
