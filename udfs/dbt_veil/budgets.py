"""What a project declares under ``veil__budgets``, read and checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from dbt_veil import accounting
from dbt_veil.noise import DELTA_STEP, EPSILON_STEP, amount

PERIODS = {
    "daily": "%Y-%m-%d",
    "weekly": "%G-W%V",
    "monthly": "%Y-%m",
    "quarterly": "%Y-Q",
    "yearly": "%Y",
}
BLOCKS = {"day": "%Y-%m-%d", "month": "%Y-%m", "year": "%Y"}
BUDGET_KEYS = (
    "source",
    "unit",
    "relation",
    "epsilon",
    "delta",
    "accounting",
    "refresh",
    "per_refresh",
    "consumers",
    "blocks",
    "lifetime",
    "on_failure",
)


@dataclass(frozen=True)
class Limit:
    """An amount of privacy loss."""

    epsilon: Decimal
    delta: Decimal


@dataclass(frozen=True)
class Budget:
    """One entry of ``veil__budgets``, read and checked.

    Attributes:
        name: its key.
        sources: names of the nodes or ``source.table`` that it guards.
        unit: the column that is one person.
        limit: the lifetime total, or the total of each block where ``blocks`` is set.
        accounting: the method that decides.
        refresh: the default rule of the releases that draw on it.
        per_refresh: limit within one period of ``refresh``, beside the lifetime total.
        consumers: sub-limits by name.
        blocks: ``day``, ``month`` or ``year`` where data arrives in blocks that have a budget each.
        lifetime: limit over all blocks; absent only where a data test proves that no unit is in two of them.
        on_failure: ``charge`` or ``refund``: what :func:`recover` does with a release that was never settled.
    """

    name: str
    sources: tuple[str, ...]
    unit: str
    limit: Limit
    accounting: str = "sum"
    refresh: str = "once"
    per_refresh: Limit | None = None
    consumers: tuple[tuple[str, Limit], ...] = ()
    blocks: str | None = None
    lifetime: Limit | None = None
    on_failure: str = "charge"

    def terms(self) -> dict[str, Any]:
        """What a ``limit`` row records: everything that decides whether a request is granted."""
        return {
            "epsilon": plain(self.limit.epsilon),
            "delta": plain(self.limit.delta),
            "unit": self.unit,
            "accounting": self.accounting,
            "refresh": self.refresh if self.per_refresh else None,
            "per_refresh": _pair(self.per_refresh) if self.per_refresh else None,
            "consumers": {name: _pair(limit) for name, limit in self.consumers} or None,
            "blocks": self.blocks,
            "lifetime": _pair(self.lifetime) if self.lifetime else None,
            "on_failure": self.on_failure,
        }


def plain(number: Decimal) -> str:
    """A decimal without trailing zeros and without an exponent, unless it is very small.

    >>> plain(Decimal("0.500000000000")), plain(Decimal("0.000001000")), plain(Decimal(3))
    ('0.5', '1E-6', '3')
    """
    short = number.normalize()
    return f"{short:f}" if short == 0 or short.adjusted() >= -5 else f"{short:E}"


def _pair(limit: Limit) -> list[str]:
    return [plain(limit.epsilon), plain(limit.delta)]


def read_budget(name: str, spec: object) -> tuple[Budget | None, list[str]]:
    """Read one entry of ``veil__budgets``; ``None`` with everything that is wrong with it."""
    where = f"veil__budgets.{name}"
    if not isinstance(spec, Mapping):
        return None, [f"`{where}` must be a mapping with source, unit and epsilon. Got: {spec!r}"]
    problems = [
        f"`{where}` has no key {key!r}; it has {', '.join(BUDGET_KEYS)}" for key in spec if key not in BUDGET_KEYS
    ]

    def chosen(key: str, choices: Iterable[str], default: str | None) -> str | None:
        value = spec.get(key, default)
        if value is not None and value not in choices:
            problems.append(f"`{where}.{key}` must be one of {', '.join(choices)}. Got: {value!r}")
        return value if isinstance(value, str) else default

    def limit(entry: Mapping[str, Any], key: str, default: Decimal) -> Limit:
        epsilon = amount(entry.get("epsilon"), EPSILON_STEP)
        delta = default if entry.get("delta") is None else amount(entry["delta"], DELTA_STEP)
        if epsilon is None or epsilon <= 0:
            problems.append(f"`{key}.epsilon` must be a number above 0. Got: {entry.get('epsilon')!r}")
        if delta is None or not 0 <= delta < 1:
            problems.append(f"`{key}.delta` must be a number from 0 to below 1. Got: {entry.get('delta')!r}")
        return Limit(epsilon or Decimal(1), delta or Decimal(0))

    source = spec.get("source")
    sources = [source] if isinstance(source, str) else source
    if not isinstance(sources, list) or not sources or not all(isinstance(one, str) and one for one in sources):
        problems.append(f"`{where}.source` must be a name, or a list of names, of models or sources. Got: {source!r}")
        sources = []
    unit = spec.get("unit")
    if not isinstance(unit, str) or not unit:
        problems.append(f"`{where}.unit` must be the column that tells people apart. Got: {unit!r}")
    chosen("relation", ["add_remove"], "add_remove")
    total = limit(spec, where, Decimal(0))
    refresh = chosen("refresh", ["once", *PERIODS], "once")
    parts: dict[str, Limit] = {}
    for key, needs, present in (
        ("per_refresh", f"`refresh`: {', '.join(PERIODS)}", refresh != "once"),
        (
            "lifetime",
            f"`blocks`: {', '.join(BLOCKS)}; without blocks `epsilon` is the lifetime total",
            "blocks" in spec,
        ),
    ):
        if spec.get(key) is not None and not isinstance(spec[key], Mapping):
            problems.append(f"`{where}.{key}` must be a mapping with epsilon. Got: {spec[key]!r}")
        elif spec.get(key) is not None and not present:
            problems.append(f"`{where}.{key}` needs {needs}")
        elif spec.get(key) is not None:
            parts[key] = limit(spec[key], f"{where}.{key}", total.delta)
    entries = spec.get("consumers") or {}
    consumers: list[tuple[str, Limit]] = []
    if not isinstance(entries, Mapping) or not all(isinstance(entry, Mapping) for entry in entries.values()):
        problems.append(f"`{where}.consumers` must map names to {{epsilon, delta}}. Got: {entries!r}")
    else:
        consumers = [
            (str(key), limit(entry, f"{where}.consumers.{key}", total.delta)) for key, entry in sorted(entries.items())
        ]
    method = chosen("accounting", accounting.METHODS, "sum") or "sum"
    if method == "pld" and not accounting.has_pld():
        problems.append(f"`{where}.accounting` is pld, which needs `pip install 'dbt-veil[pld]'`")
    if method != "sum" and total.delta == 0:
        problems.append(
            f"`{where}.delta` must be above 0 for {method} accounting: at delta 0 only the plain sum is finite"
        )
    blocks = chosen("blocks", BLOCKS, None)
    on_failure = chosen("on_failure", ["charge", "refund"], "charge") or "charge"
    if problems:
        return None, problems
    return (
        Budget(
            name,
            tuple(sources),
            str(unit),
            total,
            method,
            refresh or "once",
            parts.get("per_refresh"),
            tuple(consumers),
            blocks,
            parts.get("lifetime"),
            on_failure,
        ),
        [],
    )


def read_budgets(specs: object) -> tuple[dict[str, Budget], list[str]]:
    """Read ``veil__budgets`` whole."""
    if not isinstance(specs, Mapping):
        return {}, [f"`veil__budgets` must map names to budgets. Got: {specs!r}"]
    budgets: dict[str, Budget] = {}
    problems: list[str] = []
    for name, spec in specs.items():
        budget, found = read_budget(str(name), spec)
        problems += found
        if budget is not None:
            budgets[budget.name] = budget
    return budgets, problems
