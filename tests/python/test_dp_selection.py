"""Thresholds for private keys, widths of intervals, biases: against the literature's figures and brute force."""

from __future__ import annotations

import doctest
import math

import dbt_veil.dp_planning as planning
import dbt_veil.selection as selection
import numpy as np
import pytest
from dbt_veil import noise
from scipy import stats


def discrete_laplace(scale: float) -> stats.rv_discrete:
    return stats.dlaplace(1.0 / scale)


@pytest.mark.parametrize("module", [selection, planning])
def test_examples_in_the_text_hold(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("epsilon", "delta", "groups", "tau"),
    [
        (1.0, 1e-5, 1, 11.819778),
        (1.0, 1e-5, 3, 36.755162),
        (1.0, 1e-5, 5, 63.146061),
        (0.5, 1e-6, 1, 27.244727),
        (0.5, 1e-6, 3, 86.325852),
        (0.5, 1e-6, 5, 148.318009),
        (1.0, 1e-6, 1, 14.122363),  # 1 + ln(1 / (2 * 1e-6)), by hand
    ],
)
def test_tau_of_continuous_laplace(epsilon: float, delta: float, groups: int, tau: float) -> None:
    assert selection.laplace_tau(epsilon, delta, groups) == pytest.approx(tau, abs=1e-6)


@pytest.mark.parametrize(("groups", "tau"), [(1, 13), (3, 38), (5, 64)])
def test_whole_tau_of_discrete_laplace(groups: int, tau: int) -> None:
    assert selection.whole_tau("laplace", groups / 1.0, 1e-5, groups) == tau


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("groups", [1, 3, 10])
def test_whole_tau_is_the_smallest_that_keeps_delta(epsilon: float, delta: float, groups: int) -> None:
    tau = selection.whole_tau("laplace", groups / epsilon, delta, groups)
    # Independent: scipy's discrete Laplace. One person in `groups` groups, none of which may pass.
    passes = discrete_laplace(groups / epsilon).sf(tau - 2)
    one_less = discrete_laplace(groups / epsilon).sf(tau - 3)
    assert -math.expm1(groups * math.log1p(-passes)) <= delta * (1 + 1e-6)
    assert -math.expm1(groups * math.log1p(-one_less)) > delta


@pytest.mark.parametrize("sigma", [0.7, 3.73, 40.0])
def test_whole_tau_of_discrete_gaussian(sigma: float) -> None:
    tau = selection.whole_tau("gaussian", sigma, 1e-6, 1)
    support = np.arange(-2000, 2001)
    mass = np.exp(-0.5 * (support / sigma) ** 2)
    mass /= mass.sum()
    assert mass[support >= tau - 1].sum() <= 1e-6 < mass[support >= tau - 2].sum()


def test_tau_for_a_wide_gaussian_is_bounded_from_above() -> None:
    continuous = selection.gaussian_tau(5000.0, 1e-6, 1)
    assert continuous <= selection.whole_tau("gaussian", 5000.0, 1e-6, 1) <= continuous + 3


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, math.log(3), 5.0])
def test_the_laplace_margin_is_the_smallest_with_95_percent(epsilon: float) -> None:
    margin = planning.margin("laplace", 1 / epsilon)
    noise = discrete_laplace(1 / epsilon)
    assert 2 * noise.sf(margin) <= 0.05 + 1e-12
    assert margin == 0 or 2 * noise.sf(margin - 1) > 0.05


@pytest.mark.parametrize("terms", [2, 10, 61])
@pytest.mark.parametrize("scale", [1.0, 4.0, 30.0])
def test_the_margin_of_a_sum_against_its_exact_distribution(terms: int, scale: float) -> None:
    # Independent: the characteristic function of the discrete Laplace to the power of the number of terms, inverted.
    size = 2 ** math.ceil(math.log2(60 * scale * math.sqrt(terms) + 200))
    a = math.exp(-1 / scale)
    turns = 2 * np.pi * np.arange(size) / size
    mass = np.fft.ifft(((1 - a) ** 2 / (1 - 2 * a * np.cos(turns) + a * a)) ** terms).real
    within = np.cumsum(np.concatenate([mass[:1], 2 * mass[1 : size // 2]]))
    exact = int(np.argmax(within >= 0.95))
    assert exact <= planning.margin("laplace", scale, terms) <= exact + 2


def test_clipping_at_zero_adds_half_the_scale_at_zero() -> None:
    # The mean of max(0, X) over 200,000 draws has a standard error of about 0.02.
    draws = np.random.default_rng(1201).laplace(0, 10, 200_000)
    assert planning.clipping_bias("laplace", 10.0) == pytest.approx(5.0)
    assert np.maximum(draws, 0).mean() == pytest.approx(5.0, abs=0.12)
    assert planning.clipping_bias("gaussian", 10.0) == pytest.approx(10 / math.sqrt(2 * math.pi))
    assert planning.clipping_bias("laplace", 10.0, 20.0) == pytest.approx(
        (np.maximum(draws + 20, 0) - 20).mean(), abs=0.15
    )


@pytest.mark.parametrize(
    ("mechanism", "scale", "delta", "groups"),
    [
        ("laplace", 0.0, 1e-6, 1),
        ("laplace", math.inf, 1e-6, 1),
        ("laplace", math.nan, 1e-6, 1),
        ("laplace", 1.0, 0.0, 1),
        ("laplace", 1.0, 1.0, 1),
        ("laplace", 1.0, 1e-6, 0),
        ("uniform", 1.0, 1e-6, 1),
    ],
)
def test_a_threshold_needs_noise_and_delta(mechanism: str, scale: float, delta: float, groups: int) -> None:
    with pytest.raises(ValueError, match="must be"):
        selection.whole_tau(mechanism, scale, delta, groups)


@pytest.mark.audit
def test_a_key_with_one_person_passes_with_delta_at_most() -> None:
    # A million draws of the released noise at delta 1e-3, so that some pass: 1,000 expected at most, deviation 32.
    # Chance exceeds the limit of 1,200 with probability 1e-9; a tau one too low (about 2,700) is always caught.
    tau = selection.whole_tau("laplace", 1.0, 1e-3, 1)
    drawn = noise.ExactSampler().laplace(1.0, 1_000_000)
    assert np.count_nonzero(1 + drawn >= tau) <= 1_200
    assert np.count_nonzero(1 + drawn >= tau - 1) > 1_200
    # At the delta of a release nobody passes: 10 expected of a million at 1e-5, and 40 has probability 1e-12.
    assert np.count_nonzero(1 + drawn >= selection.whole_tau("laplace", 1.0, 1e-5, 1)) <= 40
