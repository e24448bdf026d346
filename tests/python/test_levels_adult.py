"""Published figures of the level search on the Adult census extract and on a registry, from the folder VEIL_DATA."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest
from dbt_veil.frequency import Table
from dbt_veil.recoding import recode
from dbt_veil.search import Policy, search
from levels_reference import Case, criterion

EIGHT = ["sex", "age", "race", "marital-status", "education", "native-country", "workclass", "salary-class"]


def adult(names: list[str]) -> Table:
    folder = Path(os.environ["VEIL_DATA"]) / "adult"

    def read(name: str) -> list[list[str]]:
        with (folder / name).open(encoding="utf-8") as file:
            return list(csv.reader(file, delimiter=";"))

    header, *lines = read("adult.csv")
    labels = [{line[0]: line for line in read(f"adult_hierarchy_{name}.csv")} for name in names]
    picked = [tuple(line[header.index(name)] for name in names) for line in lines]
    illness = [line[header.index("occupation")] for line in lines]
    return Case(names, picked, labels, illness, list(range(len(lines)))).table()  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def eight() -> Table:
    return adult(EIGHT)


@pytest.mark.audit
@pytest.mark.parametrize(("limit", "feasible"), [(0, 60), (0.01, 1066), (0.02, 1586), (0.05, 2575)])
def test_adult_feasible_nodes(eight: Table, limit: float, feasible: int) -> None:
    answer = search(eight, Policy(5, (), limit), count=True)
    assert (answer.nodes, answer.feasible) == (4320, feasible)
    if limit == 0:
        assert answer.minimal is not None
        assert len(answer.minimal) == 18
        assert min(sum(levels.values()) for levels in answer.minimal) == 12
        assert answer.checked <= 115


@pytest.mark.audit
def test_adult_other_quasi_identifiers() -> None:
    nine, five = adult([*EIGHT, "occupation"]), adult(EIGHT[:5])
    assert [search(nine, Policy(5, (), limit), count=True).feasible for limit in (0, 0.02)] == [87, 2861]
    least, limited = (search(five, Policy(5, (), limit), metric="precision", count=True) for limit in (0, 0.02))
    assert least.minimal is not None
    assert (least.nodes, least.feasible, len(least.minimal), limited.feasible) == (240, 33, 9, 185)
    assert [least.releases[0].levels[name] for name in EIGHT[:5]] == [0, 4, 0, 1, 3]
    assert least.releases[0].score == pytest.approx(0.5)
    assert [limited.releases[0].levels[name] for name in EIGHT[:5]] == [0, 1, 0, 0, 3]
    assert limited.releases[0].suppressed_rows == 470


@pytest.mark.audit
def test_adult_optima(eight: Table) -> None:
    squares = search(eight, Policy(5), metric="discernibility").releases[0]
    assert [squares.levels[name] for name in EIGHT] == [1, 1, 1, 1, 3, 2, 2, 1]
    assert squares.score == 55_170_356
    tied = search(eight, Policy(5), top=6).releases
    assert [0, 4, 1, 2, 3, 2, 0, 0] in [[r.levels[n] for n in EIGHT] for r in tied if r.score == tied[0].score]
    assert tied[0].score == pytest.approx(0.542211, abs=5e-7)
    two, five = (search(eight, Policy(5, (), limit)).releases[0] for limit in (0.02, 0.05))
    assert [two.levels[name] for name in EIGHT] == [0, 3, 0, 2, 2, 1, 1, 0]
    assert (round(two.score, 6), two.suppressed_rows) == (0.246477, 506)
    assert [five.levels[name] for name in EIGHT] == [0, 3, 0, 0, 2, 1, 1, 0]
    assert (round(five.score, 6), five.suppressed_rows, five.classes) == (0.170123, 1346, 397)


@pytest.mark.audit
@pytest.mark.parametrize(
    ("model", "threshold", "score", "levels"),
    [
        ("distinct_l", 5, 0.613172, [0, 4, 1, 1, 3, 2, 2, 0]),
        ("entropy_l", 3, 0.613172, [0, 4, 1, 1, 3, 2, 2, 0]),
        ("t_ordered", 0.2, 0.613172, [0, 4, 1, 1, 3, 2, 2, 0]),
        ("t_equal", 0.2, 0.918395, [1, 4, 1, 1, 3, 2, 2, 1]),
    ],
)
def test_adult_optima_with_models(eight: Table, model: str, threshold: float, score: float, levels: list[int]) -> None:
    tied = search(eight, Policy(5, (criterion(model, threshold, 14),)), top=6).releases
    assert round(tied[0].score, 6) == score
    assert levels in [[r.levels[name] for name in EIGHT] for r in tied if r.score == tied[0].score]


@pytest.mark.audit
def test_registry_by_discernibility() -> None:
    with (Path(os.environ["VEIL_DATA"]) / "registry" / "registry.csv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    rows = [(line["zip"], int(line["age"]), line["sex"]) for line in lines]
    labels: list[dict[object, list[object]]] = [
        {row[0]: [row[0], row[0][:4], row[0][:3], "*"] for row in rows},
        {row[1]: [row[1] // width * width for width in (1, 5, 10, 20)] for row in rows},
        {row[2]: [row[2], "*"] for row in rows},
    ]
    case = Case(["zip", "age", "sex"], rows, labels, [line["diagnosis"] for line in lines], list(range(len(rows))))  # type: ignore[arg-type]
    answer = search(case.table(), Policy(10, (), 0.01), metric="discernibility", top=6, count=True)
    assert (answer.nodes, answer.feasible) == (32, 17)
    assert [tuple(r.levels[name] for name in ("zip", "age", "sex")) for r in answer.releases] == [
        (3, 0, 1), (1, 1, 1), (2, 1, 0), (1, 3, 0), (1, 2, 1), (3, 1, 0),
    ]  # fmt: skip
    assert [r.score for r in answer.releases] == [995542, 1012348, 1188168, 1410431, 1601796, 1715954]


@pytest.mark.audit
@pytest.mark.parametrize(("k", "granularity"), [(5, 0.96), (10, 0.944), (100, 0.848)])
def test_adult_local_recoding(eight: Table, k: int, granularity: float) -> None:
    recoding = recode(eight, Policy(k))
    assert recoding.suppressed_people == 0
    assert 1 - recoding.loss >= granularity
