"""Privacy models over sensitive values, as functions of the counts of each equivalence class.

Every function takes ``counts`` (classes, values): people of each class with each sensitive value, and the
``reference`` (values,): the share of each value that an adversary knows before the release. The formulas are those of
the measures in SQL; a test holds the two equal.

What each model allows a search to skip follows from two properties.

* *Persistent*: a class that satisfies the model still does after it is merged with any other class. So the people in
  classes that fail can only become fewer on the way up, and the model is monotone even when failing classes may be
  suppressed.
* *Convex*: the distributions that satisfy the model are a convex set. The distribution of a merged class is the
  average of its parts, weighted by their people, so when all parts satisfy the model the merged class does too: the
  model is monotone as long as nothing is suppressed. With suppression it is not, because a class that satisfies the
  model may be merged with one that was suppressed before.

Both hold only where people are counted once: a person with several values in several classes is one person in the
merged class, and the merged distribution is then not that average (only distinct counts stay persistent).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from dbt_veil.frequency import BoolArray, FloatArray, IntArray

TOLERANCE = 1e-9


class Criterion(Protocol):
    """A privacy model on one sensitive column."""

    persistent: ClassVar[bool]
    convex: ClassVar[bool]

    @property
    def name(self) -> str:
        """What the figure is called in a report."""

    @property
    def column(self) -> str:
        """The sensitive column."""

    @property
    def largest_is_worst(self) -> bool:
        """Whether a larger figure protects less."""

    def figures(self, counts: FloatArray, reference: FloatArray, missing: int) -> FloatArray:
        """(classes,): the model's figure for each class."""

    def holds(self, counts: FloatArray, reference: FloatArray, missing: int) -> BoolArray:
        """(classes,): whether each class satisfies the model."""


@dataclass(frozen=True)
class DistinctDiversity:
    """Distinct l-diversity: at least ``l`` different values (Machanavajjhala et al. 2007, section 4).

    Persistent: a merged class has every value of its parts.
    """

    column: str
    l: float  # noqa: E741 - the field's own name
    persistent: ClassVar[bool] = True
    convex: ClassVar[bool] = True
    largest_is_worst: ClassVar[bool] = False
    name: ClassVar[str] = "distinct_l"

    def figures(self, counts: FloatArray, reference: FloatArray, missing: int) -> FloatArray:
        """Number of different values; NULL is none."""
        result: FloatArray = np.count_nonzero(_known(counts, missing), axis=1).astype(np.float64)
        return result

    def holds(self, counts: FloatArray, reference: FloatArray, missing: int) -> BoolArray:
        """Whether the figure reaches l."""
        result: BoolArray = self.figures(counts, reference, missing) >= self.l - TOLERANCE
        return result


@dataclass(frozen=True)
class EntropyDiversity:
    """Entropy l-diversity: exp(H) of at least ``l`` (Machanavajjhala et al. 2007, definition 4.1).

    Convex: entropy is concave, so the set where it reaches ln(l) is convex. Not persistent.
    """

    column: str
    l: float  # noqa: E741
    persistent: ClassVar[bool] = False
    convex: ClassVar[bool] = True
    largest_is_worst: ClassVar[bool] = False
    name: ClassVar[str] = "entropy_l"

    def figures(self, counts: FloatArray, reference: FloatArray, missing: int) -> FloatArray:
        """The exponential of the entropy in nats: the effective number of values; 0 for a class of NULL alone."""
        known = _known(counts, missing)
        total = known.sum(axis=1)
        share = _shares(known)
        entropy = -np.sum(share * np.log(share, where=share > 0, out=np.zeros_like(share)), axis=1)
        return np.where(total > 0, np.exp(entropy), 0.0)

    def holds(self, counts: FloatArray, reference: FloatArray, missing: int) -> BoolArray:
        """Whether the figure reaches l."""
        result: BoolArray = self.figures(counts, reference, missing) >= self.l - TOLERANCE
        return result


@dataclass(frozen=True)
class RecursiveDiversity:
    """Recursive (c, l)-diversity: r1 < c (rl + … + rm), counts in falling order (Machanavajjhala et al. 2007, 4.2).

    Convex: r1 and the sum of the l - 1 largest shares are convex functions of the distribution, so the difference
    of the two sides is convex and the set where it is negative is a convex set. Not persistent.
    """

    column: str
    l: float  # noqa: E741
    c: float
    persistent: ClassVar[bool] = False
    convex: ClassVar[bool] = True
    largest_is_worst: ClassVar[bool] = False
    name: ClassVar[str] = "recursive_l"

    def figures(self, counts: FloatArray, reference: FloatArray, missing: int) -> FloatArray:
        """The largest l for which the class is (c, l)-diverse; 0 if there is none."""
        falling = -np.sort(-_known(counts, missing), axis=1)
        tail = np.cumsum(falling[:, ::-1], axis=1)[:, ::-1]
        result: FloatArray = np.count_nonzero(falling[:, :1] < self.c * tail, axis=1).astype(np.float64)
        return result

    def holds(self, counts: FloatArray, reference: FloatArray, missing: int) -> BoolArray:
        """Whether the class is (c, l)-diverse."""
        result: BoolArray = self.figures(counts, reference, missing) >= self.l - TOLERANCE
        return result


@dataclass(frozen=True)
class Closeness:
    """t-closeness: the distance between class and reference is at most ``t`` (Li et al. 2007).

    Convex: each of the distances is an earth mover's distance to a fixed reference, which is convex in the class's
    distribution (Li et al. 2007, section 4, property 1). Not persistent.

    Attributes:
        column: the sensitive column.
        t: the threshold.
        distance: ``equal`` (total variation), ``ordered`` (ranks over m - 1), ``numeric`` (differences over the
            range) or ``hierarchical``.
        positions: (values,); where each value lies between 0 and 1, for ``ordered`` and ``numeric``.
        groups: one array (values,) per inner level of the hierarchy from the leaves up, the top left out, with the
            number of the value's group; for ``hierarchical``.
    """

    column: str
    t: float
    distance: str = "equal"
    positions: FloatArray | None = None
    groups: tuple[IntArray, ...] = ()
    persistent: ClassVar[bool] = False
    convex: ClassVar[bool] = True
    largest_is_worst: ClassVar[bool] = True
    name: ClassVar[str] = "t"

    def figures(self, counts: FloatArray, reference: FloatArray, missing: int) -> FloatArray:
        """The distance of each class, from 0 to 1."""
        return _DISTANCES[self.distance](self, _shares(counts) - reference)

    def holds(self, counts: FloatArray, reference: FloatArray, missing: int) -> BoolArray:
        """Whether the distance stays within t."""
        result: BoolArray = self.figures(counts, reference, missing) <= self.t + TOLERANCE
        return result


def _equal(_: Closeness, difference: FloatArray) -> FloatArray:
    result: FloatArray = np.abs(difference).sum(axis=1) / 2
    return result


def _linear(model: Closeness, difference: FloatArray) -> FloatArray:
    assert model.positions is not None
    order = np.argsort(model.positions, kind="stable")
    gaps = np.diff(model.positions[order])
    return np.abs(np.cumsum(difference[:, order], axis=1)[:, :-1]) @ gaps


def _hierarchical(model: Closeness, difference: FloatArray) -> FloatArray:
    """Li et al. 2007, section 4.3: at every inner node, what its children must exchange, times its height."""
    height = len(model.groups) + 1
    total = np.zeros(len(difference))
    below = difference
    own = np.arange(difference.shape[1])
    for level in range(1, height + 1):
        group = model.groups[level - 1] if level < height else np.zeros_like(own)
        parents = np.zeros(below.shape[1], dtype=np.int64)
        parents[own] = group
        count = int(group.max(initial=0)) + 1
        positive = np.zeros((len(below), count))
        negative = np.zeros((len(below), count))
        np.add.at(positive.T, parents, np.maximum(below, 0).T)
        np.add.at(negative.T, parents, np.maximum(-below, 0).T)
        total += level / height * np.minimum(positive, negative).sum(axis=1)
        below = positive - negative
        own = group
    return total


_DISTANCES: dict[str, Callable[[Closeness, FloatArray], FloatArray]] = {
    "equal": _equal,
    "ordered": _linear,
    "numeric": _linear,
    "hierarchical": _hierarchical,
}


@dataclass(frozen=True)
class BetaLikeness:
    """Basic or enhanced beta-likeness: no value gains more than ``beta`` times its share (Cao and Karras 2012).

    Convex: one upper limit for the share of each value. Not persistent.
    """

    column: str
    beta: float
    enhanced: bool = False
    persistent: ClassVar[bool] = False
    convex: ClassVar[bool] = True
    largest_is_worst: ClassVar[bool] = True
    name: ClassVar[str] = "beta"

    def figures(self, counts: FloatArray, reference: FloatArray, missing: int) -> FloatArray:
        """The largest relative gain of a value, 0 if none gains."""
        result: FloatArray = np.max(self._gains(counts, reference), axis=1, initial=0.0)
        return result

    def holds(self, counts: FloatArray, reference: FloatArray, missing: int) -> BoolArray:
        """Whether every gain stays within beta, and for the enhanced form within -ln of the value's share too."""
        limit = np.full(len(reference), self.beta)
        if self.enhanced:
            limit = np.minimum(limit, -np.log(reference, where=reference > 0, out=np.full(len(reference), -np.inf)))
        result: BoolArray = np.all(self._gains(counts, reference) <= limit + TOLERANCE, axis=1)
        return result

    @staticmethod
    def _gains(counts: FloatArray, reference: FloatArray) -> FloatArray:
        share = _shares(counts)
        gain = np.divide(share - reference, reference, where=reference > 0, out=np.zeros_like(share))
        return np.where((reference == 0) & (share > 0), np.inf, np.maximum(gain, 0.0))


@dataclass(frozen=True)
class DeltaDisclosure:
    """delta-disclosure privacy: abs(ln(q / p)) within ``delta`` for each value (Brickell and Shmatikov 2008).

    A value that is absent from a class is not compared, as in pyCANON. The shares that satisfy the model are then 0
    or an interval away from 0, which is not convex: merging a class without a value with one that has little of it
    may fall between. So nothing can be skipped, with suppression or without.
    """

    column: str
    delta: float
    persistent: ClassVar[bool] = False
    convex: ClassVar[bool] = False
    largest_is_worst: ClassVar[bool] = True
    name: ClassVar[str] = "delta_disclosure"

    def figures(self, counts: FloatArray, reference: FloatArray, missing: int) -> FloatArray:
        """The largest absolute log ratio of a value in the class."""
        share = _shares(counts)
        both = (share > 0) & (reference > 0)
        ratio = np.divide(share, reference, where=both, out=np.ones_like(share))
        figure = np.max(np.abs(np.log(ratio)), axis=1, initial=0.0)
        return np.where(np.any((share > 0) & (reference == 0), axis=1), np.inf, figure)

    def holds(self, counts: FloatArray, reference: FloatArray, missing: int) -> BoolArray:
        """Whether the figure stays within delta."""
        result: BoolArray = self.figures(counts, reference, missing) <= self.delta + TOLERANCE
        return result


@dataclass(frozen=True)
class AlphaAnonymity:
    """The alpha of (alpha, k)-anonymity: no value has a larger share of a class (Wong et al. 2006).

    Convex: one upper limit for the share of each value. Not persistent.
    """

    column: str
    alpha: float
    persistent: ClassVar[bool] = False
    convex: ClassVar[bool] = True
    largest_is_worst: ClassVar[bool] = True
    name: ClassVar[str] = "alpha"

    def figures(self, counts: FloatArray, reference: FloatArray, missing: int) -> FloatArray:
        """The largest share of one value."""
        result: FloatArray = np.max(_shares(counts), axis=1, initial=0.0)
        return result

    def holds(self, counts: FloatArray, reference: FloatArray, missing: int) -> BoolArray:
        """Whether the figure stays within alpha."""
        result: BoolArray = self.figures(counts, reference, missing) <= self.alpha + TOLERANCE
        return result


def worst(criterion: Criterion, figures: FloatArray) -> float | None:
    """The figure of the class that is protected least, or ``None`` without a class."""
    if len(figures) == 0:
        return None
    return float(figures.max() if criterion.largest_is_worst else figures.min())


def spread(values: int) -> FloatArray:
    """(values,): ranks between 0 and 1, for the ordered distance."""
    result: FloatArray = np.arange(values) / max(values - 1, 1)
    return result


def scaled(numbers: FloatArray) -> FloatArray:
    """(values,): numbers moved and scaled to 0..1, for the numeric distance; all 0 without a range."""
    if len(numbers) == 0:
        return numbers
    low, high = float(numbers.min()), float(numbers.max())
    return (numbers - low) / (high - low) if high > low else np.zeros(len(numbers))


def _shares(counts: FloatArray) -> FloatArray:
    total = counts.sum(axis=1, keepdims=True)
    share: FloatArray = np.divide(counts, total, where=total > 0, out=np.zeros_like(counts))
    return share


def _known(counts: FloatArray, missing: int) -> FloatArray:
    return counts if missing < 0 else np.delete(counts, missing, axis=1)
