"""Projection, validity and displacement of points, measured with geodesics that the code under test does not use."""

from __future__ import annotations

import math

import duckdb
import numpy as np
import pytest
import shapely
from dbt_veil import geo, geo_masks, geo_plane
from dbt_veil.geo_plane import REASONS, Extent, PlaceError
from dbt_veil.udf import Session
from pyproj import Geod, Transformer
from scipy import stats

SPHEROID = Geod(a=6378137.0, f=1 / 298.257223563)
FALSE_ALARM = 1e-6


def located(points, **options):
    x, y = np.array(points, dtype=float).T
    lon, lat, reason = geo_plane.locate(x, y, **options)
    return lon, lat, [REASONS[code] for code in reason]


def ground(lon, lat, there_lon, there_lat):
    """Geodesic distance in metres on WGS84 (Karney, 2013)."""
    return np.asarray(SPHEROID.inv(lon, lat, there_lon, there_lat)[2])


def masked(lon, lat, law, crs="EPSG:4326", **options):
    placed_lon, placed_lat, _ = geo_plane.locate(lon, lat, crs)
    low = (placed_lon.min(), placed_lat.min())
    high = (placed_lon.max(), placed_lat.max())
    turned = (np.mod(placed_lon, 360).min(), np.mod(placed_lon, 360).max())
    plane = geo_plane.choose_plane(Extent.of(low, high, turned), crs, noise=True)
    return geo_masks.mask_points(
        placed_lon, placed_lat, crs=crs, plane=plane, law=law, uniforms=geo_masks.fresh, **options
    )


@pytest.mark.parametrize(
    ("lat", "lon", "zone"),
    [
        (0, 180, 1),
        (0, -180, 1),
        (60, 5, 32),
        (64, 5, 31),
        (60, 12, 33),
        (78, 8.9, 31),
        (78, 9, 33),
        (50, 6, 32),
        (-33, 18, 34),
        (0, 179.999, 60),
        (84, 42, 38),
        (56, 3, 32),
    ],
)
def test_utm_zones_with_norway_svalbard_and_never_61(lat, lon, zone):
    assert geo_plane.utm_zone(lon, lat) == zone


def test_a_southern_data_set_gets_a_southern_zone():
    assert geo_plane.choose_plane(Extent(18.3, -34.1, 18.6, -33.9), "EPSG:4326") == "EPSG:32734"


def test_a_metre_of_a_far_zone_is_not_a_metre():
    scale = geo_plane.scale(np.array([20.0, 40.0]), np.array([50.0, 50.0]), "EPSG:32632")
    assert 1000 / scale == pytest.approx([992.8, 943.9], abs=0.1)


def test_one_zone_serves_as_long_as_its_scale_does():
    assert geo_plane.choose_plane(Extent(5.9, 47.3, 15.0, 55.0), "EPSG:4326") == "EPSG:32632"
    assert geo_plane.choose_plane(Extent(-170, 20, -67, 71), "EPSG:4326") == "laea:46:-118"
    assert geo_plane.choose_plane(Extent(-170, 20, -67, 71), "EPSG:4326", noise=True) == "geodesic"


def test_an_extent_across_the_antimeridian_is_narrow():
    extent = Extent.of((-179.5, -18.0), (179.0, -17.0), (177.0, 180.5))
    assert (extent.west, extent.east) == (177.0, 180.5)
    assert geo_plane.choose_plane(extent, "EPSG:4326") == "EPSG:32760"


@pytest.mark.parametrize("lat", [0, 45, 60, 70, -45, -60, -70])
@pytest.mark.parametrize("crs", ["EPSG:4326", "EPSG:3857"])
def test_500_metres_are_500_metres_on_the_ground(lat, crs):
    n = 200
    lon, lat = np.linspace(9.0, 14.9, n), np.full(n, float(lat))
    to_crs = Transformer.from_crs("EPSG:4326", crs, always_xy=True)
    x, y = to_crs.transform(lon, lat)
    there = masked(np.asarray(x), np.asarray(y), geo_masks.donut(500, 500), crs)
    distance = ground(lon, lat, *to_crs.transform(*there, direction="INVERSE"))
    assert distance == pytest.approx(np.full(n, 500.0), rel=0.0001)


def test_feet_are_converted():
    x, y = np.array([727913.0, 724812.0]), np.array([875721.0, 875763.0])
    there = masked(x, y, geo_masks.donut(152.4, 152.4), "ESRI:102649")
    assert np.hypot(there[0] - x, there[1] - y) == pytest.approx([500, 500], rel=0.001)


def test_over_a_continent_and_beside_the_pole_metres_stay_metres():
    lon, lat = np.array([-150.0, -70, 10, 0]), np.array([61.0, 40, 89.999, -90])
    there = masked(lon, lat, geo_masks.donut(500, 500))
    assert ground(lon, lat, *there) == pytest.approx(np.full(4, 500.0), rel=1e-6)


def test_500_metres_north_of_almost_the_pole_is_on_the_other_side():
    there = geo_plane.displace(np.array([10.0]), np.array([89.999]), np.array([0.0]), np.array([500.0]), "geodesic")
    assert (there[0][0], there[1][0]) == pytest.approx((-170, 89.9965), abs=1e-4)


def test_points_across_the_antimeridian_stay_beside_it():
    lon, lat = np.array([179.9999, -179.9999]), np.array([-17.0, -17.0])
    there = masked(lon, lat, geo_masks.donut(500, 500))
    assert ground(lon, lat, *there) == pytest.approx([500, 500], rel=1e-4)
    assert np.all(np.abs(there[0]) <= 180)


def test_every_kind_of_bad_point_has_its_name():
    points = [(0, 91), (5, math.nan), (0, 0), (200, 10), (500, 10), (math.inf, 2), (11.5, 48.1)]
    lon, lat, reasons = located(points, null_island="reject")
    assert reasons == [
        "swapped_axes", "not_a_number", "null_island", "beyond_180", "out_of_range", "not_a_number", "placed",
    ]  # fmt: skip
    assert np.isnan(lon[:-1]).all()
    assert np.isnan(lat[:-1]).all()
    assert (lon[-1], lat[-1]) == (11.5, 48.1)


def test_null_island_is_a_place_unless_it_is_rejected():
    assert located([(0, 0)])[2] == ["placed"]


def test_half_a_point_is_a_problem_and_no_point_is_none():
    gone = np.array([True, True])
    _, _, reason = geo_plane.locate(
        np.full(2, np.nan), np.array([5.0, np.nan]), x_missing=gone, y_missing=np.array([False, True])
    )
    assert [REASONS[code] for code in reason] == ["half_missing", "missing"]


def test_longitudes_that_count_on_can_be_wrapped():
    lon, _, reasons = located([(181.62, -20.42), (-190, 5), (180, 0)], longitudes="wrap")
    assert lon == pytest.approx([-178.38, 170, 180])
    assert set(reasons) == {"placed"}


def test_a_declared_area_finds_swapped_axes_that_fit_in_range():
    area = [-0.5, 51.2, 0.4, 51.8]
    assert located([(51.5, -0.13), (-0.13, 51.5)], area=area)[2] == ["outside_area", "placed"]
    assert located([(179, 0), (-179, 0), (0, 0)], area=[170, -10, -170, 10])[2] == ["placed", "placed", "outside_area"]


def counts_of(reasons):
    return {reason: reasons.count(reason) for reason in set(reasons)}


def test_the_refusal_counts_and_shows_no_coordinate():
    reasons = located([(91.25, 200.5), (5, math.nan), (11.5, 48.1)])[2]
    with pytest.raises(PlaceError) as refusal:
        geo_plane.refuse_problems(counts_of(reasons), "EPSG:4326")
    text = str(refusal.value)
    assert "2 of 3 points cannot be placed" in text
    assert "1 not_a_number (a coordinate is no finite number)" in text
    assert "`invalid='suppress'`" in text
    assert not any(value in text for value in ("91.25", "200.5", "48.1"))


def test_feet_that_are_declared_as_degrees_are_refused():
    reasons = located([(727971.9, 880774.2), (723904.5, 880764.1)])[2]
    with pytest.raises(PlaceError, match="hardly in degrees, as `crs` EPSG:4326 says"):
        geo_plane.refuse_problems(counts_of(reasons), "EPSG:4326")


def test_degrees_that_are_declared_as_feet_are_refused():
    with pytest.raises(PlaceError, match="every value fits in degrees"):
        geo_plane.refuse_degrees_in_projected(Extent(-111.9, 33.4, -111.8, 33.5), "ESRI:102649")


@pytest.mark.parametrize(
    ("projection", "message"),
    [
        ("EPSG:4326", "must be a projected system: degrees are not metres"),
        ("EPSG:3857", "is not true to scale on this data: its metre is off by up to 10"),
        ("nonsense", "must be a coordinate system"),
        ("geodesic", "has no cells"),
    ],
)
def test_a_plane_that_is_not_in_true_metres_is_refused(projection, message):
    with pytest.raises(PlaceError, match=message):
        geo_plane.choose_plane(Extent(10, 59.9, 10.5, 60.1), "EPSG:4326", projection=projection)


@pytest.mark.parametrize("crs", ["EPSG:4978", "EPSG:4979", "nonsense", "plane:mile"])
def test_a_frame_that_is_no_pair_of_coordinates_is_refused(crs):
    with pytest.raises(PlaceError, match="`crs` must be"):
        geo_plane.frame(crs)


def sample(law, n=200_000):
    dx, dy = law.vector(geo_masks.fresh(0, np.arange(n)))
    return np.hypot(dx, dy), np.arctan2(dy, dx)


@pytest.mark.parametrize(
    ("law", "cdf", "mean"),
    [
        (geo_masks.donut(100, 1000), lambda r: (r**2 - 100**2) / (1000**2 - 100**2), 672.7),
        (geo_masks.jitter(300), lambda r: r**2 / 300**2, 200.0),
        (geo_masks.gaussian(250), lambda r: 1 - np.exp(-(r**2) / (2 * 250**2)), 250 * math.sqrt(math.pi / 2)),
        (geo_masks.planar_laplace(5, 1), lambda r: 1 - (1 + r / 200) * np.exp(-r / 200), 400.0),
    ],
    ids=["donut", "jitter", "gaussian", "planar_laplace"],
)
def test_distance_and_bearing_follow_their_law(law, cdf, mean):
    distance, bearing = sample(law)
    assert distance.mean() == pytest.approx(mean, abs=5.5 * distance.std() / math.sqrt(len(distance)))
    assert stats.kstest(cdf(distance), "uniform").pvalue > FALSE_ALARM
    assert stats.kstest((bearing + np.pi) / (2 * np.pi), "uniform").pvalue > FALSE_ALARM
    cells = np.histogram2d(cdf(distance), bearing, bins=[20, 18])[0].ravel()
    assert stats.chisquare(cells).pvalue > FALSE_ALARM
    opposite = np.abs((np.degrees(bearing) + 90) % 180 - 90) <= 30
    assert opposite.mean() == pytest.approx(1 / 3, abs=5.5 * math.sqrt(2 / 9 / len(bearing)))


def test_a_donut_keeps_its_minimum_and_maximum_on_the_ground():
    n = 20_000
    rng = np.random.default_rng(1)
    lon, lat = rng.uniform(3, 15, n), rng.uniform(35, 55, n)
    distance = ground(lon, lat, *masked(lon, lat, geo_masks.donut(100, 1000)))
    assert distance.min() >= 100
    assert distance.max() <= 1000


def test_planar_laplace_lands_on_its_grid():
    x, _ = masked(np.zeros(500), np.zeros(500), geo_masks.planar_laplace(2, 10), "plane:m")
    assert np.all(x == np.round(x / 10) * 10)
    assert len(np.unique(x)) > 100


def square(low, high):
    return shapely.box(low, low, high, high)


def test_within_keeps_every_point_inside_and_refuses_what_cannot_be():
    x = np.full(2000, 95.0)
    there = masked(x, x, geo_masks.jitter(100), "plane:m", region=square(0, 100))
    assert shapely.intersects_xy(square(0, 100), *there).all()
    with pytest.raises(PlaceError, match="2000 points found no place `within` the region in 64 draws each"):
        masked(x, x, geo_masks.donut(1000, 1001), "plane:m", region=square(0, 100))


def test_planar_laplace_moves_to_the_nearest_point_within():
    x = np.full(2000, 95.0)
    there = masked(x, x, geo_masks.planar_laplace(5, 1), "plane:m", region=square(0, 100))
    assert shapely.intersects_xy(square(0, 100), *there).all()
    on_the_border = np.max(np.abs(np.array(there) - 50), axis=0) > 49.99
    assert 0.5 < on_the_border.mean() < 1.0


def test_sticky_draws_depend_on_key_mask_person_and_place_alone():
    lon, lat = np.array([9.0, 9.0, 9.00001, 9.01]), np.full(4, 50.00001)
    tokens = geo_masks.place_tokens(["ann", "bob", "ann", "ann"], lon, lat, "EPSG:32632", 100)
    everything = np.arange(4)

    def draw(key=b"k" * 32, purpose="donut 1 2", attempt=0):
        return geo_masks.keyed(key, purpose, tokens)(attempt, everything)

    first = draw()
    assert np.array_equal(first, draw())
    assert np.array_equal(first[0], first[2])
    assert len(np.unique(first[:, 0])) == 3
    for other in (draw(key=b"j" * 32), draw(purpose="donut 1 3"), draw(attempt=1)):
        assert not np.isin(other, first).any()


@pytest.fixture(scope="module")
def connection():
    connection = duckdb.connect()
    for udf in geo.udfs(Session(config={}, connection=connection)):
        udf.register(connection)
    return connection


def test_each_row_gets_a_draw_of_its_own_and_both_halves_come_from_it(connection):
    n, distinct, near, far = connection.execute(
        """
        with drawn as materialized (
            select veil_geo_donut(10.0, 20.0, 'flat', 'plane:m', '', 5.0, 7.0) as point from range(130000)
        )
        select
            count(*),
            count(distinct point.x),
            min(sqrt((point.x - 10) ** 2 + (point.y - 20) ** 2)),
            max(sqrt((point.x - 10) ** 2 + (point.y - 20) ** 2)),
        from drawn
        """
    ).fetchone()
    assert (n, distinct) == (130_000, 130_000)
    assert near >= 5
    assert far <= 7


def test_a_missing_point_stays_missing_in_both_halves(connection):
    rows = connection.execute(
        """
        select veil_geo_jitter(lon, 5.0, 'flat', 'plane:m', '', 9.0)
        from (values (null), (1.0), ('nan'::double)) as points(lon)
        """
    ).fetchall()
    assert [tuple(point.values()) for (point,) in (rows[0], rows[2])] == [(None, None), (None, None)]
    assert None not in rows[1][0].values()


def test_quadkeys_clamp_to_the_outermost_row_and_column():
    lat = np.array([90, -90, 85.06, 85.0511, 0, 0])
    lon = np.array([0, 0, 0, 0, 180, -180])
    columns, rows = geo.tile_numbers(lon, lat, 3)
    assert rows.tolist() == [0, 7, 0, 0, 4, 4]
    assert columns.tolist() == [4, 4, 4, 4, 7, 0]
    assert len(geo.quadkeys(lon, lat, 3)) == 6
    # The example of the tile system's own documentation: tile (3, 5) at level 3 is quadkey 213.
    assert geo.quadkeys(np.array([-45 + 1.0]), np.array([-45.0]), 3) == ["213"]


def test_hexagons_come_from_h3(connection):
    (cell, parent, centre), = connection.execute(
        """
        select cell, veil_geo_hex_parent(cell, 5), veil_geo_hex_centre(cell)
        from (select veil_geo_hex(-122.418307270836, 37.7749295, 9) as cell)
        """
    ).fetchall()  # fmt: skip
    assert cell.startswith("8928308280")
    assert parent == "85283083fffffff"
    assert ground(-122.418307, 37.77493, centre["x"], centre["y"]) < 250
