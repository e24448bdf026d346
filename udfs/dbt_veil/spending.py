"""Whether a budget grants a request: what is spent within each of its limits, and the words of a refusal."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from dbt_veil import accounting
from dbt_veil.accounting import Cost
from dbt_veil.budgets import BLOCKS, PERIODS, Budget, Limit, plain
from dbt_veil.ledger import Ledger
from dbt_veil.noise import EPSILON_STEP, Mechanism


@dataclass(frozen=True)
class Request:
    """One release that asks for budget."""

    release_id: str
    model: str
    budget: str
    mechanisms: tuple[Mechanism, ...]
    consumer: str | None = None
    block: str | None = None

    @property
    def costs(self) -> Counter[Cost]:
        """What it would add."""
        return Counter(mechanism.cost() for mechanism in self.mechanisms)


@dataclass(frozen=True)
class Total:
    """What is spent within one limit: the lifetime total, a consumer's, a block's or a period's part."""

    scope: str
    limit: Limit
    costs: Counter[Cost]

    def by(self, method: str) -> float:
        """Epsilon at the limit's delta by the enforcing method; never more than the plain sum."""
        methods = ("sum",) if method == "sum" else ("sum", method)
        return min(accounting.totals(self.costs, self.limit.delta, methods).values())

    def fits(self, method: str) -> bool:
        """Whether the costs stay within the limit."""
        epsilon, delta = accounting.summed(self.costs)
        if epsilon <= self.limit.epsilon and delta <= self.limit.delta:
            return True
        return method != "sum" and self.by(method) <= float(self.limit.epsilon)


def period(refresh: str, moment: datetime.datetime) -> str:
    """The name of the period of a refresh rule that a moment lies in.

    >>> period("quarterly", datetime.datetime(2026, 5, 1)), period("weekly", datetime.datetime(2026, 1, 1))
    ('2026-Q2', '2026-W01')
    """
    suffix = str((moment.month + 2) // 3) if refresh == "quarterly" else ""
    return moment.strftime(PERIODS[refresh]) + suffix


def _period_start(refresh: str, moment: datetime.datetime) -> datetime.datetime:
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    if refresh == "daily":
        return day
    if refresh == "weekly":
        return day - datetime.timedelta(days=day.weekday())
    month = {"monthly": day.month, "quarterly": (day.month - 1) // 3 * 3 + 1, "yearly": 1}[refresh]
    return day.replace(day=1, month=month)


def totals(ledger: Ledger, budget: Budget, consumer: str | None, block: str | None) -> list[Total]:
    """Everything spent that a request of this consumer and block has to fit beside."""
    found: list[Total] = []
    if budget.blocks:
        found.append(Total(f"block {block}", budget.limit, ledger.spent(budget.name, "block = ?", [block])))
    if budget.lifetime or not budget.blocks:
        found.append(Total("lifetime", budget.lifetime or budget.limit, ledger.spent(budget.name)))
    for name, limit in budget.consumers:
        if name == consumer:
            found.append(Total(f"consumer {name}", limit, ledger.spent(budget.name, "consumer = ?", [name])))
    if budget.per_refresh:
        start = _period_start(budget.refresh, ledger.now())
        spent = ledger.spent(budget.name, "recorded_at >= ?", [start])
        found.append(Total(f"period {period(budget.refresh, start)}", budget.per_refresh, spent))
    return found


def check(ledger: Ledger, budget: Budget, request: Request, ahead: Sequence[Request] = ()) -> list[str]:
    """Why a budget does not grant a request, on top of ``ahead``: what others of the same run will have spent of it."""
    problems = _wrong_part(budget, request)
    if problems:
        return problems
    for total in totals(ledger, budget, request.consumer, request.block):
        before = replace(total, costs=total.costs + within(total.scope, ahead))
        after = replace(before, costs=before.costs + request.costs)
        if not after.fits(budget.accounting):
            problems.append(_refusal(ledger, budget, request, before, after))
    return problems


def within(scope: str, requests: Sequence[Request]) -> Counter[Cost]:
    """What requests add within a scope as :func:`totals` names it."""
    kind, _, name = scope.partition(" ")
    total: Counter[Cost] = Counter()
    for request in requests:
        part = {"consumer": request.consumer, "block": request.block}.get(kind, name)
        if part == name:
            total.update(request.costs)
    return total


def _wrong_part(budget: Budget, request: Request) -> list[str]:
    problems = []
    names = [name for name, _ in budget.consumers]
    if names and request.consumer not in names:
        problems.append(
            f"`dp.consumer` must be one of {', '.join(names)}, the consumers of budget `{budget.name}`. "
            f"Got: {request.consumer!r}"
        )
    if budget.blocks:
        try:
            datetime.datetime.strptime(str(request.block), BLOCKS[budget.blocks])
        except ValueError:
            problems.append(
                f"`dp.block` must name the {budget.blocks} of data that is read, as "
                f"{datetime.datetime(2026, 1, 31).strftime(BLOCKS[budget.blocks])}: budget `{budget.name}` has one for "
                f"each. Got: {request.block!r}"
            )
    elif request.block is not None:
        problems.append(f"`dp.block` is {request.block!r}, and budget `{budget.name}` has no `blocks`")
    return problems


def _refusal(ledger: Ledger, budget: Budget, request: Request, before: Total, after: Total) -> str:
    """The budget error: requested, remaining, difference, who spent what, and what can be done."""
    method = budget.accounting
    asked_epsilon, asked_delta = accounting.summed(request.costs)
    spent_epsilon, spent_delta = accounting.summed(before.costs)
    if method == "sum":
        left, over = before.limit.epsilon - spent_epsilon, spent_epsilon + asked_epsilon - before.limit.epsilon
    else:
        left = before.limit.epsilon - _decimal(before.by(method))
        over = _decimal(after.by(method)) - before.limit.epsilon
    left_delta = before.limit.delta - spent_delta
    over_delta = spent_delta + asked_delta - before.limit.delta
    lines = [
        f"budget `{budget.name}` ({before.scope}, {method}) cannot pay for `{request.model.split('.')[-1]}`",
        f"    Requested:  epsilon {plain(asked_epsilon)}, delta {plain(asked_delta)}",
        f"    Remaining:  epsilon {plain(max(left, Decimal(0)))}, delta {plain(max(left_delta, Decimal(0)))} "
        f"of epsilon {plain(before.limit.epsilon)}, delta {plain(before.limit.delta)}",
        f"    Difference: epsilon {plain(max(over, Decimal(0)))}, delta {plain(max(over_delta, Decimal(0)))}",
    ]
    spenders = ledger.spenders(budget.name)
    lines += [
        f"    Spent:      {plain(epsilon)} by `{model}`, last {when} UTC" for model, epsilon, when in spenders[:10]
    ]
    if len(spenders) > 10:
        lines.append(f"    Spent:      {plain(sum((e for _, e, _ in spenders[10:]), Decimal(0)))} by others")
    lower = f"lower `dp.epsilon` to {plain(left)}; " if left >= EPSILON_STEP and method == "sum" else ""
    lines.append(
        f"    Options:    {lower}keep the released table as it is and leave the model out; or raise the limit in "
        f"`veil__budgets` and record it: dbt run-operation veil.raise_limit --args "
        f"'{{budget: {budget.name}, because: \"…\"}}'"
    )
    return "\n".join(lines)


def _decimal(number: float) -> Decimal:
    return Decimal(repr(round(number, 9))) if math.isfinite(number) else Decimal(10**9)


def changed_terms(ledger: Ledger, budget: Budget) -> list[str]:
    """Why the YAML's terms of a budget are not those of its last ``limit`` row. Lower amounts are always allowed."""
    recorded = ledger.terms(budget.name)
    if recorded is None:
        return []
    problems = []
    for key, value in budget.terms().items():
        old = recorded.get(key)
        if value == old:
            continue
        if key in ("epsilon", "delta") and Decimal(str(value)) < Decimal(str(old)):
            continue
        problems.append(
            f"`veil__budgets.{budget.name}.{key}` is {_shown(value)} and the ledger's limit says {_shown(old)}: a "
            f"limit changes only by a row with a reason. Record it: dbt run-operation veil.raise_limit --args "
            f"'{{budget: {budget.name}, because: \"…\"}}'"
        )
    return problems


def _shown(value: object) -> str:
    return "absent" if value is None else str(value)
