"""Random displacement of points: where the randomness comes from, the four laws, and the area a point must stay in.

Every law turns independent uniforms into one vector in metres, so that a point's x and y always come from one draw.
Uniforms come from the operating system, or for sticky masks from a keyed function of the person and the place.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import shapely
from numpy.typing import NDArray

from dbt_veil.geo_plane import (
    FLAT,
    GEODESIC,
    Floats,
    PlaceError,
    displace,
    from_plane,
    to_frame,
    to_plane,
)

WORDS = 3
"""Uniforms that one draw takes: two for the distance, one for the bearing."""

TRIES = 64
"""Draws before a point that finds no place within its region is given up."""

RING_GUARD = 1e-5
"""Share by which a ring is narrowed at both ends, so that no rounding of a projection leaves it."""

Uniforms = Callable[[int, NDArray[np.int64]], Floats]
"""``(attempt, rows)`` gives uniforms strictly between 0 and 1, shape (len(rows), WORDS)."""


@dataclass(frozen=True)
class Law:
    """One law of displacement.

    Attributes:
        name: of the mask.
        vector: metres (dx, dy), each shape (n,), from uniforms of shape (n, WORDS).
        snap: metres of the grid that results are brought to; 0 for none.
        exact: the plane's own metre is the unit, so that the law is the same for every point. Otherwise a
            displacement is corrected to metres on the ground where the point is.
    """

    name: str
    vector: Callable[[Floats], tuple[Floats, Floats]]
    snap: float = 0.0
    exact: bool = False


def jitter(radius: float) -> Law:
    """Uniform over the disc of ``radius`` metres."""
    return Law("jitter", lambda u: _polar(radius * np.sqrt(u[:, 0]), u[:, 1]))


def donut(minimum: float, maximum: float) -> Law:
    """Uniform over the area of the ring from ``minimum`` to ``maximum`` metres.

    The distance is the root of a uniform between the squares; its mean is
    2/3 (maximum^3 - minimum^3) / (maximum^2 - minimum^2).
    """
    low, high = minimum * (1 + RING_GUARD), maximum * (1 - RING_GUARD)
    low, high = (low, high) if low < high else (minimum, maximum)
    return Law("donut", lambda u: _polar(np.sqrt(low**2 + (high**2 - low**2) * u[:, 0]), u[:, 1]))


def gaussian(sigma: float) -> Law:
    """Normal with standard deviation ``sigma`` metres on each axis (Box and Muller, 1958)."""
    return Law("gaussian", lambda u: _polar(sigma * np.sqrt(-2.0 * np.log(u[:, 0])), u[:, 1]))


def planar_laplace(epsilon: float, snap: float) -> Law:
    """The planar Laplace law of Andrés, Bordenabe, Chatzikokolakis and Palamidessi (2013).

    Density proportional to exp(-epsilon d). The distance follows Gamma(2, 1/epsilon), drawn as the sum of two
    exponentials; the bearing is uniform. The result is brought to a public grid, which is post-processing: the low
    digits of a floating-point result would otherwise narrow down the true point (Mironov, 2012).

    Args:
        epsilon: a kilometre.
        snap: metres of the grid.
    """
    metres = 1000.0 / epsilon

    def vector(u: Floats) -> tuple[Floats, Floats]:
        return _polar(-metres * (np.log(u[:, 0]) + np.log(u[:, 1])), u[:, 2])

    return Law("planar_laplace", vector, snap=snap, exact=True)


def fresh(attempt: int, rows: NDArray[np.int64]) -> Floats:
    """Uniforms from the operating system's generator, anew at each attempt."""
    del attempt
    return _to_uniforms(np.frombuffer(os.urandom(8 * WORDS * len(rows)), dtype="<u8"))


def keyed(key: bytes, purpose: str, tokens: list[bytes]) -> Uniforms:
    """Uniforms that are a function of ``key``, the mask, the token and the attempt (HMAC-SHA256), and of nothing else.

    Two masks, or one with other parameters, draw independently: one draw under two scales would give the point away.

    Args:
        key: the subkey for locations.
        purpose: the mask with its parameters.
        tokens: length n, the person and the place of each row.
    """
    base = hmac.new(key, len(purpose).to_bytes(4, "big") + purpose.encode(), hashlib.sha256)

    def words(attempt: int, rows: NDArray[np.int64]) -> Floats:
        digests = []
        for row in rows:
            one = base.copy()
            one.update(attempt.to_bytes(4, "big") + tokens[row])
            digests.append(one.digest()[: 8 * WORDS])
        return _to_uniforms(np.frombuffer(b"".join(digests), dtype="<u8"))

    return words


def place_tokens(units: list[str], lon: Floats, lat: Floats, plane: str, place: float) -> list[bytes]:
    """The person and the place of each row, as bytes of which no two pairs are alike.

    Args:
        units: length n, the person.
        lon: shape (n,), degrees (metres for the flat plane).
        lat: shape (n,).
        plane: where places are told apart; on the geodesic one, by steps of longitude and latitude.
        place: metres; points in one square of this side are one place.
    """
    if plane == GEODESIC:
        step = place / 111_320.0
        x, y = lon * np.cos(np.radians(np.round(lat / step) * step)) / step, lat / step
    else:
        x, y = (c / place for c in to_plane(lon, lat, plane))
    cells = np.stack([np.floor(np.nan_to_num(x)), np.floor(np.nan_to_num(y))], axis=1).astype("<i8")
    return [cell.tobytes() + unit.encode() for cell, unit in zip(cells, units, strict=True)]


def mask_points(
    lon: Floats,
    lat: Floats,
    *,
    crs: str,
    plane: str,
    law: Law,
    uniforms: Uniforms,
    region: shapely.Geometry | None = None,
) -> tuple[Floats, Floats]:
    """Displace every point by one draw of ``law``.

    Args:
        lon: shape (n,), degrees (metres for the flat plane); NaN gives NaN in both results.
        lat: shape (n,).
        crs: the frame of the result.
        plane: from :func:`dbt_veil.geo_plane.choose_plane`.
        law: the law of the displacement.
        uniforms: where the randomness comes from.
        region: where the result must lie, in the units of ``crs``. Draws that leave it are repeated, and after
            :data:`TRIES` the mask refuses; the planar Laplace law instead moves the result to the nearest point of the
            region, since repeating a draw would weaken its guarantee.

    Returns:
        Coordinates in the units of ``crs``, each shape (n,).

    Raises:
        PlaceError: some points found no place within the region.
    """
    out_x, out_y = np.full(len(lon), np.nan), np.full(len(lon), np.nan)
    rows = np.flatnonzero(np.isfinite(lon) & np.isfinite(lat))
    for attempt in range(1 if region is None or law.exact else TRIES):
        dx, dy = law.vector(uniforms(attempt, rows))
        x, y = _move(lon[rows], lat[rows], dx, dy, crs, plane, law)
        if region is not None and law.exact:
            x, y = _nearest_within(x, y, region)
        kept = np.isfinite(x) & np.isfinite(y)
        if region is not None and not law.exact:
            kept &= shapely.intersects_xy(region, x, y)
        out_x[rows[kept]], out_y[rows[kept]] = x[kept], y[kept]
        rows = rows[~kept]
        if len(rows) == 0:
            return out_x, out_y
    if region is None or law.exact:
        raise PlaceError(f"{len(rows)} points were displaced to where `crs` {crs} does not reach")
    raise PlaceError(
        f"{len(rows)} points found no place `within` the region in {TRIES} draws each. "
        "Widen the region, or make the displacement smaller"
    )


def _move(lon: Floats, lat: Floats, dx: Floats, dy: Floats, crs: str, plane: str, law: Law) -> tuple[Floats, Floats]:
    if not law.exact or plane == GEODESIC:
        there = displace(lon, lat, dx, dy, plane)
        if law.snap and plane == GEODESIC:
            step = law.snap / 100_000.0  # degrees: a metre or so, and a grid that depends on no data
            there = (np.round(there[0] / step) * step, np.round(there[1] / step) * step)
        elif law.snap:
            raise AssertionError("only laws in the plane's own metre are snapped")
        return to_frame(*there, crs)
    x, y = (lon, lat) if plane == FLAT else to_plane(lon, lat, plane)
    x, y = x + dx, y + dy
    if law.snap:
        x, y = np.round(x / law.snap) * law.snap, np.round(y / law.snap) * law.snap
    return to_frame(*from_plane(x, y, plane), crs)


def _nearest_within(x: Floats, y: Floats, region: shapely.Geometry) -> tuple[Floats, Floats]:
    outside = ~shapely.intersects_xy(region, x, y)
    if not outside.any():
        return x, y
    # The nearest point of the border is only on it up to rounding: aim at a border a little further in.
    low_x, low_y, high_x, high_y = region.bounds
    inner = shapely.buffer(region, -1e-9 * max(high_x - low_x, high_y - low_y))
    target = region if shapely.is_empty(inner) else inner
    lines = shapely.shortest_line(target, shapely.points(x[outside], y[outside]))
    nearest = shapely.get_coordinates(shapely.get_point(lines, 0))
    x, y = x.copy(), y.copy()
    x[outside], y[outside] = nearest[:, 0], nearest[:, 1]
    return x, y


def _polar(distance: Floats, turn: Floats) -> tuple[Floats, Floats]:
    angle = 2.0 * np.pi * turn
    return distance * np.cos(angle), distance * np.sin(angle)


def _to_uniforms(words: NDArray[np.uint64]) -> Floats:
    """53 random bits a number, at the middle of their interval: strictly between 0 and 1."""
    return np.reshape(((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53, (-1, WORDS))
