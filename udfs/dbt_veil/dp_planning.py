"""What noise does to a figure: widths of intervals, expected errors, and the bias of clamping and clipping.

Everything here is a function of public parameters, or of a public or synthetic relation. Nothing draws noise.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dbt_veil import selection
from dbt_veil.udf import Session, Udf


def deviation(mechanism: str, scale: float) -> float:
    """Standard deviation of the discrete noise.

    Laplace: ``sqrt(2 a) / (1 - a)`` with ``a = exp(-1 / scale)`` (Ghosh, Roughgarden, Sundararajan 2012, section 2).
    The discrete Gaussian's is at most sigma, and equal to it to ten digits from sigma 1.5 up (Canonne, Kamath, Steinke
    2020, section 4).

    >>> round(deviation("laplace", 1.0) ** 2, 6)
    1.841347
    """
    if not (math.isfinite(scale) and scale > 0.0):
        raise ValueError("scale must be a positive, finite number")
    if mechanism == "gaussian":
        return scale
    if mechanism != "laplace":
        raise ValueError("mechanism must be laplace or gaussian")
    return math.sqrt(2.0 * math.exp(-1.0 / scale)) / -math.expm1(-1.0 / scale)


def margin(mechanism: str, scale: float, terms: int = 1, confidence: float = 0.95) -> int:
    """The smallest whole number that the noise exceeds, in absolute value, with probability ``1 - confidence`` at most.

    Args:
        mechanism: ``laplace`` or ``gaussian``, both discrete.
        scale: Laplace scale or sigma, in steps of the grid.
        terms: number of independent draws that were added up, 1 or more. A sum of discrete draws stays within one
            step of the sum of continuous ones.
        confidence: in (0, 1).

    Raises:
        ValueError: an argument is out of range.

    >>> margin("laplace", 1.0), margin("laplace", 1 / math.log(3)), margin("gaussian", 10.0)
    (3, 3, 20)
    """
    if terms < 1 or not 0.0 < confidence < 1.0:
        raise ValueError("terms must be 1 or more, and confidence between 0 and 1")
    miss = 1.0 - confidence
    spread = deviation(mechanism, scale)
    if mechanism == "laplace" and terms == 1:
        return max(0, math.ceil(scale * math.log(2.0 / (miss * (1.0 + math.exp(-1.0 / scale))))) - 1)
    if mechanism == "laplace":
        return math.ceil(scale * _laplace_sum_quantile(terms, miss / 2.0)) + 1
    if terms > 1:
        return math.ceil(spread * math.sqrt(terms) * _normal_quantile(miss / 2.0)) + 1
    high = math.ceil(scale * _normal_quantile(miss / 2.0)) + 2
    low = max(-1, high - 5)
    while high - low > 1:
        middle = (low + high) // 2
        if 2.0 * selection.upper_tail("gaussian", scale, middle + 1) > miss:
            low = middle
        else:
            high = middle
    return high


def clamping_bias(values: npt.NDArray[np.float64], lower: float, upper: float) -> float:
    """The mean of what clamping to ``[lower, upper]`` adds to the values of a public or synthetic column.

    >>> clamping_bias(np.array([1.0, 2.0, 9.0]), 0.0, 3.0)
    -2.0
    """
    return float(np.mean(np.clip(values, lower, upper) - values)) if len(values) else 0.0


def clipping_bias(mechanism: str, scale: float, distance: float = 0.0) -> float:
    """The mean of what clipping a noisy figure at zero adds, where the true figure is ``distance`` above zero.

    Continuous Laplace: ``scale / 2 * exp(-distance / scale)``; Gaussian:
    ``sigma * phi(d / sigma) - d * (1 - Phi(d / sigma))``.

    >>> clipping_bias("laplace", 10.0)
    5.0
    """
    ratio = distance / scale
    if mechanism == "laplace":
        return 0.5 * scale * math.exp(-ratio)
    density = math.exp(-0.5 * ratio * ratio) / math.sqrt(2.0 * math.pi)
    return scale * density - distance * 0.5 * math.erfc(ratio / math.sqrt(2.0))


def exponential_margin(sensitivity: float, epsilon: float, candidates: int, confidence: float = 0.95) -> float:
    """How far the utility of the chosen candidate may lie below the best, with probability ``confidence``.

    ``(2 * sensitivity / epsilon) * (ln(candidates) + ln(1 / (1 - confidence)))`` (McSherry, Talwar 2007, lemma 7).
    """
    return 2.0 * sensitivity / epsilon * (math.log(candidates) - math.log(1.0 - confidence))


def random_keys(count: int) -> npt.NDArray[np.int64]:
    """``count`` independent 63-bit keys from the operating system's generator, for sampling rows and groups.

    >>> len(set(random_keys(1000).tolist()))
    1000
    """
    return np.frombuffer(os.urandom(8 * count), dtype=np.int64) & np.int64(0x7FFF_FFFF_FFFF_FFFF)


def _laplace_sum_quantile(terms: int, miss: float) -> float:
    """The ``t`` at which ``P(sum of standard Laplace draws > t)`` falls to ``miss``.

    The sum is the difference of two Gamma(n, 1) variables, so that
    ``P(S > t) = exp(-t) * sum_m t^m / m! * sum_{k < n - m} C(n - 1 + k, k) / 2^(n + k)``.
    """
    order = np.arange(terms)
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, 2 * terms)))])
    log_weights = log_factorial[terms - 1 + order] - log_factorial[order] - log_factorial[terms - 1]
    weights = np.cumsum(np.exp(log_weights - (terms + order) * math.log(2.0)))[::-1]

    def tail(t: float) -> float:
        return float(np.sum(np.exp(order * math.log(t) - t - log_factorial[order]) * weights))

    low, high = 1e-9, 1.0
    while tail(high) > miss:
        low, high = high, high * 2.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if tail(middle) > miss else (low, middle)
    return high


def _normal_quantile(upper_tail: float) -> float:
    return -NormalDist().inv_cdf(upper_tail)


def udfs(session: Session) -> Sequence[Udf]:
    """The UDFs of this family. ``veil_random_key(x)`` gives one fresh key a row, whatever ``x`` is."""
    return (
        Udf(
            "veil_random_key",
            lambda rows: pa.array(random_keys(len(rows))),
            ("BIGINT",),
            "BIGINT",
            volatile=True,
            sees_null=True,
        ),
        Udf("veil_dp_tau", selection.whole_tau, ("VARCHAR", "DOUBLE", "DOUBLE", "BIGINT"), "BIGINT", arrow=False),
        Udf("veil_dp_survival", selection.survival, ("VARCHAR", "DOUBLE", "BIGINT", "BIGINT"), "DOUBLE", arrow=False),
        Udf("veil_dp_deviation", deviation, ("VARCHAR", "DOUBLE"), "DOUBLE", arrow=False),
        Udf("veil_dp_margin", margin, ("VARCHAR", "DOUBLE", "BIGINT", "DOUBLE"), "BIGINT", arrow=False),
    )
