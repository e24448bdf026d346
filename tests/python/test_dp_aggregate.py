"""What dp_aggregate computes: bounds without noise, figures with it, and intervals that cover.

The compiled SQL of each model is run by itself, in a database with the plugin's UDFs and a reservation of its own, so
that one compilation serves thousands of draws.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from dbt_veil import dp_planning, noise
from dbt_veil.udf import Session
from harness import Project, columns, rows

DRAW = re.compile(r"veil_(laplace|gaussian|exponential)\('(\w+)', '(\w+)', .+?, ([0-9.e+-]+)\)")


class Engine:
    """Runs compiled models on a copy of the warehouse, with exact noise or none."""

    def __init__(self, warehouse: Path, *, noisy: bool) -> None:
        self.connection = duckdb.connect()
        self.connection.execute(f"attach '{warehouse}' as warehouse (read_only)")
        self.session = Session(config={} if noisy else {"harness_noise": "off"}, connection=self.connection)
        for udf in (*noise.udfs(self.session), *dp_planning.udfs(self.session)):
            udf.register(self.connection)

    def run(self, sql: str) -> list[dict[str, Any]]:
        """The rows of a compiled model, as mappings."""
        for kind, release, query, scale in DRAW.findall(sql):
            mechanism = noise.Mechanism(query, kind, Decimal(1), Decimal(0), float(scale))
            held = self.session.reservations.setdefault(release, noise.Reservation(release, {}, set()))
            dict.__setitem__(held.mechanisms, query, mechanism)  # type: ignore[index, arg-type]
        cursor = self.connection.cursor().execute(sql)
        names = [name for name, *_ in cursor.description or []]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def dp(**changes: Any) -> dict[str, Any]:
    """A `dp` policy of one group over all, with changes."""
    return {"budget": "people", "epsilon": 1.0, "max_rows_per_group": 1} | changes


def measure(name: str, kind: str, **rest: Any) -> dict[str, Any]:
    return {"name": name, "kind": kind} | rest


VISITS = rows("person,visit,fee", *(f"p1,{i},1" for i in range(50)), "p2,50,1", "p3,51,1", "p3,52,1", "NULL,53,1")
HUGE = rows("person,big", *(f"{i},9000000000000000000" for i in range(3)))
ODD = rows(
    "person,place,x", "1,one,40", "2,null,NULL", "3,null,NULL", "4,nan,nan", "5,inf,inf", "6,many,20", "7,many,60"
)
# 200 people with values spread evenly over 20 to 80, each in 200 groups: 200 draws of a mean from one run.
DIAGNOSES = {"a": 4133, "b": 528, "c": 547, "d": 462, "e": 270, "f": 60}

MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "visits": ("bounded", dp(max_rows_per_group=3, measures=[measure("n", "count")])),
    "kept_rows": (
        "bounded",
        dp(max_rows_per_group=3, measures=[measure("total", "sum", column="visit", bounds=[0, 100], grid=1)]),
    ),
    "people": (
        "scattered",
        dp(
            group_by=["place"],
            keys={"place": [*range(12), 99]},
            max_groups=3,
            measures=[measure("people", "count_units")],
        ),
    ),
    "huge": (
        "huge",
        dp(
            epsilon=1e-6,
            max_rows_per_group=3,
            measures=[
                measure("total", "sum", column="big", bounds=[0, 9e18], grid=1),
                measure("by_person", "sum", column="big", bounds=[0, 9000000000000000000], bounds_per="group"),
            ],
        ),
    ),
    "odd": (
        "odd",
        dp(
            group_by="place",
            keys=["none", "one", "null", "nan", "inf", "many"],
            max_groups=1,
            measures=[
                measure("average", "mean", column="x", bounds=[0, 100]),
                measure("spread", "stddev", column="x", bounds=[0, 100]),
                measure("total", "sum", column="x", bounds=[0, 100], grid=1),
                measure("middle", "quantile", column="x", q=0.5, candidates=[0, 100, 10]),
                measure("place_again", "mode", column="place", candidates=["one", "many"]),
            ],
        ),
    ),
    "averages": (
        "spread",
        dp(
            epsilon=200.0 / 200,
            group_by="copy",
            keys={"copy": list(range(300))},
            max_groups=1,
            measures=[measure("average", "mean", column="x", bounds=[0, 100], grid=1)],
        ),
    ),
    "kinds": (
        "spread",
        dp(
            epsilon=5.0,
            group_by="copy",
            keys={"copy": list(range(300))},
            max_groups=1,
            measures=[
                measure("people", "count_units"),
                measure("total", "sum", column="x", bounds=[0, 100]),
                measure("average", "mean", column="x", bounds=[0, 100]),
                measure("vary", "variance", column="x", bounds=[0, 100]),
                measure("deviate", "stddev", column="x", bounds=[0, 100]),
                measure("middle", "quantile", column="x", q=0.5, candidates=[0, 100, 1]),
                measure("quarter", "quantile", column="x", q=[0.25, 0.75], candidates=[0, 100, 5], method="histogram"),
                measure("letter", "mode", column="letter", candidates=["a", "b", "c"]),
                measure("letters", "histogram", column="letter", candidates=["a", "b", "c"]),
                measure("top", "top_k", column="letter", k=2, candidates=["a", "b", "c"]),
            ],
        ),
    ),
    "diagnoses": (
        "registry",
        dp(
            epsilon=0.5,
            group_by="diagnosis",
            keys=list(DIAGNOSES),
            max_groups=1,
            measures=[measure("patients", "count_units", clip=[0, None])],
        ),
    ),
    "hostile": (
        "hostile",
        dp(
            unit="Per son",
            group_by=['gr"oup', "select"],
            keys={'gr"oup': ["o'hara", "x"], "select": [1]},
            max_groups=1,
            measures=[
                measure("n", "count", column="order"),
                measure("values", "sum", column="order", bounds=[0, 10], grid=1),
                measure("group", "mode", column='gr"oup', candidates=["o'hara", "'); drop table x; --"]),
            ],
        ),
    ),
    "private": (
        "registry",
        dp(
            delta=1e-5,
            group_by="diagnosis",
            keys="private",
            max_groups=3,
            measures=[measure("patients", "count_units"), measure("rows_counted", "count")],
        ),
    ),
    "private_gaussian": (
        "registry",
        dp(
            delta=1e-5,
            group_by="diagnosis",
            keys="private",
            pre_threshold=61,
            mechanism="gaussian",
            max_groups=1,
            measures=[measure("rows_counted", "count")],
        ),
    ),
}

INPUTS = {
    "bounded": {"person": "unit", "visit": "other", "fee": "other"},
    "huge": {"person": "unit", "big": "sensitive"},
    "odd": {"person": "unit", "place": "other", "x": "sensitive"},
    "scattered": {"person": "unit", "place": "other"},
    "spread": {"person": "unit", "copy": "other", "x": "sensitive", "letter": "other"},
    "hostile": {"Per son": "unit", 'gr"oup': "other", "select": "other", "order": "other"},
    "registry": {"person": "unit", "diagnosis": "sensitive"},
}

GENERATED = {
    "scattered": "select range // 8 as person, (range * 7) % 12 as place from range(1600)",
    "spread": """
        select copies.range * 1000 + people.range as person, copies.range as copy,
            cast(20 + 60.0 * people.range / 199 as double) as x,
            case when people.range < 120 then 'a' when people.range < 170 then 'b' else 'c' end as letter
        from range(300) as copies cross join range(200) as people
    """,
    "hostile": """select range as "Per son", 'o''hara' as "gr""oup", 1 as "select", 4 as "order" from range(3)""",
    "registry": "select n * 10000 + range as person, diagnosis from (values "
    + ", ".join(f"('{name}', {count})" for name, count in (DIAGNOSES | {"rare": 1}).items())
    + ") as d(diagnosis, n), range(n)",
}


@pytest.fixture(scope="module")
def compiled(shared_project: Project) -> Mapping[str, str]:
    """The compiled SQL of every model. Nothing is drawn: compiling reserves nothing."""
    project = shared_project
    project.seed("bounded", VISITS, columns=columns(INPUTS["bounded"]))
    project.seed("huge", HUGE, types={"big": "bigint"}, columns=columns(INPUTS["huge"]))
    project.seed("odd", ODD, types={"x": "double"}, columns=columns(INPUTS["odd"]))
    for name, sql in GENERATED.items():
        project.model(name, sql, config={"materialized": "table"}, columns=columns(INPUTS[name]))
    for name, (source, policy) in MODELS.items():
        project.model(
            f"dp_{name}",
            f"{{{{ veil.dp_aggregate(ref('{source}')) }}}}",
            config={"materialized": "release", "meta": {"veil": {"dp": policy}}},
        )
    built = project.dbt("build", "--exclude", "dp_*")
    assert built.success, built.text
    result = project.dbt("compile", "--select", "dp_*")
    assert result.success, result.text
    return {name: project.compiled(f"dp_{name}") for name in MODELS}


@pytest.fixture(scope="module")
def exact(compiled: Mapping[str, str], shared_project: Project) -> Engine:
    """Bounded figures without noise."""
    return Engine(shared_project.warehouse, noisy=False)


@pytest.fixture(scope="module")
def noisy(compiled: Mapping[str, str], shared_project: Project) -> Engine:
    """Figures as they are released."""
    return Engine(shared_project.warehouse, noisy=True)


def test_rows_of_a_person_are_bounded(compiled: Mapping[str, str], exact: Engine) -> None:
    (row,) = exact.run(compiled["visits"])
    assert row["n"] == 6  # 3 of p1's 50, p2's 1, p3's 2; the row without a person is dropped
    assert row["n_scale"] == 3.0


def test_which_rows_are_kept_is_random(compiled: Mapping[str, str], exact: Engine) -> None:
    # Three of p1's visits 0 to 49, and 50 + 51 + 52. All runs alike by chance: below 1e-6.
    totals = [exact.run(compiled["kept_rows"])[0]["total"] for _ in range(8)]
    assert all(153 + 3 <= total <= 153 + 144 for total in totals)
    assert len(set(totals)) > 1


def test_each_person_is_in_as_many_groups_as_allowed(compiled: Mapping[str, str], exact: Engine) -> None:
    own = exact.connection.execute(
        "select sum(least(places, 3)) from "
        "(select count(distinct place) as places from warehouse.main.scattered group by person)"
    ).fetchone()
    result = exact.run(compiled["people"])
    assert sum(row["people"] for row in result) == own[0]  # type: ignore[index]
    assert len(result) == 13
    assert next(row["people"] for row in result if row["place"] == 99) == 0
    again = exact.run(compiled["people"])
    assert [row["people"] for row in result] != [row["people"] for row in again]  # other groups, same total


def test_sums_near_the_end_of_bigint_neither_wrap_nor_raise(
    compiled: Mapping[str, str], exact: Engine, noisy: Engine
) -> None:
    (row,) = exact.run(compiled["huge"])
    assert row["total"] == pytest.approx(27e18, rel=1e-3)
    assert row["by_person"] == pytest.approx(27e18, rel=1e-3)
    assert row["total_scale"] == pytest.approx(3 * 9e18 / 0.5e-6, rel=1e-3)
    (row,) = noisy.run(compiled["huge"])
    assert abs(row["total"]) < 1e28
    assert row["total_lo95"] < row["total"] < row["total_hi95"]


def test_null_nan_and_infinity_are_bounded_too(compiled: Mapping[str, str], exact: Engine) -> None:
    result = {row["place"]: row for row in exact.run(compiled["odd"])}
    assert {name: row["total"] for name, row in result.items()} == {
        "none": 0, "one": 40, "null": 0, "nan": 0, "inf": 100, "many": 80,
    }  # fmt: skip
    assert result["one"]["average"] == pytest.approx(40)
    assert result["inf"]["average"] == pytest.approx(100)
    assert result["many"]["average"] == pytest.approx(40)
    assert result["many"]["spread"] == pytest.approx(20)
    assert result["null"]["average"] == pytest.approx(50)  # nothing is known: the middle of the bounds
    assert result["many"]["place_again"] == "many"


def test_figures_stay_within_bounds_and_candidates(compiled: Mapping[str, str], noisy: Engine) -> None:
    for _ in range(20):
        for row in noisy.run(compiled["odd"]):
            assert 0 <= row["average_lo95"] <= row["average"] <= row["average_hi95"] <= 100
            assert 0 <= row["spread_lo95"] <= row["spread"] <= row["spread_hi95"] <= 50
            assert row["middle"] in range(0, 101, 10)
            assert row["middle_lo95"] in range(0, 101, 10)
            assert row["place_again"] in ("one", "many")
            assert all(value == value for value in row.values() if isinstance(value, float))  # never NaN


def test_the_mean_by_the_normalised_sum(compiled: Mapping[str, str], noisy: Engine) -> None:
    # 300 draws of a mean with RMSE 0.70 (the noisy sum over the noisy count has 1.59): the RMSE's standard error is
    # 6.5 %, so chance exceeds 0.85 below 1e-3, and 1.59 is always caught.
    errors = np.array([row["average"] - 50 for row in noisy.run(compiled["averages"])])
    assert 0.55 < np.sqrt(np.mean(errors**2)) < 0.85


def test_every_interval_covers(compiled: Mapping[str, str], noisy: Engine) -> None:
    # 600 draws of each kind. At 95 % the share has a standard error of 0.9 %: below 92 % by chance is 1e-3 for an exact
    # interval, and an interval of 90 % is caught with probability 95 %.
    result = noisy.run(compiled["kinds"]) + noisy.run(compiled["kinds"])
    values = np.round((20 + 60.0 * np.arange(200) / 199) / 1e-4) * 1e-4
    truth: dict[str, float] = {
        "people": 200,
        "total": values.sum(),
        "average": values.mean(),
        "vary": values.var(),
        "deviate": values.std(),
        "middle": 50,
        "quarter_p25": 35,
        "quarter_p75": 65,
    }
    shares = {
        name: np.mean([row[f"{name}_lo95"] <= true <= row[f"{name}_hi95"] for row in result])
        for name, true in truth.items()
    }
    people = {"a": 120, "b": 50, "c": 30}
    shares["letters"] = np.mean(
        [low <= people[cell["value"]] <= high
         for row in result
         for cell, low, high in zip(row["letters"], row["letters_lo95"], row["letters_hi95"], strict=True)]
    )  # fmt: skip
    shares["letter"] = np.mean([120 - people[row["letter"]] <= row["letter_hi95"] for row in result])
    shares["top_1"] = np.mean([120 - people[row["top_1"]] <= row["top_1_hi95"] for row in result])
    assert {name: share for name, share in shares.items() if share < 0.92} == {}
    assert {name: shares[name] for name in ("people", "total") if shares[name] > 0.985} == {}


def test_the_registry_histogram_is_covered(compiled: Mapping[str, str], noisy: Engine) -> None:
    # 6 counts of 100 runs; scale 2, half-width 6: exactly 97.5 % of the draws lie within 6 of a discrete Laplace.
    draws = [row for _ in range(100) for row in noisy.run(compiled["diagnoses"])]
    assert all(row["patients_scale"] == 2.0 and row["patients_hi95"] - row["patients"] == 6 for row in draws)
    covered = np.mean([row["patients_lo95"] <= DIAGNOSES[row["diagnosis"]] <= row["patients_hi95"] for row in draws])
    assert covered >= 0.93
    assert all(row["patients_clipped"] == max(row["patients"], 0) for row in draws)


def test_private_keys_pass_tau(compiled: Mapping[str, str], exact: Engine, noisy: Engine) -> None:
    # Three groups at epsilon 0.5: scale 6, and exp(-k / 6) / (1 + exp(-1 / 6)) <= 3.3333e-6 from k = 72 on.
    assert "veil__patients >= 73" in compiled["private"]
    names = [row["diagnosis"] for row in exact.run(compiled["private"])]
    assert names == ["a", "b", "c", "d", "e"]  # 60 and 1 are below
    assert {row["diagnosis"] for row in noisy.run(compiled["private"])} >= {"a", "b", "c", "d"}
    assert "rare" not in str(noisy.run(compiled["private"]))


def test_a_pre_threshold_is_added_to_tau(compiled: Mapping[str, str], exact: Engine) -> None:
    names = [row["diagnosis"] for row in exact.run(compiled["private_gaussian"])]
    assert names == ["a", "b", "c", "d", "e"]
    assert "having count(*) >= 61" in compiled["private_gaussian"]
    assert "veil_people" not in exact.run(compiled["private_gaussian"])[0]


@pytest.mark.parametrize("threads", [1, 8])
def test_every_row_has_a_random_key_of_its_own(exact: Engine, threads: int) -> None:
    # Constant argument, more rows than a row group: one equal pair of 200,000 keys of 63 bits has probability 2e-9.
    cursor = exact.connection.cursor().execute(f"set threads = {threads}")
    cursor.execute("select count(distinct veil_random_key(0)) from range(200000)")
    assert cursor.fetchone() == (200_000,)


def test_hostile_names_and_values_are_only_names_and_values(compiled: Mapping[str, str], exact: Engine) -> None:
    ohara, x = exact.run(compiled["hostile"])
    assert (ohara['gr"oup'], ohara["select"], ohara["n"], ohara["values"], ohara["group"]) == (
        "o'hara",
        1,
        3,
        12,
        "o'hara",
    )
    assert (x['gr"oup'], x["n"], x["values"]) == ("x", 0, 0)


def test_a_draw_without_a_reservation_is_refused(compiled: Mapping[str, str], noisy: Engine) -> None:
    with pytest.raises(duckdb.Error, match="no open reservation"):
        noisy.connection.execute(re.sub(r"'[0-9a-f]{32}'", "'other'", compiled["visits"]))
