"""What an adversary makes of masked points: linkage to the nearest true address, and the posterior over all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from dbt_veil.geo_plane import Floats

SAMPLE = 2_000
"""Masked points for which the posterior is computed at most: evenly spaced among all, in the order given."""

SLACK = 0.01
"""Share by which a law's sharp border is widened: distances in a plane are true to this."""

LogDensity = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Posterior:
    """The adversary's belief after seeing one masked point.

    Attributes:
        truth: shape (m,), the probability given to the true address.
        top: shape (m,), the chance that the most probable address, ties broken at random, is the true one.
        candidates: shape (m,), the exponential of the entropy: the effective number of addresses left.
        rows: shape (m,), the masked points that were looked at.
    """

    truth: Floats
    top: Floats
    candidates: Floats
    rows: NDArray[np.int64]


def linked(addresses: Floats, own: NDArray[np.int64], masked: Floats) -> NDArray[np.bool_]:
    """Whether no true address is nearer to a masked point than its own, shape (m,).

    Args:
        addresses: shape (n, 2), every true address, metres.
        own: shape (m,), which of them is each masked point's.
        masked: shape (m, 2), metres.
    """
    if len(masked) == 0:
        return np.zeros(0, dtype=bool)
    points = shapely.points(masked)
    tree = shapely.STRtree(shapely.points(addresses))
    nearest = np.asarray(tree.query_nearest(points, all_matches=False)[1])
    shortest = np.hypot(*(addresses[nearest] - masked).T)
    return np.asarray(np.hypot(*(addresses[own] - masked).T) <= shortest + 1e-6)


def posterior(addresses: Floats, own: NDArray[np.int64], masked: Floats, mask: Mapping[str, Any]) -> Posterior:
    """What an adversary believes who knows every address, how many people live there, and the mask.

    The prior of an address is its share of people. A mask without chance sends the addresses of one cell to one point,
    so the belief is the prior over those; a law of displacement weighs each address by its density at the point seen.

    Args:
        addresses: shape (n, 2), metres; an address that occurs w times has w people.
        own: shape (m,), which of them is each masked point's.
        masked: shape (m, 2), metres.
        mask: ``kind`` and the parameters of its law; any kind without a law is taken to be without chance.
    """
    places, place, people = np.unique(addresses, axis=0, return_inverse=True, return_counts=True)
    weights = np.log(people)
    homes = place.ravel()[own]
    if mask["kind"] not in _LAWS:
        cells, cell = np.unique(masked, axis=0, return_inverse=True)
        members: list[list[int]] = [[] for _ in cells]
        for home, one in sorted(set(zip(homes.tolist(), cell.ravel().tolist(), strict=True))):
            members[one].append(home)
    rows = np.unique(np.linspace(0, len(masked) - 1, min(SAMPLE, len(masked))).astype(np.int64))
    truth, top, candidates = (np.zeros(len(rows)) for _ in range(3))
    for at, row in enumerate(rows):
        if mask["kind"] in _LAWS:
            distance = np.hypot(*(places - masked[row]).T)
            belief = weights + _LAWS[mask["kind"]](distance, mask)
            home = homes[row]
        else:
            among = members[cell.ravel()[row]]
            belief, home = weights[among], among.index(homes[row])
        highest = belief.max()
        if not np.isfinite(highest):
            continue
        likely = np.exp(belief - highest)
        likely /= likely.sum()
        best = belief >= highest - 1e-9
        truth[at], top[at] = likely[home], best[home] / best.sum()
        some = likely[likely > 0]
        candidates[at] = np.exp(-(some * np.log(some)).sum())
    return Posterior(truth, top, candidates, rows)


def _ring(low: float, high: float) -> Callable[[Floats], Floats]:
    return lambda d: np.where((d >= low * (1 - SLACK)) & (d <= high * (1 + SLACK)), 0.0, -np.inf)


_LAWS: dict[str, Callable[[Floats, Mapping[str, Any]], Floats]] = {
    "jitter": lambda d, mask: _ring(0.0, mask["radius"])(d),
    "donut": lambda d, mask: _ring(mask["minimum"], mask["maximum"])(d),
    "gaussian": lambda d, mask: -((d / mask["sigma"]) ** 2) / 2,
    "planar_laplace": lambda d, mask: -mask["epsilon"] * d / 1000.0,
}
"""The logarithm of each law's density at a distance in metres, up to a constant."""
