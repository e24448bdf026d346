"""Locations at size: seconds for masks and cloaks, the figures of a synthetic city, and MaskMyPy's donut beside them.

python benchmarks/geo.py [rows [model …]]

The figures of the city need VEIL_DATA, the folder with points/; MaskMyPy needs VEIL_MASKMYPY, a Python that has it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "udfs"), str(ROOT / "tests" / "python")]

from harness import Project  # noqa: E402

MASKS = {
    "donut": "veil.geo_donut(ref('homes'), minimum=100, maximum=1000, unit='id')",
    "planar_laplace": "veil.geo_planar_laplace(ref('homes'), epsilon=5, unit='id', unaccounted_because='invented')",
    "grid": "veil.geo_grid(ref('homes'), size=500)",
    "cloak_50": "veil.geo_cloak(ref('homes'), k=50, unit='id')",
    "cloak_50_rows": "veil.geo_cloak(ref('homes'), k=50)",
    "cloak_50_adaptive": "veil.geo_cloak(ref('homes'), k=50, unit='id', adaptive=true)",
}
CITY = {
    "geo_grid": {
        100: (0.752, 0.040, 0.999), 250: (0.380, 0.099, 0.996), 500: (0.195, 0.199, 0.978), 1000: (0.104, 0.405, 0.883),
        2000: (0.050, 0.805, 0.398),
    },
    "geo_cloak": {
        2: (0.392, 0.063, 0.999), 5: (0.129, 0.143, 0.993), 10: (0.062, 0.231, 0.984), 25: (0.025, 0.338, 0.941),
        50: (0.011, 0.549, 0.866),
    },
    "geo_donut": {
        50: (0.757, 0.039, 0.999), 150: (0.255, 0.119, 0.998), 300: (0.123, 0.236, 0.996), 600: (0.072, 0.473, 0.993),
        1200: (0.028, 0.944, 0.977),
    },
    "geo_planar_laplace": {
        40: (0.689, 0.041, 0.999), 15: (0.359, 0.112, 0.997), 6: (0.162, 0.278, 0.996), 3: (0.089, 0.555, 0.988),
        1.5: (0.039, 1.117, 0.954),
    },
}  # fmt: skip
PLANE = "x='x_km', y='y_km', crs='plane:km'"


def speed(rows: int, names: list[str]) -> None:
    """Seconds a model of ``rows`` points, one a person, around a city at latitude 50."""
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder))
        project.configure(models={"+materialized": "table"})
        project.model(
            "homes",
            f"select range as id, 9 + 0.2 * sqrt(-2 * ln(1 - random())) * cos(2 * pi() * random()) as lon, "
            f"50 + 0.2 * (random() + random() - 1) as lat from range({rows})",
        )
        project.model("copy", "select * from {{ ref('homes') }}")
        for name, call in MASKS.items():
            project.model(name, "{{ " + call + " }}")
        project.dbt("run", "--select", "homes")
        for name in names or ["copy", *MASKS]:
            result = project.dbt("run", "--select", name)
            print(f"{rows:>11,} points  {name:<18} {result.nodes[name].execution_time:7.2f} s  {result.status(name)}")


def city(folder: Path) -> None:
    """Linkage rate, median shift in km and density correlation, beside those that were asked for."""
    with tempfile.TemporaryDirectory() as temporary:
        project = Project(Path(temporary))
        project.configure(models={"+materialized": "table"})
        read = "select row_number() over () as id, x_km, y_km from read_csv('{}')"
        for name in ("homes", "probes"):
            project.model(name, read.format(folder / f"{name}.csv"))
        names = {}
        for macro, cases in CITY.items():
            for value, asked in cases.items():
                options = {
                    "geo_grid": f"size={value}",
                    "geo_cloak": f"k={value}, extent=[-20, 20], max_depth=12",
                    "geo_donut": f"minimum={value / 2}, maximum={value}",
                    "geo_planar_laplace": f"epsilon={value}, unaccounted_because='invented points'",
                }[macro]
                name = f"{macro}_{str(value).replace('.', '_')}"
                names[name] = asked
                project.model(name, f"{{{{ veil.{macro}(ref('homes'), {options}, {PLANE}) }}}}")
                evaluate = f"veil.geo_evaluate(ref('homes'), ref('{name}'), key='id', probes=ref('probes'), {PLANE})"
                project.model(f"{name}_figures", "{{ " + evaluate + " }}")
        project.dbt("run")
        for name, asked in names.items():
            found = dict(project.query(f"select measure, value from {name}_figures where bin is null"))
            said = [f"{found[m]:.3f}" for m in ("linkage_rate", "median_shift_km", "density_correlation")]
            print(f"{name:<24} {' / '.join(said)}   asked {' / '.join(f'{a:.3f}' for a in asked)}")


MASKMYPY = """
import sys, time
import geopandas, numpy
from maskmypy import donut
rows = int(sys.argv[1])
rng = numpy.random.default_rng(1)
points = geopandas.points_from_xy(rng.normal(5e5, 2e4, rows), rng.normal(5.5e6, 2e4, rows))
frame = geopandas.GeoDataFrame(geometry=points, crs="EPSG:32632")
start = time.perf_counter()
donut(frame, low=100, high=1000)
print(f"{rows:>11,} points  {'MaskMyPy donut':<18} {time.perf_counter() - start:7.2f} s")
"""


def maskmypy(rows: int) -> None:
    """MaskMyPy's donut on points that are projected already, in the Python that ``VEIL_MASKMYPY`` names."""
    python = os.environ.get("VEIL_MASKMYPY")
    if python:
        subprocess.run([python, "-W", "ignore", "-c", MASKMYPY, str(rows)], check=True)
    else:
        print("MaskMyPy: name a Python that has it in VEIL_MASKMYPY")


if __name__ == "__main__":
    print("load", *(f"{one:.1f}" for one in os.getloadavg()))
    speed(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000, sys.argv[2:])
    if len(sys.argv) < 3:
        maskmypy(100_000)
    if os.environ.get("VEIL_DATA") and len(sys.argv) < 3:
        city(Path(os.environ["VEIL_DATA"]) / "points")
