"""Location macros through dbt: one build of many models, and its parts against computations of their own."""

from __future__ import annotations

import re

import h3
import numpy as np
import pytest
from dbt_veil.keys import new_keyring, write_keyring
from harness import Project, Result
from pyproj import Geod
from scipy.spatial import cKDTree

PLANE = "x='x_km', y='y_km', crs='plane:km'"
RNG = np.random.default_rng(75)
HOMES = np.round(np.concatenate([RNG.normal(0, 0.7, (180, 2)), RNG.normal(3, 1.5, (120, 2))]), 4)
PROBES = np.round(RNG.uniform(-2, 5, (60, 2)), 4)

VISITS = (
    # one person with five points; three people; siblings with 2, 1, 0 and 4 people
    *(f"lone,{x},1.5" for x in (0.1, 0.2, 0.3, 0.4, 0.5)),
    *("a,6.1,6.1", "b,6.2,6.2", "c,6.3,6.3"),
    *("d,4.1,0.1", "e,4.2,0.2", "f,6.5,0.5", "g,6.1,2.1", "h,6.2,2.2", "i,6.3,2.3", "j,6.4,2.4"),
)  # fmt: skip

MODELS = {
    "grid": f"veil.geo_grid(ref('homes'), size=500, {PLANE})",
    "cloak": f"veil.geo_cloak(ref('homes'), k=5, max_depth=9, extent=[-16, 16], {PLANE})",
    "donut": f"veil.geo_donut(ref('homes'), minimum=100, maximum=300, unit='id', {PLANE})",
    "grid_figures": "veil.geo_evaluate(ref('homes'), ref('grid'), key='id', probes=ref('probes'), mask='grid', "
    f"{PLANE})",
    "donut_figures": "veil.geo_evaluate(ref('homes'), ref('donut'), key='id', "
    f"mask={{'kind': 'donut', 'minimum': 100, 'maximum': 300}}, {PLANE})",
    "identity_figures": f"veil.geo_evaluate(ref('homes'), ref('homes'), key='id', {PLANE})",
    "plain_cloak": f"veil.geo_cloak(ref('visits'), k=3, max_depth=3, extent=[0, 8], unit='person', {PLANE})",
    "even_cloak": "veil.geo_cloak(ref('visits'), k=3, max_depth=3, extent=[0, 8], unit='person', adaptive=true, "
    f"{PLANE})",
    "root_cloak": f"veil.geo_cloak(ref('visits'), k=12, max_depth=3, extent=[0, 8], unit='person', {PLANE})",
    "copies": f"veil.geo_cloak(ref('same_place'), k=2, max_depth=4, extent=[0, 8], {PLANE})",
    "borders": f"veil.geo_grid(ref('on_borders'), size=100, {PLANE})",
    "sticky": f"veil.geo_donut(ref('visits'), minimum=100, maximum=300, unit='person', sticky=true, {PLANE})",
    "sticky_again": f"veil.geo_donut(ref('visits'), minimum=100, maximum=300, unit='person', sticky='true', {PLANE})",
    "sticky_wider": f"veil.geo_donut(ref('visits'), minimum=100, maximum=301, unit='person', sticky=true, {PLANE})",
    "bounded": "veil.geo_planar_laplace(ref('visits'), epsilon=5, max_reports=2, unit='person', "
    f"unaccounted_because='invented points', {PLANE})",
    "argued": "veil.geo_jitter(ref('visits'), radius=50, unit='person', independent_because='only for one drawing', "
    f"{PLANE})",
    "kept_inside": f"veil.geo_gaussian(ref('homes'), sigma=900, within=ref('regions'), {PLANE})",
    "wide": "veil.geo_donut(ref('towns'), minimum=500, maximum=500)",
    "wide_grid": "veil.geo_grid(ref('towns'), size=50000)",
    "frozen": "veil.geo_grid(ref('london'), size=1000, area=[-1, 51, 1, 52])",
    "hexed": "veil.geo_hex(ref('towns'), resolution=5, cell_column='h3')",
    "tiled": "veil.geo_tile(ref('poles'), level=3, cell_column='tile')",
    "rounded": "veil.geo_round(ref('towns'), decimals=1)",
    "suppressed": "veil.geo_donut(ref('bad'), minimum=500, maximum=500, null_island='reject', invalid='suppress')",
    "map": "veil.geo_cells(ref('patients'), size=1000, k=3, unit='person', attributes={'age': {'hierarchy': "
    "{'kind': 'intervals', 'widths': [10], 'range': [0, 120]}, 'level': 1}, 'job': 'keep', 'wage': 'swap'}, "
    f"sensitive_column='diagnosis', l=2, {PLANE})",
    "sweep": "veil.cell_sweep(ref('patients'), sizes=[1000, 8000], unit='person', sensitive_column='diagnosis', "
    f"{PLANE})",
    "guarded": f"veil.geo_sensitive_places(ref('visits'), ref('places'), radius=150, size=2000, {PLANE})",
    "unplaced": f"veil.geo_sensitive_places(ref('visits'), ref('places'), radius=150, action='suppress', {PLANE})",
    "fewer": f"veil.geo_sensitive_places(ref('visits'), ref('places'), radius=150, action='drop', {PLANE})",
    "seen": "veil.unicity(ref('trips'), unit='person', point_columns=['cell', 'hour'], points=2, draws=20)",
    "hostile": "veil.geo_jitter(ref('hostile_input'), radius=10, x='select', y='a\"b', crs='plane:m', unit='Group')",
}

CODES = {
    "coarser_hexes": ("hexed", "h3", {"kind": "cells", "system": "h3", "resolution": 5, "levels": [3]}),
    "coarser_tiles": ("tiled", "tile", {"kind": "cells", "system": "quadkey", "resolution": 3, "levels": [2, 1]}),
    "wrong_codes": ("hexed", "h3", {"kind": "cells", "system": "h3", "resolution": 6, "levels": [3]}),
    "no_codes": ("hexed", "town", {"kind": "cells", "system": "h3", "resolution": 5, "levels": [3]}),
}

REFUSED = {
    "bad_fails": (
        "veil.geo_donut(ref('bad'), minimum=500, maximum=500, null_island='reject')",
        ["veil.geo_donut(): 5 of 7 points cannot be placed", "1 swapped_axes", "1 half_missing", "2 not_a_number",
         "1 null_island", "`invalid='suppress'`"],
    ),
    "moving": (
        f"veil.geo_jitter(ref('visits'), radius=50, unit='person', {PLANE})",
        ["veil.geo_jitter(): 1 people have more than one point", "`sticky=true`", "`independent_because='…'`"],
    ),
    "mislabelled": (
        "veil.geo_grid(ref('feet'), size=100)",
        ["veil.geo_grid(): 2 of 2 points cannot be placed: 2 out_of_range", "hardly in degrees"],
    ),
    "mercator": (
        "veil.geo_grid(ref('towns'), size=100, projection='EPSG:3857')",
        ["veil.geo_grid(): `projection` EPSG:3857 is not true to scale on this data"],
    ),
    "outside_root": (
        f"veil.geo_cloak(ref('visits'), k=3, extent=[0, 4], {PLANE})",
        ["veil.geo_cloak(): 10 points lie outside the root. Declare a larger `extent`"],
    ),
    "nowhere": (
        f"veil.geo_donut(ref('homes'), minimum=90000, maximum=90001, within=ref('regions'), {PLANE})",
        ["points found no place `within` the region in 64 draws each"],
    ),
    "shared_key": (
        f"veil.geo_evaluate(ref('visits'), ref('visits'), key='person', {PLANE})",
        ["veil.geo_evaluate(): `key` does not name each true point once: 4 rows share theirs."],
    ),
    "typo": (
        "veil.geo_donut(ref('homes'), minimum=5, maximum='x', stiky=true, x='x_km', y='y_kn')",
        ["there is no option `stiky`; did you mean `sticky`?", "`maximum` must be a number. Got: 'x'"],
    ),
    "no_column": (
        "veil.geo_grid(ref('homes'), size=5, x='x_km', y='y_kn')",
        ["column `y_kn` not found; did you mean `y_km`"],
    ),
    "one_axis": (
        "veil.geo_jitter(ref('homes'), radius=5, x='x_km', y='X_km', within=5)",
        ["`x` and `y` must be two columns. Got: 'x_km' twice", "`within` must be polygons as well-known text"],
    ),
    "upside_down": (
        f"veil.geo_donut(ref('homes'), minimum=5, maximum=4, {PLANE})",
        ["veil.geo_donut(): `minimum` must be no more than `maximum`. Got: 5 and 4"],
    ),
    "lonely": (f"veil.geo_cloak(ref('homes'), k=1, {PLANE})", ["veil.geo_cloak(): `k` must be 2 or more. Got: 1"]),
    "half_crowd": (f"veil.geo_cloak(ref('homes'), k=2.5, {PLANE})", ["`k` must be a whole number. Got: 2.5"]),
    "sticky_nobody": (
        f"veil.geo_jitter(ref('homes'), radius=5, sticky=true, {PLANE})",
        ["`sticky` draws once for each person and place: name the column of the person in `unit`"],
    ),
    "unbounded": (
        f"veil.geo_planar_laplace(ref('homes'), epsilon=5, max_reports=3, unaccounted_because='invented', {PLANE})",
        ["`max_reports` bounds the points of one person: name the column of the person in `unit`"],
    ),
    "unpaid": (
        f"veil.geo_planar_laplace(ref('homes'), epsilon=5, {PLANE})",
        ["veil.geo_planar_laplace(): planar Laplace noise is charged to a budget: set `materialized: release`"],
    ),
    "no_noise": (f"veil.geo_planar_laplace(ref('homes'), epsilon=0, {PLANE})", ["`epsilon` must be"]),
    "telling": (
        f"veil.geo_sensitive_places(ref('visits'), ref('places'), radius=150, size=299, {PLANE})",
        ["veil.geo_sensitive_places(): `size` must be at least twice the radius, or the cell tells the place. Got: 29"],
    ),
    "half_told": (
        f"veil.geo_cells(ref('patients'), size=1000, k=1, l=2, attributes={{'age': 'swop'}}, {PLANE})",
        ["`k` must be 2 or more. Got: 1", "`attributes.age` must be one of keep, swap. Got: 'swop'",
         "`l` and `sensitive_column` go together: give both, or neither"],
    ),
    "no_sizes": (f"veil.cell_sweep(ref('patients'), sizes=[], {PLANE})", ["`sizes` must be a list of metres"]),
    "no_points": (
        "veil.unicity(ref('trips'), unit='person', point_columns=['cell', 'minute'], points=0)",
        ["veil.unicity(): `points` must be between 1 and 100. Got: 0"],
    ),
    "flat_hex": (f"veil.geo_hex(ref('homes'), resolution=8, {PLANE})", ["these cells lie on the Earth"]),
}  # fmt: skip


PATIENTS = (
    # one cell of six, of which one has a job that nobody shares there; one of two people; one of three with one illness
    *("p1,0.1,0.1,21,nurse,10,flu", "p2,0.2,0.2,22,nurse,20,cold", "p3,0.3,0.3,23,nurse,30,flu"),
    *("p4,0.4,0.4,24,nurse,40,flu", "p4,0.5,0.5,24,nurse,50,flu", "p5,0.6,0.6,28,mayor,60,flu"),
    *("p6,5.1,5.1,21,nurse,70,flu", "p7,5.2,5.2,21,nurse,80,cold"),
    *("p8,2.1,0.1,31,cook,1,flu", "p9,2.2,0.2,32,cook,2,flu", "q1,2.3,0.3,33,cook,3,flu"),
)
TRIPS = ("a,home,1", "a,work,2", "a,work,2", "b,home,1", "b,work,2", "c,home,1", "c,work,2", "c,gym,3", "d,gym,3")


def listed(lines: tuple[str, ...]) -> str:
    rows = ([word if word[0].isdigit() else repr(word) for word in line.split(",")] for line in lines)
    return ", ".join(f"({', '.join(row)})" for row in rows)


def tables() -> dict[str, str]:
    homes = ", ".join(f"({n}, {x!r}::double, {y!r}::double)" for n, (x, y) in enumerate(HOMES.tolist()))
    probes = ", ".join(f"({x!r}::double, {y!r}::double)" for x, y in PROBES.tolist())
    return {
        "homes": f"select * from (values {homes}) as t (id, x_km, y_km)",
        "probes": f"select * from (values {probes}) as t (x_km, y_km)",
        "visits": f"select * from (values {listed(VISITS)}) as t (person, x_km, y_km)",
        "patients": f"select * from (values {listed(PATIENTS)}) as t (person, x_km, y_km, age, job, wage, diagnosis)",
        "trips": f"select * from (values {listed(TRIPS)}) as t (person, cell, hour)",
        "places": "select 6.1 as x_km, 2.0 as y_km, 'shelter' as kind",
        "same_place": "select 3.3 as x_km, 3.3 as y_km from range(5)",
        "on_borders": "select unnest([0.3, 0.6, 0.7, 0.29999, -0.1, -0.0001, 0]) as x_km, 0.05 as y_km",
        "regions": "select 'POLYGON((-9 -9, 9 -9, 9 9, -9 9, -9 -9))' as wkt",
        "towns": "select * from (values ('Nome', -165.4, 64.5), ('Miami', -80.2, 25.8)) as t (town, lon, lat)",
        "poles": "select * from (values ('n', 0, 90), ('s', 0, -90), ('e', 180, 0.1), ('w', -180, 0.1)) "
        "as t (pole, lon, lat)",
        "london": "select -0.1276 as lon, 51.5072 as lat",
        "feet": "select * from (values (727971.9, 880774.2), (723904.5, 880764.1)) as t (lon, lat)",
        "bad": "select * from (values ('0', '91'), ('5', null), ('0', '0'), ('', ''), ('1', 'nan'), ('11.5', '48.1'), "
        "(null, null)) as t (lon, lat)",
        "hostile_input": 'select 1 as "Group", 2.0 as "select", 3.0 as "a""b", \'x\' as veil_located, '
        "'y' as veil_point, 'o''hara' as \"with space\"",
    }


@pytest.fixture(scope="module")
def built(shared_project: Project) -> tuple[Project, Result]:
    project = shared_project
    write_keyring(project.folder / "ring.json", new_keyring(), replace_existing=False)
    project.profile(config={"keyring_file": "ring.json"})
    project.configure(models={"+materialized": "table"})
    for name, sql in tables().items():
        project.model(name, sql)
    linkage = {"truth": "ref('homes')", "key": "id", "x": "x_km", "y": "y_km", "crs": "plane:km"}
    tests = [
        {"veil.geo_linkage": {"name": "linkage_low", "arguments": {**linkage, "max_linkage": "0.9"}}},
        {"veil.geo_linkage": {"name": "linkage_high", "arguments": {**linkage, "max_linkage": 0.01}}},
    ]
    for name, (table, column, hierarchy) in CODES.items():
        label = "{{ veil.generalize('" + column + "', " + repr(hierarchy) + ", 1) }}"
        project.model(name, f"select {column}, {label} as parent from {{{{ ref('{table}') }}}}")
    seen = {"unit": "person", "point_columns": ["cell", "hour"], "points": 2, "draws": 20}
    tests += [
        {"veil.unicity": {"name": "unicity_low", "arguments": {**seen, "max_unicity": 0}}},
        {"veil.unicity": {"name": "unicity_high", "arguments": {**seen, "max_unicity": 0.5}}},
    ]
    project.model("tested_trips", "select * from {{ ref('trips') }}", data_tests=tests[2:])
    tests = tests[:2]
    project.model("tested", "select * from {{ ref('grid') }}", data_tests=tests)
    for name, call in MODELS.items():
        project.model(name, "{{ " + call + " }}")
    for name, (call, _) in REFUSED.items():
        # Arguments are checked while parsing, where one refusal would stop all the other models.
        needs = "".join(f"-- depends_on: {{{{ {one} }}}}\n" for one in re.findall(r"ref\('\w+'\)", call))
        project.model(name, needs + "{% if execute %}{{ " + call + " }}{% endif %}")
    return project, project.dbt("build")


@pytest.mark.parametrize("name", [*tables(), *MODELS])
def test_it_builds(built: tuple[Project, Result], name: str) -> None:
    assert built[1].status(name) == "success", built[1].message(name)


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_with_counts_and_a_way_out(built: tuple[Project, Result], name: str) -> None:
    assert built[1].status(name) == "error"
    for words in REFUSED[name][1]:
        assert words in built[1].message(name)


def test_no_refusal_shows_a_coordinate(built: tuple[Project, Result]) -> None:
    said = "\n".join(built[1].message(name) for name in ("bad_fails", "mislabelled", "outside_root", "nowhere"))
    assert not any(value in said for value in ("11.5", "48.1", "727971", "880774", "6.1"))


def points(project: Project, name: str, x: str = "x_km", y: str = "y_km") -> np.ndarray:
    return np.array(project.query(f"select {x}, {y} from {name} order by id"), dtype=float)


def test_the_grid_is_made_of_half_open_cells_around_their_centres(built: tuple[Project, Result]) -> None:
    assert points(built[0], "grid") == pytest.approx((np.floor(HOMES / 0.5) + 0.5) * 0.5)
    centres = [x for (x,) in built[0].query("select x_km from borders")]
    assert centres == pytest.approx([0.35, 0.65, 0.75, 0.25, -0.05, -0.05, 0.05])


def test_the_cloak_is_the_deepest_quadrant_with_k_people(built: tuple[Project, Result]) -> None:
    expected = np.full_like(HOMES, np.nan)

    def descend(inside: np.ndarray, corner: np.ndarray, side: float, depth: int) -> None:
        if len(inside) < 5:
            return
        expected[inside] = corner + side / 2
        if depth == 9:
            return
        upper = HOMES[inside] >= corner + side / 2
        for quadrant in ((0, 0), (0, 1), (1, 0), (1, 1)):
            chosen = inside[(upper == quadrant).all(axis=1)]
            descend(chosen, corner + np.array(quadrant) * side / 2, side / 2, depth + 1)

    descend(np.arange(len(HOMES)), np.array([-16.0, -16.0]), 32.0, 0)
    assert points(built[0], "cloak") == pytest.approx(expected)
    held = built[0].query(
        """
        select count(*) from homes
        inner join cloak using (id)
        where not (homes.x_km >= cell_x_min and homes.x_km < cell_x_max)
            or not (homes.y_km >= cell_y_min and homes.y_km < cell_y_max)
        """
    )
    assert held == [(0,)]


def test_the_cloak_counts_people_and_not_rows(built: tuple[Project, Result]) -> None:
    boxes = {
        person: tuple(box)
        for person, *box in built[0].query(
            "select person, cell_x_min, cell_y_min, cell_x_max, cell_y_max from plain_cloak"
        )
    }
    # Five points of one person are no crowd: only the root, with eleven people, holds three with them in it.
    assert boxes["lone"] == (0, 0, 8, 8)
    assert boxes["a"] == (6, 6, 7, 7)
    # Of four siblings with 2, 1, 0 and 4 people the last is small enough by itself; the others go up.
    assert boxes["g"] == (6, 2, 7, 3)
    assert boxes["d"] == boxes["f"] == (4, 0, 8, 4)


def test_the_adaptive_cloak_leaves_no_sibling_below_k(built: tuple[Project, Result]) -> None:
    sizes = built[0].query("select count(distinct person) from even_cloak group by cell_x_min, cell_y_min, cell_x_max")
    assert min(size for (size,) in sizes) >= 3
    # The quadrant of the lone person has fewer than three, so the root is not split at all.
    assert built[0].query("select distinct cell_x_min, cell_x_max from even_cloak") == [(0, 8)]


def test_fewer_than_k_in_the_root_are_suppressed_and_copies_stop_at_the_depth(built: tuple[Project, Result]) -> None:
    assert built[0].query("select count(*), count(x_km), count(y_km), count(cell_x_min) from root_cloak") == [
        (15, 0, 0, 0)
    ]
    assert built[0].query("select distinct cell_x_max - cell_x_min, x_km from copies") == [(0.5, 3.25)]


def figures(project: Project, name: str) -> dict[str, float]:
    return dict(project.query(f"select measure, value from {name} where bin is null"))


def test_the_figures_are_those_of_an_independent_computation(built: tuple[Project, Result]) -> None:
    masked = (np.floor(HOMES / 0.5) + 0.5) * 0.5
    found = figures(built[0], "grid_figures")
    nearest = cKDTree(HOMES).query(masked)[1]
    assert found["linkage_rate"] == pytest.approx((nearest == np.arange(len(HOMES))).mean())
    shift = np.hypot(*(masked - HOMES).T)
    assert found["median_shift_km"] == pytest.approx(np.median(shift))
    assert found["mean_shift_km"] == pytest.approx(shift.mean())
    near = [cKDTree(p).query_ball_point(PROBES, 0.75, return_length=True) for p in (HOMES, masked)]
    assert found["density_correlation"] == pytest.approx(np.corrcoef(*near)[0, 1])
    cells, sizes = np.unique(masked, axis=0, return_counts=True)
    assert found["posterior_of_truth"] == pytest.approx(len(cells) / len(HOMES))
    assert found["posterior_candidates"] == pytest.approx((sizes * sizes).sum() / len(HOMES))


def test_the_adversary_who_knows_the_ring_believes_in_the_homes_inside_it(built: tuple[Project, Result]) -> None:
    masked, found = points(built[0], "donut"), figures(built[0], "donut_figures")
    apart = np.hypot(*(masked[:, None, :] - HOMES[None, :, :]).transpose(2, 0, 1))
    in_ring = ((apart >= 0.099) & (apart <= 0.303)).sum(axis=1)
    assert found["posterior_of_truth"] == pytest.approx((1 / in_ring).mean())
    assert found["posterior_candidates"] == pytest.approx(in_ring.mean())
    assert found["posterior_hits"] == pytest.approx(found["posterior_of_truth"])
    bearings = built[0].query("select sum(value), count(*) from donut_figures where measure = 'share_by_bearing'")
    assert bearings[0] == (pytest.approx(1), 12)


def test_without_a_mask_everybody_is_found(built: tuple[Project, Result]) -> None:
    found = figures(built[0], "identity_figures")
    assert (found["linkage_rate"], found["median_shift_km"], found["points"]) == (1, 0, len(HOMES))
    assert found["density_correlation"] == pytest.approx(1)


def test_the_linkage_test_passes_and_catches(built: tuple[Project, Result]) -> None:
    result = built[1]
    assert (result.status("linkage_low"), result.status("linkage_high")) == ("pass", "fail")
    assert result.failures("linkage_high") == 1


def test_the_linkage_test_checks_its_threshold(project: Project) -> None:
    test = {"veil.geo_linkage": {"arguments": {"truth": "ref('a')", "key": "id", "max_linkage": 1.5}}}
    project.model("a", "select 1 as id, 2.0 as lon, 3.0 as lat", data_tests=[test])
    result = project.dbt("parse")
    assert not result.success
    assert "veil.geo_linkage(): `max_linkage` must be between 0 and 1. Got: 1.5" in result.text


def displaced(project: Project, name: str) -> dict[tuple[str, float, float], tuple[float, float]]:
    # Rows come out in no order: a displacement is told by the nearest true point of that person.
    masked = project.query(f"select person, x_km, y_km from {name}")
    return {(person, round(x, 9), round(y, 9)): (x, y) for person, x, y in masked}


def test_sticky_points_come_out_the_same_and_move_together(built: tuple[Project, Result]) -> None:
    project = built[0]
    assert displaced(project, "sticky") == displaced(project, "sticky_again")
    assert not displaced(project, "sticky").keys() & displaced(project, "sticky_wider").keys()
    # The five places of one person are 100 m squares of their own, and get five draws.
    assert project.scalar("select count(distinct (x_km, y_km)) from sticky where person = 'lone'") == 5
    near, far = project.query(
        """
        select min(d), max(d)
        from (
            select min(sqrt(pow(sticky.x_km - visits.x_km, 2) + pow(sticky.y_km - visits.y_km, 2))) as d
            from sticky inner join visits using (person)
            where person <> 'lone'
            group by person
        )
        """
    )[0]
    assert near >= 0.1
    assert far <= 0.3


def test_no_person_reports_more_than_the_bound(built: tuple[Project, Result]) -> None:
    reports = dict(built[0].query("select person, count(x_km) from bounded group by person"))
    assert reports.pop("lone") == 2
    assert set(reports.values()) == {1}
    assert built[0].query("select count(*), count(x_km) - count(y_km) from bounded") == [(15, 0)]


def test_a_wide_extent_keeps_metres_and_says_so(built: tuple[Project, Result]) -> None:
    (nome,) = built[0].query("select lon, lat from wide where town = 'Nome'")
    assert Geod(ellps="WGS84").inv(-165.4, 64.5, *nome)[2] == pytest.approx(500, rel=1e-6)
    assert "veil.geo_donut() of model wide measures metres in the azimuthal equidistant plane around" in built[1].text
    assert "veil.geo_grid() of model wide_grid measures metres in Lambert's azimuthal equal-area plane" in built[1].text


def test_a_declared_area_fixes_the_plane(built: tuple[Project, Result]) -> None:
    # London by itself is in zone 30; the middle of the area is on longitude 0, which begins zone 31.
    assert "veil.geo_grid() of model frozen measures metres in EPSG:32631" in built[1].text


def test_bad_points_become_missing_in_both_halves_and_no_row_is_lost(built: tuple[Project, Result]) -> None:
    out = built[0].query("select lon, lat from suppressed")
    kept = [point for point in out if point != (None, None)]
    assert len(out) == 7
    assert len(kept) == 1
    assert Geod(ellps="WGS84").inv(11.5, 48.1, *kept[0])[2] == pytest.approx(500, rel=1e-4)


def test_rounding_and_hexagons(built: tuple[Project, Result]) -> None:
    assert built[0].query("select lon, lat from rounded order by lon") == [(-165.4, 64.5), (-80.2, 25.8)]
    cells = built[0].query("select h3, lon, lat from hexed where town = 'Miami'")
    assert cells[0][0].startswith("8544a1")
    assert Geod(ellps="WGS84").inv(-80.2, 25.8, *cells[0][1:])[2] < 12_000


def test_tiles_clamp_at_the_poles_and_at_the_antimeridian(built: tuple[Project, Result]) -> None:
    tiles = dict(built[0].query("select pole, tile from tiled"))
    # Column 4 of the first and the last row; row 3 of the last and the first column. No row is lost, no tile is 8.
    assert tiles == {"n": "100", "s": "322", "e": "133", "w": "022"}
    assert max(abs(lat) for (lat,) in built[0].query("select lat from tiled")) == pytest.approx(82.68, abs=0.01)


def test_codes_of_cells_generalise_to_the_cells_around(built: tuple[Project, Result]) -> None:
    for code, parent in built[0].query("select h3, parent from coarser_hexes"):
        assert parent == h3.cell_to_parent(code, 3)
    assert {parent for (parent,) in built[0].query("select parent from coarser_tiles")} == {"10", "32", "13", "02"}
    for name in ("wrong_codes", "no_codes"):
        assert built[1].status(name) == "error"
        assert "Miami" not in built[1].message(name)
        assert "8544a1" not in built[1].message(name)


def test_names_that_bite_come_out_as_they_went_in(built: tuple[Project, Result]) -> None:
    described = [name for name, *_ in built[0].query("describe hostile")]
    assert described == ["Group", "select", 'a"b', "veil_located", "veil_point", "with space"]
    assert built[0].query('select "Group", veil_located, veil_point, "with space" from hostile') == [
        (1, "x", "y", "o'hara")
    ]


def test_the_map_keeps_classes_with_k_people_and_l_values(built: tuple[Project, Result]) -> None:
    out = built[0].query("select person, x_km, y_km, age, job, diagnosis, cell_x, cell_y from map order by person")
    # The mayor is one of a kind in the cell, the two of the far cell are too few, the three cooks share one diagnosis.
    assert [row[0] for row in out] == ["p1", "p2", "p3", "p4", "p4"]
    assert {row[1:5] + row[6:] for row in out} == {(0.5, 0.5, "20-29", "nurse", 0, 0)}


def test_swapped_values_stay_in_their_cell(built: tuple[Project, Result]) -> None:
    wages = [wage for (wage,) in built[0].query("select wage from map")]
    assert set(wages) <= {10, 20, 30, 40, 50, 60}
    assert len(set(wages)) == 5


def test_the_sweep_shows_k_and_diversity_by_cell_size(built: tuple[Project, Result]) -> None:
    out = built[0].query("select size_m, cells, row_count, k, l_distinct, l_entropy from sweep order by size_m")
    # Eight of ten people have the flu, two a cold.
    effective = np.exp(-0.8 * np.log(0.8) - 0.2 * np.log(0.2))
    assert out == [(1000, 3, 11, 2, 1, 1), (8000, 1, 11, 10, 2, pytest.approx(effective))]


def test_visits_near_a_sensitive_place_lose_their_detail(built: tuple[Project, Result]) -> None:
    project = built[0]
    near = {"g"}
    moved = project.query(
        "select person, g.x_km, g.y_km from guarded as g inner join visits as v using (person) "
        "where person <> 'lone' and (g.x_km <> v.x_km or g.y_km <> v.y_km)"
    )
    assert moved == [("g", 7.0, 3.0)]
    gone = project.query("select person from unplaced where x_km is null and y_km is null")
    assert {person for (person,) in gone} == near
    assert project.query("select count(*), count(*) filter (where person = 'g') from fewer") == [(14, 0)]


def test_unicity_is_the_share_of_people_that_their_points_single_out(built: tuple[Project, Result]) -> None:
    points, people, measured, unicity = built[0].query("select * from seen")[0]
    # a and b were at the same two points, and d at one alone; of c's three pairs of points two hold the gym.
    assert (points, people, measured) == (2, 4, 3)
    assert 0 < unicity < 1 / 3 + 1e-9


def test_the_unicity_test_catches_and_passes(built: tuple[Project, Result]) -> None:
    assert (built[1].status("unicity_low"), built[1].status("unicity_high")) == ("fail", "pass")
