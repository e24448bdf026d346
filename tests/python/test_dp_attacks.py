"""Ways to carry an exact value past the noise, to draw twice for one charge, or to spend twice: each is refused."""

from __future__ import annotations

from typing import Any

import pytest
from harness import Project, Result, columns

PEOPLE = [
    {"person": i % 20, "visit": i, "region": "north" if i % 2 else "south", "age": 20 + i % 20} for i in range(60)
]
ROLES = {"person": "unit", "visit": "identifier", "region": "other", "age": {"role": "sensitive", "bounds": [0, 100]}}
COUNTED = "with c as materialized (select count(*) as n from {{ ref('people') }})\n"
BUDGET = {"source": "people", "unit": "person", "epsilon": 5}


def by_hand(**keys: Any) -> dict[str, Any]:
    dp = {"budget": "people", "epsilon": 0.4, "queries": [{"name": "n", "l1": 3}]} | keys
    return {"materialized": "release", "meta": {"veil": {"audience": "internal", "dp": dp}}}


def aggregate(**keys: Any) -> dict[str, Any]:
    measures = [{"name": "patients", "kind": "count_units"}]
    dp = {"budget": "people", "epsilon": 0.4, "max_groups": 1, "measures": measures} | keys
    return {"materialized": "release", "meta": {"veil": {"audience": "internal", "dp": dp}}}


ATTACKS: dict[str, tuple[str, dict[str, Any], str]] = {
    "around_the_aggregate": (
        "select a.*, e.exact from (\n{{ veil.dp_aggregate(ref('people')) }}\n) as a "
        "cross join (select count(*) as exact from {{ ref('people') }}) as e",
        aggregate(),
        "holds `{{ veil.dp_aggregate(ref('…')) }}` and nothing around it but comments",
    ),
    "noise_in_a_comment": (
        COUNTED + "select\n  -- {{ veil.dp_noise('c.n') }} as n,\n  c.n as n from c",
        by_hand(),
        "its SQL draws no noise, so what it releases is exact",
    ),
    "threshold_alone": (
        "select region from {{ ref('people') }}",
        by_hand(delta=1e-9, queries=[{"name": "t", "mechanism": "threshold", "delta": 1e-9}]),
        "its SQL draws no noise, so what it releases is exact",
    ),
    "drawn_in_capitals": (
        COUNTED
        + "select {{ veil.dp_noise('c.n') }} as x, VEIL_LAPLACE('{{ veil._release_id() }}', 'n', c.n, 7.5) as y from c",
        by_hand(),
        "its SQL calls a noise function by hand: draw with `veil.dp_noise` alone",
    ),
    "read_twice": (
        COUNTED + ", noisy as not materialized (select {{ veil.dp_noise('c.n') }} as n from c)\n"
        "select a.n, b.n as m from noisy as a cross join noisy as b",
        by_hand(),
        "`not materialized` would draw again at every read of the CTE",
    ),
    "identifier_beside": (
        COUNTED + "select {{ veil.dp_noise('c.n') }} as n, p.visit from c cross join {{ ref('people') }} as p",
        by_hand(),
        "`visit` is a unit or an identifier of its input and leaves beside the noise",
    ),
    "another_unit": (
        "{{ veil.dp_aggregate(ref('people')) }}",
        aggregate(unit="region"),
        "the input gives the role `unit` to person: what is bounded must be who is protected",
    ),
}


@pytest.fixture(scope="module")
def attacked(shared_project: Project) -> tuple[Project, Result]:
    shared_project.configure(vars={"veil__budgets": {"people": BUDGET}})
    shared_project.seed("people", PEOPLE, columns=columns(ROLES))
    for name, (sql, config, _) in ATTACKS.items():
        shared_project.model(name, sql, config=config)
    return shared_project, shared_project.dbt("build", "--exclude", "package:veil")


@pytest.mark.parametrize("name", ATTACKS)
def test_it_is_refused_before_anything_is_spent(attacked: tuple[Project, Result], name: str) -> None:
    project, result = attacked
    assert result.status(name) == "error"
    assert ATTACKS[name][2] in " ".join(result.message(name).split())
    assert project.query(f"select 1 from duckdb_tables() where table_name = '{name}'") == []
    assert project.query("select 1 from duckdb_tables() where schema_name = 'veil' and table_name = 'ledger'") == []


def test_a_hook_draws_nothing_under_a_settled_release_and_a_new_name_gives_nothing_back(project: Project) -> None:
    project.configure(vars={"veil__budgets": {"people": BUDGET}})
    project.seed("people", PEOPLE, columns=columns(ROLES))
    hook = (
        "create table extra as select veil_laplace('{{ veil._release_id() }}', 'n', count(*), 7.5) as n "
        "from {{ ref('people') }}"
    )
    sql = COUNTED + "select {{ veil.dp_noise('c.n') }} as n from c"
    project.model("hooked", sql, config=by_hand() | {"post_hook": hook})
    project.model("counted", sql, config=by_hand())
    result = project.dbt("build", "--exclude", "package:veil")
    assert result.status("hooked") == "error"
    assert result.status("counted") == "success", result.text
    assert project.query("select 1 from duckdb_tables() where table_name in ('extra', 'hooked')") == []
    spent = "select count(*) from veil.ledger where event = 'settle'"
    before = project.scalar(spent)
    project.configure(vars={"veil__budgets": {"renamed": BUDGET}})
    project.model("counted", sql, config=by_hand(budget="renamed"))
    message = project.dbt("run", "--select", "counted").message("counted")
    assert "`veil__budgets` no longer declares: a new name gives nothing back" in " ".join(message.split())
    assert project.scalar(spent) == before


def test_a_ledger_in_memory_is_refused(project: Project) -> None:
    project.profile(path=":memory:")
    project.configure(vars={"veil__budgets": {"people": BUDGET}})
    project.seed("people", PEOPLE, columns=columns(ROLES))
    project.model("forgotten", COUNTED + "select {{ veil.dp_noise('c.n') }} as n from c", config=by_hand())
    message = project.dbt("build", "--exclude", "package:veil").message("forgotten")
    assert "a ledger in memory forgets what was spent: set `path` of the profile to a file" in message


def test_an_unstable_input_and_a_value_beyond_its_bounds(project: Project) -> None:
    """`limit (5)` and `offset 7` choose rows by what others are; a value beyond all bounds is clamped, not printed."""
    project.configure(vars={"veil__budgets": {"people": BUDGET}})
    project.seed("people", PEOPLE, columns=columns(ROLES))
    for name, end in {"limited": "limit (5)", "skipped": "order by age offset 7"}.items():
        sql = f"select * from {{{{ ref('people') }}}} {end}"
        project.model(name, sql, config={"materialized": "table"}, columns=columns(ROLES))
        project.model(f"{name}_counts", f"{{{{ veil.dp_aggregate(ref('{name}')) }}}}", config=aggregate())
    huge = "170141183460469231731687303715884105727"
    select = f"select person, visit, region, {huge}::hugeint as age from {{{{ ref('people') }}}}"
    project.model("wide", select, config={"materialized": "table"}, columns=columns(ROLES))
    total = {"name": "total", "kind": "sum", "column": "age", "bounds": [0, 100.5], "grid": 0.5}
    project.model(
        "totals", "{{ veil.dp_aggregate(ref('wide')) }}", config=aggregate(measures=[total], max_rows_per_group=3)
    )
    result = project.dbt("build", "--exclude", "package:veil")
    for name in ("limited", "skipped"):
        assert f"`{name}`, which it reads, has `" in result.message(f"{name}_counts")
    assert result.status("totals") == "success", result.message("totals")
    assert huge[:20] not in result.text
