"""Every measure against SQL written by hand, and against pyCANON, in one run.

    VEIL_DATA=… python benchmarks/measures.py [--rows 10000000] [--pycanon /path/to/python]

Reads ``adult/adult.csv`` below the folder that VEIL_DATA names. `--pycanon` is the Python of an environment that has
pyCANON, which is no dependency of this project. The two sides of a comparison take turns, and the medians are compared.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import duckdb

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "python"), str(ROOT / "udfs")]

from harness import Project  # noqa: E402

KEYS = ["sex", "age", "race", "marital-status", "education", "native-country", "workclass", "salary-class"]
LEVELS = [1, 1, 1, 1, 3, 2, 2, 1]
QUOTED = ", ".join(f'"{key}"' for key in KEYS)

MACROS = {
    "k": "veil.k_anonymity({rel}, {keys})",
    "entropy l": "veil.l_diversity({rel}, {keys}, 'occupation')",
    "t equal": "veil.t_closeness({rel}, {keys}, 'occupation')",
    "t ordered": "veil.t_closeness({rel}, {keys}, 'income', distance='ordered')",
    "beta": "veil.beta_likeness({rel}, {keys}, 'occupation')",
}

HAND = {
    "k": f"select count(*), min(n) from (select count(*) as n from adult group by {QUOTED})",
    "entropy l": f"""
        with cv as (select {QUOTED}, occupation, count(*) as n from adult group by all)
        select min(l) from (select exp(ln(sum(n)) - sum(n * ln(n)) / sum(n)) as l from cv group by {QUOTED})""",
    "t equal": f"""
        with cv as (select {QUOTED}, occupation, count(*) as n from adult group by all),
        g as (select occupation, sum(n) / sum(sum(n)) over () as q from cv group by occupation),
        p as (select {QUOTED}, occupation, n / sum(n) over (partition by {QUOTED}) as p from cv)
        select max(t) from (
            select sum(greatest(p - q, 0)) as t from p join g on p.occupation is not distinct from g.occupation
            group by {QUOTED})""",
    "t ordered": f"""
        with cv as (select {QUOTED}, income, count(*) as n from adult group by all),
        g as (select income, sum(n) as n, row_number() over (order by income) as pos from cv group by income),
        c as (select {QUOTED}, sum(n) as total from cv group by {QUOTED}),
        grid as (select c.*, g.income, g.pos, g.n as gn from c cross join g),
        cum as (select grid.*, sum(coalesce(cv.n, 0) / grid.total - gn / (select sum(n) from g)) over (
            partition by {", ".join(f'grid."{key}"' for key in KEYS)} order by pos) as carried
            from grid left join cv on {" and ".join(f'grid."{key}" is not distinct from cv."{key}"' for key in KEYS)}
            and cv.income = grid.income)
        select max(t) from (
            select sum(abs(carried)) / ((select count(*) from g) - 1) as t from cum group by {QUOTED})""",
    "beta": f"""
        with cv as (select {QUOTED}, occupation, count(*) as n from adult group by all),
        g as (select occupation, sum(n) / sum(sum(n)) over () as q from cv group by occupation),
        p as (select {QUOTED}, occupation, n / sum(n) over (partition by {QUOTED}) as p from cv)
        select max(greatest(p / q - 1, 0)) from p join g on p.occupation is not distinct from g.occupation""",
}
FIGURES = {"k": "max(k)", "entropy l": "min(l)", "t equal": "max(t)", "t ordered": "max(t)", "beta": "max(beta)"}


def compiled(folder: Path, names: Mapping[str, str], table: str = "adult") -> dict[str, str]:
    """The SQL of the macros as dbt compiles it, for a table ``adult`` of the connection that runs it."""
    project = Project(folder)
    with duckdb.connect(str(project.warehouse)) as connection:
        columns = ", ".join(f"''::varchar as \"{key}\"" for key in [*KEYS, "occupation"])
        connection.execute(f"create table {table} as select {columns}, 0::integer as income limit 0")
    project.properties("sources", "raw", schema="main", tables=[{"name": table}])
    for name, call in names.items():
        text = call.format(rel=f"source('raw', '{table}')", keys=repr(KEYS))
        project.model(name.replace(" ", "_"), "{{ " + text + " }}")
    result = project.dbt("compile")
    assert result.success, result.text
    relation = f'"{project.warehouse.stem}"."main"."{table}"'
    return {name: project.compiled(name.replace(" ", "_")).replace(relation, table) for name in names}


def generalised(connection: duckdb.DuckDBPyConnection, data: Path, rows: int) -> None:
    """Adult at the issue's levels, repeated, with an income of 1,000 values that depends on the row alone."""
    connection.execute(
        f"create table one as select * from read_csv('{data / 'adult/adult.csv'}', delim=';', all_varchar=true)"
    )
    columns = []
    joins = []
    for place, (key, level) in enumerate(zip(KEYS, LEVELS, strict=True)):
        names = [f"column{i}" for i in range(6)]
        connection.execute(
            f"create table h{place} as select column0 as v, column{level} as g from read_csv("
            f"'{data / f'adult/adult_hierarchy_{key}.csv'}', delim=';', header=false, all_varchar=true, "
            f"names={names}, null_padding=true)"
        )
        columns.append(f'h{place}.g as "{key}"')
        joins.append(f'join h{place} on h{place}.v = one."{key}"')
    (size,) = connection.execute("select count(*) from one").fetchone() or (0,)
    connection.execute(
        f"create table adult as select {', '.join(columns)}, occupation, "
        f"(hash(one.rowid, r) % 1000)::integer as income "
        f"from one {' '.join(joins)}, range({max(rows // size, 1)}) as t(r)"
    )


def timed(turns: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median seconds of each, taken in turns after one warm-up."""
    seconds: dict[str, list[float]] = {name: [] for name in turns}
    for round_ in range(repeats + 1):
        for name, run in turns.items():
            start = time.perf_counter()
            run()
            if round_:
                seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def running(connection: duckdb.DuckDBPyConnection, sql: str) -> Callable[[], object]:
    """A call that runs the query and takes all its rows."""
    return lambda: connection.execute(sql).fetchall()


def peak_mb() -> int:
    """Largest memory of this process so far, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def against_hand(rows: int, data: Path, repeats: int, only: Collection[str]) -> None:
    """One table: what the macros take and what the queries by hand take."""
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
        generalised(connection, data, rows)
        sql = compiled(Path(folder), MACROS)
        (count,) = connection.execute("select count(*) from adult").fetchone() or (0,)
        print(
            f"\n{count:,} rows, 8 quasi-identifiers, load {os.getloadavg()[0]:.1f}, peak {peak_mb()} MB after loading"
        )
        print(f"{'measure':12} {'veil s':>8} {'hand s':>8} {'ratio':>6}  figure")
        for name in only:
            ours = f"select {FIGURES[name]} from ({sql[name]})"
            mine = connection.execute(ours).fetchone()
            hand = connection.execute(HAND[name]).fetchone()
            assert mine is not None
            assert hand is not None
            assert abs(float(mine[0]) - float(hand[-1])) < 1e-9, (name, mine, hand)
            seconds = timed(
                {"veil": running(connection, ours), "hand": running(connection, HAND[name])},
                repeats,
            )
            print(
                f"{name:12} {seconds['veil']:8.3f} {seconds['hand']:8.3f} {seconds['veil'] / seconds['hand']:6.2f}"
                f"  {float(mine[0]):.9g}"
            )
        print(f"peak memory {peak_mb()} MB")


def growth(data: Path) -> None:
    """Seconds by rows, classes and values, one of them growing at a time."""
    with tempfile.TemporaryDirectory() as folder:
        calls = {
            "k": "veil.k_anonymity({rel}, ['q'])",
            "entropy l": "veil.l_diversity({rel}, ['q'], 's')",
            "t equal": "veil.t_closeness({rel}, ['q'], 's')",
            "t numeric": "veil.t_closeness({rel}, ['q'], 's', distance='numeric')",
        }
        project = Project(Path(folder))
        with duckdb.connect(str(project.warehouse)) as connection:
            connection.execute("create table grown as select 0::bigint as q, 0::bigint as s limit 0")
        project.properties("sources", "raw", schema="main", tables=[{"name": "grown"}])
        for name, call in calls.items():
            text = call.format(rel="source('raw', 'grown')")
            project.model(name.replace(" ", "_"), "{{ " + text + " }}")
        assert project.dbt("compile").success
        relation = f'"{project.warehouse.stem}"."main"."grown"'
        sql = {name: project.compiled(name.replace(" ", "_")).replace(relation, "grown") for name in calls}
    print(f"\ngrowth, seconds, load {os.getloadavg()[0]:.1f}")
    print(f"{'rows':>12} {'classes':>8} {'values':>7} " + " ".join(f"{name:>10}" for name in calls))
    for rows, classes, values in [
        (100_000, 1_000, 20),
        (1_000_000, 1_000, 20),
        (10_000_000, 1_000, 20),
        (1_000_000, 10_000, 20),
        (1_000_000, 100_000, 20),
        (1_000_000, 1_000, 200),
        (1_000_000, 1_000, 2_000),
    ]:
        with duckdb.connect() as connection:
            connection.execute(
                f"create table grown as select (hash(i) % {classes})::bigint as q, "
                f"(hash(i + 1e9) % {values})::bigint as s from range({rows}) as t(i)"
            )
            seconds = timed({n: (lambda text=text: connection.execute(text).fetchall()) for n, text in sql.items()}, 1)
        print(f"{rows:12,} {classes:8,} {values:7,} " + " ".join(f"{seconds[name]:10.3f}" for name in calls))


PYCANON = textwrap.dedent("""
    import sys, time, pandas as pd
    from pycanon import anonymity
    data = pd.read_csv(sys.argv[1], sep=";", dtype=str)
    keys, sensitive = sys.argv[2].split(","), ["occupation"]
    for name, run in {
        "k": lambda: anonymity.k_anonymity(data, keys),
        "l": lambda: anonymity.l_diversity(data, keys, sensitive),
        "entropy l": lambda: anonymity.entropy_l_diversity(data, keys, sensitive),
        "t": lambda: anonymity.t_closeness(data, keys, sensitive),
        "beta": lambda: anonymity.basic_beta_likeness(data, keys, sensitive),
    }.items():
        start = time.perf_counter()
        figure = run()
        print(name, time.perf_counter() - start, figure, sep="|", flush=True)
""")


def against_pycanon(data: Path, python: str) -> None:
    """Raw Adult, eight quasi-identifiers: both sides start from the table in memory."""
    calls = {
        "k": ("min(k)", MACROS["k"]),
        "l": ("min(l)", "veil.l_diversity({rel}, {keys}, 'occupation', kind='distinct')"),
        "entropy l": ("min(l)", MACROS["entropy l"]),
        "t": ("max(t)", MACROS["t equal"]),
        "beta": ("max(beta)", MACROS["beta"]),
    }
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
        sql = compiled(Path(folder), {name: call for name, (_, call) in calls.items()})
        connection.execute(
            f"create table adult as select *, 0 as income from read_csv('{data / 'adult/adult.csv'}', "
            "delim=';', all_varchar=true)"
        )
        print(f"\nraw Adult, 30,162 rows, load {os.getloadavg()[0]:.1f}")
        print(f"{'measure':12} {'veil s':>8} {'pyCANON s':>10} {'times':>7}  veil / pyCANON")
        arguments = [python, "-c", PYCANON, str(data / "adult/adult.csv"), ",".join(KEYS)]
        done = subprocess.run(arguments, capture_output=True, text=True, check=True)
        for line in done.stdout.splitlines():
            name, seconds, figure = line.split("|")
            ours = f"select {calls[name][0]} from ({sql[name]})"
            mine = timed({"veil": running(connection, ours)}, 5)["veil"]
            (found,) = connection.execute(ours).fetchone() or (None,)
            print(f"{name:12} {mine:8.3f} {float(seconds):10.2f} {float(seconds) / mine:7.0f}  {found} / {figure}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=list(MACROS), default=list(MACROS), help="measures to compare")
    parser.add_argument("--pycanon", help="the Python of an environment with pyCANON")
    parser.add_argument("--growth", action="store_true")
    options = parser.parse_args()
    data = Path(os.environ["VEIL_DATA"])
    against_hand(options.rows, data, options.repeats, options.only)
    if options.growth:
        growth(data)
    if options.pycanon:
        against_pycanon(data, options.pycanon)


if __name__ == "__main__":
    main()
