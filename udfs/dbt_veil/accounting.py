"""What several releases cost together: the plain sum, zero-concentrated DP, and privacy loss distributions (PLD).

Every method takes the mechanisms as the ledger recorded them, one by one or counted, and a target delta, and gives an
epsilon that holds for all of them together under add-or-remove-one-unit. All are upper bounds, so the smallest may be
reported.
"""

from __future__ import annotations

import importlib.util
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

METHODS = ("sum", "zcdp", "pld")
LARGEST_EXACT_SHIFT = 2_000


@dataclass(frozen=True)
class Cost:
    """One executed mechanism, as far as its cost goes.

    Attributes:
        kind: ``laplace`` or ``gaussian`` (discrete, on whole numbers), ``continuous_laplace``, ``continuous_gaussian``,
            ``exponential``, ``randomized_response``, ``threshold`` or ``approximate``.
        epsilon: charged.
        delta: charged.
        scale: b or sigma, in the unit of ``sensitivity``.
        l0: values that one unit changes, if known.
        linf: largest change of one value, if known.
        sensitivity: L1 (Laplace) or L2 (Gaussian).
    """

    kind: str
    epsilon: Decimal
    delta: Decimal = Decimal(0)
    scale: float = 0.0
    l0: int | None = None
    linf: int | None = None
    sensitivity: float | None = None


Costs: TypeAlias = Iterable[Cost] | Mapping[Cost, int]


# Plain sum


def summed(costs: Costs) -> tuple[Decimal, Decimal]:
    """Exact totals of epsilon and delta."""
    counted = Counter(costs)
    return (
        sum((cost.epsilon * times for cost, times in counted.items()), Decimal(0)),
        sum((cost.delta * times for cost, times in counted.items()), Decimal(0)),
    )


# Zero-concentrated DP


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Epsilon of a ``rho``-zCDP mechanism at ``delta``.

    The smallest over orders a > 1 of a rho + ln(1 - 1/a) - ln(a delta) / (a - 1): Canonne, Kamath and Steinke,
    "The Discrete Gaussian for Differential Privacy" (2020), Proposition 12 and Corollary 13.

    >>> round(zcdp_epsilon(0.2, 1e-6), 6)
    3.131056
    """
    if rho == 0:
        return 0.0
    if delta <= 0:
        return math.inf

    def epsilon(log_excess: float) -> float:
        excess = math.exp(log_excess)
        order = 1 + excess
        return order * rho + math.log(excess / order) - (math.log(delta) + math.log(order)) / excess

    best = min(_golden(epsilon, -40.0, 40.0), epsilon(math.log(math.sqrt(max(-math.log(delta), 1e-9) / rho))))
    return max(0.0, best)


def zcdp_rho(epsilon: float, delta: float) -> float:
    """Largest rho whose :func:`zcdp_epsilon` at ``delta`` is at most ``epsilon``."""
    low, high = 0.0, 1.0
    while zcdp_epsilon(high, delta) < epsilon:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if zcdp_epsilon(middle, delta) <= epsilon else (low, middle)
    return low


def _golden(function: Any, low: float, high: float) -> float:
    """Smallest value of a unimodal function on an interval, by golden section."""
    ratio = (math.sqrt(5) - 1) / 2
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(120):
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = function(right)
    return float(min(at_left, at_right))


def rho(cost: Cost) -> float | None:
    """The zCDP parameter of one mechanism; ``None`` where it has none and only its delta and epsilon are known.

    Gaussian: (sensitivity / sigma)^2 / 2, discrete as continuous (Canonne, Kamath and Steinke 2020, Theorem 4). Pure
    epsilon-DP: epsilon^2 / 2 (Bun and Steinke 2016, Proposition 1.4). The exponential mechanism has bounded range,
    hence epsilon^2 / 8 (Cesar and Rogers 2021).
    """
    if cost.kind in ("gaussian", "continuous_gaussian") and cost.sensitivity:
        return float((cost.sensitivity / cost.scale) ** 2 / 2)
    if cost.kind == "exponential":
        # l0 choices, each of a share of epsilon.
        return float(cost.epsilon) ** 2 / 8 / (cost.l0 or 1)
    return float(cost.epsilon) ** 2 / 2 if cost.delta == 0 else None


def zcdp(costs: Costs, delta: Decimal) -> float:
    """Epsilon of all ``costs`` at ``delta`` through zCDP; what has no rho is added plainly."""
    known, extra_epsilon, extra_delta = 0.0, Decimal(0), Decimal(0)
    for cost, times in Counter(costs).items():
        one = rho(cost)
        if one is None:
            extra_epsilon += cost.epsilon * times
            extra_delta += cost.delta * times
        else:
            known += one * times
    left = delta - extra_delta
    if left < 0 or (left == 0 and known > 0):
        return math.inf
    return zcdp_epsilon(known, float(left)) + float(extra_epsilon)


# Privacy loss distributions


def has_pld() -> bool:
    """Whether Google's dp-accounting is installed (the extra ``pld``)."""
    return importlib.util.find_spec("dp_accounting") is not None


def pld(costs: Costs, delta: Decimal) -> float:
    """Epsilon of all ``costs`` at ``delta`` by composed privacy loss distributions; infinite where delta is too small.

    Discrete noise is not accounted as the continuous one, which would understate it: at sensitivity 1 the loss of
    discrete Laplace takes two values only. With ``l0`` and ``linf`` it is ``l0`` shifts by ``linf`` (a shift that is
    larger, or one coordinate more, only adds loss, since the noise is log-concave). What is known by its epsilon and
    delta alone counts as the worst mechanism that has them.

    Raises:
        ModuleNotFoundError: dp-accounting is not installed.
    """
    counted = Counter(costs)
    if not counted:
        return 0.0
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as distribution

    def one(cost: Cost) -> Any:
        size = cost.sensitivity or 1.0
        exact = cost.l0 is not None and cost.linf is not None and cost.linf <= LARGEST_EXACT_SHIFT
        if cost.kind == "continuous_laplace":
            return distribution.from_laplace_mechanism(cost.scale, sensitivity=size)
        if cost.kind == "continuous_gaussian" or (cost.kind == "gaussian" and not exact and size > LARGEST_EXACT_SHIFT):
            return distribution.from_gaussian_mechanism(cost.scale, sensitivity=size)
        if cost.kind == "laplace" and exact:
            shift = distribution.from_discrete_laplace_mechanism(1 / cost.scale, sensitivity=cost.linf)
            return shift.self_compose(cost.l0)
        if cost.kind == "gaussian" and exact:
            shift = distribution.from_discrete_gaussian_mechanism(cost.scale, sensitivity=cost.linf)
            return shift.self_compose(cost.l0)
        parameters = common.DifferentialPrivacyParameters(float(cost.epsilon), float(cost.delta))
        return distribution.from_privacy_parameters(parameters)

    total: Any = None
    for cost, times in counted.items():
        if cost.epsilon == 0 and cost.delta == 0:
            continue
        part = one(cost).self_compose(times) if times > 1 else one(cost)
        total = part if total is None else total.compose(part)
    return 0.0 if total is None else float(total.get_epsilon_for_delta(float(delta)))


# All together


def totals(costs: Costs, delta: Decimal, methods: Iterable[str] = METHODS) -> Mapping[str, float]:
    """Epsilon at ``delta`` by every method of ``methods``; infinite where a method cannot keep ``delta``."""
    costs = Counter(costs)
    epsilon, spent_delta = summed(costs)
    result: dict[str, float] = {}
    for method in methods:
        if method == "sum":
            result[method] = float(epsilon) if spent_delta <= delta else math.inf
        elif method == "zcdp":
            result[method] = zcdp(costs, delta)
        elif has_pld():
            result[method] = pld(costs, delta)
    return result
