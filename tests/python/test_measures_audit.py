"""Published and recorded figures on real tables, read from the folder that VEIL_DATA names."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import duckdb
import pytest
from harness import Project

pytestmark = pytest.mark.audit

ADULT = ["sex", "age", "race", "marital-status", "education", "native-country", "workclass", "salary-class"]
PYCANON = ["age", "education", "occupation", "relationship", "sex", "native-country"]
REGISTRY = [(3, 0, 1), (1, 1, 1), (2, 1, 0), (3, 3, 1)]

# table: quasi-identifiers, sensitive column, and per measure the figure of the whole table
EXPECTED: dict[str, tuple[list[str], str, dict[str, float]]] = {
    "adult": (
        ADULT,
        "occupation",
        {
            "k": 16,
            "classes": 30,
            "distinct": 7,
            "entropy": 5.655067739,
            "alpha": 0.3125,
            "t": 0.431656554605132,
            "beta": 16.576923076923,
            "enhanced": 8.117113555584,
            "delta": 2.866586852723,
        },
    ),
    "raw_adult": (
        ADULT,
        "occupation",
        {"k": 1, "distinct": 1, "t": 0.999701611299, "beta": 3350.3333333333, "delta": 8.117113555584},
    ),
    "pycanon_3": (
        PYCANON,
        "salary-class",
        {
            "classes": 2837,
            "k": 3,
            "distinct": 1,
            "t": 0.713563698291490,
            "beta": 2.491177598772535,
            "delta": 2.920612968,
        },
    ),
    "pycanon_10": (PYCANON, "salary-class", {"classes": 462, "k": 10, "t": 0.634944543338354, "beta": 1.739309827}),
    "hospital": (["age", "gender", "city"], "disease", {"classes": 5, "k": 2, "distinct": 1, "t": 0.6153846154}),
    # people in classes below 10 are suppressed: they are no class, and they stay in what a class is compared with
    "registry_3_0_1": (
        ["zip", "age", "sex"],
        "diagnosis",
        {"classes": 68, "k": 10, "distinct": 3, "entropy": 1.524, "t": 0.537, "homogeneous": 3},
    ),
    "registry_1_1_1": (["zip", "age", "sex"], "diagnosis", {"entropy": 1.483, "t": 0.464}),
    "registry_2_1_0": (["zip", "age", "sex"], "diagnosis", {"entropy": 1.753, "t": 0.487}),
    "registry_3_3_1": (["zip", "age", "sex"], "diagnosis", {"distinct": 6, "entropy": 2.319, "t": 0.281}),
}
CALLS = {
    "distinct": ("min(l)", "veil.l_diversity({}, kind='distinct')"),
    "entropy": ("min(l)", "veil.l_diversity({})"),
    "alpha": ("max(alpha)", "veil.alpha_k_anonymity({})"),
    "t": ("max(t)", "veil.t_closeness({})"),
    "beta": ("max(beta)", "veil.beta_likeness({})"),
    "enhanced": ("max(beta)", "veil.beta_likeness({}, kind='enhanced')"),
    "delta": ("max(delta)", "veil.delta_disclosure({})"),
    "homogeneous": ("count(*) filter (top_share >= 0.8)", "veil.homogeneity({})"),
}


def load(connection: duckdb.DuckDBPyConnection, data: Path) -> None:
    adult = f"read_csv('{data}/adult/adult.csv', delim=';', all_varchar=true)"
    connection.execute(f"create table raw_adult as select * from {adult}")
    labels, joins = [], []
    for place, (key, level) in enumerate(zip(ADULT, [1, 1, 1, 1, 3, 2, 2, 1], strict=True)):
        names = [f"level_{i}" for i in range(6)]
        connection.execute(
            f"create temp table h{place} as from read_csv('{data}/adult/adult_hierarchy_{key}.csv', delim=';', "
            f"header=false, all_varchar=true, null_padding=true, names={names})"
        )
        labels.append(f'h{place}.level_{level} as "{key}"')
        joins.append(f'join h{place} on h{place}.level_0 = a."{key}"')
    connection.execute(
        f"create table adult as select {', '.join(labels)}, a.occupation from raw_adult as a {' '.join(joins)}"
    )
    for name, file in {
        "pycanon_3": "adult_anonymized_3",
        "pycanon_10": "adult_anonymized_10",
        "hospital": "hospital_anonymized",
    }.items():
        connection.execute(f"create table {name} as from read_csv('{data}/pycanon/{file}.csv', all_varchar=true)")
    connection.execute(f"create temp table registry as from read_csv('{data}/registry/registry.csv', all_varchar=true)")
    bands = {0: "age", 1: "age::int // 5", 2: "age::int // 10", 3: "age::int // 20"}
    for zip_level, age_level, sex_level in REGISTRY:
        sex = "sex" if sex_level == 0 else "'any'"
        connection.execute(
            f"create table registry_{zip_level}_{age_level}_{sex_level} as "
            f"with g as (select left(zip, {5 - zip_level}) as zip, ({bands[age_level]})::varchar as age, {sex} as sex, "
            "diagnosis from registry), c as (select *, count(*) over (partition by zip, age, sex) as n from g) "
            "select "
            + ", ".join(f"case when n < 10 then '*' else {q} end as {q}" for q in ("zip", "age", "sex"))
            + ", diagnosis from c"
        )


@pytest.fixture(scope="module")
def figures(shared_project: Project) -> dict[str, dict[str, Any]]:
    project = shared_project
    data = Path(os.environ["VEIL_DATA"])
    with duckdb.connect(str(project.warehouse)) as connection:
        load(connection, data)
    project.properties("sources", "raw", schema="main", tables=[{"name": name} for name in EXPECTED])
    for table, (keys, sensitive, wanted) in EXPECTED.items():
        relation = f"source('raw', '{table}')"
        project.model(f"k__{table}", f"{{{{ veil.k_anonymity({relation}, {keys!r}, suppressed_marker='*') }}}}")
        for name in wanted:
            if name in CALLS:
                call = CALLS[name][1].format(f"{relation}, {keys!r}, '{sensitive}', suppressed_marker='*'")
                project.model(f"{name}__{table}", f"{{{{ {call} }}}}")
    recursive = f"veil.l_diversity(source('raw', 'adult'), {ADULT!r}, 'occupation', kind='recursive', l=7)"
    project.model("recursive", f"{{{{ {recursive} }}}}")
    assert (build := project.dbt("run")).success, build.text
    found: dict[str, dict[str, Any]] = {}
    for table, (_, _, wanted) in EXPECTED.items():
        ((k, classes),) = project.query(f"select k, classes from k__{table}")
        found[table] = {"k": k, "classes": classes}
        for name in wanted:
            if name in CALLS:
                found[table][name] = project.scalar(f"select {CALLS[name][0]} from {name}__{table}")
    found["recursive"] = {"c": project.scalar("select max(l) from recursive")}
    return found


@pytest.mark.parametrize(("table", "measure"), [(t, m) for t, (_, _, wanted) in EXPECTED.items() for m in wanted])
def test_the_recorded_figure_comes_out(figures: dict[str, dict[str, Any]], table: str, measure: str) -> None:
    expected = EXPECTED[table][2][measure]
    decimals = len(str(expected).partition(".")[2])
    assert figures[table][measure] == pytest.approx(expected, abs=max(0.51 * 10.0**-decimals, 1e-8) if decimals else 0)
    assert math.isfinite(figures[table][measure])


def test_recursive_diversity_is_counted_from_the_most_frequent_value(figures: dict[str, dict[str, Any]]) -> None:
    # Machanavajjhala et al. 2007: r_1 is the most frequent value, and c must be above r_1 / (r_7 + ... + r_m) = 6.
    # pyCANON 1.3.6 sorts the counts upwards, so its r_1 is the rarest one, and reports c = 1 for this table.
    assert figures["recursive"]["c"] == 6
