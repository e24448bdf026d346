"""The whole release of 10 million rows beside a plain `create table as` of the same columns, in one run.

    VEIL_DATA=<folder with adult/> python benchmarks/release.py [rows]

Three ways: the copy, a release whose rows are people, and a release whose people have an identifier to be counted.
The copy is the floor: a release writes as many bytes, after reading them.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import duckdb

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "udfs"), str(ROOT / "tests" / "python")]

from harness import Project, columns  # noqa: E402

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
RUNS = 3


def prepare(project: Project, rows: int) -> None:
    """Write the people and the hierarchies into the warehouse, and a consumer that releases them."""
    read = "read_csv('{}', delim=';', header={}, all_varchar=true)"
    hierarchies = {}
    with duckdb.connect(str(project.warehouse)) as connection:
        source = read.format(ADULT / "adult.csv", "true")
        connection.execute(
            f"create table people as select row_number() over () as person, adult.* from range({rows // 30162 + 1}), "
            f"(from {source}) as adult limit {rows}"
        )
        names = [row[0] for row in connection.execute("describe people").fetchall()]
        for column in LEVELS:
            path = read.format(ADULT / f"adult_hierarchy_{column}.csv", "false")
            width = len(connection.execute(f"describe from {path}").fetchall())
            relation = f"hierarchy_{column.replace('-', '_')}"
            project.model(relation, f"select * from {path}", config={"materialized": "table"})
            hierarchies[column] = {
                "kind": "lookup",
                "relation": relation,
                "columns": [f"column{i}" for i in range(width)],
            }
    project.configure(vars={"veil__hierarchies": hierarchies})
    roles = {name: {"role": "quasi_identifier", "hierarchy": name} if name in LEVELS else "sensitive" for name in names}
    project.model("people_with_id", "select * from main.people", columns=columns(roles | {"person": "unit"}))
    del roles["person"]
    project.model("people_by_row", "select * exclude (person) from main.people", columns=columns(roles))
    project.model("copy", "select * from {{ ref('people_by_row') }}", config={"materialized": "table"})
    policy = {"k": 5, "levels": LEVELS, "suppress_up_to": 0.1}
    for name in ("people_by_row", "people_with_id"):
        project.model(
            f"release_of_{name}",
            f"{{{{ veil.anonymize(ref('{name}')) }}}}",
            config={"materialized": "release", "meta": {"veil": policy}},
        )
    result = project.dbt("-q", "run", "--exclude", "copy", "release_of_*")
    assert result.success, result.text


def main(rows: int) -> None:
    """Time the three ways in turn, and print the medians."""
    ways = ["copy", "release_of_people_by_row", "release_of_people_with_id"]
    clock: dict[str, list[float]] = {way: [] for way in ways}
    processor: dict[str, list[float]] = {way: [] for way in ways}
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder))
        prepare(project, rows)
        for _ in range(RUNS):
            for way in ways:
                started = time.process_time()
                result = project.dbt("-q", "run", "--select", way)
                assert result.success, result.text
                processor[way].append(time.process_time() - started)
                clock[way].append(result.nodes[way].execution_time)
    print(f"{rows:,} rows, {len(LEVELS)} quasi-identifiers, median of {RUNS}, load {os.getloadavg()[0]:.1f}")
    for way in ways:
        texts = []
        for figures in (clock, processor):
            median = statistics.median(figures[way])
            texts.append(f"{median:7.2f} s {median / statistics.median(figures['copy']):5.2f} x")
        print(f"{way:28} clock {texts[0]}   processor, dbt and all {texts[1]}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000)
