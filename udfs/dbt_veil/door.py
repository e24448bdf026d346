"""The one door through which the ledger grows: reserve, settle, refund, plan, and what an operator may do.

All writes happen under one lock of this process, on a cursor of their own, and are committed before the door answers;
DuckDB lets one process at a time write to a file.

Every function that SQL calls takes and gives JSON (see :func:`udfs`). A refusal is an answer, ``{"problems": […]}``,
and not an exception, so that the macro can word it for its model. Nothing here reads the data.
"""

from __future__ import annotations

import datetime
import json
import math
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, TypeAlias

import duckdb

from dbt_veil import accounting, noise
from dbt_veil.budgets import PERIODS, Budget, Limit, plain, read_budgets
from dbt_veil.ledger import Ledger, Place, actor
from dbt_veil.noise import Mechanism, Reservation
from dbt_veil.spending import Request, Total, changed_terms, check, period, totals, within
from dbt_veil.udf import Session, Udf

LOCK = threading.RLock()
Command: TypeAlias = Callable[[Ledger, Mapping[str, Any]], dict[str, Any] | Callable[[], dict[str, Any]]]


def _limit_row(budget: Budget, reason: str) -> dict[str, Any]:
    return {
        "event": "limit",
        "budget": budget.name,
        "epsilon": budget.limit.epsilon,
        "delta": budget.limit.delta,
        "parameters": json.dumps(budget.terms(), sort_keys=True),
        "reason": reason,
    }


def _requests(asked: Mapping[str, Any], budgets: Mapping[str, Budget]) -> tuple[list[Request], list[str]]:
    """One request for every budget that a release draws on."""
    mechanisms, problems = noise.resolve(asked.get("request") or {})
    names = asked.get("budgets") or []
    if not names:
        problems.append("no budget is named: set `dp.budget` to one of `veil__budgets`")
    for name in names:
        if name not in budgets:
            known = ", ".join(sorted(budgets)) or "none"
            problems.append(f"nobody declared the budget {name!r}: add it to `veil__budgets`. Declared: {known}")
    if problems:
        return [], problems
    return [
        Request(
            str(asked["release_id"]),
            str(asked["model"]),
            name,
            tuple(mechanisms),
            asked.get("consumer"),
            None if asked.get("block") is None else str(asked["block"]),
        )
        for name in names
    ], []


def _forgotten(ledger: Ledger, budgets: Mapping[str, Budget], budget: Budget) -> list[str]:
    """A budget that is new to the ledger beside one that the YAML no longer knows may be the same under a new name."""
    if not ledger.exists() or ledger.terms(budget.name) is not None:
        return []
    query = f"select distinct budget from {ledger.place.table} where event = 'limit' order by budget"
    gone = [name for (name,) in ledger.cursor.execute(query).fetchall() if name not in budgets]
    if not gone:
        return []
    names = ", ".join(f"`{name}`" for name in gone)
    return [
        f"budget `{budget.name}` is new, and the ledger has spends of {names}, which `veil__budgets` no longer "
        "declares: a new name gives nothing back. Declare the old one again, beside the new"
    ]


def _not_disjoint(budget: Budget, asked: Mapping[str, Any]) -> list[str]:
    if budget.blocks is None or budget.lifetime or budget.name in (asked.get("disjoint") or []):
        return []
    return [
        f"the blocks of budget `{budget.name}` compose in parallel only where no unit is in two of them. Attach the "
        "data test `units_disjoint` to its source, or give the budget a `lifetime: {epsilon, delta}` over all blocks"
    ]


def _integrity(ledger: Ledger) -> list[str]:
    found = ledger.problems()
    if not found:
        return []
    return [
        *found,
        "nothing is spent on a ledger that is not whole. Restore it from a backup; only if there is none: dbt "
        "run-operation veil.reset_ledger --args '{because: \"…\"}', which carries over what the exported head knows",
    ]


def reserve(ledger: Ledger, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Debit a release and open its reservation in this process; committed before this returns.

    Args:
        ledger: with the lock held.
        asked: ``{release_id, model, budgets: [names], request, consumer, block, policy_hash, invocation_id,
            declared: veil__budgets}``.
    """
    budgets, problems = read_budgets(asked.get("declared") or {})
    requests, found = _requests(asked, budgets)
    problems += found + _integrity(ledger)
    if problems:
        return {"problems": problems}
    release_id = str(asked["release_id"])
    events = ledger.events(release_id)
    if events:
        # The same release asked twice: one debit, and no second draw once it has ended.
        still_open = events == {"reserve"} and release_id in ledger.session.reservations
        return {"problems": [] if still_open else [f"release {release_id} was reserved before and is not open here"]}
    for request in requests:
        budget = budgets[request.budget]
        problems += _forgotten(ledger, budgets, budget) + _not_disjoint(budget, asked)
        problems += changed_terms(ledger, budget) or check(ledger, budget, request)
    if problems:
        return {"problems": problems}
    ledger.create()
    rows = [
        _limit_row(budgets[request.budget], "declared in veil__budgets")
        for request in requests
        if ledger.terms(request.budget) is None
    ]
    rows += [_reserve_row(request, mechanism, asked) for request in requests for mechanism in request.mechanisms]
    ledger.append(rows)
    mechanisms = {mechanism.query: mechanism for mechanism in requests[0].mechanisms}
    ledger.session.reservations[release_id] = Reservation(release_id, mechanisms, set())
    return {"problems": [], "seeded": noise.sampler(ledger.session.config).seeded}


def _reserve_row(request: Request, mechanism: Mechanism, asked: Mapping[str, Any]) -> dict[str, Any]:
    detail = {key: getattr(mechanism, key) for key in ("scale", "l0", "linf", "sensitivity", "categories")}
    return {
        "event": "reserve",
        "release_id": request.release_id,
        "budget": request.budget,
        "model": request.model,
        "consumer": request.consumer,
        "block": request.block,
        "query": mechanism.query,
        "mechanism": mechanism.kind,
        "epsilon": mechanism.epsilon,
        "delta": mechanism.delta,
        "parameters": json.dumps({key: value for key, value in detail.items() if value is not None}, sort_keys=True),
        "policy_hash": asked.get("policy_hash"),
        "invocation_id": asked.get("invocation_id"),
    }


def settle(ledger: Ledger, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Close a release that was drawn: it may be published now, and nothing more is drawn under it."""
    release_id = str(asked["release_id"])
    reservation = ledger.session.reservations.get(release_id)
    if reservation is None:
        return {"problems": [f"release {release_id} is not open in this process, so it cannot be settled"]}
    ledger.append([_end_row(ledger, release_id, "settle", None, asked)])
    del ledger.session.reservations[release_id]
    return {"problems": []}


def refund(ledger: Ledger, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Give a reservation back before any noise was drawn under it and before the data was read."""
    release_id = str(asked["release_id"])
    reservation = ledger.session.reservations.get(release_id)
    if reservation is None:
        return {"problems": [f"release {release_id} is not open in this process, so it cannot be refunded"]}
    if reservation.drawn:
        return {"problems": [f"noise was drawn under release {release_id}: what may be known is charged"]}
    ledger.append(_refund_rows(ledger, release_id, str(asked.get("reason") or "nothing was read"), asked))
    del ledger.session.reservations[release_id]
    return {"problems": []}


def _end_row(
    ledger: Ledger, release_id: str, event: str, reason: str | None, asked: Mapping[str, Any]
) -> dict[str, Any]:
    query = f"select max(model), max(policy_hash) from {ledger.place.table} where release_id = ?"
    model, policy_hash = ledger.cursor.execute(query, [release_id]).fetchone() or (None, None)
    return {
        "event": event,
        "release_id": release_id,
        "model": model,
        "policy_hash": policy_hash,
        "invocation_id": asked.get("invocation_id"),
        "reason": reason,
    }


def _refund_rows(ledger: Ledger, release_id: str, reason: str, asked: Mapping[str, Any]) -> list[dict[str, Any]]:
    query = f"""
        select budget, max(consumer), max(block), sum(epsilon), sum(delta) from {ledger.place.table}
        where event = 'reserve' and release_id = ? group by budget order by budget
    """
    end = _end_row(ledger, release_id, "refund", reason, asked)
    return [
        end | {"budget": budget, "consumer": consumer, "block": block, "epsilon": -epsilon, "delta": -delta}
        for budget, consumer, block, epsilon, delta in ledger.cursor.execute(query, [release_id]).fetchall()
    ]


def recover(ledger: Ledger, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Resolve the releases that a crash, a kill or a failed build left open.

    They are charged, or refunded where every budget that they draw on says so.

    Args:
        ledger: with the lock held.
        asked: ``{declared, because, release_id}``; without ``release_id`` all that are open.
    """
    budgets, problems = read_budgets(asked.get("declared") or {})
    because = asked.get("because")
    if not isinstance(because, str) or not because.strip():
        problems.append(f"`because` must say what happened. Got: {because!r}")
    problems += _integrity(ledger)
    if problems:
        return {"problems": problems}
    by_release: dict[str, list[dict[str, Any]]] = {}
    for item in ledger.open_releases():
        if asked.get("release_id") in (None, item["release_id"]):
            by_release.setdefault(item["release_id"], []).append(item)
    if asked.get("release_id") is not None and not by_release:
        return {"problems": [f"release {asked['release_id']!r} is not open"]}
    lines = []
    for release_id, items in by_release.items():
        refunds = all(budgets[i["budget"]].on_failure == "refund" if i["budget"] in budgets else False for i in items)
        if refunds:
            ledger.append(_refund_rows(ledger, release_id, str(because), asked))
        else:
            ledger.append([_end_row(ledger, release_id, "orphan", str(because), asked)])
        verb = "refunded" if refunds else "charged"
        lines.append(f"release {release_id} of `{items[0]['model'].split('.')[-1]}`: {verb}")
    return {"problems": [], "lines": lines or ["no release is open"]}


def raise_limit(ledger: Ledger, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Record the terms of ``veil__budgets`` as the limit from now on, with who, when and why."""
    budgets, problems = read_budgets(asked.get("declared") or {})
    because, name = asked.get("because"), asked.get("budget")
    if not isinstance(because, str) or not because.strip():
        problems.append(f"`because` must say why the limit changes. Got: {because!r}")
    if name not in budgets:
        known = ", ".join(sorted(budgets)) or "none"
        problems.append(f"`budget` must be one of `veil__budgets`: {known}. Got: {name!r}")
    problems += _integrity(ledger)
    if problems:
        return {"problems": problems}
    budget = budgets[str(name)]
    before = ledger.terms(budget.name)
    ledger.create()
    if before == budget.terms():
        return {"problems": [f"`veil__budgets.{budget.name}` already says what the ledger's limit says: edit it first"]}
    ledger.append([_limit_row(budget, str(because))])
    old = f"epsilon {before['epsilon']}, delta {before['delta']}" if before else "none"
    new = f"epsilon {plain(budget.limit.epsilon)}, delta {plain(budget.limit.delta)}"
    return {"problems": [], "lines": [f"limit of budget `{budget.name}`: {old} -> {new}, by {actor()}: {because}"]}


def reset(ledger: Ledger, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Begin a new chain where the old one was lost; what the exported head knows as spent is carried over."""
    because = asked.get("because")
    if not isinstance(because, str) or not because.strip():
        return {"problems": [f"`because` must say what happened to the ledger. Got: {because!r}"]}
    found = ledger.problems()
    if not found:
        return {"problems": ["the ledger is whole: there is nothing to reset, and nothing is forgotten"]}
    exported = ledger.exported() or {"spent": {}}
    if ledger.head()[0]:
        name = f"ledger_broken_{datetime.datetime.now(datetime.UTC):%Y%m%d%H%M%S}"
        ledger.cursor.execute(f'alter table {ledger.place.table} rename to "{name}"')
    ledger.create()
    ledger.session.verified.pop(ledger.place.table, None)
    rows: list[dict[str, Any]] = [{"event": "reset", "reason": because}]
    rows += [
        {
            "event": "reset",
            "budget": budget,
            "mechanism": "approximate",
            "epsilon": Decimal(epsilon),
            "delta": Decimal(delta),
            "parameters": "{}",
            "reason": because,
        }
        for budget, (epsilon, delta) in sorted(exported["spent"].items())
    ]
    ledger.append(rows)
    carried = [f"  {row['budget']}: epsilon {plain(row['epsilon'])}, delta {plain(row['delta'])}" for row in rows[1:]]
    return {
        "problems": [],
        "lines": ["a new chain begins; carried over as spent:", *(carried or ["  nothing is known"])],
    }


# What a run would spend


def due(ledger: Ledger, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Whether a release is to be made again: by its public rule and its policy, never by its data.

    Args:
        ledger: with the lock held.
        asked: ``{release_id: of the table as it stands or null, refresh, policy_hash}``.

    Returns:
        ``{due, why}``.
    """
    refresh = asked.get("refresh") or "once"
    if refresh not in ("once", *PERIODS):
        known = ", ".join(["once", *PERIODS])
        return {"problems": [f"`dp.refresh` must be one of {known}. Got: {refresh!r}"]}
    if asked.get("release_id") is None:
        return {"problems": [], "due": True, "why": "not released yet"}
    query = f"""
        select policy_hash, recorded_at, seeded from {ledger.place.table} where event = 'settle' and release_id = ?
    """
    found = ledger.cursor.execute(query, [asked["release_id"]]).fetchone() if ledger.exists() else None
    if found is None:
        return {"problems": [], "due": True, "why": "its last release was not settled"}
    if found[2] and not noise.sampler(ledger.session.config).seeded:
        return {"problems": [], "due": True, "why": "its last release was seeded"}
    if found[0] != asked.get("policy_hash"):
        return {"problems": [], "due": True, "why": "its policy or its SQL changed"}
    if refresh == "once":
        return {"problems": [], "due": False, "why": "refresh: once"}
    passed = period(refresh, found[1]) != period(refresh, ledger.now())
    return {"problems": [], "due": passed, "why": f"refresh: {refresh}"}


def plan(ledger: Ledger, asked: Mapping[str, Any]) -> dict[str, Any]:
    """What a run would spend, model by model, and whether all of it fits. Debits nothing.

    Args:
        ledger: with the lock held.
        asked: ``{declared, releases: [{model, name, budgets, request, consumer, block, last: as for due()}]}``.
    """
    budgets, problems = read_budgets(asked.get("declared") or {})
    problems += _integrity(ledger)
    lines = ["privacy budget plan"]
    ahead: dict[str, list[Request]] = {}
    for item in asked.get("releases") or []:
        name = str(item["model"]).split(".")[-1]
        requests, found = _requests({"release_id": "plan", **item}, budgets)
        state = due(ledger, item.get("last") or {})
        found += state["problems"]
        if found:
            problems += [f"`{name}`: {problem}" for problem in found]
            continue
        if not state["due"]:
            lines.append(f"  {name}: kept, 0 spent ({state['why']})")
            continue
        for request in requests:
            budget = budgets[request.budget]
            epsilon, delta = accounting.summed(request.costs)
            lines.append(
                f"  {name}: epsilon {plain(epsilon)}, delta {plain(delta)} of `{budget.name}` ({state['why']})"
            )
            earlier = ahead.setdefault(budget.name, [])
            problems += _forgotten(ledger, budgets, budget) + _not_disjoint(budget, item)
            problems += changed_terms(ledger, budget) or check(ledger, budget, request, earlier)
            earlier.append(request)
    for budget_name in sorted({name for item in asked.get("releases") or [] for name in item.get("budgets") or []}):
        if budget_name in budgets:
            lines.append(_balance(ledger, budgets[budget_name], ahead.get(budget_name, [])))
    for item in ledger.open_releases():
        lines.append(
            f"  orphan: `{item['model'].split('.')[-1]}` reserved epsilon {plain(item['epsilon'])} of "
            f"`{item['budget']}` on {item['at']:%Y-%m-%d %H:%M} UTC and never settled; it is charged. Resolve it: "
            f"dbt run-operation veil.recover --args '{{because: \"…\"}}'"
        )
    return {"problems": problems, "lines": lines if len(lines) > 1 else []}


def _balance(ledger: Ledger, budget: Budget, ahead: Sequence[Request]) -> str:
    limit = budget.lifetime or budget.limit
    total = Total("lifetime", limit, ledger.spent(budget.name))
    spent = total.by(budget.accounting)
    after = replace(total, costs=total.costs + within("lifetime", ahead)).by(budget.accounting)
    each = budget.blocks is not None and budget.lifetime is None
    left = f" for each {budget.blocks}" if each else f", left after {float(limit.epsilon) - after:.6g}"
    return (
        f"  budget `{budget.name}` ({budget.accounting}): spent so far {spent:.6g}, this run {after - spent:.6g}, "
        f"limit {plain(limit.epsilon)}{left}"
    )


def status(ledger: Ledger, asked: Mapping[str, Any]) -> Callable[[], dict[str, Any]]:
    """Every budget with its totals by every method, one row for each limit that it has.

    Returns:
        What computes the answer from what was read: composing privacy losses may take seconds, and nobody has to wait
        for them at the door.

    Raises:
        ValueError: a budget is not readable or the ledger is not whole; SQL that reads the rows must not pass then.
    """
    budgets, problems = read_budgets(asked.get("declared") or {})
    problems += _integrity(ledger)
    if problems:
        raise ValueError("veil.budget_status(): " + "\n  - ".join(problems))
    orphans = Counter(item["budget"] for item in ledger.open_releases())
    limits = [(budget, total) for budget in budgets.values() for total in _all_totals(ledger, budget)]
    return lambda: {
        "problems": [],
        "rows": [_status_row(budget, total, orphans[budget.name]) for budget, total in limits],
    }


def _status_row(budget: Budget, total: Total, orphans: int) -> dict[str, Any]:
    epsilon, delta = accounting.summed(total.costs)
    by = accounting.totals(total.costs, total.limit.delta)
    enforced = min(found for method, found in by.items() if method in ("sum", budget.accounting))
    return {
        "budget": budget.name,
        "scope": total.scope,
        "unit": budget.unit,
        "accounting": budget.accounting,
        "limit_epsilon": str(total.limit.epsilon),
        "limit_delta": str(total.limit.delta),
        "spent_sum": str(epsilon),
        "spent_delta": str(delta),
        "spent_zcdp": _finite(by.get("zcdp")),
        "spent_pld": _finite(by.get("pld")),
        "spent_epsilon": _finite(enforced),
        "left_epsilon": _finite(float(total.limit.epsilon) - enforced),
        "mechanisms": sum(total.costs.values()),
        "orphans": orphans,
        "exceeded": not total.fits(budget.accounting),
    }


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None


def _all_totals(ledger: Ledger, budget: Budget) -> list[Total]:
    """The limits of a budget, each once. What a person in every block has lost is always shown, limited or not."""
    lifetime = budget.lifetime or (None if budget.blocks else budget.limit)
    found = [Total("lifetime", lifetime or Limit(Decimal(10**9), budget.limit.delta), ledger.spent(budget.name))]
    found += totals(ledger, replace(budget, blocks=None, consumers=()), None, None)[1:]
    if budget.blocks and ledger.exists():
        query = f"select distinct block from {ledger.place.table} where budget = ? and block is not null order by block"
        for (block,) in ledger.cursor.execute(query, [budget.name]).fetchall():
            found += totals(ledger, replace(budget, lifetime=None, consumers=(), per_refresh=None), None, block)
    for name, limit in budget.consumers:
        found.append(Total(f"consumer {name}", limit, ledger.spent(budget.name, "consumer = ?", [name])))
    return found


def verify(ledger: Ledger, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that is wrong with the ledger, read whole."""
    ledger.session.verified.pop(ledger.place.table, None)
    found = ledger.problems()
    seq, value = ledger.head()
    return {"problems": found, "lines": [f"the ledger is whole: {seq} rows, head {value or 'none'}"]}


def export(ledger: Ledger, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Export the head of a ledger that is whole."""
    found = _integrity(ledger)
    if found:
        return {"problems": found}
    if not ledger.exists():
        return {"problems": ["there is no ledger yet: nothing was reserved"]}
    path = ledger.export()
    return {"problems": [], "lines": [f"head of row {ledger.head()[0]} exported to {path or 'nowhere: in memory'}"]}


def create(ledger: Ledger, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Create an empty ledger, unless one was lost."""
    found = _integrity(ledger)
    if not found:
        ledger.create()
    return {"problems": found}


COMMANDS: Mapping[str, Command] = {
    "veil_reserve": reserve,
    "veil_settle": settle,
    "veil_refund": refund,
    "veil_recover": recover,
    "veil_raise_limit": raise_limit,
    "veil_reset_ledger": reset,
    "veil_refresh_due": due,
    "veil_budget_plan": plan,
    "veil_budget_status": status,
    "veil_verify_ledger": verify,
    "veil_export_head": export,
    "veil_create_ledger": create,
}


def udfs(session: Session) -> Sequence[Udf]:
    """The door: one function a command, ``(place VARCHAR, arguments VARCHAR) -> VARCHAR``, all JSON.

    ``place`` is ``{database, schema, head}``; the arguments are those of the function of that name in this module.
    """

    def door(command: Command) -> Callable[[str, str], str]:
        def call(place: str, arguments: str) -> str:
            with LOCK, session.lock:
                ledger = Ledger(session, Place(**json.loads(place)))
                try:
                    answer = command(ledger, json.loads(arguments, parse_float=Decimal))
                except duckdb.Error as error:
                    # Whatever the engine says of the ledger's own table holds no personal value, but a kind is enough.
                    raise RuntimeError(f"the ledger's door failed: {type(error).__name__}") from None
                finally:
                    ledger.cursor.close()
            return json.dumps(answer() if callable(answer) else answer, default=str)

        return call

    return [
        Udf(name, door(command), ("VARCHAR", "VARCHAR"), "VARCHAR", volatile=True, arrow=False)
        for name, command in COMMANDS.items()
    ]
