"""Privacy models over sensitive values, as functions of the counts of each equivalence class.

The formulas are those of the measures in SQL; a test holds the two equal.

What each model allows a search to skip follows from two properties.

* *Persistent*: a class that satisfies the model still does after it is merged with any other class. So the model is
  monotone as long as nothing is suppressed.
* *Convex*: the distributions that satisfy the model are a convex set. The distribution of a merged class is the
  average of its parts, weighted by their people, so when all parts satisfy the model the merged class does too, and
  again the model is monotone as long as nothing is suppressed. This needs people to be counted once: someone with
  rows in several classes is one person in the merged class, whose distribution is then not that average.

With suppression neither helps: a class may be merged with people who were suppressed below, and people who were
suppressed below may form a class that fails.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np

from dbt_veil.frequency import BoolArray, FloatArray, IntArray

TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class View:
    """One sensitive column of a release.

    Attributes:
        counts: (classes, values); people of each class with each value.
        people: (classes,); people of each class, fewer than the sum of its counts where someone has several values.
        reference: (values,); the share of each value that an adversary knows before the release.
        missing: index of NULL among the values, or -1.
    """

    counts: FloatArray
    people: FloatArray
    reference: FloatArray
    missing: int = -1

    @cached_property
    def shares(self) -> FloatArray:
        """(classes, values): counts as shares of their sum."""
        return _shares(self.counts)


class Criterion(Protocol):
    """A privacy model on one sensitive column."""

    @property
    def persistent(self) -> bool:
        """Whether a class that satisfies the model does so after any merger."""

    @property
    def convex(self) -> bool:
        """Whether the distributions that satisfy the model are a convex set."""

    @property
    def name(self) -> str:
        """What the figure is called in a report."""

    @property
    def column(self) -> str:
        """The sensitive column."""

    @property
    def largest_is_worst(self) -> bool:
        """Whether a larger figure protects less."""

    def figures(self, view: View) -> FloatArray:
        """(classes,): the model's figure for each class."""

    def holds(self, view: View) -> BoolArray:
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

    def figures(self, view: View) -> FloatArray:
        """Number of different values; NULL is none."""
        result: FloatArray = np.count_nonzero(_known(view), axis=1).astype(np.float64)
        return result

    def holds(self, view: View) -> BoolArray:
        """Whether the figure reaches l."""
        result: BoolArray = self.figures(view) >= self.l - TOLERANCE
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

    def figures(self, view: View) -> FloatArray:
        """The exponential of the entropy in nats: the effective number of values; 0 for a class of NULL alone."""
        known = _known(view)
        total = known.sum(axis=1)
        share = _shares(known)
        entropy = -np.sum(share * np.log(share, where=share > 0, out=np.zeros_like(share)), axis=1)
        return np.where(total > 0, np.exp(entropy), 0.0)

    def holds(self, view: View) -> BoolArray:
        """Whether the figure reaches l."""
        result: BoolArray = self.figures(view) >= self.l - TOLERANCE
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
    largest_is_worst: ClassVar[bool] = True
    name: ClassVar[str] = "recursive_l"

    def figures(self, view: View) -> FloatArray:
        """r1 / (rl + … + rm): below c in a diverse class, infinite without an l-th value."""
        falling = -np.sort(-_known(view), axis=1)
        tail = falling[:, int(self.l) - 1 :].sum(axis=1)
        largest = falling.max(axis=1, initial=0.0)
        ratio: FloatArray = np.divide(largest, tail, where=tail > 0, out=np.full(len(tail), np.inf))
        return ratio

    def holds(self, view: View) -> BoolArray:
        """Whether the class is (c, l)-diverse."""
        result: BoolArray = self.figures(view) <= self.c - TOLERANCE
        return result


@dataclass(frozen=True)
class Closeness:
    """t-closeness: the distance between class and reference is at most ``t`` (Li et al. 2007).

    Convex: each of the distances is an earth mover's distance to a fixed reference, which is convex in the class's
    distribution (Li et al. 2007, section 4, property 1). Not persistent. Where values stand outside the line of the
    ordered and the numeric distance, the distance is no longer one such, and nothing is assumed of it.

    Attributes:
        column: the sensitive column.
        t: the threshold.
        distance: ``equal`` (total variation), ``ordered`` (ranks over m - 1), ``numeric`` (differences over the
            range) or ``hierarchical``.
        positions: (values,); where each value lies, for ``ordered`` and ``numeric``. NaN is a value of its own, at
            distance 1 from all others.
        span: length of the line; without it, from the first to the last value that occurs.
        groups: one array (values,) per inner level of the hierarchy from the leaves up, the top left out, with the
            number of the value's group; for ``hierarchical``.
    """

    column: str
    t: float
    distance: str = "equal"
    positions: FloatArray | None = None
    span: float | None = None
    groups: tuple[IntArray, ...] = ()
    persistent: ClassVar[bool] = False
    largest_is_worst: ClassVar[bool] = True
    name: ClassVar[str] = "t"

    @property
    def convex(self) -> bool:
        """Whether every value has a place on the line."""
        return self.positions is None or not np.isnan(self.positions).any()

    def figures(self, view: View) -> FloatArray:
        """The distance of each class, from 0 to 1."""
        return _DISTANCES[self.distance](self, view)

    def holds(self, view: View) -> BoolArray:
        """Whether the distance stays within t."""
        result: BoolArray = self.figures(view) <= self.t + TOLERANCE
        return result


def _equal(_: Closeness, view: View) -> FloatArray:
    result: FloatArray = np.abs(view.shares - view.reference).sum(axis=1) / 2
    return result


def _ordered(model: Closeness, view: View) -> FloatArray:
    """Ranks of the values that occur; with a span, the positions as they are."""
    assert model.positions is not None
    positions = model.positions
    if model.span is None:
        present = positions[(view.reference > 0) & ~np.isnan(positions)]
        ranks = np.searchsorted(np.unique(present), positions).astype(np.float64)
        positions = np.where(np.isnan(positions), np.nan, ranks)
    return _linear(positions, model.span, view)


def _numeric(model: Closeness, view: View) -> FloatArray:
    assert model.positions is not None
    return _linear(model.positions, model.span, view)


def _linear(positions: FloatArray, span: float | None, view: View) -> FloatArray:
    """What is carried past each position, times the step to the next, over the span; apart from values off the line."""
    off = np.isnan(positions)
    matched = np.minimum(view.shares[:, off], view.reference[off]).sum(axis=1)
    placed = np.flatnonzero(~off & ((view.reference > 0) | (view.counts > 0).any(axis=0)))
    order = placed[np.argsort(positions[placed], kind="stable")]
    share, reference = view.shares[:, order], view.reference[order]
    known, known_reference = share.sum(axis=1), float(reference.sum())
    length = span if span is not None else float(np.ptp(positions[order])) if len(order) else 0.0
    carried = np.abs(_cumulated(share, known) - _cumulated(reference[None, :], np.array([known_reference])))
    cost = carried[:, :-1] @ np.diff(positions[order]) / length if length > 0 else np.zeros(len(share))
    result: FloatArray = 1 - matched - np.minimum(known, known_reference) * (1 - cost)
    return np.maximum(result, 0.0)


def _cumulated(share: FloatArray, total: FloatArray) -> FloatArray:
    summed = np.cumsum(share, axis=1)
    return np.divide(summed, total[:, None], where=total[:, None] > 0, out=np.zeros_like(summed))


def _hierarchical(model: Closeness, view: View) -> FloatArray:
    """Li et al. 2007, section 4.2: at every inner node, what its children must exchange, times its height."""
    below = view.shares - view.reference
    height = len(model.groups) + 1
    total = np.zeros(len(below))
    own = np.arange(below.shape[1])
    for level in range(1, height + 1):
        group = model.groups[level - 1] if level < height else np.zeros(len(own), dtype=np.int64)
        parents = np.zeros(below.shape[1], dtype=np.int64)
        parents[own] = group
        count = int(group.max(initial=0)) + 1
        positive = np.zeros((count, len(below)))
        negative = np.zeros((count, len(below)))
        np.add.at(positive, parents, np.maximum(below, 0).T)
        np.add.at(negative, parents, np.maximum(-below, 0).T)
        total += level / height * np.minimum(positive, negative).sum(axis=0)
        below = (positive - negative).T
        own = group
    return total


_DISTANCES: dict[str, Callable[[Closeness, View], FloatArray]] = {
    "equal": _equal,
    "ordered": _ordered,
    "numeric": _numeric,
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

    def figures(self, view: View) -> FloatArray:
        """The largest relative gain of a value, 0 if none gains; for the enhanced form up to the largest -ln share."""
        result: FloatArray = np.max(self._gains(view), axis=1, initial=0.0)
        return np.minimum(result, np.max(self._caps(view), initial=0.0)) if self.enhanced else result

    def holds(self, view: View) -> BoolArray:
        """Whether every gain stays within beta, and for the enhanced form within -ln of the value's share too."""
        limit = np.full(len(view.reference), self.beta)
        if self.enhanced:
            limit = np.minimum(limit, self._caps(view))
        result: BoolArray = np.all(self._gains(view) <= limit + TOLERANCE, axis=1)
        return result

    @staticmethod
    def _caps(view: View) -> FloatArray:
        share = view.reference
        return -np.log(share, where=share > 0, out=np.zeros(len(share)))

    @staticmethod
    def _gains(view: View) -> FloatArray:
        share, reference = view.shares, view.reference
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

    def figures(self, view: View) -> FloatArray:
        """The largest absolute log ratio of a value in the class."""
        share, reference = view.shares, view.reference
        both = (share > 0) & (reference > 0)
        ratio = np.divide(share, reference, where=both, out=np.ones_like(share))
        figure = np.max(np.abs(np.log(ratio)), axis=1, initial=0.0)
        return np.where(np.any((share > 0) & (reference == 0), axis=1), np.inf, figure)

    def holds(self, view: View) -> BoolArray:
        """Whether the figure stays within delta."""
        result: BoolArray = self.figures(view) <= self.delta + TOLERANCE
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

    def figures(self, view: View) -> FloatArray:
        """The largest share of one value."""
        result: FloatArray = view.counts.max(axis=1, initial=0.0) / np.maximum(view.people, 1.0)
        return result

    def holds(self, view: View) -> BoolArray:
        """Whether the figure stays within alpha."""
        result: BoolArray = self.figures(view) <= self.alpha + TOLERANCE
        return result


def worst(criterion: Criterion, figures: FloatArray) -> float | None:
    """The figure of the class that is protected least, or ``None`` without a class."""
    if len(figures) == 0:
        return None
    return float(figures.max() if criterion.largest_is_worst else figures.min())


def _shares(counts: FloatArray) -> FloatArray:
    total = counts.sum(axis=1, keepdims=True)
    share: FloatArray = np.divide(counts, total, where=total > 0, out=np.zeros_like(counts))
    return share


def _known(view: View) -> FloatArray:
    return view.counts if view.missing < 0 else np.delete(view.counts, view.missing, axis=1)
