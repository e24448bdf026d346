"""The location UDFs: what SQL sees of the modules ``geo_plane``, ``geo_masks`` and ``geo_attack``.

A point crosses into SQL as ``STRUCT(x DOUBLE, y DOUBLE)``, so that its two halves come from one call.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache, wraps
from typing import Any

import h3
import numpy as np
import pyarrow as pa
import shapely

from dbt_veil import geo_attack, geo_masks, geo_plane, noise
from dbt_veil.geo_masks import Law
from dbt_veil.geo_plane import REASONS, Extent, Floats, PlaceError
from dbt_veil.keys import Keyring, keyring_source
from dbt_veil.udf import Session, Udf

POINT = "STRUCT(x DOUBLE, y DOUBLE)"
LOCATED = "STRUCT(lon DOUBLE, lat DOUBLE, x DOUBLE, y DOUBLE, reason VARCHAR)"

ATTACK = "STRUCT(linked DOUBLE, truth DOUBLE, top DOUBLE, candidates DOUBLE)"
"""Means over the masked points; NULL where there are none, or no mask was given for the last three."""

MERCATOR_LIMIT = 85.05112877980659
"""The latitude at which the square of Web Mercator ends, in degrees."""

_LAWS: Mapping[str, Callable[..., Law]] = {
    "jitter": geo_masks.jitter,
    "gaussian": geo_masks.gaussian,
    "donut": geo_masks.donut,
    "planar_laplace": geo_masks.planar_laplace,
}
_PARAMETERS = {
    "jitter": ("radius",),
    "gaussian": ("sigma",),
    "donut": ("minimum", "maximum"),
    "planar_laplace": ("epsilon", "snap"),
}
CHARGED = ("planar_laplace",)
"""The laws that a budget pays for. Their functions take the release and the query, and draw only what was reserved."""

Column = Any
"""A ``pyarrow.ChunkedArray``; pyarrow has no types to check against."""


def udfs(session: Session) -> Sequence[Udf]:
    """The functions of this family."""
    regions: dict[str, shapely.Geometry] = {}

    def region(texts: Column) -> pa.Array:
        return pa.array([_remember_region(regions, wkts) for wkts in texts.to_pylist()])

    keyring = keyring_source(session.config)
    masks = [
        _mask(session, regions, keyring, name, sticky=sticky, paid=paid)
        for name in _LAWS
        for sticky in (False, True)
        for paid in ((False, True) if name in CHARGED else (False,))
    ]
    family = [
        Udf("veil_geo_locate", _locate, ("DOUBLE", "DOUBLE", "VARCHAR"), LOCATED, sees_null=True),
        Udf(
            "veil_geo_plane",
            _plane,
            ("VARCHAR", "MAP(VARCHAR, UBIGINT)", "DOUBLE[]", "BIGINT"),
            "VARCHAR",
            volatile=True,
            sees_null=True,
        ),
        Udf("veil_geo_project", _project, ("DOUBLE", "DOUBLE", "VARCHAR"), POINT, sees_null=True),
        Udf("veil_geo_unproject", _unproject, ("DOUBLE", "DOUBLE", "VARCHAR", "VARCHAR"), POINT, sees_null=True),
        Udf("veil_geo_region", region, ("VARCHAR[]",), "VARCHAR", volatile=True, sees_null=True),
        *masks,
        Udf(
            "veil_geo_attack",
            _attack,
            ("DOUBLE[]", "DOUBLE[]", "BIGINT[]", "DOUBLE[]", "DOUBLE[]", "VARCHAR"),
            ATTACK,
            volatile=True,
            sees_null=True,
        ),
        Udf("veil_geo_hex", _hex, ("DOUBLE", "DOUBLE", "INTEGER"), "VARCHAR"),
        Udf("veil_geo_from_globe", _from_globe, (POINT, "VARCHAR"), POINT, sees_null=True),
        Udf("veil_geo_hex_centre", _hex_centre, ("VARCHAR",), POINT),
        Udf("veil_geo_hex_parent", _hex_parent, ("VARCHAR", "INTEGER"), "VARCHAR"),
        Udf("veil_geo_hex_resolution", _hex_resolution, ("VARCHAR",), "INTEGER"),
        Udf("veil_geo_quadkey", _quadkey, ("DOUBLE", "DOUBLE", "INTEGER"), "VARCHAR"),
        Udf("veil_geo_quadkey_centre", _quadkey_centre, ("VARCHAR",), POINT),
    ]
    return [replace(udf, function=_in_lasting_thread(udf.function)) for udf in family]


def _mask(
    session: Session,
    regions: Mapping[str, shapely.Geometry],
    keyring: Callable[[], Keyring],
    name: str,
    *,
    sticky: bool,
    paid: bool,
) -> Udf:
    """The function of one law: from a release's reservation or not, with fresh draws or sticky ones."""
    types = {
        **({"release": "VARCHAR", "query": "VARCHAR"} if paid else {}),
        **{"lon": "DOUBLE", "lat": "DOUBLE", "plane": "VARCHAR", "crs": "VARCHAR", "within": "VARCHAR"},
        **({"unit": "VARCHAR", "place": "DOUBLE"} if sticky else {}),
        **dict.fromkeys(_PARAMETERS[name], "DOUBLE"),
    }

    def draw(*columns: Column) -> pa.Array:
        given = dict(zip(types, columns, strict=True))
        parameters = [float(_constant(given[parameter])) for parameter in _PARAMETERS[name]]
        if paid:
            # Reserved is the scale in kilometres; the law is told its inverse, an epsilon a kilometre.
            noise.reserved(session, name, given["release"], given["query"], pa.array(1.0 / _floats(given["epsilon"])))
        lon, lat = _floats(given["lon"]), _floats(given["lat"])
        plane, handle = _constant(given["plane"]), _constant(given["within"])
        uniforms: geo_masks.Uniforms = geo_masks.fresh
        if sticky:
            place = float(_constant(given["place"]))
            tokens = geo_masks.place_tokens(_units(given["unit"], lon), lon, lat, plane, place)
            key = keyring().current.subkey("geo", "sticky")
            uniforms = geo_masks.keyed(key, json.dumps([name, parameters, place, handle]), tokens)
        return _points(
            *geo_masks.mask_points(
                lon,
                lat,
                crs=_constant(given["crs"]),
                plane=plane,
                law=_LAWS[name](*parameters),
                uniforms=uniforms,
                region=regions[handle] if handle else None,
            )
        )

    charged = "_unaccounted" if name in CHARGED and not paid else ""
    return Udf(
        f"veil_geo_{name}{charged}{'_sticky' if sticky else ''}",
        _with_arity(draw, len(types)),
        tuple(types.values()),
        POINT,
        volatile=True,
        sees_null=True,
    )


def quadkeys(lon: Floats, lat: Floats, level: int) -> list[str]:
    """Codes of the quadrants of Web Mercator's square, ``level`` digits 0 … 3 each, the coarsest first.

    Points beyond the square, at the poles and at longitude 180, belong to its outermost row or column.

    Args:
        lon: shape (n,), degrees, -180 … 180.
        lat: shape (n,), degrees, -90 … 90.
        level: 1 … 30.
    """
    columns, rows = tile_numbers(lon, lat, level)
    digits = np.zeros((len(lon), level), dtype=np.uint8)
    for place in range(level):
        bit = level - 1 - place
        digits[:, place] = ((columns >> bit) & 1) + 2 * ((rows >> bit) & 1) + ord("0")
    return [row.tobytes().decode("ascii") for row in digits]


def quadkey_centres(codes: Sequence[str]) -> tuple[Floats, Floats]:
    """Longitude and latitude of the middle of each tile, degrees, shape (n,)."""
    lon, lat = np.zeros(len(codes)), np.zeros(len(codes))
    for row, code in enumerate(codes):
        column, line = int(code.translate(_EAST), 2), int(code.translate(_SOUTH), 2)
        lon[row] = (column + 0.5) / (1 << len(code)) * 360.0 - 180.0
        lat[row] = np.degrees(np.arctan(np.sinh(np.pi * (1.0 - 2.0 * (line + 0.5) / (1 << len(code))))))
    return lon, lat


_EAST, _SOUTH = str.maketrans("0123", "0101"), str.maketrans("0123", "0011")


def tile_numbers(lon: Floats, lat: Floats, level: int) -> tuple[Any, Any]:
    """Column from the west and row from the north of each point among 2**level, int64, shape (n,)."""
    size = 1 << level
    phi = np.radians(np.clip(lat, -MERCATOR_LIMIT, MERCATOR_LIMIT))
    x = (lon + 180.0) / 360.0
    y = 0.5 - np.arcsinh(np.tan(phi)) / (2.0 * np.pi)
    return tuple(np.clip(np.floor(v * size), 0, size - 1).astype(np.int64) for v in (x, y))  # type: ignore[return-value]


def _locate(x: Column, y: Column, settings: Column) -> pa.Array:
    options = _settings(_constant(settings))
    lon, lat, reason = geo_plane.locate(
        _floats(x),
        _floats(y),
        options["crs"],
        longitudes=options.get("longitudes", "strict"),
        null_island=options.get("null_island", "keep"),
        area=options.get("area"),
        x_missing=_nulls(x),
        y_missing=_nulls(y),
    )
    words = pa.DictionaryArray.from_arrays(pa.array(reason), pa.array(REASONS)).cast(pa.string())
    gone = reason != 0
    halves = [pa.array(half, mask=gone) for half in (lon, lat, _floats(x), _floats(y))]
    return pa.StructArray.from_arrays([*halves, words], names=["lon", "lat", "x", "y", "reason"])


def _plane(settings: Column, counts: Column, bounds: Column, moving: Column) -> pa.Array:
    rows = zip(settings.to_pylist(), counts.to_pylist(), bounds.to_pylist(), moving.to_pylist(), strict=True)
    return pa.array([plane_of(_settings(text), dict(found or {}), box, people) for text, found, box, people in rows])


def plane_of(options: Mapping[str, Any], counts: Mapping[str, int], bounds: Sequence[float] | None, moving: int) -> str:
    """The plane for a data set, or a refusal that begins with the macro's name.

    Args:
        options: ``macro``, ``crs``, ``projection``, ``noise``, ``invalid``.
        counts: rows by reason, from :func:`dbt_veil.geo_plane.locate`.
        bounds: least and greatest longitude, latitude, longitude counted 0 … 360, raw x, raw y; NULLs if no point.
        moving: people with more than one row whose points would get independent noise.

    Raises:
        PlaceError: points without a place, people with several points, or an unfit projection.
    """
    crs, noise = options["crs"], bool(options.get("noise"))
    try:
        box = raw = None
        if bounds is not None and all(value is not None for value in bounds):
            west, east, south, north, turned_west, turned_east, x_low, x_high, y_low, y_high = bounds
            flat = geo_plane.frame(crs).metres is not None
            turned = (west, east) if flat else (turned_west, turned_east)
            box = Extent.of((west, south), (east, north), turned)
            raw = Extent(x_low, y_low, x_high, y_high)
        if options.get("area") is not None:
            box = geo_plane.area_extent(options["area"], crs)
        if options.get("invalid", "fail") == "fail":
            geo_plane.refuse_problems(counts, crs)
        geo_plane.refuse_degrees_in_projected(raw, crs)
        if moving:
            raise PlaceError(
                f"{moving} people have more than one point, and noise that is drawn for each point averages out. "
                "Draw once for each person and place with `sticky=true`, or say why it is safe with "
                "`independent_because='…'`"
            )
        return geo_plane.choose_plane(box, crs, projection=options.get("projection", "auto"), noise=noise)
    except PlaceError as error:
        raise PlaceError(f"veil.{options['macro']}(): {error}") from None


def _project(lon: Column, lat: Column, plane: Column) -> pa.Array:
    return _points(*geo_plane.to_plane(_floats(lon), _floats(lat), _constant(plane)))


def _unproject(x: Column, y: Column, plane: Column, crs: Column) -> pa.Array:
    return _points(*geo_plane.to_frame(*geo_plane.from_plane(_floats(x), _floats(y), _constant(plane)), _constant(crs)))


def _from_globe(points: Column, crs: Column) -> pa.Array:
    lon, lat = (_floats(half) for half in points.combine_chunks().flatten())
    return _points(*geo_plane.to_frame(lon, lat, _constant(crs)))


def _attack(x: Column, y: Column, own: Column, masked_x: Column, masked_y: Column, mask: Column) -> pa.Array:
    arguments = zip(*(column.to_pylist() for column in (x, y, own, masked_x, masked_y, mask)), strict=True)
    return pa.array([attack(*row) for row in arguments], pa.struct([(name, pa.float64()) for name in _ATTACK_FIELDS]))


_ATTACK_FIELDS = ("linked", "truth", "top", "candidates")


def attack(
    x: Sequence[float] | None,
    y: Sequence[float] | None,
    own: Sequence[int] | None,
    masked_x: Sequence[float] | None,
    masked_y: Sequence[float] | None,
    mask: str,
) -> dict[str, float | None]:
    """Both attacks on one data set.

    Args:
        x: length n, metres, every true address.
        y: length n.
        own: length m, which address is each masked point's, counted from 1.
        masked_x: length m, metres.
        masked_y: length m.
        mask: the mask in JSON, or an empty text for linkage alone.
    """
    found: dict[str, float | None] = dict.fromkeys(_ATTACK_FIELDS)
    if not x or not y or not own or not masked_x or not masked_y:
        return found
    addresses = np.column_stack([x, y]).astype(np.float64)
    masked = np.column_stack([masked_x, masked_y]).astype(np.float64)
    homes = np.array(own, dtype=np.int64) - 1
    found["linked"] = float(geo_attack.linked(addresses, homes, masked).mean())
    if mask:
        belief = geo_attack.posterior(addresses, homes, masked, _settings(mask))
        found["truth"], found["top"] = float(belief.truth.mean()), float(belief.top.mean())
        found["candidates"] = float(belief.candidates.mean())
    return found


def _hex(lon: Column, lat: Column, resolution: Column) -> pa.Array:
    points = zip(lat.to_pylist(), lon.to_pylist(), resolution.to_pylist(), strict=True)
    return pa.array([h3.latlng_to_cell(*point) for point in points], pa.string())


def _hex_centre(cells: Column) -> pa.Array:
    centres = np.array([h3.cell_to_latlng(cell) for cell in cells.to_pylist()], dtype=np.float64).reshape(-1, 2)
    return _points(centres[:, 1], centres[:, 0])


def _hex_parent(cells: Column, resolutions: Column) -> pa.Array:
    """The cells around, NULL for what is no cell or is coarser already."""
    codes = zip(cells.to_pylist(), resolutions.to_pylist(), strict=True)
    parents = [h3.cell_to_parent(c, r) if h3.is_valid_cell(c) and h3.get_resolution(c) >= r else None for c, r in codes]
    return pa.array(parents, pa.string())


def _hex_resolution(cells: Column) -> pa.Array:
    """The resolution of each cell, -1 for what is no cell."""
    codes = cells.to_pylist()
    return pa.array([h3.get_resolution(cell) if h3.is_valid_cell(cell) else -1 for cell in codes], pa.int32())


def _quadkey(lon: Column, lat: Column, level: Column) -> pa.Array:
    return pa.array(quadkeys(_floats(lon), _floats(lat), int(_constant(level))), pa.string())


def _quadkey_centre(codes: Column) -> pa.Array:
    return _points(*quadkey_centres(codes.to_pylist()))


def _remember_region(regions: dict[str, shapely.Geometry], wkts: Sequence[str | None] | None) -> str:
    """Keep the union of polygons for the draws that follow, and return the name it is kept under."""
    texts = [text for text in wkts or [] if text is not None]
    if not texts:
        raise PlaceError("`within` has no polygon: nothing can stay inside it")
    name = hashlib.sha256("\n".join(texts).encode()).hexdigest()[:12]
    if name not in regions:
        try:
            shapes = shapely.from_wkt(texts)
        except shapely.errors.ShapelyError:
            raise PlaceError("`within` must be polygons as well-known text (WKT)") from None
        union = shapely.union_all(shapely.make_valid(shapes))
        if shapely.get_dimensions(union) != 2 or shapely.is_empty(union):
            raise PlaceError("`within` must be polygons as well-known text (WKT), with an area")
        shapely.prepare(union)
        regions[name] = union
    return name


_threads = ThreadPoolExecutor(max_workers=os.cpu_count(), thread_name_prefix="veil_geo")


def _in_lasting_thread(function: Callable[..., pa.Array]) -> Callable[..., pa.Array]:
    """``function``, run in a thread that Python made.

    DuckDB calls from threads of its own, each of which is a new thread to Python at every call. PROJ keeps a context a
    thread and frees it at the thread's end, so that its objects would be made anew for every 2,048 rows, or be used
    after their context is gone.
    """

    @wraps(function)
    def call(*arguments: Column) -> pa.Array:
        return _threads.submit(function, *arguments).result()

    return call


def _with_arity(function: Callable[..., pa.Array], arity: int) -> Callable[..., pa.Array]:
    """``function`` under a signature of ``arity`` parameters: DuckDB counts them, and takes no ``*args``."""
    kind = inspect.Parameter.POSITIONAL_ONLY
    parameters = [inspect.Parameter(f"argument_{i}", kind) for i in range(arity)]
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return function


def _units(units: Column, lon: Floats) -> list[str]:
    """The person of each row; only a row without a point may have none."""
    names = units.to_pylist()
    missing = sum(name is None for name, where in zip(names, lon, strict=True) if np.isfinite(where))
    if missing:
        raise PlaceError(f"{missing} points have no `unit`: a sticky draw belongs to a person")
    return [name or "" for name in names]


@lru_cache(maxsize=64)
def _settings(text: str) -> dict[str, Any]:
    return dict(json.loads(text))


def _constant(column: Column) -> Any:
    """The one value of a column that is the same in every row."""
    values = column.unique()
    if len(values) != 1:
        raise ValueError(f"an argument of a location function must be one value for all rows, and has {len(values)}")
    return values[0].as_py()


def _floats(column: Column) -> Floats:
    """Values with NaN for NULL."""
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def _nulls(column: Column) -> Any:
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False), dtype=bool)


def _points(x: Floats, y: Floats) -> pa.Array:
    """Points with both halves NULL where either has no value."""
    gone = ~(np.isfinite(x) & np.isfinite(y))
    return pa.StructArray.from_arrays([pa.array(x, mask=gone), pa.array(y, mask=gone)], names=["x", "y"])
