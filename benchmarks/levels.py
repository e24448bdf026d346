"""Level search: seconds from a table in DuckDB to the chosen levels, beside peers, and how the cost grows.

``VEIL_DATA=<folder> python benchmarks/levels.py [--peers <python>]``. The folder holds ``adult/adult.csv`` and its
hierarchies, as ARX ships them. ``--peers`` is the interpreter of an environment with ``anjana`` and ``anonypyx``.

Tables of other sizes are drawn from the extract with replacement, and each cell is with a probability (``noise``, a
tenth if not said) drawn anew from its own column, which leaves many more distinct tuples. With noise 1 the columns are
independent: the hard case for a search that counts tuples first.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "python"), str(ROOT / "udfs")]

from dbt_veil import levels  # noqa: E402
from dbt_veil.udf import Session  # noqa: E402
from harness import Project, columns  # noqa: E402

EIGHT = ["sex", "age", "race", "marital-status", "education", "native-country", "workclass", "salary-class"]
NINE = [*EIGHT, "occupation"]
MACRO = """
{% macro search_sql(model) %}
    {%- set node = veil._released_node(model, []) -%}
    {%- set policy = veil.policy(node=veil._with_open_levels(node)) -%}
    {%- set request = {'ask': 'find', 'options': {'top': 1} if policy.recoding == 'global' else {}} -%}
    {%- set relation = veil._built_input('find_levels', node) -%}
    {%- set udf = 'veil_recode' if policy.recoding == 'local' else 'veil_find_levels' -%}
    {%- do log('SQL ' ~ tojson(veil._search_sql(udf, 'find_levels', node, policy, relation, request)), info=true) -%}
{% endmacro %}
"""


def search_statements(folder: Path, data: Path, cases: dict[str, tuple[list[str], dict[str, Any]]]) -> dict[str, str]:
    """The statement that ``veil.find_levels`` runs for each case, over views of a table ``people``."""
    project = Project(folder)
    names = [name.stem.removeprefix("adult_hierarchy_") for name in data.glob("adult_hierarchy_*.csv")]
    hierarchies = {}
    for name in names:
        path = data / f"adult_hierarchy_{name}.csv"
        with path.open(encoding="utf-8") as file:
            depth = file.readline().count(";") + 1
        renamed = ", ".join(f"column{level} as level_{level}" for level in range(depth))
        relation = f"levels_of_{name.replace('-', '_')}"
        sql = f"select {renamed} from read_csv('{path}', delim = ';', header = false, all_varchar = true)"
        project.model(relation, sql, config={"materialized": "table"})
        hierarchies[name] = {
            "kind": "lookup",
            "relation": relation,
            "columns": [f"level_{level}" for level in range(depth)],
        }
    project.configure(vars={"veil__hierarchies": hierarchies})
    sql = f"select * from read_csv('{data / 'adult.csv'}', delim = ';', all_varchar = true)"
    project.model("people", sql, config={"materialized": "table"})
    project.macro("search_sql", MACRO)
    for case, (quasi_identifiers, policy) in cases.items():
        roles: dict[str, Any] = {name: {"role": "quasi_identifier", "hierarchy": name} for name in quasi_identifiers}
        roles |= {name: "sensitive" for name in names if name not in quasi_identifiers}
        config = {"materialized": "view"}
        project.model(f"input_of_{case}", "select * from {{ ref('people') }}", config=config, columns=columns(roles))
        config = {"materialized": "release", "meta": {"veil": {"k": 5, "levels": "auto", **policy}}}
        project.model(case, f"{{{{ veil.anonymize(ref('input_of_{case}')) }}}}", config=config)
    statements = {}
    with contextlib.redirect_stdout(io.StringIO()):
        built = project.dbt("run", "--exclude", *cases)
        assert built.success, built.text
        for case in cases:
            text = project.dbt("run-operation", "search_sql", "--args", json.dumps({"model": case})).text
            (line,) = {line for line in text.splitlines() if line.startswith("SQL ")}
            statements[case] = json.loads(line.removeprefix("SQL "))
    return statements


def resize(connection: duckdb.DuckDBPyConnection, rows: int, *, noise: float = 0.1) -> None:
    """Replace ``people`` by ``rows`` rows drawn from the extract, see above; the extract itself at its own size."""
    connection.execute("create table if not exists extract as select *, row_number() over () - 1 as row from people")
    count = connection.execute("select count(*) from extract").fetchall()[0][0]
    names = [f'"{name}"' for (name, *_) in connection.execute("describe extract").fetchall() if name != "row"]
    if rows == count:
        connection.execute("create or replace table people as select * exclude (row) from extract")
        return
    draw = f"cast(floor(random() * {count}) as bigint)"
    drawn = ", ".join(f"case when random() < {noise} then {draw} else row end as d{i}" for i in range(len(names)))
    joins = " ".join(f"join extract e{i} on e{i}.row = d{i}" for i in range(len(names)))
    listed = ", ".join(f"e{i}.{name}" for i, name in enumerate(names))
    connection.execute("select setseed(0.12)")
    connection.execute(
        f"create or replace table people as select {listed} "
        f"from (select {drawn} from (select {draw} as row from range({rows}))) {joins}"
    )


def tuples(connection: duckdb.DuckDBPyConnection) -> int:
    """Distinct tuples of the eight quasi-identifiers."""
    listed = ", ".join(f'"{name}"' for name in EIGHT)
    return int(connection.execute(f"select count(*) from (select distinct {listed} from people)").fetchall()[0][0])


def timed(connection: duckdb.DuckDBPyConnection, sql: str) -> tuple[float, dict[str, Any]]:
    """Best of three: seconds of the statement, and its answer."""
    best, answer = float("inf"), {}
    for _ in range(3):
        started = time.perf_counter()
        ((found,),) = connection.execute(sql).fetchall()
        best = min(best, time.perf_counter() - started)
        answer = json.loads(found) if isinstance(found, str) else {"tuples": len(found)}
    return best, answer


def search_line(label: str, seconds: float, answer: dict[str, Any]) -> str:
    report = next((line for line in answer.get("report", "").splitlines() if " nodes, " in line), "")
    loss = f"loss {answer['releases'][0]['loss']:.6f}" if answer.get("releases") else f"{answer}"
    return f"{label:58}  {seconds:7.2f} s   {loss}   {report}"


PEER = """
import sys, time, warnings
warnings.filterwarnings("ignore")
import pandas as pd
path, hierarchies, columns, which, rows = *sys.argv[1:3], sys.argv[3].split(","), sys.argv[4], int(sys.argv[5])
frame = pd.read_csv(path, sep=";", dtype=str)[columns]
if which.startswith("anonypyx"):
    frame = frame.astype({name: "int64" if name == "age" else "category" for name in columns})
if rows != len(frame):
    frame = frame.sample(rows, replace=True, random_state=12).reset_index(drop=True)
if which.startswith("anjana"):
    from anjana.anonymity import k_anonymity
    levels = {}
    for name in columns:
        table = pd.read_csv(f"{hierarchies}/adult_hierarchy_{name}.csv", sep=";", dtype=str, header=None)
        levels[name] = {level: table[level].values for level in table.columns}
    started = time.perf_counter()
    result = k_anonymity(frame, [], columns, 5, float(which.split(":")[1]), levels)
else:
    import anonypyx
    for name in columns:
        frame[name] = frame[name].astype(int) if name == "age" else frame[name].astype("category")
    started = time.perf_counter()
    anonymiser = anonypyx.Anonymiser(frame, k=5, algorithm="Mondrian", feature_columns=columns)
    result = anonymiser.anonymise()
print(f"{time.perf_counter() - started:.2f} s, {len(result)} rows out")
"""


def peer_lines(python: str, data: Path) -> list[str]:
    lines = []
    for which in ("anjana:0", "anjana:2", "anonypyx Mondrian"):
        for names in (EIGHT, NINE):
            arguments = [str(data / "adult.csv"), str(data), ",".join(names), which, "30162"]
            try:
                done = subprocess.run([python, "-c", PEER, *arguments], capture_output=True, text=True, timeout=110)
                said = done.stdout.strip() or done.stderr.strip().splitlines()[-1]
            except subprocess.TimeoutExpired:
                said = "not done after 110 s"
            lines.append(f"{which}, {len(names)} quasi-identifiers, 30,162 rows: {said}")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", help="interpreter of an environment with anjana and anonypyx")
    parser.add_argument("--only", choices=["veil", "growth", "peers", "local"])
    options = parser.parse_args()
    data = Path(os.environ["VEIL_DATA"]) / "adult"
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores, duckdb {duckdb.__version__}")
    cases: dict[str, tuple[list[str], dict[str, Any]]] = {}
    for names in (EIGHT, NINE):
        for share in (0, 0.02):
            cases[f"q{len(names)}_{str(share).replace('.', '_')}"] = (names, {"suppress_up_to": share})
    cases["local"] = (EIGHT, {"recoding": "local", "levels": "auto"})
    cases["local_t"] = (EIGHT, {"recoding": "local", "levels": "auto", "t": {"occupation": 0.4}})
    for count in (4, 5, 6, 7):
        cases[f"q{count}_0"] = (EIGHT[:count], {"suppress_up_to": 0})
    with tempfile.TemporaryDirectory() as folder:
        statements = search_statements(Path(folder), data, cases)
        connection = duckdb.connect(str(Path(folder) / "warehouse.duckdb"))
        for udf in levels.udfs(Session(config={}, connection=connection)):
            udf.register(connection)
        if options.only in (None, "veil"):
            for rows in (30_162, 1_000_000):
                resize(connection, rows)
                print(f"{rows:,} rows, {tuples(connection):,} distinct tuples of the eight", flush=True)
                for case in ("q8_0", "q8_0_02", "q9_0", "q9_0_02"):
                    print(search_line(f"{rows:,} rows, {case}", *timed(connection, statements[case])), flush=True)
        if options.only in (None, "local"):
            resize(connection, 30_162)
            for case in ("local", "local_t"):
                seconds, answer = timed(connection, statements[case])
                print(f"30,162 rows, {case}: {seconds:.2f} s, {answer['tuples']:,} tuples recoded", flush=True)
        if options.only in (None, "growth"):
            for rows in (10_000, 100_000, 300_000, 1_000_000):
                for noise in (0.1, 1):
                    resize(connection, rows, noise=noise)
                    label = f"{rows:,} rows, noise {noise}, {tuples(connection):,} tuples, q8_0_02"
                    print(search_line(label, *timed(connection, statements["q8_0_02"])), flush=True)
            resize(connection, 30_162)
            for count in (4, 5, 6, 7, 8, 9):
                print(search_line(f"30,162 rows, {count} columns", *timed(connection, statements[f"q{count}_0"])))
        connection.close()
    if options.peers and options.only in (None, "peers"):
        print("\n".join(peer_lines(options.peers, data)))
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
