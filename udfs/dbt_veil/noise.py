"""Noise on whole numbers, and the rule that none is drawn without an open reservation.

How SQL calls it (a macro renders the calls, see ``veil.dp_noise``)::

    veil_laplace(reservation VARCHAR, query VARCHAR, value HUGEINT, scale DOUBLE) -> HUGEINT
    veil_gaussian(reservation VARCHAR, query VARCHAR, value HUGEINT, scale DOUBLE) -> HUGEINT
    veil_exponential(reservation VARCHAR, query VARCHAR, utilities BIGINT[], scale DOUBLE) -> BIGINT, from 1
    veil_randomized_response(reservation VARCHAR, query VARCHAR, category BIGINT, categories BIGINT, epsilon DOUBLE)
        -> BIGINT, from 0
    veil_noise_plan(request VARCHAR) -> VARCHAR

``reservation`` is the id of a release that the ledger's door has opened in this process, ``query`` one of the queries
reserved with it. The scale stands in the SQL so that a reviewer can read it, and must be the reserved one: SQL and
ledger cannot disagree. ``veil_noise_plan`` turns a request (JSON, see :func:`resolve`) into mechanisms with their
scales and draws nothing, so a macro may ask it at compile time.

Values are whole numbers of steps on a public grid; sensitivities and scales count the same steps. A NULL value counts
as 0 and gets its noise: neither the NULL nor an error about it is an output. NULL categories are answered at random.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import ROUND_FLOOR, Decimal, InvalidOperation, localcontext
from fractions import Fraction
from typing import Any, Protocol, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt_veil.accounting import Cost, zcdp_rho
from dbt_veil.udf import Session, Udf

Integers: TypeAlias = npt.NDArray[np.int64]

EPSILON_STEP = Decimal("1e-12")
DELTA_STEP = Decimal("1e-30")
LARGEST_EPSILON = 100
LARGEST_SCALE = float(2**56)
KINDS = ("laplace", "gaussian", "exponential", "randomized_response", "planar_laplace", "threshold")
QUERY_KEYS = ("name", "mechanism", "share", "delta", "l0", "linf", "l1", "l2", "monotone", "categories", "reports")
REQUEST_KEYS = ("epsilon", "delta", "mechanism", "queries")


# Amounts


def amount(value: object, step: Decimal) -> Decimal | None:
    """Read a number of the policy exactly and round it down to whole steps; ``None`` if it is no finite number.

    Takes numbers, decimal text and fractions as text (``"1/11"``). Rounding is down and the noise is calibrated to the
    rounded amount, so what is charged is what is spent: eleven spends of 1/11 fit into 1.

    >>> amount("1/11", EPSILON_STEP)
    Decimal('0.090909090909')
    >>> amount(float("nan"), EPSILON_STEP) is None
    True
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return None
    try:
        if isinstance(value, str) and "/" in value:
            exact = Fraction(value.replace(" ", ""))
            with localcontext(prec=80):
                number = Decimal(exact.numerator) / Decimal(exact.denominator)
        else:
            number = Decimal(str(value).strip())
    except (InvalidOperation, ValueError, ZeroDivisionError):
        return None
    if not number.is_finite() or abs(number) > Decimal("1e30"):
        return None
    with localcontext(prec=80):
        return number.quantize(step, rounding=ROUND_FLOOR)


def whole(value: object) -> int | None:
    """A whole number given as number or text, or ``None``.

    >>> whole("3"), whole(3.0), whole(2.5), whole(True)
    (3, 3, None, None)
    """
    number = None if isinstance(value, bool) else amount(value, EPSILON_STEP)
    return int(number) if number is not None and number == number.to_integral_value() else None


# Calibration


def laplace_scale(l1: int, epsilon: Decimal) -> float:
    """Smallest double that is at least ``l1 / epsilon``: discrete Laplace with it is ``epsilon``-DP.

    >>> laplace_scale(1, Decimal(1))
    1.0
    """
    exact = Fraction(l1) / Fraction(epsilon)
    scale = float(exact)
    return scale if Fraction(scale) >= exact else math.nextafter(scale, math.inf)


def _upper_tail(x: float) -> float:
    return 0.5 * math.erfc(x / math.sqrt(2))


def analytic_gaussian_sigma(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Smallest sigma for which continuous Gaussian noise is (``epsilon``, ``delta``)-DP.

    Balle and Wang, "Improving the Gaussian Mechanism for Differential Privacy" (2018), Algorithm 1.

    >>> round(analytic_gaussian_sigma(1.0, 1e-5), 6)
    3.730632
    """
    growth = math.exp(epsilon)

    def excess(v: float, sign: int) -> float:
        return _upper_tail(-sign * math.sqrt(epsilon * v)) - growth * _upper_tail(math.sqrt(epsilon * (v + 2)))

    wide = delta >= excess(0.0, 1)
    sign = 1 if wide else -1
    low, high = 0.0, 1.0
    while (excess(high, sign) <= delta) == wide:
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        if (excess(middle, sign) <= delta) == wide:
            low = middle
        else:
            high = middle
    v = low if wide else high
    return sensitivity * (math.sqrt(1 + v / 2) - sign * math.sqrt(v / 2)) / math.sqrt(2 * epsilon)


def discrete_gaussian_delta(sigma: float, epsilon: float, *, linf: int = 1, l0: int = 1) -> float:
    """Delta of discrete Gaussian noise at ``epsilon``, or an upper bound of it.

    The lattice makes it exceed that of continuous noise of the same sigma, by some percent where steps are coarse. For
    one coordinate this is Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy" (2020),
    Theorem 7. For ``l0`` coordinates the privacy loss depends on the sum of the noise alone, and that sum is within a
    factor e^tau of a discrete Gaussian of variance ``l0`` sigma^2 (Kairouz, Liu and Steinke, "The Distributed Discrete
    Gaussian Mechanism for Federated Learning with Secure Aggregation" (2021)).
    """
    spread = sigma * math.sqrt(l0)
    tau = 10 * (l0 - 1) * math.exp(-((math.pi * sigma) ** 2))
    threshold = epsilon * sigma**2 / linf - l0 * linf / 2
    first = math.floor(threshold) + 1
    shifted = first + l0 * linf
    if spread <= 20_000:
        reach = math.ceil(40 * spread) + 1
        support = np.arange(-reach, reach + 1, dtype=np.float64)
        total = np.exp(-(support**2) / (2 * spread**2)).sum()
        above = np.arange(first, max(reach, first + 1) + 1, dtype=np.float64)
        gain = np.exp(-(above**2) / (2 * spread**2))
        # p(y) - e^epsilon p(y + shift), written as one factor so that small differences keep their digits.
        loss = epsilon - (linf * above + l0 * linf**2 / 2) / sigma**2
        return float(math.exp(tau) * -(gain * np.expm1(loss)).sum() / total)
    # Too many points to add up: above the mode a falling density bounds its sum by integrals, and where it is convex
    # (beyond one standard deviation) by the midpoint and the trapezoid rule.
    convex = first - 1 >= spread
    upper = _upper_tail((first - (0.5 if convex else 1.0)) / spread)
    half = 0.5 * math.exp(-((shifted / spread) ** 2) / 2) / (spread * math.sqrt(2 * math.pi)) if convex else 0.0
    return math.exp(tau) * (upper - math.exp(epsilon) * (_upper_tail(shifted / spread) + half))


def gaussian_scale(
    epsilon: Decimal, delta: Decimal, *, l0: int | None = None, linf: int | None = None, l2: float | None = None
) -> float:
    """Sigma, in steps of the grid, for which discrete Gaussian noise is (``epsilon``, ``delta``)-DP.

    With ``l0`` and ``linf`` (a unit changes at most ``l0`` values, each by at most ``linf``) the analytic sigma is the
    start and is raised, by a percent or two on a coarse grid and by nothing visible on a fine one, until the discrete
    distribution itself keeps delta. With ``l2`` alone the shape of the change is unknown: sigma then comes from
    zero-concentrated DP, which discrete noise satisfies exactly like the continuous one, at about a tenth more noise.
    """
    if l2 is not None and l2**2 < 2:
        l0, linf = 1, 1
    if l0 is None or linf is None:
        if l2 is None:
            raise ValueError("gaussian_scale(): give `l0` and `linf`, or `l2`")
        return l2 / math.sqrt(2 * zcdp_rho(float(epsilon), float(delta)))
    sigma = analytic_gaussian_sigma(float(epsilon), float(delta), linf * math.sqrt(l0)) * (1 + 1e-12)
    if l0 > 1:
        sigma = max(sigma, 0.5)  # below, the sum of several draws is not close to one draw
    while discrete_gaussian_delta(sigma, float(epsilon), linf=linf, l0=l0) > float(delta):
        sigma *= 1.0002
    return sigma


def response_truth(epsilon: float, categories: int) -> float:
    """Probability that k-ary randomized response tells the truth.

    >>> round(response_truth(1.0, 10), 7)
    0.2319693
    """
    return math.exp(epsilon) / (math.exp(epsilon) + categories - 1)


# Mechanisms and reservations


@dataclass(frozen=True)
class Mechanism:
    """One query of a release with everything that its cost and its noise depend on.

    Attributes:
        query: the name in the policy.
        kind: one of :data:`KINDS`; ``threshold`` draws no noise, it is the delta spent on choosing private keys.
        epsilon: what is charged, in whole steps of 1e-12.
        delta: what is charged.
        scale: b, sigma or the Gumbel scale in steps of the grid; the probability of truth for randomized response;
            kilometres for planar Laplace, whose epsilon is that of all a person's reports a kilometre.
        l0: number of values that one unit changes, if declared.
        linf: largest change of one value, if declared.
        sensitivity: L1 for Laplace, L2 for Gaussian, of the utility for the exponential mechanism.
        categories: k of randomized response.
    """

    query: str
    kind: str
    epsilon: Decimal
    delta: Decimal
    scale: float
    l0: int | None = None
    linf: int | None = None
    sensitivity: float | None = None
    categories: int | None = None

    def cost(self) -> Cost:
        """What the accountant has to know."""
        return Cost(self.kind, self.epsilon, self.delta, self.scale, self.l0, self.linf, self.sensitivity)

    def row(self) -> dict[str, Any]:
        """As JSON: amounts are text, so that no digit is lost."""
        return asdict(self) | {"epsilon": f"{self.epsilon:f}", "delta": f"{self.delta:f}"}


@dataclass
class Reservation:
    """What the door has debited for one release, held in the memory of the process that may draw it.

    Attributes:
        release_id: the id that the model's SQL carries.
        mechanisms: by query name.
        drawn: queries of which noise was drawn; such a release cannot be refunded.
    """

    release_id: str
    mechanisms: Mapping[str, Mechanism]
    drawn: set[str]


def resolve(request: Mapping[str, Any]) -> tuple[list[Mechanism], list[str]]:
    """Mechanisms of a request and everything that is wrong with it.

    Args:
        request: ``{epsilon, delta, mechanism, queries}``; a query is ``{name, mechanism, share, delta, l0, linf, l1,
            l2, monotone, categories, reports}``. ``share`` is the query's part of epsilon (default: an equal part of
            what the others leave). ``delta`` is an amount of its own; the Gaussian queries without one part the rest
            by their shares. Sensitivities count steps of the grid: Laplace wants ``l1`` or ``l0`` and ``linf``,
            Gaussian ``l0`` and ``linf`` or ``l2``, the exponential mechanism ``linf`` (largest change of a utility),
            and planar Laplace ``reports``.
    """
    problems: list[str] = []
    _unknown(request, REQUEST_KEYS, "dp", problems)
    epsilon = amount(request.get("epsilon"), EPSILON_STEP)
    if epsilon is None or not 0 < epsilon <= LARGEST_EPSILON:
        problems.append(f"`epsilon` must be a number from 1e-12 to {LARGEST_EPSILON}. Got: {request.get('epsilon')!r}")
        epsilon = Decimal(1)
    given = request.get("delta")
    delta = Decimal(0) if given is None else amount(given, DELTA_STEP)
    if delta is None or not 0 <= delta < 1 or (delta == 0 and given not in (None, 0, "0")):
        problems.append(f"`delta` must be a number from 0 to below 1, in steps of 1e-30. Got: {given!r}")
        delta = Decimal(0)
    queries = request.get("queries")
    if not isinstance(queries, list) or not queries or not all(isinstance(query, Mapping) for query in queries):
        problems.append("`queries` must be a list of mappings with a name and a sensitivity, and not empty")
        return [], problems
    names = [str(query.get("name")) for query in queries]
    for name in sorted({name for name in names if names.count(name) > 1}):
        problems.append(f"`queries` names {name!r} twice: each draw is a query of its own")
    shares = _shares(queries, problems)
    kinds = [str(query.get("mechanism") or request.get("mechanism") or "laplace") for query in queries]
    deltas = _deltas(queries, kinds, shares, delta, problems)
    mechanisms = [
        _mechanism(query, kind, (epsilon * share).quantize(EPSILON_STEP, rounding=ROUND_FLOOR), part, problems)
        for query, kind, share, part in zip(queries, kinds, shares, deltas, strict=True)
    ]
    return ([], problems) if problems else ([item for item in mechanisms if item is not None], [])


def _unknown(mapping: Mapping[str, Any], known: Sequence[str], where: str, problems: list[str]) -> None:
    for key in mapping:
        if key not in known:
            problems.append(f"`{where}` has no key {key!r}; it has {', '.join(known)}")


def _shares(queries: Sequence[Mapping[str, Any]], problems: list[str]) -> list[Decimal]:
    shares: list[Decimal | None] = []
    for query in queries:
        given = query.get("share")
        threshold = query.get("mechanism") == "threshold"
        share = Decimal(0) if threshold and given is None else amount(given, EPSILON_STEP)
        if given is not None and (share is None or not (0 <= share <= 1 if threshold else 0 < share <= 1)):
            problems.append(f"`share` of query {query.get('name')!r} must be above 0 and at most 1. Got: {given!r}")
            share = Decimal(0)
        shares.append(share)
    left = 1 - sum((share for share in shares if share is not None), Decimal(0))
    open_ones = shares.count(None)
    if left < 0 or (open_ones and left == 0):
        problems.append(f"`share` must add up to at most 1 over all queries{' and leave something' * bool(open_ones)}")
        left = Decimal(0)
    part = (left / open_ones).quantize(EPSILON_STEP, rounding=ROUND_FLOOR) if open_ones else Decimal(0)
    return [part if share is None else share for share in shares]


def _deltas(
    queries: Sequence[Mapping[str, Any]],
    kinds: Sequence[str],
    shares: Sequence[Decimal],
    delta: Decimal,
    problems: list[str],
) -> list[Decimal]:
    parts: list[Decimal | None] = []
    for query, kind in zip(queries, kinds, strict=True):
        given = query.get("delta")
        part = amount(given, DELTA_STEP)
        if given is not None and (part is None or not 0 < part < 1):
            problems.append(f"`delta` of query {query.get('name')!r} must be above 0 and below 1. Got: {given!r}")
            part = Decimal(0)
        elif given is not None and kind not in ("gaussian", "threshold"):
            problems.append(f"`delta` of query {query.get('name')!r}: {kind} spends none; leave it away")
        parts.append(part if given is not None or kind == "gaussian" else Decimal(0))
    left = delta - sum((part for part in parts if part is not None), Decimal(0))
    if left < 0:
        problems.append("`delta` of the queries must add up to at most the policy's `delta`")
        left = Decimal(0)
    weight = sum((share for share, part in zip(shares, parts, strict=True) if part is None), Decimal(0))
    with localcontext(prec=80):
        return [
            (left * share / weight if weight else Decimal(0)).quantize(DELTA_STEP, rounding=ROUND_FLOOR)
            if part is None
            else part
            for share, part in zip(shares, parts, strict=True)
        ]


def _mechanism(
    query: Mapping[str, Any], kind: str, epsilon: Decimal, delta: Decimal, problems: list[str]
) -> Mechanism | None:
    name = query.get("name")
    where = f"query {name!r}"
    before = len(problems)
    if not isinstance(name, str) or not name.isidentifier():
        problems.append(f"`name` of a query must be letters, digits and underscores. Got: {name!r}")
    _unknown(query, QUERY_KEYS, where, problems)
    if kind not in KINDS:
        problems.append(f"`mechanism` of {where} must be one of {', '.join(KINDS)}. Got: {kind!r}")
        return None
    if kind == "threshold":
        if delta == 0:
            problems.append(f"`delta` of {where} must be above 0: private keys cost delta")
        if epsilon > 0:
            problems.append(f"`share` of {where} must be left away: a threshold spends delta only")
        return Mechanism(str(name), kind, Decimal(0), delta, 0.0)
    if epsilon == 0:
        problems.append(f"`share` of {where} leaves no epsilon in steps of 1e-12")
    if kind == "gaussian" and delta == 0:
        problems.append(f"`delta` of {where} must be above 0 for gaussian noise; name one or use laplace")
    sizes: dict[str, int | None] = {}
    for key in ("l0", "linf", "l1", "categories", "reports"):
        if query.get(key) is not None:
            sizes[key] = whole(query[key])
            if sizes[key] is None or not 0 < cast(int, sizes[key]) <= 2**100:
                problems.append(f"`{key}` of {where} must be a whole number of steps above 0. Got: {query[key]!r}")
    l0, linf, l1, categories = (sizes.get(key) for key in ("l0", "linf", "l1", "categories"))
    l2 = amount(query.get("l2"), EPSILON_STEP)
    if query.get("l2") is not None and (l2 is None or l2 < Decimal("0.001")):
        problems.append(f"`l2` of {where} must be a number above 0. Got: {query['l2']!r}")
    if not isinstance(query.get("monotone", False), bool):
        problems.append(f"`monotone` of {where} must be true or false. Got: {query['monotone']!r}")
    if len(problems) > before:
        return None
    both = l0 is not None and linf is not None
    if both and l1 is not None and l1 < cast(int, l0) * cast(int, linf):
        problems.append(f"`l1` of {where} is below `l0` times `linf`; leave one of them away")
        return None
    if kind == "planar_laplace":
        reports = sizes.get("reports")
        if reports is None:
            problems.append(f"{where} needs `reports`: how many points of one person are released at most")
            return None
        return Mechanism(str(name), kind, epsilon, delta, reports / float(epsilon), reports, 1, 1.0)
    if kind == "laplace":
        if not both and l1 is None:
            problems.append(f"{where} needs `l1`, or `l0` and `linf`: without a sensitivity there is no noise")
            return None
        size = l1 if l1 is not None else cast(int, l0) * cast(int, linf)
        return _limited(
            Mechanism(str(name), kind, epsilon, delta, laplace_scale(size, epsilon), l0, linf, float(size)), problems
        )
    if kind == "gaussian":
        if not both and l2 is None:
            problems.append(f"{where} needs `l0` and `linf`, or `l2`: without a sensitivity there is no noise")
            return None
        size2 = math.sqrt(cast(int, l0)) * cast(int, linf) if both else float(cast(Decimal, l2))
        sigma = gaussian_scale(epsilon, delta, l0=l0, linf=linf, l2=None if both else size2)
        return _limited(Mechanism(str(name), kind, epsilon, delta, sigma, l0, linf, size2), problems)
    if kind == "exponential":
        if linf is None:
            problems.append(f"{where} needs `linf`: the largest change of one utility by one unit")
            return None
        folds = l0 or 1
        scale = laplace_scale((1 if query.get("monotone") else 2) * linf * folds, epsilon)
        return _limited(Mechanism(str(name), kind, epsilon, delta, scale, folds, linf, float(linf)), problems)
    if categories is None or not 2 <= categories <= 2**31:
        problems.append(
            f"`categories` of {where} must be a whole number of at least 2. Got: {query.get('categories')!r}"
        )
        return None
    truth = response_truth(float(epsilon), categories)
    return Mechanism(str(name), kind, epsilon, delta, truth, 1, 1, 1.0, categories)


def _limited(mechanism: Mechanism, problems: list[str]) -> Mechanism | None:
    if mechanism.scale <= LARGEST_SCALE:
        return mechanism
    problems.append(f"query {mechanism.query!r} needs noise of more than 2^56 steps of its grid: choose a coarser grid")
    return None


# Samplers


class Sampler(Protocol):
    """Where noise comes from."""

    seeded: bool

    def laplace(self, scale: float, size: int) -> Integers:
        """``size`` independent draws of discrete Laplace, in steps of the grid."""

    def gaussian(self, scale: float, size: int) -> Integers:
        """``size`` independent draws of the discrete Gaussian, in steps of the grid."""

    def choose(self, utilities: Sequence[int], scale: float) -> int:
        """An index, drawn with probability proportional to exp(utility / scale)."""

    def respond(self, truth: Integers, categories: int, epsilon: float) -> Integers:
        """Randomized response of each category; any below 0 is answered at random."""


class ExactSampler:
    """OpenDP's exact samplers over vectors, fed by the operating system's randomness."""

    seeded = False

    def __init__(self) -> None:
        self._measurements: dict[tuple[str, float], Callable[[list[int]], Any]] = {}

    def _measurement(self, kind: str, scale: float) -> Callable[[list[int]], Any]:
        found = self._measurements.get((kind, scale))
        if found is not None:
            return found
        import opendp.prelude as dp

        dp.enable_features("contrib")
        vector = dp.vector_domain(dp.atom_domain(T="i64"))
        made: Any
        if kind == "laplace":
            made = dp.m.make_laplace(vector, dp.l1_distance(T="i64"), scale=scale)
        elif kind == "gaussian":
            made = dp.m.make_gaussian(vector, dp.l2_distance(T="f64"), scale=scale)
        else:
            # Report noisy max with Gumbel noise is the exponential mechanism; with exponential noise it would be
            # permute-and-flip, another distribution.
            measure = dp.zero_concentrated_divergence()
            made = dp.m.make_noisy_max(vector, dp.linf_distance(T="i64"), measure, scale=scale)
        self._measurements[(kind, scale)] = made
        return cast(Callable[[list[int]], Any], made)

    def laplace(self, scale: float, size: int) -> Integers:
        """See :class:`Sampler`."""
        return np.array(self._measurement("laplace", scale)([0] * size), dtype=np.int64)

    def gaussian(self, scale: float, size: int) -> Integers:
        """See :class:`Sampler`."""
        return np.array(self._measurement("gaussian", scale)([0] * size), dtype=np.int64)

    def choose(self, utilities: Sequence[int], scale: float) -> int:
        """See :class:`Sampler`."""
        return int(self._measurement("exponential", scale)(list(utilities)))

    def respond(self, truth: Integers, categories: int, epsilon: float) -> Integers:
        """See :class:`Sampler`. The probability of truth is rounded down to 62 bits, towards more privacy."""
        with localcontext(prec=60):
            growth = Decimal(epsilon).exp()
            threshold = max(int(growth / (growth + categories - 1) * 2**62), 2**62 // categories)
        bits = np.frombuffer(os.urandom(8 * len(truth)), dtype=np.uint64) >> np.uint64(2)
        lie = (truth + 1 + self._below(categories - 1, len(truth))) % categories
        answer = np.where(bits < np.uint64(threshold), truth, lie)
        return np.where(truth < 0, self._below(categories, len(truth)), answer).astype(np.int64)

    @staticmethod
    def _below(bound: int, size: int) -> Integers:
        """Uniform whole numbers in [0, ``bound``), by rejection."""
        draws = np.empty(0, dtype=np.uint64)
        ceiling = np.uint64(2**63 // bound * bound)
        while len(draws) < size:
            bits = np.frombuffer(os.urandom(8 * (size - len(draws))), dtype=np.uint64) >> np.uint64(1)
            draws = np.concatenate([draws, bits[bits < ceiling] % np.uint64(bound)])
        return draws.astype(np.int64)


class HarnessSampler:
    """Repeatable noise, or none, for tests. It protects nobody: its releases are marked and never published."""

    seeded = True

    def __init__(self, seed: int | None) -> None:
        self._random = None if seed is None else np.random.default_rng(seed)

    def laplace(self, scale: float, size: int) -> Integers:
        """See :class:`Sampler`."""
        if self._random is None:
            return np.zeros(size, dtype=np.int64)
        stop = -math.expm1(-1 / scale)
        return (self._random.geometric(stop, size) - self._random.geometric(stop, size)).astype(np.int64)

    def gaussian(self, scale: float, size: int) -> Integers:
        """See :class:`Sampler`."""
        if self._random is None:
            return np.zeros(size, dtype=np.int64)
        return np.rint(self._random.normal(0, scale, size)).astype(np.int64)

    def choose(self, utilities: Sequence[int], scale: float) -> int:
        """See :class:`Sampler`."""
        noise = 0.0 if self._random is None else self._random.gumbel(0, scale, len(utilities))
        return int(np.argmax(np.asarray(utilities, dtype=np.float64) + noise))

    def respond(self, truth: Integers, categories: int, epsilon: float) -> Integers:
        """See :class:`Sampler`."""
        if self._random is None:
            return np.maximum(truth, 0)
        lie = (truth + self._random.integers(1, categories, len(truth))) % categories
        told = self._random.random(len(truth)) < response_truth(epsilon, categories)
        return np.where(truth < 0, self._random.integers(0, categories, len(truth)), np.where(told, truth, lie))


def sampler(config: Mapping[str, Any]) -> Sampler:
    """The sampler that the plugin's config asks for: exact, unless ``harness_noise`` is a seed or ``off``.

    Raises:
        ValueError: ``harness_noise`` is something else.
    """
    asked = config.get("harness_noise")
    if asked is None:
        return ExactSampler()
    if asked in ("off", False):
        return HarnessSampler(None)
    if isinstance(asked, int) and not isinstance(asked, bool):
        return HarnessSampler(asked)
    raise ValueError("dbt_veil.plugin: `harness_noise` must be a whole number or 'off', and absent outside tests")


# SQL


def udfs(session: Session) -> Sequence[Udf]:
    """The noise of one database; see the module's text for the signatures."""
    source = sampler(session.config)

    def additive(kind: str) -> Callable[[pa.ChunkedArray, pa.ChunkedArray, pa.ChunkedArray, pa.ChunkedArray], Any]:
        draw = source.laplace if kind == "laplace" else source.gaussian

        def noisy(
            ids: pa.ChunkedArray, queries: pa.ChunkedArray, values: pa.ChunkedArray, scales: pa.ChunkedArray
        ) -> Any:
            noise = np.zeros(len(values), dtype=np.int64)
            for rows, mechanism in reserved(session, kind, ids, queries, scales):
                noise[rows] = draw(mechanism.scale, len(rows))
            return _add(values, noise)

        return noisy

    def choose(ids: pa.ChunkedArray, queries: pa.ChunkedArray, lists: pa.ChunkedArray, scales: pa.ChunkedArray) -> Any:
        utilities = lists.to_pylist()
        chosen = np.zeros(len(utilities), dtype=np.int64)
        for rows, mechanism in reserved(session, "exponential", ids, queries, scales):
            for row in rows:
                scores = utilities[row]
                if not scores:
                    raise ValueError("veil_exponential(): `utilities` must not be empty or NULL: list every candidate")
                floor = min((score for score in scores if score is not None), default=0)
                chosen[row] = source.choose([floor if s is None else s for s in scores], mechanism.scale) + 1
        return pa.array(chosen)

    def respond(
        ids: pa.ChunkedArray,
        queries: pa.ChunkedArray,
        values: pa.ChunkedArray,
        categories: pa.ChunkedArray,
        epsilons: pa.ChunkedArray,
    ) -> Any:
        truth = np.asarray(pc.fill_null(values, -1).to_numpy(), dtype=np.int64)
        answers = np.zeros(len(truth), dtype=np.int64)
        for rows, mechanism in reserved(session, "randomized_response", ids, queries, epsilons):
            count = cast(int, mechanism.categories)
            if pc.any(pc.not_equal(pc.fill_null(categories.take(pa.array(rows)), -1), count)).as_py():
                raise ValueError("veil_randomized_response(): `categories` must be the reserved number")
            known = np.where((truth[rows] >= 0) & (truth[rows] < count), truth[rows], -1)
            answers[rows] = source.respond(known, count, float(mechanism.epsilon))
        return pa.array(answers)

    numeric = ("VARCHAR", "VARCHAR", "HUGEINT", "DOUBLE")
    noise = {"volatile": True, "sees_null": True}
    return (
        Udf("veil_laplace", additive("laplace"), numeric, "HUGEINT", **noise),
        Udf("veil_gaussian", additive("gaussian"), numeric, "HUGEINT", **noise),
        Udf("veil_exponential", choose, ("VARCHAR", "VARCHAR", "BIGINT[]", "DOUBLE"), "BIGINT", **noise),
        Udf(
            "veil_randomized_response",
            respond,
            ("VARCHAR", "VARCHAR", "BIGINT", "BIGINT", "DOUBLE"),
            "BIGINT",
            **noise,
        ),
        Udf("veil_noise_plan", plan, ("VARCHAR",), "VARCHAR", arrow=False),
    )


def plan(request: str) -> str:
    """Mechanisms of a request as JSON ``{"problems": […], "queries": [{query, kind, epsilon, delta, scale, …}]}``."""
    mechanisms, problems = resolve(json.loads(request))
    return json.dumps({"problems": problems, "queries": [mechanism.row() for mechanism in mechanisms]})


def reserved(
    session: Session, kind: str, ids: pa.ChunkedArray, queries: pa.ChunkedArray, scales: pa.ChunkedArray
) -> list[tuple[npt.NDArray[np.intp], Mechanism]]:
    """Rows by mechanism, after the check that each was reserved in this process with exactly this scale.

    Raises:
        ValueError: no open reservation, another mechanism, another scale, or a NULL in one of them.
    """
    table = pa.table({"id": ids, "query": queries, "scale": scales})
    keys = table.group_by(["id", "query", "scale"], use_threads=False).aggregate([])
    groups: list[tuple[npt.NDArray[np.intp], Mechanism]] = []
    for key in keys.to_pylist():
        release, query, scale = key["id"], key["query"], key["scale"]
        with session.lock:
            reservation = session.reservations.get(release)
            if reservation is None:
                raise ValueError(
                    f"veil_{kind}(): this process holds no open reservation for the calling model, so no noise is "
                    "drawn. Noise comes with `dbt run` or `dbt build` of a model with materialized: release, only"
                )
            mechanism = reservation.mechanisms.get(query)
            if mechanism is None or mechanism.kind != kind:
                raise ValueError(f"veil_{kind}(): the model's policy reserves no {kind} query of this name")
            reserved = float(mechanism.epsilon) if kind == "randomized_response" else mechanism.scale
            # A literal in SQL may differ in its last bit. The draw below takes the reserved scale in any case.
            if scale is None or not abs(scale - reserved) <= 1e-12 * reserved:
                raise ValueError(f"veil_{kind}(): query {query!r} must be drawn at the scale that was reserved")
            reservation.drawn.add(query)
        if len(keys) == 1:
            rows = np.arange(len(table))
        else:
            mask = pc.and_(
                pc.equal(table["query"], query),
                pc.and_(pc.equal(table["id"], release), pc.equal(table["scale"], scale)),
            )
            rows = np.flatnonzero(mask.to_numpy())
        groups.append((rows, mechanism))
    return groups


def _add(values: pa.ChunkedArray, noise: Integers) -> pa.Array:
    """Values plus noise, NULL as 0, exact and saturated at 38 digits."""
    filled = pc.fill_null(values, Decimal(0))
    extent = pc.min_max(filled).as_py() if len(filled) else {"min": 0, "max": 0}
    if extent["min"] > -(2**62) and extent["max"] < 2**62 and (not len(noise) or np.abs(noise).max() < 2**62):
        total = np.asarray(filled.cast(pa.int64()).to_numpy()) + noise
        return pa.array(total).cast(pa.decimal128(38, 0))
    limit = 10**38 - 1
    exact = (int(value) + drawn for value, drawn in zip(filled.to_pylist(), noise.tolist(), strict=True))
    return pa.array([Decimal(max(-limit, min(limit, number))) for number in exact], pa.decimal128(38, 0))
