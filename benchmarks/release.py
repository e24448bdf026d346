"""The whole release of 10 million rows beside a plain `create table as` of the same columns, in one run.

python benchmarks/release.py [rows]          needs VEIL_DATA, the folder with adult/
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import duckdb

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "udfs"), str(ROOT / "tests" / "python")]

from harness import Project  # noqa: E402

ADULT = Path(os.environ["VEIL_DATA"]) / "adult"
LEVELS = {
    "sex": 0,
    "age": 3,
    "race": 0,
    "marital-status": 2,
    "education": 2,
    "native-country": 1,
    "workclass": 1,
    "salary-class": 0,
}


def main(rows: int) -> None:
    """Build the warehouse, then time both ways three times and print the medians."""
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder))
        with duckdb.connect(str(project.warehouse)) as connection:
            read = "read_csv('{}', delim=';', header={}, all_varchar=true)"
            connection.execute(f"create table adult as select * from {read.format(ADULT / 'adult.csv', 'true')}")
            copies = f"select adult.* from range({rows // 30162 + 1}), adult limit {rows}"
            connection.execute(f"create table people as {copies}")
            for column in LEVELS:
                path = ADULT / f"adult_hierarchy_{column}.csv"
                name = column.replace("-", "_")
                connection.execute(f"create table h_{name} as select * from {read.format(path, 'false')}")
            names = [row[0] for row in connection.execute("describe people").fetchall()]
            widths = {c: len(connection.execute(f"describe h_{c.replace('-', '_')}").fetchall()) for c in LEVELS}

        hierarchies = {
            column: {
                "kind": "lookup",
                "relation": f"hierarchy_{column.replace('-', '_')}",
                "columns": [f"column{i}" for i in range(widths[column])],
            }
            for column in LEVELS
        }
        for column in LEVELS:
            name = column.replace("-", "_")
            project.model(f"hierarchy_{name}", f"select * from main.h_{name}", config={"materialized": "table"})
        project.configure(vars={"veil__hierarchies": hierarchies})
        roles = [
            {
                "name": name,
                "config": {
                    "meta": {
                        "veil": {"role": "quasi_identifier", "hierarchy": name}
                        if name in LEVELS
                        else {"role": "sensitive"}
                    }
                },
            }
            for name in names
        ]
        project.model("staged", "select * from main.people", columns=roles)
        project.model("plain", "select * from {{ ref('staged') }}", config={"materialized": "table"})
        project.model(
            "released",
            "{{ veil.anonymize(ref('staged')) }}",
            config={
                "materialized": "release",
                "meta": {"veil": {"k": 5, "levels": LEVELS, "suppress_up_to": 0.1}},
            },
        )
        result = project.dbt("run", "--exclude", "released", "plain")
        assert result.success, result.text
        times: dict[str, list[float]] = {"plain": [], "released": []}
        for _ in range(3):
            for name in times:
                result = project.dbt("run", "--select", name)
                assert result.success, result.text
                times[name].append(result.nodes[name].execution_time)
        plain, released = (sorted(times[name])[1] for name in times)
        print(f"\n{rows:,} rows, {len(LEVELS)} quasi-identifiers, load {os.getloadavg()[0]:.1f}")
        print(f"create table as   {plain:6.2f} s")
        print(f"release           {released:6.2f} s   ratio {released / plain:.2f}")


if __name__ == "__main__":
    started = time.time()
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000)
    print(f"whole benchmark   {time.time() - started:6.1f} s")
