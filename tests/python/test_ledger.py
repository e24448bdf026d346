"""The ledger: every rule that keeps a budget from being overspent, with a test that tries to break it.

Most tests drive the door on a DuckDB connection of their own; the last part runs dbt on one project.
"""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from dbt_veil import door as the_door
from dbt_veil import ledger, noise
from dbt_veil.udf import Session
from harness import ROOT

BUDGET = {"source": "people", "unit": "person", "epsilon": 1}


class Door:
    """The door of one database, called through SQL as macros call it."""

    def __init__(self, path: str = ":memory:", head: Path | None = None, **config: object) -> None:
        self.connection = duckdb.connect(path)
        self.session = Session(config=config, connection=self.connection)
        for udf in (*the_door.udfs(self.session), *noise.udfs(self.session)):
            udf.register(self.connection)
        name = "memory" if path == ":memory:" else Path(path).stem
        self.place = json.dumps({"database": name, "schema": "veil", "head": str(head) if head else None})
        self.budgets: dict[str, Any] = {"people": dict(BUDGET)}

    def call(self, command: str, **arguments: object) -> dict[str, Any]:
        sql = f"select veil_{command}(?, ?)"
        body = json.dumps({"declared": self.budgets} | arguments)
        ((answer,),) = self.connection.cursor().execute(sql, [self.place, body]).fetchall()
        return dict(json.loads(answer))

    def reserve(self, release: str, epsilon: object = "0.1", **arguments: object) -> list[str]:
        request = {"epsilon": epsilon, "queries": [{"name": "n", "l0": 1, "linf": 1}]}
        asked = {"release_id": release, "model": f"model.x.{release}", "budgets": ["people"], "request": request}
        return list(self.call("reserve", **(asked | arguments))["problems"])

    def settle(self, release: str) -> list[str]:
        return list(self.call("settle", release_id=release)["problems"])

    def spent(self, budget: str = "people") -> Decimal:
        rows = self.sql(
            "select sum(epsilon) from veil.ledger where event in ('reserve', 'refund', 'reset') and budget = ?", budget
        )
        return Decimal(rows[0][0] or 0)

    def sql(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        return self.connection.cursor().execute(statement, list(values)).fetchall()

    def close(self) -> None:
        self.connection.close()


@pytest.fixture
def door() -> Iterator[Door]:
    opened = Door()
    yield opened
    opened.close()


@pytest.fixture
def file_door(tmp_path: Path) -> Iterator[Door]:
    opened = Door(str(tmp_path / "w.duckdb"), tmp_path / "head.json")
    yield opened
    opened.close()


# Arithmetic


def test_eleven_elevenths_fit_and_nothing_more(door: Door) -> None:
    for spend in range(11):
        assert door.reserve(f"r{spend}", "1/11") == []
    (refusal,) = door.reserve("r11", "0.01")
    assert "Requested:  epsilon 0.01" in refusal
    assert door.spent() <= 1


@pytest.mark.parametrize(
    ("spends", "granted"),
    [
        (["0.1", "0.9", "0.1"], [True, True, False]),
        ([0.1] * 11, [True] * 10 + [False]),
        (["1", 5e-324], [True, False]),
        (["1", "1e-12"], [True, False]),
        (["1.000000000001"], [False]),
    ],
)
def test_amounts_are_exact(door: Door, spends: list[object], granted: list[bool]) -> None:
    assert [door.reserve(f"r{i}", epsilon) == [] for i, epsilon in enumerate(spends)] == granted


def test_delta_has_a_limit_of_its_own(door: Door) -> None:
    door.budgets["people"] |= {"epsilon": 10, "delta": 1e-6}
    request = {"epsilon": 1, "delta": 6e-7, "mechanism": "gaussian", "queries": [{"name": "n", "l0": 1, "linf": 1}]}
    assert door.reserve("a", request=request) == []
    (refusal,) = door.reserve("b", request=request)
    assert "Remaining:  epsilon 9, delta 4E-7" in refusal
    assert "Difference: epsilon 0, delta 2E-7" in refusal


def test_one_row_for_each_mechanism_and_no_factor_for_disjoint_groups(door: Door) -> None:
    request = {"epsilon": "0.6", "queries": [{"name": "count", "l1": 1}, {"name": "sum", "l1": 100}]}
    assert door.reserve("a", request=request) == []
    door.budgets["people"]["delta"] = 1e-6
    assert door.call("raise_limit", budget="people", because="gaussian noise")["problems"] == []
    gaussian = {
        "epsilon": "0.4",
        "delta": 1e-6,
        "mechanism": "gaussian",
        "queries": [{"name": "n", "l0": 1, "linf": 1}],
    }
    assert door.reserve("b", request=gaussian) == []
    rows = door.sql("select query, mechanism, epsilon, delta from veil.ledger where event = 'reserve' order by seq")
    assert rows == [
        ("count", "laplace", Decimal("0.3"), Decimal(0)),
        ("sum", "laplace", Decimal("0.3"), Decimal(0)),
        ("n", "gaussian", Decimal("0.4"), Decimal("0.000001")),
    ]
    assert door.spent() == 1


def test_all_budgets_of_a_release_are_debited_or_none(door: Door) -> None:
    door.budgets["visits"] = {"source": "visits", "unit": "person", "epsilon": "0.05"}
    (refusal,) = door.reserve("a", "0.1", budgets=["people", "visits"])
    assert "budget `visits`" in refusal
    assert not door.sql("select 1 from duckdb_tables() where table_name = 'ledger'")
    assert door.reserve("b", "0.05", budgets=["people", "visits"]) == []
    assert (door.spent("people"), door.spent("visits")) == (Decimal("0.05"), Decimal("0.05"))


def test_zcdp_and_pld_grant_what_the_sum_refuses(door: Door) -> None:
    request = {"epsilon": 1, "delta": 1e-8, "mechanism": "gaussian", "queries": [{"name": "n", "l0": 1, "linf": 1}]}
    granted = {}
    for method in ("sum", "zcdp", "pld"):
        door.budgets[method] = BUDGET | {"epsilon": 3, "delta": 1e-6, "accounting": method}
        count = 0
        while count < 20 and door.reserve(f"{method}{count}", budgets=[method], request=request) == []:
            count += 1
        granted[method] = count
    assert granted["sum"] == 3
    assert 3 < granted["zcdp"] <= granted["pld"] < 20
    rows = {row["budget"]: row for row in door.call("budget_status")["rows"]}
    for method in granted:
        assert rows[method]["spent_epsilon"] <= 3
        assert not rows[method]["exceeded"]
    assert rows["pld"]["spent_pld"] <= rows["pld"]["spent_zcdp"] < float(rows["pld"]["spent_sum"])


# Concurrency and crashes


def test_threads_cannot_overspend(door: Door) -> None:
    start = threading.Barrier(8)
    refused: list[list[str]] = []

    def spend(name: str) -> None:
        start.wait()
        refused.append(door.reserve(name, "0.6" if name in ("t0", "t1") else "0.07"))

    threads = [threading.Thread(target=spend, args=(f"t{i}",)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert any(refused)
    assert 0 < door.spent() <= 1
    assert door.call("verify_ledger")["problems"] == []


SPEND_ELSEWHERE = """
    import json, sys, time
    sys.path[:0] = [{udfs!r}, {tests!r}]
    from pathlib import Path
    from test_ledger import Door
    door = Door({path!r}, Path({head!r}))
    assert door.reserve("elsewhere", "0.6") == []
    {then}
"""


def elsewhere(folder: Path, then: str) -> subprocess.Popen[str]:
    """Another process that has reserved 0.6 on the same file, and then does ``then``."""
    code = textwrap.dedent(SPEND_ELSEWHERE).format(
        udfs=str(ROOT / "udfs"),
        tests=str(ROOT / "tests" / "python"),
        path=str(folder / "w.duckdb"),
        head=str(folder / "head.json"),
        then=then,
    )
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)


def test_two_processes_and_a_kill_between_reservation_and_settlement(tmp_path: Path) -> None:
    process = elsewhere(tmp_path, "print('reserved', flush=True); time.sleep(60)")
    assert process.stdout is not None
    assert process.stdout.readline() == "reserved\n"
    with pytest.raises(duckdb.IOException, match="lock"):
        duckdb.connect(str(tmp_path / "w.duckdb"))
    process.kill()
    process.wait()

    door = Door(str(tmp_path / "w.duckdb"), tmp_path / "head.json")
    assert door.spent() == Decimal("0.6")
    (refusal,) = door.reserve("mine", "0.6")
    assert "Difference: epsilon 0.2" in refusal
    assert "0.6 by `elsewhere`" in refusal
    # Its noise cannot be drawn here, nor can it be settled or refunded: this process does not hold it.
    with pytest.raises(duckdb.Error, match="holds no open reservation"):
        door.sql("select veil_laplace('elsewhere', 'n', 1, 1.6666666666666667)")
    assert door.settle("elsewhere") != []
    assert door.call("refund", release_id="elsewhere")["problems"] != []
    # The next run shows the orphan; a named operation resolves it, and it stays charged.
    lines = door.call("budget_plan", releases=[])["lines"]
    assert any("orphan: `elsewhere` reserved epsilon 0.6" in line for line in lines)
    assert door.call("recover")["problems"] == ["`because` must say what happened. Got: None"]
    assert "charged" in door.call("recover", because="the machine was killed")["lines"][0]
    assert door.call("recover", because="again")["lines"] == ["no release is open"]
    assert door.spent() == Decimal("0.6")
    door.close()


def test_recover_refunds_only_where_the_budget_says_so(tmp_path: Path) -> None:
    first = Door(str(tmp_path / "w.duckdb"))
    first.budgets["people"]["on_failure"] = "refund"
    assert first.reserve("a", "0.6") == []
    first.close()
    second = Door(str(tmp_path / "w.duckdb"))
    second.budgets["people"]["on_failure"] = "refund"
    assert "refunded" in second.call("recover", because="error texts reach no analyst")["lines"][0]
    assert second.spent() == 0
    assert second.reserve("b", "1") == []
    second.close()


def test_a_refund_ends_with_the_first_draw(door: Door) -> None:
    assert door.reserve("a", "0.5") == []
    assert door.call("refund", release_id="a")["problems"] == []
    assert door.spent() == 0
    assert door.reserve("b", "0.5") == []
    assert len(door.sql("select veil_laplace('b', 'n', 10, 2.0) from range(3)")) == 3
    assert "noise was drawn" in door.call("refund", release_id="b")["problems"][0]
    assert door.spent() == Decimal("0.5")


def test_the_same_release_is_debited_once_and_drawn_in_one_life(door: Door) -> None:
    assert door.reserve("a", "0.5") == []
    assert door.reserve("a", "0.5") == []
    assert door.spent() == Decimal("0.5")
    assert door.settle("a") == []
    assert "was reserved before" in door.reserve("a", "0.5")[0]
    with pytest.raises(duckdb.Error, match="holds no open reservation"):
        door.sql("select veil_laplace('a', 'n', 10, 2.0)")
    assert door.settle("a") != []


def test_a_kill_between_settlement_and_publication_is_paid_and_made_again(tmp_path: Path) -> None:
    process = elsewhere(tmp_path, "print(door.settle('elsewhere'), flush=True); time.sleep(60)")
    assert process.stdout is not None
    assert process.stdout.readline() == "[]\n"
    process.kill()
    process.wait()
    door = Door(str(tmp_path / "w.duckdb"), tmp_path / "head.json")
    # Nothing was published, so the last record of the table is none or an older release: it is due, and paid again.
    assert door.call("refresh_due", release_id=None, refresh="once")["due"]
    assert "Difference: epsilon 0.2" in door.reserve("mine", "0.6")[0]
    assert door.call("recover", because="the machine was killed")["lines"] == ["no release is open"]
    door.close()


def test_a_status_of_a_broken_budget_or_ledger_is_an_error_and_not_empty(door: Door) -> None:
    three_rows(door)
    door.sql("update veil.ledger set epsilon = 0 where seq = 2")
    door.session.verified.clear()
    with pytest.raises(duckdb.Error, match="row 2 of the ledger was edited"):
        door.call("budget_status")
    door.budgets["people"]["epsilon"] = 0
    with pytest.raises(duckdb.Error, match="must be a number above 0"):
        door.call("budget_status")


def test_a_debit_survives_the_rollback_of_the_model(file_door: Door) -> None:
    model = file_door.connection.cursor()
    model.execute("create table t as select 1 as x")
    model.execute("begin")
    model.execute("update t set x = 2")
    body = {"declared": file_door.budgets, "release_id": "a", "model": "m", "budgets": ["people"]}
    body["request"] = {"epsilon": "0.6", "queries": [{"name": "n", "l1": 1}]}
    model.execute("select veil_reserve(?, ?)", [file_door.place, json.dumps(body)])
    model.execute("rollback")
    assert file_door.spent() == Decimal("0.6")


# The chain


def three_rows(door: Door) -> None:
    for name in ("a", "b"):
        assert door.reserve(name, "0.1") == []


@pytest.mark.parametrize(
    ("attack", "message"),
    [
        ("update veil.ledger set epsilon = 0.01 where seq = 2", "row 2 of the ledger was edited"),
        ("update veil.ledger set seeded = null where seq = 3", "row 3 of the ledger was edited"),
        (
            "update veil.ledger set recorded_at = recorded_at - interval 1 hour where seq = 1",
            "row 1 of the ledger was edited",
        ),
        ("delete from veil.ledger where seq = 2", "rows of the ledger are missing or doubled"),
        ("delete from veil.ledger where seq = 3", "rows are missing"),
        ("delete from veil.ledger", "rows are missing"),
        ("drop table veil.ledger", "rows are missing"),
        ("insert into veil.ledger select * from veil.ledger where seq = 2", "missing or doubled"),
        ("insert into veil.ledger select * replace (9 as seq) from veil.ledger where seq = 2", "was edited"),
        ("update veil.ledger set row_hash = 'x' where seq = 3", "row 3 of the ledger was edited"),
    ],
)
@pytest.mark.parametrize("fresh", [True, False])
def test_a_tampered_ledger_spends_nothing(tmp_path: Path, attack: str, message: str, fresh: bool) -> None:
    door = Door(str(tmp_path / "w.duckdb"), tmp_path / "head.json")
    three_rows(door)
    door.sql(attack)
    if fresh:
        door.close()
        door = Door(str(tmp_path / "w.duckdb"), tmp_path / "head.json")
    assert any(message in problem for problem in door.call("verify_ledger")["problems"])
    problems = door.reserve("c", "0.1")
    assert any(message in problem or "not the one" in problem for problem in problems), problems
    assert "Restore it from a backup" in problems[-1]
    door.close()


def test_a_rewritten_chain_is_seen_by_its_exported_head(tmp_path: Path) -> None:
    door = Door(str(tmp_path / "w.duckdb"), tmp_path / "head.json")
    three_rows(door)
    kept = (tmp_path / "head.json").read_text()
    door.sql("drop table veil.ledger")
    (tmp_path / "head.json").unlink()
    door.session.verified.clear()
    for name in ("x", "y"):
        assert door.reserve(name, "0.001") == []
    (tmp_path / "head.json").write_text(kept)
    assert door.reserve("z", "0.001")[0] == "row 3 of the ledger is not the one whose hash was exported"
    door.close()


def test_a_deleted_file_is_not_a_full_budget_and_a_reset_carries_over(tmp_path: Path) -> None:
    door = Door(str(tmp_path / "w.duckdb"), tmp_path / "head.json")
    assert door.reserve("a", "0.7") == []
    assert door.call("reset_ledger", because="no reason")["problems"][0].startswith("the ledger is whole")
    door.close()
    (tmp_path / "w.duckdb").unlink()

    door = Door(str(tmp_path / "w.duckdb"), tmp_path / "head.json")
    assert "rows are missing" in door.reserve("b", "0.5")[0]
    assert door.call("reset_ledger")["problems"] != []
    lines = door.call("reset_ledger", because="the disk was lost")["lines"]
    assert lines[1:] == ["  people: epsilon 0.7, delta 0"]
    (refusal,) = door.reserve("b", "0.5")
    assert "0.7 by `carried over by a reset`" in refusal
    assert door.reserve("c", "0.3") == []
    door.close()


def test_a_ledger_without_a_head_is_missed_by_the_releases(door: Door) -> None:
    three_rows(door)
    assert door.settle("a") == []
    door.sql("create table veil.releases (release_id varchar, budget varchar, released_at timestamp)")
    door.sql("insert into veil.releases values ('a', 'people', now()), ('k', null, now())")
    assert door.reserve("c") == []
    door.sql("drop table veil.ledger")
    door.session.verified.clear()
    assert "veil.releases has 1 releases of which the ledger knows no settlement" in door.reserve("d")[0]


def test_the_head_of_another_database_is_kept(tmp_path: Path) -> None:
    for name in ("one", "two"):
        door = Door(str(tmp_path / f"{name}.duckdb"), tmp_path / "head.json")
        three_rows(door)
        door.close()
    assert len(json.loads((tmp_path / "head.json").read_text())) == 2
    (tmp_path / "head.json").write_text("{")
    door = Door(str(tmp_path / "one.duckdb"), tmp_path / "head.json")
    assert "rows are missing" in door.reserve("c")[0]
    door.close()


def test_another_schema_does_not_start_a_new_ledger_by_itself(file_door: Door) -> None:
    assert file_door.reserve("a", "0.7") == []
    file_door.sql("create schema renamed_target")
    file_door.sql("use renamed_target")
    assert "Difference: epsilon 0.2" in file_door.reserve("b", "0.5")[0]


# Limits, refresh and parts


def test_a_limit_changes_only_by_a_row(door: Door) -> None:
    assert door.reserve("a", "0.9") == []
    door.budgets["people"]["epsilon"] = 2
    (refusal,) = door.reserve("b", "0.5")
    assert "`veil__budgets.people.epsilon` is 2 and the ledger's limit says 1" in refusal
    assert door.call("raise_limit", budget="people")["problems"] == [
        "`because` must say why the limit changes. Got: None"
    ]
    assert door.call("raise_limit", budget="poeple", because="x")["problems"] != []
    (line,) = door.call("raise_limit", budget="people", because="the board agreed")["lines"]
    assert line.startswith("limit of budget `people`: epsilon 1, delta 0 -> epsilon 2, delta 0, by ")
    assert door.reserve("b", "0.5") == []
    rows = door.sql(
        "select epsilon, reason, actor is not null, recorded_at is not null from veil.ledger where event = 'limit'"
    )
    assert rows == [
        (Decimal(1), "declared in veil__budgets", True, True),
        (Decimal(2), "the board agreed", True, True),
    ]
    door.budgets["people"]["accounting"] = "zcdp"
    door.budgets["people"]["delta"] = 1e-6
    assert len(door.reserve("c", "0.1")) == 2


def test_a_lower_limit_in_yaml_is_obeyed_at_once(door: Door) -> None:
    assert door.reserve("a", "0.3") == []
    door.budgets["people"]["epsilon"] = 0.5
    assert "Remaining:  epsilon 0.2" in door.reserve("b", "0.4")[0]
    exceeded = []
    for limit in (0.3, 0.29):
        door.budgets["people"]["epsilon"] = limit
        exceeded += [row["exceeded"] for row in door.call("budget_status")["rows"]]
    assert exceeded == [False, True]


def test_consumers_have_parts_of_the_whole(door: Door) -> None:
    door.budgets["people"]["consumers"] = {"press": {"epsilon": 0.3}, "city": {"epsilon": 0.9}}
    assert "`dp.consumer` must be one of city, press" in door.reserve("a", "0.1")[0]
    assert door.reserve("a", "0.3", consumer="press") == []
    assert "(consumer press, sum)" in door.reserve("b", "0.1", consumer="press")[0]
    assert "(lifetime, sum)" in door.reserve("c", "0.8", consumer="city")[0]
    assert door.reserve("d", "0.7", consumer="city") == []


def test_blocks_have_a_budget_each_where_units_are_disjoint(door: Door) -> None:
    door.budgets["people"]["blocks"] = "month"
    assert "compose in parallel only where no unit is in two" in door.reserve("a", "1", block="2026-01")[0]
    proven = {"disjoint": ["people"]}
    assert door.reserve("a", "1", block="2026-01", **proven) == []
    assert door.reserve("b", "1", block="2026-02", **proven) == []
    assert "(block 2026-01, sum)" in door.reserve("c", "0.1", block="2026-01", **proven)[0]
    for bad in (None, "2026", "January", "2026-13"):
        assert "`dp.block` must name the month" in door.reserve("d", "0.1", block=bad, **proven)[0]
    scopes = {row["scope"]: Decimal(row["spent_sum"]) for row in door.call("budget_status")["rows"]}
    assert scopes == {"lifetime": 2, "block 2026-01": 1, "block 2026-02": 1}


def test_blocks_without_that_proof_have_a_lifetime_total(door: Door) -> None:
    door.budgets["people"] |= {"blocks": "month", "lifetime": {"epsilon": 1.5}}
    assert door.reserve("a", "1", block="2026-01") == []
    assert "(lifetime, sum)" in door.reserve("b", "1", block="2026-02")[0]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that sets the time that the ledger sees."""
    import datetime as real

    class Clock(real.datetime):
        at = real.datetime(2026, 3, 10, tzinfo=real.UTC)

        @classmethod
        def now(cls, tz: real.tzinfo | None = None) -> real.datetime:
            return cls.at

    class Module:
        datetime = Clock
        timedelta = real.timedelta
        UTC = real.UTC

    monkeypatch.setattr(ledger, "datetime", Module)

    def set_to(*parts: int) -> None:
        Clock.at = real.datetime(*parts, tzinfo=real.UTC)  # type: ignore[misc, arg-type]

    return set_to


def test_a_period_opens_with_the_calendar_and_never_by_moving_the_clock_back(door: Door, clock: Any) -> None:
    door.budgets["people"] |= {"epsilon": 0.5, "refresh": "monthly", "per_refresh": {"epsilon": 0.2}}
    assert door.reserve("a", "0.2") == []
    assert "(period 2026-03, sum)" in door.reserve("b", "0.1")[0]
    clock(2026, 1, 10)
    assert "(period 2026-03, sum)" in door.reserve("b", "0.1")[0]
    clock(2026, 4, 10)
    assert door.reserve("b", "0.2") == []
    clock(2026, 5, 10)
    # The lifetime total holds beside the period, and is always shown.
    assert "(lifetime, sum)" in door.reserve("c", "0.2")[0]
    assert door.reserve("c", "0.1") == []
    assert [row["scope"] for row in door.call("budget_status")["rows"]] == ["lifetime", "period 2026-05"]


def test_a_release_is_due_by_its_rule_and_its_policy_alone(door: Door, clock: Any) -> None:
    def due(**last: object) -> tuple[bool, str]:
        answer = door.call("refresh_due", **({"release_id": "a", "refresh": "once", "policy_hash": "p"} | last))
        return answer["due"], answer["why"]

    assert due(release_id=None) == (True, "not released yet")
    assert door.reserve("a", "0.1", policy_hash="p") == []
    assert due() == (True, "its last release was not settled")
    assert door.settle("a") == []
    assert due() == (False, "refresh: once")
    assert due(policy_hash="q") == (True, "its policy or its SQL changed")
    for rule, same, next_one in (
        ("daily", (2026, 3, 10, 23), (2026, 3, 11)),
        ("weekly", (2026, 3, 15), (2026, 3, 16)),
        ("monthly", (2026, 3, 31), (2026, 4, 1)),
        ("quarterly", (2026, 3, 31), (2026, 4, 1)),
        ("yearly", (2026, 12, 31), (2027, 1, 1)),
    ):
        clock(*same)
        assert due(refresh=rule) == (False, f"refresh: {rule}")
        clock(*next_one)
        assert due(refresh=rule) == (True, f"refresh: {rule}")
        clock(2025, 1, 1)
        assert due(refresh=rule) == (False, f"refresh: {rule}")
    assert door.call("refresh_due", refresh="hourly")["problems"] == [
        "`dp.refresh` must be one of once, daily, weekly, monthly, quarterly, yearly. Got: 'hourly'"
    ]


# The plan


def wish(name: str, epsilon: object, **more: object) -> dict[str, object]:
    request = {"epsilon": epsilon, "queries": [{"name": "n", "l0": 1, "linf": 1}]}
    return {"model": f"model.x.{name}", "budgets": ["people"], "request": request, **more}


def test_the_plan_counts_what_the_run_will_have_spent(door: Door) -> None:
    assert door.reserve("old", "0.3", policy_hash="p") == []
    assert door.settle("old") == []
    kept = wish("kept", "0.9", last={"release_id": "old", "policy_hash": "p"})
    fits = door.call("budget_plan", releases=[kept, wish("a", "0.4"), wish("b", "0.3")])
    assert fits["problems"] == []
    assert fits["lines"] == [
        "privacy budget plan",
        "  kept: kept, 0 spent (refresh: once)",
        "  a: epsilon 0.4, delta 0 of `people` (not released yet)",
        "  b: epsilon 0.3, delta 0 of `people` (not released yet)",
        "  budget `people` (sum): spent so far 0.3, this run 0.7, limit 1, left after 0",
    ]
    (problem,) = door.call("budget_plan", releases=[wish("a", "0.4"), wish("b", "0.4")])["problems"]
    assert "cannot pay for `b`" in problem
    assert "Remaining:  epsilon 0.3" in problem
    assert "Difference: epsilon 0.1" in problem
    assert "Spent:      0.3 by `old`" in problem
    assert "lower `dp.epsilon` to 0.3" in problem
    # Half of the plan fits, and the plan itself has spent nothing.
    assert door.call("budget_plan", releases=[wish("b", "0.4")])["problems"] == []
    assert door.spent() == Decimal("0.3")


# Bad input


@pytest.mark.parametrize(
    ("budget", "problem"),
    [
        ("text", "must be a mapping"),
        ({}, "`veil__budgets.people.epsilon` must be a number above 0. Got: None"),
        (BUDGET | {"epsilon": 0}, "must be a number above 0"),
        (BUDGET | {"epsilon": "much"}, "must be a number above 0"),
        (BUDGET | {"epsilon": float("nan")}, "must be a number above 0"),
        (BUDGET | {"epsilon": float("inf")}, "must be a number above 0"),
        (BUDGET | {"epsilon": 5e-324}, "must be a number above 0"),
        (BUDGET | {"delta": 1}, "`veil__budgets.people.delta` must be a number from 0 to below 1"),
        (BUDGET | {"delta": -1e-6}, "`veil__budgets.people.delta`"),
        (BUDGET | {"source": []}, "`veil__budgets.people.source`"),
        (BUDGET | {"unit": None}, "`veil__budgets.people.unit`"),
        (BUDGET | {"relation": "replace"}, "must be one of add_remove"),
        (BUDGET | {"accounting": "renyi"}, "must be one of sum, zcdp, pld"),
        (BUDGET | {"accounting": "zcdp"}, "must be above 0 for zcdp accounting"),
        (BUDGET | {"refresh": "hourly"}, "must be one of once, daily"),
        (BUDGET | {"per_refresh": {"epsilon": 1}}, "needs `refresh`"),
        (BUDGET | {"lifetime": {"epsilon": 1}}, "needs `blocks`"),
        (BUDGET | {"consumers": ["press"]}, "must map names"),
        (BUDGET | {"consumers": {"press": {"epsilon": 0}}}, "`veil__budgets.people.consumers.press.epsilon`"),
        (BUDGET | {"on_failure": "forget"}, "must be one of charge, refund"),
        (BUDGET | {"epsilom": 1}, "has no key 'epsilom'"),
    ],
)
def test_a_budget_that_cannot_be_meant_is_refused(door: Door, budget: object, problem: str) -> None:
    door.budgets["people"] = budget
    assert any(problem in text for text in door.reserve("a"))
    assert not door.sql("select 1 from duckdb_tables() where table_name = 'ledger'")


def test_an_undeclared_budget_is_refused(door: Door) -> None:
    assert door.reserve("a", budgets=["poeple"])[0].startswith("nobody declared the budget 'poeple'")
    assert door.reserve("a", budgets=[])[0].startswith("no budget is named")
    assert not door.sql("select 1 from duckdb_tables() where table_name = 'ledger'")


def test_names_are_data_and_not_sql(door: Door) -> None:
    name = "peo'ple\"; drop table veil.ledger; --"
    door.budgets = {name: dict(BUDGET)}
    assert door.reserve("a'; --", "0.4", budgets=[name], model='m"; drop') == []
    assert door.spent(name) == Decimal("0.4")
    assert door.call("verify_ledger")["problems"] == []


def test_a_seeded_run_is_marked_in_every_row() -> None:
    seeded, plain = Door(harness_noise=3), Door()
    for door, mark in ((seeded, True), (plain, False)):
        assert door.reserve("a") == []
        assert door.settle("a") == []
        assert set(door.sql("select seeded from veil.ledger")) == {(mark,)}
        door.close()


# Size


def test_ten_thousand_rows(tmp_path: Path) -> None:
    door = Door(str(tmp_path / "w.duckdb"), tmp_path / "head.json")
    door.budgets["people"] |= {"epsilon": 10**6, "delta": 1e-3}
    kinds = ("laplace", "gaussian")
    queries = [{"name": f"q{i}", "mechanism": kinds[i % 2], "l0": 1 + i % 3, "linf": 1} for i in range(500)]
    for batch in range(20):
        request = {"epsilon": 50, "delta": 1e-5, "queries": queries}
        assert door.reserve(f"bulk{batch}", request=request) == []
    ((rows,),) = door.sql("select count(*) from veil.ledger")
    assert rows == 10_001
    fastest = {}
    for step in ("reserve", "settle"):
        times = []
        for attempt in range(5):
            begin = time.perf_counter()
            problems = door.reserve(f"r{attempt}") if step == "reserve" else door.settle(f"r{attempt}")
            times.append(time.perf_counter() - begin)
            assert problems == []
        fastest[step] = min(times)
    # The benchmark asks for 0.1 s; here a machine that runs other tests as well has to pass.
    assert max(fastest.values()) < 0.5, fastest
    begin = time.perf_counter()
    (row,) = door.call("budget_status")["rows"]
    assert time.perf_counter() - begin < 15
    assert row["spent_pld"] < float(row["spent_sum"])
    door.sql("update veil.ledger set epsilon = 0 where seq = 5000")
    assert "row 5000" in door.call("verify_ledger")["problems"][0]
    door.close()
