"""The ledger through dbt: what reserves, what never debits, what is kept, what a run says before its first model."""

from __future__ import annotations

import os
from decimal import Decimal
from typing import Any

import duckdb
import pytest
import yaml
from harness import Project, Result, columns, rows

BUDGETS: dict[str, Any] = {
    "people": {"source": "people", "unit": "person", "epsilon": 1, "delta": 1e-6, "accounting": "sum"},
    "visits": {"source": ["visits"], "unit": "person", "epsilon": 1},
}
LEFT_OUT = ("--exclude", "tag:refused", "test_type:unit")
COUNT = """
with counts as (select count(*) as n from {{ ref('people') }} as people)
select {{ veil.dp_noise('counts.n') }} as n from counts
"""


def dp(epsilon: object, **more: object) -> dict[str, Any]:
    query = {"name": "n", "l0": 1, "linf": 1}
    policy = {"budget": "people", "epsilon": epsilon, "queries": [query]} | more
    return {"materialized": "release", "meta": {"veil": {"audience": "internal", "dp": policy}}}


def people(project: Project) -> None:
    project.seed(
        "people",
        rows("person,age", *(f"p{i},{20 + i}" for i in range(40))),
        columns=columns({"person": "unit", "age": "sensitive"}),
    )


def configure(project: Project, budgets: dict[str, Any] | None = None, **settings: Any) -> None:
    start = {"on-run-start": ["{{ veil.plan() }}"]}
    project.configure(vars={"veil__budgets": budgets or BUDGETS}, **(start | settings))


def spent(project: Project) -> Decimal:
    known = project.query("select 1 from duckdb_tables() where schema_name = 'veil' and table_name = 'ledger'")
    if not known:
        return Decimal(0)
    sql = "select coalesce(sum(epsilon), 0) from veil.ledger where budget = 'people'"
    return Decimal(project.scalar(sql + " and event in ('reserve', 'refund', 'reset')"))


def events(project: Project, model: str) -> list[str]:
    sql = f"select event from veil.ledger where model = 'model.consumer.{model}' order by seq"
    return [event for (event,) in project.query(sql)]


@pytest.fixture(scope="module")
def built(shared_project: Project) -> tuple[Project, Result]:
    """A project with two releases, one over two protected seeds, and models that must never draw; built once."""
    project = shared_project
    people(project)
    project.seed("visits", rows("person,fee", "p1,3", "p2,4"), columns=columns({"person": "unit", "fee": "sensitive"}))
    project.model(
        "stg_visits",
        "select people.person, visits.fee from {{ ref('people') }} as people left join {{ ref('visits') }} as visits "
        "on people.person = visits.person",
        columns=columns({"person": "unit", "fee": "sensitive"}),
    )
    unit_test = {
        "name": "drawn_in_a_unit_test",
        "model": "counted",
        "given": [{"input": "ref('people')", "rows": [{"person": "p1"}]}],
        "expect": {"rows": [{"n": 1}]},
    }
    project.model("counted", COUNT, config=dp("0.4"), data_tests=["veil.released_is_settled"])
    (project.folder / "models" / "_unit_tests.yml").write_text(yaml.safe_dump({"unit_tests": [unit_test]}))
    project.model("both", COUNT.replace("ref('people')", "ref('stg_visits')"), config=dp("0.1"))
    project.model("reader", "select n from {{ ref('counted') }}")
    project.macro(
        "draw", "{% macro draw() %}{% do run_query(\"select veil_laplace('r', 'n', 1, 1.0)\") %}{% endmacro %}"
    )
    raw = "select veil_laplace('{{ veil._release_id() }}', 'n', 1, 2.5) as x"
    for name, kind in (("plain", "table"), ("viewed", "view"), ("ephemeral", "ephemeral")):
        refused = dp("0.1") | {"materialized": kind, "tags": ["refused"]}
        project.model(name, raw if name == "plain" else COUNT, config=refused)
    project.model("through_ephemeral", "select * from {{ ref('ephemeral') }}", config={"tags": ["refused"]})
    configure(project)
    return project, project.dbt("build", *LEFT_OUT)


def test_the_first_build_spends_and_says_so_before(built: tuple[Project, Result]) -> None:
    project, result = built
    assert result.success, result.text
    plan = result.text.index("counted: epsilon 0.4, delta 0 of `people` (not released yet)")
    assert plan < result.text.index("veil: released ")
    assert "budget `people` (sum): spent so far 0, this run 0.5, limit 1, left after 0.5" in result.text
    assert events(project, "counted") == ["reserve", "settle"]
    assert spent(project) == Decimal("0.5")
    ((release, budget, seeded),) = project.query(
        "select release_id, budget, seeded from veil.releases where model like '%counted'"
    )
    assert (budget, seeded) == ("people", False)
    assert project.scalar(f"select count(*) from veil.ledger where event = 'settle' and release_id = '{release}'") == 1
    assert result.status("veil_released_is_settled_counted_") == "pass"
    assert (project.folder / "target" / "veil_ledger_head.json").is_file()
    assert -60 < project.scalar("select n from main.counted") - 40 < 60


def test_every_budget_upstream_is_debited(built: tuple[Project, Result]) -> None:
    project, _ = built
    views = project.query(
        "select budget, model, epsilon, releases, settled, unsettled from main.veil__spend_by_model order by 1, 2"
    )
    assert views == [
        ("people", "model.consumer.both", Decimal("0.1"), 1, 1, 0),
        ("people", "model.consumer.counted", Decimal("0.4"), 1, 1, 0),
        ("visits", "model.consumer.both", Decimal("0.1"), 1, 1, 0),
    ]


@pytest.mark.parametrize(
    "command",
    [
        ["build", "--full-refresh"],
        ["run", "--empty"],
        ["docs", "generate"],
        ["test"],
        ["show", "--select", "reader"],
    ],
)
def test_nothing_but_a_due_release_debits(built: tuple[Project, Result], command: list[str]) -> None:
    project, _ = built
    before = project.scalar("select n from main.counted")
    result = project.dbt(*command, *([] if command[0] == "show" else LEFT_OUT))
    assert result.success, result.text
    if command[0] in ("build", "run"):
        assert '"main"."counted", 0 spent' in result.text
    assert spent(project) == Decimal("0.5")
    assert project.scalar("select n from main.counted") == before


@pytest.mark.parametrize(
    "command",
    [
        ["show", "--select", "counted"],
        ["show", "--inline", "select veil_laplace('r', 'n', 1, 1.0) as x"],
        ["run-operation", "draw"],
        ["test", "--select", "test_type:unit"],
    ],
)
def test_no_other_command_draws(built: tuple[Project, Result], command: list[str]) -> None:
    project, _ = built
    result = project.dbt(*command)
    assert not result.success
    # In a unit test the model is materialized as one, and the macro refuses before the UDF can.
    assert "holds no open reservation" in result.text or "Got: 'unit'" in result.text
    assert spent(project) == Decimal("0.5")


def test_no_other_materialization_draws(built: tuple[Project, Result]) -> None:
    project, _ = built
    result = project.dbt("run", "--select", "tag:refused")
    assert "holds no open reservation" in result.message("plain")
    assert "must be `materialized: release`" in result.message("viewed")
    assert "Got: 'view'" in result.message("viewed")
    assert not result.success
    assert not project.query("select 1 from duckdb_views() where view_name in ('viewed', 'through_ephemeral')")
    assert spent(project) == Decimal("0.5")


def test_a_run_that_does_not_fit_is_refused_before_its_first_model(built: tuple[Project, Result]) -> None:
    project, _ = built
    for name in ("one", "two"):
        project.model(name, COUNT, config=dp("0.4"))
    before = project.query("select table_name from duckdb_tables() order by 1")
    try:
        refused = project.dbt("run", *LEFT_OUT)
        assert not refused.success
        assert "this run is refused before its first model" in refused.text
        assert "Requested:  epsilon 0.4" in refused.text
        assert "Remaining:  epsilon 0.1" in refused.text
        assert "Spent:      0.4 by `counted`" in refused.text
        assert spent(project) == Decimal("0.5")
        assert project.query("select table_name from duckdb_tables() order by 1") == before

        # Half of the plan fits.
        assert project.dbt("run", "--select", "one").success
        assert spent(project) == Decimal("0.9")
    finally:
        for name in ("one", "two"):
            for path in (project.folder / "models").glob(f"*{name}.*"):
                path.unlink()


def test_a_limit_raised_in_yaml_needs_its_row(built: tuple[Project, Result]) -> None:
    project, _ = built
    configure(project, BUDGETS | {"people": BUDGETS["people"] | {"epsilon": 2}})
    project.model("more", COUNT, config=dp("0.5"))
    refused = project.dbt("run", "--select", "more")
    assert "a limit changes only by a row with a reason" in refused.text
    done = project.dbt("run-operation", "veil.raise_limit", "--args", "{budget: people, because: 'the board agreed'}")
    assert done.success, done.text
    assert "limit of budget `people`: epsilon 1, delta 1E-6 -> epsilon 2, delta 1E-6" in done.text
    granted = project.dbt("run", "--select", "more")
    assert granted.success, granted.text
    assert events(project, "more") == ["reserve", "settle"]

    # A changed policy is due again; a dropped table and a renamed model are paid for again.
    (project.folder / "models" / "more.sql").rename(project.folder / "models" / "renamed.sql")
    project.properties("models", "more", config=dp("0.2"))
    project.properties("models", "renamed", config=dp("0.2"))
    (project.folder / "models" / "_models__more.yml").unlink()
    before = spent(project)
    renamed = project.dbt("run", "--select", "renamed")
    assert renamed.success, renamed.text
    assert spent(project) == before + Decimal("0.2")
    project.properties("models", "renamed", config=dp("0.2", refresh="yearly"))
    assert "renamed: kept, 0 spent (refresh: yearly)" in project.dbt("run", "--select", "renamed").text
    project.properties("models", "renamed", config=dp("0.1"))
    changed = project.dbt("run", "--select", "renamed")
    assert "its policy or its SQL changed" in changed.text
    assert spent(project) == before + Decimal("0.3")
    verified = project.dbt("run-operation", "veil.verify_ledger")
    assert "the ledger is whole" in verified.text
    assert project.dbt("run-operation", "veil.export_head").success


def test_the_status_shows_every_method_and_the_tests_watch_it(built: tuple[Project, Result]) -> None:
    project, _ = built
    project.model(
        "watched",
        "select 1 as x",
        data_tests=["veil.budget_not_exceeded", "veil.ledger_intact"],
    )
    good = project.dbt("build", "--select", "veil__budget_status", "veil__ledger", "watched")
    assert good.success, good.text
    row = project.query(
        "select scope, spent_sum, spent_zcdp, spent_pld, orphans, exceeded from main.veil__budget_status "
        "where budget = 'people'"
    )
    ((scope, total, zcdp, pld, orphans, exceeded),) = row
    assert (scope, orphans, exceeded) == ("lifetime", 0, False)
    assert total == spent(project)
    assert float(total) >= pld > 0
    assert zcdp > 0


def test_a_deleted_settlement_fails_every_test(built: tuple[Project, Result]) -> None:
    project, _ = built
    with duckdb.connect(str(project.warehouse)) as connection:
        connection.execute("delete from veil.ledger where event = 'settle' and model like '%counted'")
    tests = project.dbt("test", "--select", "watched", "counted", *LEFT_OUT)
    assert tests.status("veil_released_is_settled_counted_") == "fail"
    assert tests.status("veil_ledger_intact_watched_") == "fail"
    assert tests.status("veil_budget_not_exceeded_watched_") == "error"
    refused = project.dbt("run", "--select", "counted")
    assert "nothing is spent on a ledger that is not whole" in refused.text


def test_what_costs_nothing_and_what_stays_charged(project: Project) -> None:
    people(project)
    people_of = columns({"person": "unit", "month": "sensitive"})
    disjoint = {"veil.units_disjoint": {"arguments": {"unit": "person", "blocks": "month"}}}
    visits = rows("person,month", "p1,1", "p1,1", "p2,2", "NULL,1", "NULL,2")
    project.seed("others", visits, columns=people_of, data_tests=[disjoint])
    project.seed("strays", [*visits, *rows("person,month", "p2,3")], columns=people_of, data_tests=[disjoint])
    query = {"name": "n", "l0": 1, "linf": 1}
    wrong: dict[str, tuple[str, dict[str, Any], str]] = {
        "typo": (COUNT, dp("0.1", budget="poeple"), "did you mean `people`?"),
        "unnamed": (COUNT, dp("0.1", budget=None), "`dp.budget` is missing"),
        "not_a_number": (COUNT, dp("much"), "`epsilon` must be a number"),
        "nothing": (COUNT, dp(0), "`epsilon` must be a number"),
        "no_sensitivity": (COUNT, dp("0.1", queries=[{"name": "n"}]), "without a sensitivity there is no noise"),
        "shares": (
            COUNT.replace("counts.n'", "counts.n', query='n'"),
            dp("0.1", queries=[query | {"share": 0.7}, query | {"name": "m", "share": 0.7}]),
            "add up to at most 1",
        ),
        "undeclared": (
            COUNT.replace("counts.n'", "counts.n', query='m'"),
            dp("0.1"),
            "one of the queries that `dp.queries` declares",
        ),
        "other_size": (COUNT.replace("counts.n'", "counts.n', sensitivity=2"), dp("0.1"), "`sensitivity` is 2"),
        "twice": (
            COUNT.replace("as n from counts\n", "as n, " + "{{ veil.dp_noise('counts.n') }} as m from counts\n"),
            dp("0.1"),
            "drawn in 2 places",
        ),
        "never": ("select count(*) as n from {{ ref('people') }}", dp("0.1"), "drawn in 0 places"),
        "misnamed": (COUNT.replace("'people'", "'strays'"), dp("0.1"), "`veil__budgets.strays.unit` names `persom`"),
        "unbound": (COUNT.replace("count(*)", "count(no_such_column)"), dp("0.4"), "no_such_column"),
        "unguarded": (COUNT.replace("'people'", "'others'"), dp("0.1"), "no budget guards `others`"),
        "unknown_key": (COUNT, dp("0.1", epsilom=1), "has no key `epsilom`"),
    }
    for name, (sql, config, _) in wrong.items():
        project.model(name, sql, config=config)
    fails = COUNT.replace("from counts", "from counts where error('x' || left(n::varchar, 0)) is null")
    project.model("broken", fails, config=dp("0.4"))
    strays = {"source": "strays", "unit": "persom", "epsilon": 1}
    configure(project, BUDGETS | {"strays": strays}, **{"on-run-start": []})
    result = project.dbt("build", "--exclude", "package:veil", "--exclude-resource-type", "test")
    for name, (_, _, message) in wrong.items():
        assert result.status(name) == "error", name
        assert message in result.message(name), result.message(name)
    # What is found before anything is read costs nothing; what failed while it read is charged, shown, and resolved.
    assert events(project, "broken") == ["reserve"]
    assert {model for (model,) in project.query("select distinct model from veil.ledger where model is not null")} == {
        "model.consumer.broken"
    }
    assert spent(project) == Decimal("0.4")
    # `dbt retry` selects nothing that a plan could see; the model is charged again, and refused when nothing is left.
    project.dbt("retry")
    assert spent(project) == Decimal("0.8")
    refused = project.dbt("retry")
    assert "Difference: epsilon 0.2" in refused.message("broken")
    assert spent(project) == Decimal("0.8")
    planned = project.dbt("run-operation", "veil.plan", "--args", "{models: broken}")
    assert planned.text.count("orphan: `broken` reserved epsilon 0.4") == 2
    recovered = project.dbt("run-operation", "veil.recover", "--args", "{because: 'a bug'}")
    assert recovered.text.count(": charged") == 2
    assert events(project, "broken") == ["reserve", "reserve", "orphan", "orphan"]
    assert spent(project) == Decimal("0.8")

    tests = project.dbt("test", "--select", "others", "strays")
    assert tests.status("veil_units_disjoint_others_month__person") == "pass"
    assert tests.status("veil_units_disjoint_strays_month__person") == "fail"
    assert "p2" not in project.artefacts()


def test_a_seeded_run_is_marked(project: Project) -> None:
    people(project)
    project.model("counted", COUNT, config=dp("0.4"))
    configure(project)
    project.profile(config={"harness_noise": "off"})
    # Before anything is released, --empty makes the table with its columns, reads nothing and spends nothing.
    empty = project.dbt("build", "--empty", "--exclude", "package:veil")
    assert empty.success, empty.text
    assert project.query("select count(n) from main.counted") == [(0,)]
    assert spent(project) == 0
    assert project.dbt("build", "--exclude", "package:veil").success
    assert project.scalar("select n from main.counted") == 40
    assert project.query("select seeded, budget from veil.releases") == [(True, "people")]
    refused = project.dbt("run-operation", "veil.publish", "--args", "{audience: internal, path: out.duckdb}")
    assert "is marked seeded" in refused.text
    assert not os.path.exists(project.folder / "out.duckdb")  # noqa: PTH110
