"""What noise and bounding cost: a private mart against the same aggregate without noise, and against a plain GROUP BY.

Usage: ``python benchmarks/dp.py [rows] [people] [groups]``; by default 10,000,000, 1,000,000 and 1,000.
Each variant runs in a database of its own process, in turn, so that peak memory is its own.

* private: what ``veil.dp_aggregate`` renders, with six measures and exact noise.
* bounded: the same statement, every draw replaced by the value it would have been added to.
* group by: the six figures of the raw rows, with no bound on anybody.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "udfs"), str(ROOT / "tests" / "python")]

from dbt_veil import dp_planning, noise  # noqa: E402
from dbt_veil.udf import Session  # noqa: E402
from harness import Project, columns  # noqa: E402

DRAW = re.compile(r"veil_(laplace|gaussian|exponential)\('(\w+)', '(\w+)', (.+?), ([0-9.e+-]+)\)")
MEASURES = [
    {"name": "people", "kind": "count_units"},
    {"name": "visits", "kind": "count", "max_rows_per_group": 5},
    {"name": "fees", "kind": "sum", "column": "fee", "bounds": [0, 500]},
    {"name": "fee_mean", "kind": "mean", "column": "fee", "bounds": [0, 500]},
    {"name": "stay_p50", "kind": "quantile", "column": "stay", "q": 0.5, "candidates": [0, 60, 1]},
    {"name": "diagnosis", "kind": "mode", "column": "diagnosis", "candidates": list("abcdefghij")},
]
PLAIN = """
    select place, count(distinct person) as people, count(*) as visits, sum(fee) as fees, avg(fee) as fee_mean,
        quantile_disc(stay, 0.5) as stay_p50, mode(diagnosis) as diagnosis
    from warehouse.main.visits group by place
"""
ROLES = {"person": "unit", "place": "other", "fee": "sensitive", "stay": "sensitive", "diagnosis": "sensitive"}


def prepare(folder: Path, rows: int, people: int, groups: int, measures: list[dict[str, Any]]) -> str:
    """Make the data and return the compiled SQL of the private mart."""
    project = Project(folder)
    project.model(
        "visits",
        f"""
        select cast(hash(range) % {people} as integer) as person,
            cast(hash(range * 3 + 1) % {groups} as integer) as place,
            (hash(range * 5 + 2) % 60000) / 100.0 as fee, cast(hash(range * 7 + 3) % 70 as integer) as stay,
            chr(cast(97 + hash(range * 11 + 4) % 10 as integer)) as diagnosis
        from range({rows})
        """,
        config={"materialized": "table"},
        columns=columns(ROLES),
    )
    policy = {
        "budget": "visits",
        "epsilon": 1.0,
        "group_by": ["place"],
        "keys": list(range(groups)),
        "max_groups": 5,
        "max_rows_per_group": 1,
        "measures": measures,
    }
    project.model(
        "mart",
        "{{ veil.dp_aggregate(ref('visits')) }}",
        config={"materialized": "release", "meta": {"veil": {"dp": policy}}},
    )
    if not project.dbt("build", "--exclude", "mart", "--quiet").success:
        raise SystemExit("the data could not be built")
    result = project.dbt("compile", "--select", "mart", "--quiet", "--log-level", "none")
    if not result.success:
        raise SystemExit(result.text)
    return project.compiled("mart")


def without_noise(sql: str) -> str:
    """The statement with every draw replaced by what it would have been added to, or by the best choice."""

    def exact(draw: re.Match[str]) -> str:
        value = draw.group(4)
        return f"list_position({value}, list_max({value}))" if draw.group(1) == "exponential" else f"({value})"

    return DRAW.sub(exact, sql)


def run(warehouse: Path, sql: str) -> dict[str, float]:
    """Seconds and CPU seconds of one run of the statement in this process, and its peak memory in MB."""
    connection = duckdb.connect()
    connection.execute(f"attach '{warehouse}' as warehouse (read_only)")
    session = Session(config={}, connection=connection)
    for udf in (*noise.udfs(session), *dp_planning.udfs(session)):
        udf.register(connection)
    for kind, release, query, _, scale in DRAW.findall(sql):
        mechanism = noise.Mechanism(query, kind, Decimal(1), Decimal(0), float(scale))
        held = session.reservations.setdefault(release, noise.Reservation(release, {}, set()))
        dict.__setitem__(held.mechanisms, query, mechanism)  # type: ignore[index, arg-type]
    import opendp.prelude  # noqa: F401  (its import is not part of the statement)

    connection.execute("select count(*) from warehouse.main.visits").fetchall()
    started, used = time.perf_counter(), time.process_time()
    connection.execute(f"create temp table result as {sql}")
    seconds, used = time.perf_counter() - started, time.process_time() - used
    return {"seconds": seconds, "cpu": used, "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def measure(warehouse: Path, statements: dict[str, str], rounds: int) -> dict[str, dict[str, float]]:
    """The best of some rounds of each statement, taken in turn."""
    best: dict[str, dict[str, float]] = {}
    for _ in range(rounds):
        for name, sql in statements.items():
            request = json.dumps({"warehouse": str(warehouse), "sql": sql})
            answer = subprocess.run(
                [sys.executable, __file__, "--run"], input=request, capture_output=True, text=True, check=True
            )
            found = json.loads(answer.stdout.splitlines()[-1])
            if name not in best or found["seconds"] < best[name]["seconds"]:
                best[name] = found
    return best


def main(rows: int, people: int, groups: int) -> None:
    """Print the comparison as one table."""
    with tempfile.TemporaryDirectory() as folder:
        measures = MEASURES[: int(os.environ.get("MEASURES", len(MEASURES)))]
        sql = prepare(Path(folder), rows, people, groups, measures)
        statements = {"private": sql, "bounded": without_noise(sql), "group by": PLAIN}
        found = measure(Path(folder) / "warehouse.duckdb", statements, int(os.environ.get("ROUNDS", "2")))
    load = os.getloadavg()[0]
    print(f"{rows:,} rows, {people:,} people, {groups:,} groups, {len(measures)} measures, load {load:.1f}")
    for name, one in found.items():
        ratio, cpu = (found["private"][unit] / one[unit] for unit in ("seconds", "cpu"))
        print(
            f"{name:10} {one['seconds']:7.2f} s {one['cpu']:7.2f} CPU s {one['megabytes']:6.0f} MB   "
            f"private / this: {ratio:.2f}, by CPU {cpu:.2f}"
        )


if __name__ == "__main__":
    if sys.argv[1:] == ["--run"]:
        request = json.load(sys.stdin)
        print(json.dumps(run(Path(request["warehouse"]), request["sql"])))
    else:
        main(*(int(argument.replace(",", "")) for argument in [*sys.argv[1:], "10000000", "1000000", "1000"][:3]))
