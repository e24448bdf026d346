"""Hierarchies at size: seconds to plan and to run large ones, and labels compared with a plain join, key by key.

Reads the folder in the environment variable ``VEIL_DATA`` (it holds ``adult/``). Prints one line a measurement.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "python"), str(ROOT / "udfs")]

from harness import Project  # noqa: E402

ADULT = Path(os.environ.get("VEIL_DATA", "")).expanduser() / "adult"
QUASI_IDENTIFIERS = {
    "sex": 1, "age": 4, "race": 1, "marital-status": 2, "education": 3, "native-country": 2, "workclass": 2,
    "salary-class": 1, "occupation": 2,
}  # fmt: skip
ROWS = 1_000_000


def source(file: Path, levels: int) -> str:
    """A model that reads an ARX hierarchy file, which has no header."""
    names = ", ".join(f"'level_{i}'" for i in range(levels + 1))
    return f"select * from read_csv('{file}', header=false, delim=';', all_varchar=true, names=[{names}])"


def tree(keys: int) -> dict[str, Any]:
    """Keys written in place, ten to a group and a hundred to a group of groups, as quoted text of five digits."""
    groups: dict[str, dict[str, list[str]]] = {}
    for key in range(keys):
        text = f"{key:05d}"
        groups.setdefault(f"{text[:3]}**", {}).setdefault(f"{text[:4]}*", []).append(text)
    return {"kind": "tree", "tree": groups}


def build(folder: Path) -> tuple[Project, dict[str, float]]:
    """A consumer with all hierarchies, built once; seconds of each model."""
    project = Project(folder)
    hierarchies: dict[str, Any] = {"zip": {"kind": "lookup", "relation": "zip_levels"}}
    hierarchies |= {"tree_10000": tree(10_000), "tree_30000": tree(30_000)}
    project.model("zip_levels", source(ADULT / "test_hierarchy_zipcode.csv", 5))
    project.model("adult", f"select * from read_csv('{ADULT / 'adult.csv'}', delim=';', all_varchar=true)")
    for name, levels in QUASI_IDENTIFIERS.items():
        relation = name.replace("-", "_") + "_levels"
        project.model(relation, source(ADULT / f"adult_hierarchy_{name}.csv", levels))
        hierarchies[name] = {"kind": "lookup", "relation": relation}
    project.configure(vars={"veil__hierarchies": hierarchies}, models={"+materialized": "table"})
    zip_code = "(80000 + (i * 7919) % 10000)::varchar as zip"
    tree_code = "lpad((i % 30000)::varchar, 5, '0') as code"
    project.model("zips", f"select {zip_code}, {tree_code} from range({ROWS}) as t (i)")
    for level in range(1, 5):
        labels = f"{{{{ veil.generalize('zip', 'zip', {level}, relation_alias='z') }}}}"
        project.model(f"lookup_{level}", f"select z.zip, {labels} as label from {{{{ ref('zips') }}}} as z")
    for keys in (10_000, 30_000):
        labels = f"{{{{ veil.generalize('code', 'tree_{keys}', 2, relation_alias='z', on_unmapped='suppress') }}}}"
        project.model(f"labels_{keys}", f"select z.code, {labels} as label from {{{{ ref('zips') }}}} as z")
    for title, levels in (("coarse", (1, 1, 1, 1, 3, 2, 2, 1)), ("fine", (0, 3, 0, 2, 2, 1, 1, 0))):
        labels = ", ".join(
            f"{{{{ veil.generalize('{name}', '{name}', {level}, relation_alias='a') }}}} as \"{name}\""
            for name, level in zip(list(QUASI_IDENTIFIERS)[:8], levels, strict=True)
        )
        project.model(f"adult_{title}", f"select {labels} from {{{{ ref('adult') }}}} as a")
    started = time.perf_counter()
    result = project.dbt("run")
    if not result.success:
        raise SystemExit(result.text)
    print(f"dbt run of {len(result.nodes)} models: {time.perf_counter() - started:.1f} s")
    return project, {name: node.execution_time for name, node in result.nodes.items()}


def best(connection: duckdb.DuckDBPyConnection, sql: str) -> float:
    """The least seconds of three runs."""
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        connection.execute(sql).fetchall()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def main() -> None:
    """Measure, and stop at the first label that is not that of the join."""
    if not ADULT.is_dir():
        raise SystemExit("set VEIL_DATA to the folder that holds adult/")
    print("load average:", os.getloadavg())
    with tempfile.TemporaryDirectory() as folder:
        project, seconds = build(Path(folder))
        for level in range(1, 5):
            wrong = project.scalar(
                f"select count(*) from lookup_{level} as l left join zip_levels as z on l.zip = z.level_0 "
                f"where l.label is distinct from z.level_{level}"
            )
            print(f"10,000-key lookup, level {level}: {wrong} labels differ from the join")
            assert wrong == 0
        for keys in (10_000, 30_000):
            name = f"labels_{keys}"
            wrong = project.scalar(
                f"select count(*) from {name} "
                f"where label <> case when code < '{keys:05d}' then left(code, 3) || '**' else '*' end"
            )
            assert wrong == 0
            with duckdb.connect(str(project.warehouse), read_only=True) as connection:
                planned = best(connection, "explain " + project.compiled(name))
            times = f"planned in {planned:.2f} s, dbt model {seconds[name]:.1f} s"
            print(f"{keys:,}-key tree, {ROWS:,} rows: {times}")
        with duckdb.connect(str(project.warehouse), read_only=True) as connection:
            for title, sql in {
                "expression": "select count(distinct label) from (" + project.compiled("lookup_2") + ")",
                "join": "select count(distinct z.level_2) from zips left join zip_levels as z on zips.zip = z.level_0",
            }.items():
                print(f"10,000-key lookup, {ROWS:,} rows, {title}: {best(connection, sql):.3f} s")
            print(f"10,000-key lookup: planned in {best(connection, 'explain ' + project.compiled('lookup_2')):.4f} s")
        for title in ("coarse", "fine"):
            sizes = f"select *, count(*) as people from adult_{title} group by all"
            figures = "count(*) as classes, min(people) as smallest, sum(people) filter (where people < 5) as below_5"
            print(f"adult, {title} levels:", project.query(f"select {figures} from ({sizes})"))


if __name__ == "__main__":
    main()
