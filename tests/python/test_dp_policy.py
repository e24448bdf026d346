"""The checker of `dp` policies: every problem at once, before anything is read or spent."""

from __future__ import annotations

from typing import Any

import pytest
from harness import Project, Result, columns, rows

ROLES = {
    "person": "unit",
    "region": "quasi_identifier",
    "income": {"role": "sensitive", "bounds": [0, 100]},
    "stay": "sensitive",
    "note": "sensitive",
}

GOOD: dict[str, Any] = {
    "budget": "patients",
    "epsilon": 1.0,
    "group_by": ["region"],
    "keys": ["n", "s"],
    "max_groups": 1,
    "max_rows_per_group": 1,
    "measures": [{"name": "people", "kind": "count_units"}],
}


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in GOOD.items() if name != key}


def measuring(**measure: Any) -> dict[str, Any]:
    return GOOD | {"measures": [{"name": "x"} | measure]}


CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "bounds_missing": (measuring(kind="sum", column="stay"), ["`dp.measures.x.bounds` is missing"]),
    "bounds_equal": (measuring(kind="sum", column="stay", bounds=[5, 5]), ["`dp.measures.x.bounds` must rise"]),
    "bounds_zero": (measuring(kind="sum", column="stay", bounds=[0, 0]), ["`dp.measures.x.bounds` must rise"]),
    "bounds_falling": (measuring(kind="mean", column="stay", bounds=[9, 1]), ["must rise"]),
    "bounds_one": (measuring(kind="mean", column="stay", bounds=[9]), ["must be [lower, upper]. Got: [9]"]),
    "bounds_text": (measuring(kind="mean", column="stay", bounds=["low", 9]), ["must be a number. Got: 'low'"]),
    "bounds_infinite": (measuring(kind="mean", column="stay", bounds=[0, ".inf"]), ["must be a number"]),
    "grid_zero": (measuring(kind="sum", column="income", grid=0), ["`dp.measures.x.grid` must be above 0"]),
    "grid_off": (measuring(kind="sum", column="income", grid=7), ["must be multiples of the grid 7"]),
    "max_groups": (without("max_groups"), ["`dp.max_groups` is missing", "`max_groups: 3`"]),
    "max_groups_text": (GOOD | {"max_groups": "many"}, ["`dp.max_groups` must be a whole number. Got: 'many'"]),
    "max_rows": (
        without("max_rows_per_group") | {"measures": [{"name": "x", "kind": "count"}]},
        ["`dp.measures.x.max_rows_per_group` is missing"],
    ),
    "keys": (without("keys"), ["`dp.keys` is missing", "must not come from the data"]),
    "keys_empty": (GOOD | {"keys": []}, ["`dp.keys` must be a list of public values, with at least one"]),
    "keys_twice": (GOOD | {"keys": ["n", "n"]}, ["`dp.keys` lists a value twice"]),
    "keys_from_data": (GOOD | {"keys": "ref('regions_of_data')"}, ["`dp.keys` must be public", "built from `visits`"]),
    "keys_input": (GOOD | {"keys": "ref('visits')"}, ["`dp.keys` must be public", "a relation of people"]),
    "keys_unknown": (GOOD | {"keys": "ref('nowhere')"}, ["is not in the project"]),
    "keys_unseen": (GOOD | {"keys": "ref('regions')"}, ["-- depends_on: {{ ref('regions') }}"]),
    "private": (
        GOOD | {"keys": "private"},
        ["`dp.delta` is missing: private keys are private only up to a small delta"],
    ),
    "gaussian": (GOOD | {"mechanism": "gaussian"}, ["`dp.delta` is missing: the Gaussian mechanism is"]),
    "delta": (GOOD | {"delta": 0.01, "people": 6000}, ["at most one in `dp.people`", "Got: 0.01"]),
    "delta_half": (GOOD | {"delta": 0.5}, ["`dp.delta` must be 0 or more and at most 0.001"]),
    "epsilon": (without("epsilon"), ["`dp.epsilon` is missing"]),
    "epsilon_large": (GOOD | {"epsilon": 6}, ["`dp.epsilon` must be above 0 and at most 5", "Got: 6"]),
    "epsilon_zero": (GOOD | {"epsilon": 0}, ["`dp.epsilon` must be above 0"]),
    "epsilon_negative": (GOOD | {"epsilon": -1}, ["`dp.epsilon` must be above 0"]),
    "epsilon_text": (GOOD | {"epsilon": "much"}, ["`dp.epsilon` must be a number. Got: 'much'"]),
    "epsilon_nan": (GOOD | {"epsilon": float("nan")}, ["`dp.epsilon` must be a number"]),
    "budget": (without("budget"), ["`dp.budget` must be a text"]),
    "unit": (GOOD | {"unit": "persn"}, ["`dp.unit` names `persn`", "did you mean `person`?"]),
    "group": (GOOD | {"group_by": ["regoin"]}, ["`dp.group_by` names `regoin`", "did you mean `region`?"]),
    "group_unit": (GOOD | {"group_by": ["person"]}, ["names the unit `person`"]),
    "column": (measuring(kind="mean", column="incme", bounds=[0, 1]), ["names `incme`", "did you mean `income`?"]),
    "column_type": (measuring(kind="mean", column="note", bounds=[0, 1]), ["must be numeric for `mean`. `note` is"]),
    "column_unit": (measuring(kind="mode", column="person", candidates=[1]), ["is the unit"]),
    "kind": (measuring(kind="avg"), ["`dp.measures.x.kind` must be one of count_units, count", "Got: 'avg'"]),
    "kind_key": (measuring(kind="count", bounds=[0, 1]), ["has no key `bounds`"]),
    "key": (GOOD | {"epsilom": 1}, ["`dp` has no key `epsilom`; did you mean `epsilon`?"]),
    "name_twice": (
        GOOD | {"measures": [{"name": "a", "kind": "count_units"}] * 2},
        ["gives a column `a`, which is there"],
    ),
    "name_odd": (GOOD | {"measures": [{"name": "a b", "kind": "count_units"}]}, ["must be letters, digits"]),
    "name_kept": (GOOD | {"measures": [{"name": "veil_a", "kind": "count_units"}]}, ["start with `veil_`"]),
    "name_group": (
        GOOD | {"measures": [{"name": "region", "kind": "count_units"}]},
        ["gives a column `region`, which is there already"],
    ),
    "measures": (without("measures"), ["`dp.measures` must be a list with at least one figure"]),
    "share_sum": (
        GOOD | {"measures": [{"name": n, "kind": "count_units", "share": 0.6} for n in "ab"]},
        ["add up to 1.2, more than 1"],
    ),
    "share_none_left": (
        GOOD | {"measures": [{"name": "a", "kind": "count_units", "share": 1}, {"name": "b", "kind": "count_units"}]},
        ["leave nothing for the 1 without one"],
    ),
    "share_zero": (measuring(kind="count_units", share=0), ["`dp.measures.x.share` must be above 0"]),
    "q": (
        measuring(kind="quantile", column="stay", q=1, candidates=[0, 9, 1]),
        ["between 0 and 1, both excluded. Got: 1"],
    ),
    "candidates": (measuring(kind="quantile", column="stay", q=0.5), ["`dp.measures.x.candidates` is missing"]),
    "candidates_data": (
        measuring(kind="mode", column="note", candidates="ref('regions_of_data')"),
        ["`dp.measures.x.candidates` must be public", "built from `visits`"],
    ),
    "candidates_range": (
        measuring(kind="quantile", column="stay", q=0.5, candidates=[9, 0, 1]),
        ["must rise from the first to the second"],
    ),
    "top_k": (measuring(kind="top_k", column="note", k=3, candidates=["a", "b"]), ["`dp.measures.x.k` is 3"]),
    "pre_threshold": (GOOD | {"pre_threshold": 5}, ["`dp.pre_threshold` is for `keys: private`"]),
    "value_types": (
        GOOD
        | {
            "group_by": ["stay"],
            "keys": [1, "many"],
            "measures": [{"name": "m", "kind": "mode", "column": "income", "candidates": ["low", "high", 3]}],
        },
        [
            "`dp.keys.stay` has values that cannot be of the type of `stay`, which is INTEGER. Number of them: 1",
            "`dp.measures.m.candidates` has values that cannot be of the type of `income`, which is INTEGER. Number of",
        ],
    ),
    "limit": (
        GOOD | {"input": "newest"},
        ["`newest`, which it reads, has `order by … limit` and a window function", "not partitioned by `person`"],
    ),
    "many": (
        {"epsilon": 0, "group_by": "region", "measures": [{"name": "x", "kind": "sum", "column": "note"}]},
        ["`dp.budget`", "`dp.epsilon`", "`dp.max_groups`", "`dp.keys`", "bounds` is missing", "must be numeric"],
    ),
}


@pytest.fixture(scope="module")
def checked(shared_project: Project) -> Result:
    """One build in which every case is a model of its own; none may be built."""
    project = shared_project
    project.seed(
        "visits",
        rows("person,region,income,stay,note", "1,n,10,5,flu", "2,s,20,6,flu"),
        types={"person": "integer", "income": "integer", "stay": "integer", "note": "varchar"},
        columns=columns(ROLES),
    )
    project.seed("regions", rows("region", "n", "s"))
    project.model("regions_of_data", "select distinct region from {{ ref('visits') }}")
    project.model(
        "newest",
        "select *, row_number() over (partition by region order by stay) as place from {{ ref('visits') }} "
        "where stay > 0 order by stay limit 100 -- over () is fine here: limit 5",
        columns=columns(ROLES | {"place": "other"}),
    )
    for name, (dp, _) in CASES.items():
        source = dp.pop("input", "visits")
        needs = "{{ ref('regions_of_data') }}" if "regions_of_data" in str(dp) else ""
        project.model(
            f"case_{name}",
            f"{{{{ veil.dp_aggregate(ref('{source}')) }}}}\n-- depends_on: {needs}",
            config={"materialized": "release", "meta": {"veil": {"dp": dp}}},
        )
    project.model(
        "first_visits",
        "select person, region, income, stay, note, max(stay) over w as longest, "
        "row_number() over (partition by region, person order by stay) as place, 'limit 5' as said "
        "from {{ ref('visits') }} window w as (partition by region, person)",
        columns=columns(ROLES | {"longest": "other", "place": "other", "said": "other"}),
    )
    project.model(
        "case_partitioned",
        "{{ veil.dp_aggregate(ref('first_visits')) }}",
        config={"materialized": "release", "meta": {"veil": {"dp": GOOD | {"epsilon": 0}}}},
    )
    project.model("case_as_view", "{{ veil.dp_aggregate(ref('visits')) }}", config={"meta": {"veil": {"dp": GOOD}}})
    project.model(
        "case_as_table",
        "{{ veil.dp_aggregate(ref('visits')) }}",
        config={"materialized": "table", "meta": {"veil": {"dp": GOOD}}},
    )
    return project.dbt("build")


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_policy_is_refused_with_every_problem(checked: Result, name: str) -> None:
    message = checked.message(f"case_{name}")
    assert checked.status(f"case_{name}") == "error"
    assert [part for part in CASES[name][1] if part not in message] == [], message


def test_windows_of_one_person_are_no_mistake(checked: Result) -> None:
    assert "window function" not in checked.message("case_partitioned")
    assert "`dp.epsilon`" in checked.message("case_partitioned")


def test_only_a_release_may_be_noisy(checked: Result) -> None:
    for name in ("case_as_view", "case_as_table"):
        assert "a differentially private model must be `materialized: release`" in checked.message(name)


def test_no_refused_model_left_a_table(checked: Result, shared_project: Project) -> None:
    names = {name for (name,) in shared_project.query("select table_name from information_schema.tables")}
    assert names & {f"case_{name}" for name in CASES} == set()
