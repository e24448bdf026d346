"""The ledger: an append-only table of what every release has cost, and the one door through which it grows.

A row is one executed mechanism, or one decision about a release or a limit. Rows are chained by SHA-256 and the head of
the chain is exported, so that an edited, deleted or lost row is seen. All writes happen under one lock of this process,
on a cursor of their own, and are committed before the door answers; DuckDB lets one process at a time write to a file.

Every function that SQL calls takes and gives JSON (see :func:`udfs`). A refusal is an answer, ``{"problems": […]}``,
and not an exception, so that the macro can word it for its model. Nothing here reads the data.
"""

from __future__ import annotations

import datetime
import getpass
import hashlib
import json
import math
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb

from dbt_veil import accounting, noise
from dbt_veil.accounting import Cost
from dbt_veil.noise import DELTA_STEP, EPSILON_STEP, Mechanism, Reservation, amount
from dbt_veil.udf import Session, Udf

LOCK = threading.RLock()
COLUMNS = {
    "seq": "bigint",
    "recorded_at": "timestamp",
    "event": "varchar",
    "release_id": "varchar",
    "budget": "varchar",
    "model": "varchar",
    "consumer": "varchar",
    "block": "varchar",
    "query": "varchar",
    "mechanism": "varchar",
    "epsilon": "decimal(38, 12)",
    "delta": "decimal(38, 30)",
    "parameters": "varchar",
    "policy_hash": "varchar",
    "invocation_id": "varchar",
    "actor": "varchar",
    "reason": "varchar",
    "seeded": "boolean",
    "previous_hash": "varchar",
}
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


# Budgets


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
            "epsilon": _plain(self.limit.epsilon),
            "delta": _plain(self.limit.delta),
            "unit": self.unit,
            "accounting": self.accounting,
            "refresh": self.refresh if self.per_refresh else None,
            "per_refresh": _pair(self.per_refresh) if self.per_refresh else None,
            "consumers": {name: _pair(limit) for name, limit in self.consumers} or None,
            "blocks": self.blocks,
            "lifetime": _pair(self.lifetime) if self.lifetime else None,
            "on_failure": self.on_failure,
        }


def _plain(number: Decimal) -> str:
    """A decimal without trailing zeros and without an exponent, unless it is very small.

    >>> _plain(Decimal("0.500000000000")), _plain(Decimal("0.000001000")), _plain(Decimal(3))
    ('0.5', '1E-6', '3')
    """
    short = number.normalize()
    return f"{short:f}" if short == 0 or short.adjusted() >= -5 else f"{short:E}"


def _pair(limit: Limit) -> list[str]:
    return [_plain(limit.epsilon), _plain(limit.delta)]


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


# The table


@dataclass(frozen=True)
class Place:
    """Where a ledger is, and where the head of its chain is exported to."""

    database: str
    schema: str
    head: str | None

    @property
    def table(self) -> str:
        """The quoted name of the ledger."""
        return ".".join('"' + part.replace('"', '""') + '"' for part in (self.database, self.schema, "ledger"))

    @property
    def releases(self) -> str:
        """The quoted name of the record of releases beside it."""
        return ".".join('"' + part.replace('"', '""') + '"' for part in (self.database, self.schema, "releases"))


def _text(column: str) -> str:
    value = (
        f"strftime({column}, '%Y-%m-%d %H:%M:%S.%f')"
        if COLUMNS[column] == "timestamp"
        else f"cast({column} as varchar)"
    )
    return f"coalesce(length({value}) || ':' || {value}, '-')"


def row_text_sql() -> str:
    """A row as the text that is hashed: every column but the link, each with its length before it, NULL as a dash."""
    return " || ".join(_text(column) for column in COLUMNS if column != "previous_hash")


def row_hash_sql() -> str:
    """The hash of a row: SHA-256 over its text and the hash of the row before it."""
    return f"sha256({row_text_sql()} || {_text('previous_hash')})"


class Ledger:
    """One ledger as one caller of the door sees it, with the lock held.

    Args:
        session: of the database; the ledger is written on a cursor of its own.
        place: where the ledger is.
    """

    def __init__(self, session: Session, place: Place) -> None:
        self.session = session
        self.place = place
        self.cursor = session.connection.cursor()

    def exists(self) -> bool:
        """Whether the table is there."""
        return self._has("ledger")

    def _has(self, table: str) -> bool:
        query = "select 1 from duckdb_tables() where database_name = ? and schema_name = ? and table_name = ?"
        return self.cursor.execute(query, [self.place.database, self.place.schema, table]).fetchone() is not None

    def create(self) -> None:
        """Create the table where it is missing. Never more: no refresh and no rebuild replaces it."""
        if self.exists():
            return
        columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
        schema = self.place.table.rsplit(".", 1)[0]
        self.cursor.execute(f"create schema if not exists {schema}")
        self.cursor.execute(f"create table if not exists {self.place.table} ({columns}, row_hash varchar)")

    def head(self) -> tuple[int, str]:
        """Number and hash of the last row; 0 and an empty text before the first."""
        query = f"select seq, row_hash from {self.place.table} order by seq desc limit 1"
        found = self.cursor.execute(query).fetchone() if self.exists() else None
        return (int(found[0]), str(found[1])) if found else (0, "")

    def now(self) -> datetime.datetime:
        """The time in UTC, never before the last row: a clock that was moved back opens no period again."""
        clock = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
        query = f"select max(recorded_at) from {self.place.table}"
        (last,) = (self.cursor.execute(query).fetchone() if self.exists() else None) or (None,)
        return max(clock, last) if last else clock

    def append(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append and commit rows, all or none, then export the head."""
        seq, previous = self.head()
        common = {
            "recorded_at": str(self.now()),
            "actor": _actor(),
            "seeded": noise.sampler(self.session.config).seeded,
        }
        full = [common | dict(row) | {"seq": seq + i, "previous_hash": ""} for i, row in enumerate(rows, 1)]
        for row in full:
            row.update({name: str(value) for name, value in row.items() if isinstance(value, Decimal)})
        given = json.dumps(dict.fromkeys(COLUMNS, "VARCHAR"))
        casts = ", ".join(f"cast(given.{name} as {kind}) as {name}" for name, kind in COLUMNS.items())
        self.cursor.execute("begin")
        try:
            self.cursor.execute(
                f"create temp table appended as select {casts} "
                f"from (select unnest(from_json(?, '[{given}]'))) as rows(given)",
                [json.dumps([{name: row.get(name) for name in COLUMNS} for row in full])],
            )
            texts = self.cursor.execute(f"select seq, {row_text_sql()} from appended order by seq").fetchall()
            hashes: list[tuple[int, str, str]] = []
            for number, text in texts:
                value = hashlib.sha256(f"{text}{len(previous)}:{previous}".encode()).hexdigest()
                hashes.append((number, previous, value))
                previous = value
            self.cursor.execute(
                f"""
                insert into {self.place.table}
                select appended.* replace (links[appended.seq - ?][1] as previous_hash), links[appended.seq - ?][2]
                from appended, (select cast(? as varchar[][]) as links)
                order by appended.seq
                """,
                [seq, seq, [[before, value] for _, before, value in hashes]],
            )
            self.cursor.execute("drop table appended")
            self.cursor.execute("commit")
        except BaseException:
            self.cursor.execute("rollback")
            raise
        self.session.verified[self.place.table] = (seq + len(rows), previous)
        self.export()

    # Integrity

    def problems(self) -> list[str]:
        """What is wrong with the chain and with its exported head; empty for a ledger that is whole.

        The chain is verified whole once for each connection and from the last verified row on afterwards.
        """
        known, known_hash = self.session.verified.get(self.place.table, (0, ""))
        found: list[str] = []
        if self.exists() and not (known and self._unchanged(known, known_hash)):
            found = self._chain_problems(known, known_hash)
        seq, _ = self.head()
        exported = self.exported()
        if exported is not None and exported["seq"] > 0:
            query = f"select row_hash from {self.place.table} where seq = ?"
            row = self.cursor.execute(query, [exported["seq"]]).fetchone() if self.exists() else None
            if row is None:
                found.append(
                    f"the ledger has {seq} rows, and its exported head says {exported['seq']}: rows are missing"
                )
            elif row[0] != exported["hash"]:
                found.append(f"row {exported['seq']} of the ledger is not the one whose hash was exported")
        if not found and self._has("releases"):
            found += self._unsettled_releases()
        if not found:
            self.session.verified[self.place.table] = self.head()
        return found

    def _unchanged(self, known: int, known_hash: str) -> bool:
        query = f"select count(*), max(seq), min(row_hash) filter (where seq = ?) from {self.place.table}"
        return self.cursor.execute(query, [known]).fetchone() == (known, known, known_hash)

    def _chain_problems(self, known: int, known_hash: str) -> list[str]:
        query = f"""
            with chain as (
                select
                    seq,
                    row_hash = {row_hash_sql()} as own,
                    previous_hash = coalesce(lag(row_hash) over (order by seq), '') as linked,
                    seq = row_number() over (order by seq) + ? - 1 as counted,
                    seq = ? and row_hash = ? as anchored
                from {self.place.table}
                where seq >= ?
            )
            select
                min(seq) filter (where not coalesce(own, false)),
                min(seq) filter (where not coalesce(linked, false) and (seq > ? or ? = 1)),
                min(seq) filter (where not coalesce(counted, false)),
                count(*) filter (where anchored),
                (select count(*) from {self.place.table} where seq < ?)
            from chain
        """
        first = max(known, 1)
        answer = self.cursor.execute(query, [first, known, known_hash, first, first, first, first]).fetchone()
        edited, unlinked, gap, anchored, before = answer or (None,) * 5
        found = []
        if edited is not None:
            found.append(f"row {edited} of the ledger was edited: its hash is not that of its columns")
        if gap is not None or (known and before != known - 1):
            found.append(f"rows of the ledger are missing or doubled near row {gap or known}")
        elif unlinked is not None:
            found.append(f"row {unlinked} of the ledger does not follow the row before it")
        if known and not anchored and not found:
            found.append(f"row {known} of the ledger is not the one that was verified before")
        return found

    def _unsettled_releases(self) -> list[str]:
        """A release is settled before it is published: one that is not says that rows of the ledger are gone."""
        query = "select 1 from duckdb_columns() where database_name = ? and schema_name = ? and table_name = 'releases'"
        has = self.cursor.execute(query + " and column_name = 'budget'", [self.place.database, self.place.schema])
        if has.fetchone() is None:
            return []
        settled = (
            f"select release_id from {self.place.table} where event = 'settle'" if self.exists() else "select null"
        )
        query = f"""
            select count(*) from {self.place.releases} as releases
            where releases.budget is not null and not exists (
                select 1 from ({settled}) as settled(release_id) where settled.release_id = releases.release_id
            ) and releases.released_at > {self._last_reset()}
        """
        (count,) = self.cursor.execute(query).fetchone() or (0,)
        return [f"veil.releases has {count} releases of which the ledger knows no settlement"] if count else []

    def _last_reset(self) -> str:
        if not self.exists():
            return "timestamp '1970-01-01'"
        return f"coalesce((select max(recorded_at) from {self.place.table} where event = 'reset'), '1970-01-01')"

    # The exported head

    def exported(self) -> dict[str, Any] | None:
        """The head that was exported for this database, or ``None``."""
        if self.place.head is None or not Path(self.place.head).is_file():
            return None
        try:
            content = json.loads(Path(self.place.head).read_text(encoding="utf-8"))
            entry = content.get(self._name())
            return (
                {"seq": int(entry["seq"]), "hash": str(entry["hash"]), "spent": dict(entry["spent"])} if entry else None
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            return {"seq": 2**62, "hash": "the exported head cannot be read", "spent": {}}

    def _name(self) -> str | None:
        query = "select path from duckdb_databases() where database_name = ?"
        found = self.cursor.execute(query, [self.place.database]).fetchone()
        return os.path.relpath(found[0]) if found and found[0] else None

    def export(self) -> str | None:
        """Write the head beside the heads of other databases, by a rename. In-memory databases have none."""
        name = self._name()
        if self.place.head is None or name is None:
            return None
        path = Path(self.place.head)
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            content = {}
        seq, value = self.head()
        query = f"""
            select budget, sum(epsilon), sum(delta) from {self.place.table}
            where event in ('reserve', 'refund', 'reset') and budget is not null group by budget order by budget
        """
        spent = {budget: [str(e), str(d)] for budget, e, d in self.cursor.execute(query).fetchall()}
        content[name] = {"seq": seq, "hash": value, "spent": spent}
        draft = path.with_suffix(f".{os.getpid()}.tmp")
        draft.write_text(json.dumps(content, indent=2), encoding="utf-8")
        draft.replace(path)
        return str(path)

    # Reading

    def terms(self, budget: str) -> dict[str, Any] | None:
        """The terms of the budget's last ``limit`` row, or ``None``."""
        query = f"""
            select parameters from {self.place.table} where event = 'limit' and budget = ? order by seq desc limit 1
        """
        found = self.cursor.execute(query, [budget]).fetchone() if self.exists() else None
        return dict(json.loads(found[0])) if found else None

    def spent(self, budget: str, where: str = "true", values: Sequence[Any] = ()) -> Counter[Cost]:
        """Mechanisms charged to a budget: reserved, not refunded, and what a reset carried over."""
        if not self.exists():
            return Counter()
        query = f"""
            select mechanism, epsilon, delta, parameters, count(*)
            from {self.place.table} as spends
            where event in ('reserve', 'reset') and budget = ? and mechanism is not null and {where}
                and not exists (
                    select 1 from {self.place.table} as refunds
                    where refunds.event = 'refund' and refunds.release_id = spends.release_id
                        and refunds.budget = spends.budget
                )
            group by all
        """
        found: Counter[Cost] = Counter()
        for kind, epsilon, delta, parameters, times in self.cursor.execute(query, [budget, *values]).fetchall():
            detail = json.loads(parameters or "{}")
            cost = Cost(
                kind,
                epsilon,
                delta,
                float(detail.get("scale") or 0),
                detail.get("l0"),
                detail.get("linf"),
                detail.get("sensitivity"),
            )
            found[cost] += times
        return found

    def spenders(self, budget: str) -> list[tuple[str, Decimal, str]]:
        """Who spent how much, and when last, the largest first."""
        query = f"""
            select coalesce(model, 'carried over by a reset'), sum(epsilon) as spent, max(recorded_at)
            from {self.place.table}
            where event in ('reserve', 'refund', 'reset') and budget = ?
            group by all having sum(epsilon) > 0 or sum(delta) > 0 order by spent desc, 1
        """
        found = self.cursor.execute(query, [budget]).fetchall() if self.exists() else []
        return [(model.split(".")[-1], epsilon, f"{when:%Y-%m-%d %H:%M}") for model, epsilon, when in found]

    def events(self, release_id: str) -> set[str]:
        """The events that a release has."""
        query = f"select distinct event from {self.place.table} where release_id = ?"
        return {event for (event,) in self.cursor.execute(query, [release_id]).fetchall()} if self.exists() else set()

    def open_releases(self) -> list[dict[str, Any]]:
        """Releases that were reserved and neither settled, refunded nor resolved, and that no thread here is making."""
        if not self.exists():
            return []
        query = f"""
            select release_id, budget, max(model), sum(epsilon), sum(delta), min(recorded_at)
            from {self.place.table} as spends
            where event = 'reserve' and not exists (
                select 1 from {self.place.table} as ends
                where ends.release_id = spends.release_id and ends.event in ('settle', 'refund', 'orphan')
            )
            group by all order by min(seq)
        """
        return [
            {"release_id": release, "budget": budget, "model": model, "epsilon": epsilon, "delta": delta, "at": at}
            for release, budget, model, epsilon, delta, at in self.cursor.execute(query).fetchall()
            if release not in self.session.reservations
        ]


def _actor() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


# Whether a request fits


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
        before = replace(total, costs=total.costs + _within(total.scope, ahead))
        after = replace(before, costs=before.costs + request.costs)
        if not after.fits(budget.accounting):
            problems.append(_refusal(ledger, budget, request, before, after))
    return problems


def _within(scope: str, requests: Sequence[Request]) -> Counter[Cost]:
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
        f"    Requested:  epsilon {_plain(asked_epsilon)}, delta {_plain(asked_delta)}",
        f"    Remaining:  epsilon {_plain(max(left, Decimal(0)))}, delta {_plain(max(left_delta, Decimal(0)))} "
        f"of epsilon {_plain(before.limit.epsilon)}, delta {_plain(before.limit.delta)}",
        f"    Difference: epsilon {_plain(max(over, Decimal(0)))}, delta {_plain(max(over_delta, Decimal(0)))}",
    ]
    spenders = ledger.spenders(budget.name)
    lines += [
        f"    Spent:      {_plain(epsilon)} by `{model}`, last {when} UTC" for model, epsilon, when in spenders[:10]
    ]
    if len(spenders) > 10:
        lines.append(f"    Spent:      {_plain(sum((e for _, e, _ in spenders[10:]), Decimal(0)))} by others")
    lower = f"lower `dp.epsilon` to {_plain(left)}; " if left >= EPSILON_STEP and method == "sum" else ""
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


# The door


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
        problems += _not_disjoint(budget, asked)
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
    new = f"epsilon {_plain(budget.limit.epsilon)}, delta {_plain(budget.limit.delta)}"
    return {"problems": [], "lines": [f"limit of budget `{budget.name}`: {old} -> {new}, by {_actor()}: {because}"]}


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
    carried = [f"  {row['budget']}: epsilon {_plain(row['epsilon'])}, delta {_plain(row['delta'])}" for row in rows[1:]]
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
        select policy_hash, recorded_at from {ledger.place.table} where event = 'settle' and release_id = ?
    """
    found = ledger.cursor.execute(query, [asked["release_id"]]).fetchone() if ledger.exists() else None
    if found is None:
        return {"problems": [], "due": True, "why": "its last release was not settled"}
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
                f"  {name}: epsilon {_plain(epsilon)}, delta {_plain(delta)} of `{budget.name}` ({state['why']})"
            )
            earlier = ahead.setdefault(budget.name, [])
            problems += _not_disjoint(budget, item)
            problems += changed_terms(ledger, budget) or check(ledger, budget, request, earlier)
            earlier.append(request)
    for budget_name in sorted({name for item in asked.get("releases") or [] for name in item.get("budgets") or []}):
        if budget_name in budgets:
            lines.append(_balance(ledger, budgets[budget_name], ahead.get(budget_name, [])))
    for item in ledger.open_releases():
        lines.append(
            f"  orphan: `{item['model'].split('.')[-1]}` reserved epsilon {_plain(item['epsilon'])} of "
            f"`{item['budget']}` on {item['at']:%Y-%m-%d %H:%M} UTC and never settled; it is charged. Resolve it: "
            f"dbt run-operation veil.recover --args '{{because: \"…\"}}'"
        )
    return {"problems": problems, "lines": lines if len(lines) > 1 else []}


def _balance(ledger: Ledger, budget: Budget, ahead: Sequence[Request]) -> str:
    limit = budget.lifetime or budget.limit
    total = Total("lifetime", limit, ledger.spent(budget.name))
    spent = total.by(budget.accounting)
    after = replace(total, costs=total.costs + _within("lifetime", ahead)).by(budget.accounting)
    each = budget.blocks is not None and budget.lifetime is None
    left = f" for each {budget.blocks}" if each else f", left after {float(limit.epsilon) - after:.6g}"
    return (
        f"  budget `{budget.name}` ({budget.accounting}): spent so far {spent:.6g}, this run {after - spent:.6g}, "
        f"limit {_plain(limit.epsilon)}{left}"
    )


def status(ledger: Ledger, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Every budget with its totals by every method, one row for each limit that it has.

    Raises:
        ValueError: a budget is not readable or the ledger is not whole; SQL that reads the rows must not pass then.
    """
    budgets, problems = read_budgets(asked.get("declared") or {})
    problems += _integrity(ledger)
    if problems:
        raise ValueError("veil.budget_status(): " + "\n  - ".join(problems))
    rows = []
    orphans = Counter(item["budget"] for item in ledger.open_releases())
    for budget in budgets.values():
        for total in _all_totals(ledger, budget):
            epsilon, delta = accounting.summed(total.costs)
            by = accounting.totals(total.costs, total.limit.delta)
            enforced = total.by(budget.accounting)
            rows.append(
                {
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
                    "orphans": orphans[budget.name],
                    "exceeded": not total.fits(budget.accounting),
                }
            )
    return {"problems": [], "rows": rows}


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


COMMANDS: Mapping[str, Callable[[Ledger, Mapping[str, Any]], dict[str, Any]]] = {
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

    def door(command: Callable[[Ledger, Mapping[str, Any]], dict[str, Any]]) -> Callable[[str, str], str]:
        def call(place: str, arguments: str) -> str:
            with LOCK, session.lock:
                ledger = Ledger(session, Place(**json.loads(place)))
                try:
                    return json.dumps(command(ledger, json.loads(arguments, parse_float=Decimal)), default=str)
                except duckdb.Error as error:
                    # Whatever the engine says of the ledger's own table holds no personal value, but a kind is enough.
                    raise RuntimeError(f"the ledger's door failed: {type(error).__name__}") from None
                finally:
                    ledger.cursor.close()

        return call

    return [
        Udf(name, door(command), ("VARCHAR", "VARCHAR"), "VARCHAR", volatile=True, arrow=False)
        for name, command in COMMANDS.items()
    ]
