"""Which private keys may be released: thresholds on the noisy number of distinct units.

A key that exists because of one person discloses that person, whatever the noise on its figures. A key is released
only if its noisy number of distinct units reaches a threshold tau, chosen so that a key with one unit is released
with probability at most ``delta``, over all the keys that one unit brings along.

Sources: Korolova, Kenthapadi, Mishra, Ntoulas (2009), *Releasing search queries and clicks privately*, section 4, for
the threshold; Wilson et al. (2020), *Differentially private SQL with bounded user contribution*, section 4, for
distinct units and several keys a unit; Canonne, Kamath, Steinke (2020), *The discrete Gaussian for differential
privacy*, proposition 1 and fact 22, for the discrete Gaussian's normaliser and tail.
"""

from __future__ import annotations

import math
from statistics import NormalDist

_EXACT_SIGMA = 1000.0


def delta_per_key(delta: float, max_groups: int) -> float:
    """The share of ``delta`` for each of ``max_groups`` keys: ``1 - (1 - delta) ** (1 / max_groups)``.

    Args:
        delta: probability, in (0, 1), that any key of one unit alone is released.
        max_groups: number of keys that one unit may add, 1 or more.

    Raises:
        ValueError: an argument is out of range.

    >>> f"{delta_per_key(1e-5, 3):.9e}"
    '3.333344445e-06'
    """
    if not 0.0 < delta < 1.0:
        raise ValueError("delta must be between 0 and 1, both excluded")
    if max_groups < 1:
        raise ValueError("max_groups must be 1 or more")
    return -math.expm1(math.log1p(-delta) / max_groups)


def laplace_tau(epsilon: float, delta: float, max_groups: int) -> float:
    """Tau for continuous Laplace noise of scale ``max_groups / epsilon`` on the number of distinct units.

    >>> [round(laplace_tau(1.0, 1e-5, groups), 6) for groups in (1, 3, 5)]
    [11.819778, 36.755162, 63.146061]
    """
    scale = max_groups / _positive(epsilon, "epsilon")
    share = delta_per_key(delta, max_groups)
    return 1.0 - scale * math.log(2.0 * share) if share <= 0.5 else 1.0 + scale * math.log(2.0 - 2.0 * share)


def gaussian_tau(sigma: float, delta: float, max_groups: int) -> float:
    """Tau for continuous Gaussian noise of standard deviation ``sigma`` on the number of distinct units.

    ``delta`` is the threshold's own; that of the noise comes on top of it.
    """
    return 1.0 - _positive(sigma, "sigma") * NormalDist().inv_cdf(delta_per_key(delta, max_groups))


def whole_tau(mechanism: str, scale: float, delta: float, max_groups: int) -> int:
    """The smallest whole tau for discrete noise: a key is released if its noisy number of units is tau or more.

    It is the smallest whole number with ``P(1 + noise >= tau) <= delta_per_key(delta, max_groups)``, and so a little
    above the continuous tau: the discrete distribution has an atom where the continuous one has none.

    Args:
        mechanism: ``laplace`` or ``gaussian``, both discrete.
        scale: the Laplace scale ``max_groups / epsilon``, or sigma; in units.
        delta: the threshold's own delta, in (0, 1).
        max_groups: number of keys that one unit may add, 1 or more.

    Raises:
        ValueError: an argument is out of range, or the mechanism is unknown.

    >>> [whole_tau("laplace", groups / 1.0, 1e-5, groups) for groups in (1, 3, 5)]
    [13, 38, 64]
    """
    share = delta_per_key(delta, max_groups)
    low, high = 0, 1
    while upper_tail(mechanism, scale, high) > share:
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        if upper_tail(mechanism, scale, middle) > share:
            low = middle
        else:
            high = middle
    return 1 + high


def upper_tail(mechanism: str, scale: float, least: int) -> float:
    """``P(noise >= least)`` of the discrete noise; for ``least`` of 1 or more, never below the truth.

    The Gaussian sum is exact up to sigma 1,000. Above, the tail is bounded by the integral one step before it, which
    moves tau by at most one.

    >>> round(upper_tail("laplace", 1.0, 0) - upper_tail("laplace", 1.0, 1), 9)  # the atom at zero
    0.462117157
    """
    _positive(scale, "scale")
    if least <= 0:
        return 1.0 - upper_tail(mechanism, scale, 1 - least)
    if mechanism == "laplace":
        return math.exp(-least / scale) / (1.0 + math.exp(-1.0 / scale))
    if mechanism != "gaussian":
        raise ValueError("mechanism must be laplace or gaussian")
    if scale > _EXACT_SIGMA:
        return min(1.0, 0.5 * math.erfc((least - 1) / (scale * math.sqrt(2.0))))
    reach = math.ceil(scale * 40.0) + 1
    weights = [math.exp(-0.5 * (value / scale) ** 2) for value in range(reach)]
    return math.fsum(weights[least:]) / (2.0 * math.fsum(weights[1:]) + weights[0])


def survival(mechanism: str, scale: float, people: int, tau: int) -> float:
    """Probability that a key with ``people`` distinct units is released.

    >>> survival("laplace", 1.0, 1, 13) <= 1e-5 < survival("laplace", 1.0, 1, 12)
    True
    """
    return 0.0 if people < 1 else upper_tail(mechanism, scale, tau - people)


def _positive(value: float, name: str) -> float:
    if not (math.isfinite(value) and value > 0.0):
        raise ValueError(f"{name} must be a positive, finite number")
    return value
