"""Where points are: coordinate systems, the plane in which metres are measured, and the points that have no place.

Three systems meet here. The *frame* is what the columns hold (degrees, feet, Web Mercator, a local plane). The *globe*
is longitude and latitude on WGS84. The *plane* is one system in metres that is true to scale over the whole data set,
in which cells are cut and noise is added. A frame that is already a local plane has no globe.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from pyproj import CRS, Geod, Proj, Transformer
from pyproj.exceptions import CRSError

Floats = NDArray[np.float64]

GLOBE = "EPSG:4326"
GEODESIC = "geodesic"
"""The plane of a wide extent for noise: azimuthal equidistant, centred on each point in turn."""
FLAT = "flat"
"""The plane of a frame that is one already, in metres."""

SCALE_TOLERANCE = 0.01
"""How far the scale of a plane may be from 1 anywhere on the data set."""

WGS84 = Geod(ellps="WGS84")

_LOCAL_UNITS = {"plane:m": 1.0, "plane:km": 1000.0, "plane:ft": 0.3048, "plane:us-ft": 1200 / 3937}

PROBLEMS = {
    "half_missing": "one coordinate is NULL and the other is not",
    "not_a_number": "a coordinate is no finite number",
    "swapped_axes": "in range only if x and y change places",
    "beyond_180": "the longitude counts on past 180 degrees; `longitudes='wrap'` reads it so",
    "out_of_range": "no such longitude and latitude",
    "outside_crs": "far from where this coordinate system is used",
    "null_island": "longitude 0 and latitude 0",
    "outside_area": "outside the declared `area`",
}
"""Why a point cannot be placed, and what that means."""

REASONS = ("placed", "missing", *PROBLEMS)
"""What :func:`locate` says of each point, by number; ``missing`` has both coordinates NULL and is no problem."""


class PlaceError(ValueError):
    """Points cannot be placed; the text holds counts and never a coordinate."""


@dataclass(frozen=True)
class Frame:
    """What the coordinate columns hold.

    Attributes:
        name: as the author declared it.
        metres: metres a unit of a local plane; ``None`` for a system on the Earth.
        is_degrees: the columns hold angles.
        is_projected: the columns hold lengths, in a plane that has a place on the Earth.
        area: west, south, east, north of where the system is used, in degrees; ``None`` where that is not known.
    """

    name: str
    metres: float | None = None
    is_degrees: bool = False
    is_projected: bool = False
    area: tuple[float, float, float, float] | None = None


@lru_cache(maxsize=64)
def frame(name: str) -> Frame:
    """The frame called ``name``: any system that PROJ knows, or ``plane:`` with the unit m, km, ft or us-ft.

    Raises:
        PlaceError: no such system, or one that is neither geographic nor projected.
    """
    if name in _LOCAL_UNITS:
        return Frame(name, metres=_LOCAL_UNITS[name])
    try:
        crs = CRS.from_user_input(name)
    except CRSError:
        known = ", ".join(_LOCAL_UNITS)
        raise PlaceError(
            f"`crs` must be a coordinate system such as EPSG:4326, or one of {known}. Got: '{name}'"
        ) from None
    if len(crs.axis_info) != 2 or not (crs.is_geographic or crs.is_projected):
        raise PlaceError(f"`crs` must be geographic or projected, with two axes. Got: '{name}'")
    area = crs.area_of_use
    return Frame(
        name,
        is_degrees=bool(crs.is_geographic),
        is_projected=bool(crs.is_projected),
        area=None if area is None else (area.west, area.south, area.east, area.north),
    )


def locate(
    x: Floats,
    y: Floats,
    crs: str = GLOBE,
    *,
    longitudes: str = "strict",
    null_island: str = "keep",
    area: Sequence[float] | None = None,
    x_missing: NDArray[np.bool_] | None = None,
    y_missing: NDArray[np.bool_] | None = None,
) -> tuple[Floats, Floats, NDArray[np.int8]]:
    """Place points on the globe, or in metres for a local plane, and say which have no place.

    Args:
        x: shape (n,), easting or longitude in the units of ``crs``.
        y: shape (n,), northing or latitude.
        crs: the name of the frame.
        longitudes: ``wrap`` takes -360 … 360 and brings it to -180 … 180.
        null_island: ``reject`` counts (0, 0) as a problem.
        area: west, south, east, north in the units of ``crs``; west may exceed east across the antimeridian.
        x_missing: shape (n,), where x is NULL.
        y_missing: shape (n,), where y is NULL.

    Returns:
        Longitude and latitude in degrees (or metres), NaN where there is no place, and the index into
        :data:`REASONS` of each point.
    """
    source = frame(crs)
    n = len(x)
    nothing = np.zeros(n, dtype=bool)
    gone_x, gone_y = (nothing if m is None else m for m in (x_missing, y_missing))
    reason = np.zeros(n, dtype=np.int8)

    def mark(where: NDArray[np.bool_], name: str) -> None:
        reason[where & (reason == 0)] = REASONS.index(name)

    mark(gone_x & gone_y, "missing")
    mark(gone_x ^ gone_y, "half_missing")
    mark(~(np.isfinite(x) & np.isfinite(y)), "not_a_number")
    usable = reason == 0
    a, b = np.where(usable, x, 0.0), np.where(usable, y, 0.0)
    if source.metres is not None:
        lon, lat = a * source.metres, b * source.metres
    elif source.is_degrees:
        turn = 360.0 if longitudes == "wrap" else 180.0
        mark((np.abs(b) > 90) & (np.abs(a) <= 90) & (np.abs(b) <= 180), "swapped_axes")
        mark((np.abs(a) > 180) & (np.abs(a) <= 360) & (np.abs(b) <= 90) & (longitudes != "wrap"), "beyond_180")
        mark((np.abs(a) > turn) | (np.abs(b) > 90), "out_of_range")
        a = np.where(np.abs(a) > 180, normalise(a), a)
        lon, lat = _transform(crs, GLOBE, a, b)
    else:
        lon, lat = _transform(crs, GLOBE, a, b)
        mark(~(np.isfinite(lon) & np.isfinite(lat)), "out_of_range")
        mark(_outside_crs(source, lon, lat), "outside_crs")
    mark(~(np.isfinite(lon) & np.isfinite(lat)), "out_of_range")
    if null_island == "reject" and source.metres is None:
        mark((np.abs(lon) < 1e-9) & (np.abs(lat) < 1e-9), "null_island")
    if area is not None:
        west, south, east, north = area
        across = ((a >= west) & (a <= east)) if west <= east else ((a >= west) | (a <= east))
        mark(~(across & (b >= south) & (b <= north)), "outside_area")
    placed = reason == 0
    return np.where(placed, lon, np.nan), np.where(placed, lat, np.nan), reason


def refuse_problems(counts: Mapping[str, int], crs: str) -> None:
    """Stop if any point has no place.

    Args:
        counts: points by problem; ``placed`` for those without one, ``missing`` where both coordinates are NULL.
        crs: the name of the frame.

    Raises:
        PlaceError: with the count and the meaning of each problem.
    """
    bad = {name: counts[name] for name in PROBLEMS if counts.get(name)}
    if not bad:
        return
    total = sum(counts.values())
    found = "; ".join(f"{count} {name} ({PROBLEMS[name]})" for name, count in bad.items())
    hint = ""
    if not counts.get("placed") and bad.get("out_of_range") and frame(crs).is_degrees:
        hint = f" No point fits: the columns are hardly in degrees, as `crs` {crs} says. Declare their own system."
    raise PlaceError(
        f"{sum(bad.values())} of {total} points cannot be placed: {found}.{hint} "
        "Mend the source, or release these as NULL, NULL with `invalid='suppress'`."
    )


def utm_zone(lon: float, lat: float) -> int:
    """The UTM zone of a point, 1 … 60, with the exceptions of Norway and Svalbard.

    Zones are half-open towards the east; longitude 180 is -180, so there is no zone 61.

    >>> utm_zone(180, 0), utm_zone(5, 60), utm_zone(5, 64), utm_zone(8.9, 78), utm_zone(9, 78)
    (1, 32, 31, 31, 33)
    """
    east = (lon + 180.0) % 360.0 - 180.0
    if 56 <= lat < 64 and 3 <= east < 12:
        return 32
    if 72 <= lat <= 84:
        for start, end, zone in ((0, 9, 31), (9, 21, 33), (21, 33, 35), (33, 42, 37)):
            if start <= east < end:
                return zone
    return math.floor((east + 180.0) / 6.0) + 1


@dataclass(frozen=True)
class Extent:
    """The bounding box of the placed points, degrees or metres.

    Attributes:
        west: least x; on the globe the box may cross the antimeridian, and then ``east`` exceeds 180.
        south: least y.
        east: greatest x.
        north: greatest y.
    """

    west: float
    south: float
    east: float
    north: float

    @classmethod
    def of(cls, low: Sequence[float], high: Sequence[float], turned: Sequence[float]) -> Extent:
        """The narrower of two boxes: ``turned`` is the least and greatest longitude counted 0 … 360."""
        if turned[1] - turned[0] < high[0] - low[0]:
            return cls(turned[0], low[1], turned[1], high[1])
        return cls(low[0], low[1], high[0], high[1])

    @property
    def centre(self) -> tuple[float, float]:
        """The middle, longitude within -180 … 180."""
        return float(normalise(np.array((self.west + self.east) / 2))), (self.south + self.north) / 2

    def outline(self, steps: int = 9) -> tuple[Floats, Floats]:
        """A lattice of points over the box, for looking at a plane's scale."""
        a, b = self.raw_outline(steps)
        return normalise(a), b

    def raw_outline(self, steps: int = 9) -> tuple[Floats, Floats]:
        """The same lattice with its longitudes, or eastings, left as they are."""
        a, b = np.meshgrid(np.linspace(self.west, self.east, steps), np.linspace(self.south, self.north, steps))
        return a.ravel(), b.ravel()


def area_extent(area: Sequence[float], crs: str) -> Extent:
    """The box of a declared area, degrees or metres: with it the plane depends on no data.

    Args:
        area: west, south, east, north in the units of ``crs``; west may exceed east across the antimeridian.
        crs: the name of the frame.
    """
    west, south, east, north = area
    if frame(crs).is_degrees:
        return Extent(west, south, east + 360.0 if east < west else east, north)
    lon, lat, _ = locate(*Extent(west, south, east, north).raw_outline(), crs)
    low, high = (np.nanmin(lon), np.nanmin(lat)), (np.nanmax(lon), np.nanmax(lat))
    return Extent.of(low, high, (np.nanmin(np.mod(lon, 360)), np.nanmax(np.mod(lon, 360))))


def choose_plane(extent: Extent | None, crs: str, *, projection: str = "auto", noise: bool = False) -> str:
    """The plane for one data set.

    A local plane stays as it is. Otherwise the UTM zone of the middle of the box, if its scale is within
    :data:`SCALE_TOLERANCE` everywhere on the box; a wider or polar box gets, for noise, the azimuthal equidistant plane
    around each point, and for cells Lambert's azimuthal equal-area plane around the middle.

    Args:
        extent: the box of the placed points; ``None`` when there are none.
        crs: the name of the frame.
        projection: ``auto``, or the name of a projected system to use instead.
        noise: the plane is for displacements and not for cells.

    Raises:
        PlaceError: ``projection`` is not projected, or not true to scale over the box.
    """
    if frame(crs).metres is not None:
        if projection != "auto":
            raise PlaceError(f"`projection` cannot be given with `crs` '{crs}', which is a plane already")
        return FLAT
    if projection not in ("auto", GEODESIC):
        _check_projection(projection, extent)
        return projection
    if projection == GEODESIC and not noise:
        raise PlaceError("`projection` 'geodesic' has no cells. Name a projected system, or leave it to Veil")
    if projection == GEODESIC or extent is None:
        return GEODESIC if noise else "laea:0:0"
    lon, lat = extent.centre
    utm = f"EPSG:{32600 + utm_zone(lon, lat) if lat >= 0 else 32700 + utm_zone(lon, lat)}"
    if extent.south >= -80 and extent.north <= 84 and _scale_error(utm, extent) <= SCALE_TOLERANCE:
        return utm
    return GEODESIC if noise else f"laea:{round(lat)}:{round(lon)}"


def to_plane(lon: Floats, lat: Floats, plane: str) -> tuple[Floats, Floats]:
    """Metres in ``plane`` from degrees; NaN stays NaN.

    Args:
        lon: shape (n,), degrees (metres for the flat plane).
        lat: shape (n,).
        plane: from :func:`choose_plane`, and not the geodesic one.
    """
    if plane == FLAT:
        return lon, lat
    x, y = _transform(GLOBE, _plane_crs(plane), lon, lat)
    return _finite(x), _finite(y)


def from_plane(x: Floats, y: Floats, plane: str) -> tuple[Floats, Floats]:
    """Degrees from metres in ``plane``; the inverse of :func:`to_plane`."""
    if plane == FLAT:
        return x, y
    lon, lat = _transform(_plane_crs(plane), GLOBE, x, y)
    return _finite(lon), _finite(lat)


def to_frame(lon: Floats, lat: Floats, crs: str) -> tuple[Floats, Floats]:
    """Coordinates in the units of ``crs`` from degrees (metres for a local plane)."""
    target = frame(crs)
    if target.metres is not None:
        return lon / target.metres, lat / target.metres
    x, y = _transform(GLOBE, crs, lon, lat)
    return _finite(x), _finite(y)


def scale(lon: Floats, lat: Floats, plane: str) -> Floats:
    """Metres of ``plane`` a metre on the ground, shape (n,): the root of the areal scale."""
    if plane == FLAT:
        return np.ones(len(lon))
    factors = _projection(_plane_crs(plane)).get_factors(lon, lat, errcheck=False)
    return np.sqrt(np.asarray(factors.areal_scale, dtype=np.float64))


def displace(lon: Floats, lat: Floats, dx: Floats, dy: Floats, plane: str) -> tuple[Floats, Floats]:
    """Move points by metres on the ground.

    Args:
        lon: shape (n,), degrees (metres for the flat plane).
        lat: shape (n,).
        dx: shape (n,), metres towards the plane's east.
        dy: shape (n,), metres towards the plane's north.
        plane: from :func:`choose_plane`.

    Returns:
        Degrees (metres for the flat plane); NaN where the input is.
    """
    if plane == FLAT:
        return lon + dx, lat + dy
    if plane == GEODESIC:
        bearing, distance = np.degrees(np.arctan2(dx, dy)), np.hypot(dx, dy)
        there_lon, there_lat, _ = WGS84.fwd(lon, lat, bearing, distance)
        return _finite(np.asarray(there_lon)), _finite(np.asarray(there_lat))
    x, y = to_plane(lon, lat, plane)
    metres = scale(lon, lat, plane)
    return from_plane(x + dx * metres, y + dy * metres, plane)


def normalise(lon: Floats) -> Floats:
    """Longitudes brought to -180 … 180."""
    return np.where(np.abs(lon) <= 180.0, lon, (lon + 180.0) % 360.0 - 180.0)


def refuse_degrees_in_projected(extent: Extent | None, crs: str) -> None:
    """Stop if columns that are declared as projected hold what can only be degrees.

    Args:
        extent: the box of the raw columns.
        crs: the name of the frame.

    Raises:
        PlaceError: the system is projected and every value fits in degrees.
    """
    source = frame(crs)
    if extent is None or not source.is_projected:
        return
    if max(abs(extent.west), abs(extent.east)) <= 360 and max(abs(extent.south), abs(extent.north)) <= 90:
        raise PlaceError(
            f"`crs` is {crs}, which is projected, and every value fits in degrees: the columns are hardly in it. "
            "Declare their own system, such as EPSG:4326"
        )


def _check_projection(name: str, extent: Extent | None) -> None:
    if not frame(name).is_projected:
        raise PlaceError(f"`projection` must be a projected system: degrees are not metres. Got: '{name}'")
    if extent is None:
        return
    error = _scale_error(name, extent)
    if not error <= SCALE_TOLERANCE:
        raise PlaceError(
            f"`projection` {name} is not true to scale on this data: its metre is off by up to {error:.1%}, and "
            f"{SCALE_TOLERANCE:.0%} is allowed. Leave `projection` out, or name one made for the region"
        )


def _scale_error(name: str, extent: Extent) -> float:
    lon, lat = extent.outline()
    factors = _projection(name).get_factors(lon, lat, errcheck=False)
    both = np.concatenate([np.asarray(factors.meridional_scale), np.asarray(factors.parallel_scale)])
    if not np.all(np.isfinite(both)):
        return math.inf
    return float(np.max(np.abs(both - 1.0)))


def _outside_crs(source: Frame, lon: Floats, lat: Floats) -> NDArray[np.bool_]:
    """Points further from the area of use than half its own size, or 1 degree."""
    if source.area is None:
        return np.zeros(len(lon), dtype=bool)
    west, south, east, north = source.area
    width, height = (east - west) % 360.0 or 360.0, north - south
    beside = np.abs((lon - west - width / 2 + 180.0) % 360.0 - 180.0) - width / 2
    above = np.abs(lat - (north + south) / 2) - height / 2
    return np.asarray((beside > max(1.0, width / 2)) | (above > max(1.0, height / 2)))


def _plane_crs(plane: str) -> str:
    if plane.startswith("laea:"):
        _, lat, lon = plane.split(":")
        return f"+proj=laea +lat_0={int(lat)} +lon_0={int(lon)} +datum=WGS84 +units=m +type=crs"
    return plane


class _Thread(threading.local):
    """PROJ objects of one thread: they are not to be shared between threads, nor to outlive theirs."""

    def __init__(self) -> None:
        self.projections: dict[str, Proj] = {}
        self.transformers: dict[tuple[str, str], Transformer] = {}


_thread = _Thread()


def _projection(name: str) -> Proj:
    if name not in _thread.projections:
        _thread.projections[name] = Proj(CRS.from_user_input(name))
    return _thread.projections[name]


def _transformer(source: str, target: str) -> Transformer:
    if (source, target) not in _thread.transformers:
        _thread.transformers[source, target] = Transformer.from_crs(source, target, always_xy=True)
    return _thread.transformers[source, target]


def _transform(source: str, target: str, x: Floats, y: Floats) -> tuple[Floats, Floats]:
    if source == target:
        return x, y
    a, b = _transformer(source, target).transform(x, y, errcheck=False)
    return np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)


def _finite(values: Floats) -> Floats:
    return np.where(np.isfinite(values), values, np.nan)
