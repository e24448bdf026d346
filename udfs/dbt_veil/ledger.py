"""The ledger: an append-only table of what every release has cost.

A row is one executed mechanism, or one decision about a release or a limit. Rows are chained by SHA-256 and the head of
the chain is exported, so that an edited, deleted or lost row is seen. Only :mod:`dbt_veil.door` writes to it.
"""

from __future__ import annotations

import datetime
import getpass
import hashlib
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from dbt_veil import noise
from dbt_veil.accounting import Cost
from dbt_veil.udf import Session

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
            "actor": actor(),
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


def actor() -> str:
    """The operating system's user, as rows record who acted."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
