"""Pseudonyms side by side with what else could be done, and the throughput of the other keyed masks.

    python benchmarks/identifiers.py            # two million rows
    python benchmarks/identifiers.py --rows 200000
    python benchmarks/identifiers.py dictionary # how fast an unkeyed hash is reversed

Every figure is the best of three runs in this process, on one table in memory, written to a new table: seconds of the
clock, and of the processor, which other work on the machine disturbs less.
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "udfs"))

import duckdb
from dbt_veil import fpe, pseudonym, tokens
from dbt_veil.attack import recovered
from dbt_veil.keys import new_keyring, write_keyring
from dbt_veil.pseudonym import Options, Signer
from dbt_veil.udf import Session

REPEATS = 3


def connect(folder: Path) -> tuple[duckdb.DuckDBPyConnection, bytes]:
    keyring = new_keyring()
    write_keyring(folder / "ring.json", keyring, replace_existing=False)
    tokens.new_vault(folder / "vault.sqlite")
    connection = duckdb.connect()
    config = {"keyring_file": str(folder / "ring.json"), "vault_file": str(folder / "vault.sqlite")}
    for family in (pseudonym.udfs, fpe.udfs, tokens.udfs):
        for udf in family(Session(config=config, connection=connection)):
            udf.register(connection)
    key = keyring.current.subkey("pseudonym", "patients")

    def per_row(value: str) -> str:
        return hmac.new(key, b"%d:%b," % (len(value), value.encode()), "sha256").hexdigest()[:32]

    connection.create_function("per_row", per_row, ["VARCHAR"], "VARCHAR")
    return connection, key


def seconds(
    connection: duckdb.DuckDBPyConnection, expression: str, table: str = "people", repeats: int = REPEATS
) -> tuple[float, float]:
    """Seconds of the clock and of the processor, the least of the repeats."""
    clock, processor = [], []
    for _ in range(repeats):
        began, spent = time.perf_counter(), time.process_time()
        connection.execute(f"create or replace table result as select {expression} as value from {table}")
        clock.append(time.perf_counter() - began)
        processor.append(time.process_time() - spent)
    return min(clock), min(processor)


def composed(key: bytes) -> str:
    """HMAC-SHA256 in SQL: a key that every reader of the compiled SQL would have."""
    block = key.ljust(64, b"\0")
    inner, outer = ("".join(f"\\x{b ^ pad:02X}" for b in block) for pad in (0x36, 0x5C))
    message = "encode(octet_length(encode(email)) || ':' || email || ',')"
    return f"left(sha256('{outer}'::blob || unhex(sha256('{inner}'::blob || {message}))), 32)"


def compare(rows: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        connection, key = connect(Path(folder))
        distinct = rows // 4
        connection.execute(
            f"""
            create table people as
            select
                'first.last' || (i * 7919 % {distinct}) || '@mail.example.com' as email,
                lpad((4000000000000000 + i * 7919 % {distinct})::varchar, 16, '0') as card,
                (i * 7919 % {distinct})::varchar as person,
                date '2024-01-01' + (i % 300)::integer as visit
            from range({rows}) as numbers (i)
            order by hash(i)
            """
        )
        print(f"{rows:,} rows, {distinct:,} distinct values; load {os.getloadavg()[0]:.1f}; best of {REPEATS}")
        options = """'patients', '{"output": "hex"}'"""
        ours = f"(select veil_pseudonym(email, {options}))"

        differ = f"{ours} <> {composed(key)} or {ours} <> per_row(email)"
        count = connection.execute(f"select count(*) from (select * from people limit 1000) where {differ}").fetchall()
        assert count == [(0,)], "the three ways must give one pseudonym"
        plan = {
            "veil.pseudonym": ours,
            "the same UDF on every row": f"veil_pseudonym(email, {options})",
            "per-row Python UDF": "per_row(email)",
            "unkeyed native sha256": "sha256(email)",
            "HMAC composed in SQL": composed(key),
        }
        took = {name: seconds(connection, expression) for name, expression in plan.items()}
        clock, processor = took["veil.pseudonym"]
        print(f"  {'':26} {'clock':>9} {'processor':>11}   times veil.pseudonym: clock, processor")
        for name, (one, two) in took.items():
            print(f"  {name:26} {one:7.2f} s {two:9.2f} s   {one / clock:6.2f} {two / processor:6.2f}")
        few = rows // 10
        connection.execute(f"create table few_people as select * from people limit {few}")
        distinct = connection.execute("select count(distinct email) from few_people").fetchall()[0][0]
        print(f"others, on {few:,} rows with {distinct:,} distinct values, once each:")
        rest = {
            "veil.shift_date": "visit + to_days((select veil_shift_days(person, 'patients', '365')))",
            "veil.fpe, 16 digits": """(select veil_fpe(card, 'cards', '{"alphabet": "digits"}'))""",
            "veil.token, all new": "(select veil_token(email, 'patients'))",
            "veil.token, all known": "(select veil_token(email, 'patients'))",
        }
        for name, expression in rest.items():
            one, two = seconds(connection, expression, "few_people", 1)
            speeds = f"{few / one / 1e3:6.0f} {few / two / 1e3:6.0f} thousand rows a second"
            print(f"  {name:26} {one:7.2f} s {two:9.2f} s   {speeds}")


def dictionary() -> None:
    """How long the whole range takes to hash natively, which is how long it takes to reverse any value of it."""
    connection = duckdb.connect()
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
    ranges = {
        "four-digit PIN": (10**4, "lpad(i::varchar, 4, '0')"),
        "ten million phone numbers of one prefix": (10**7, "'+4915' || lpad(i::varchar, 9, '0')"),
        "nine-digit number, a fiftieth of them": (2 * 10**7, "lpad(i::varchar, 9, '0')"),
    }
    for name, (count, form) in ranges.items():
        target = hashlib.sha256(
            connection.execute(f"select {form} from (select {count - 1} as i)").fetchall()[0][0].encode()
        )
        began = time.perf_counter()
        found = connection.execute(
            f"select {form} from range({count}) as numbers (i) where sha256({form}) = '{target.hexdigest()}'"
        ).fetchall()
        took = time.perf_counter() - began
        print(f"  {name:40} {count:>12,} hashes {took:8.2f} s  {count / took / 1e6:6.1f} M/s  found: {len(found)}")
    pins = [f"{number:04d}" for number in range(10**4)]
    ours, another = (Signer(new_keyring().current, "accounts", Options()) for _ in range(2))
    released = [str(value) for value in ours.many(pins)]
    wrong_key = set(another.many(pins)) & set(released)
    unkeyed = recovered(pins, released, [])
    print(f"  pseudonyms of all {len(pins):,} PINs, recovered by who knows every PIN:")
    print(f"    without a key {sum(unkeyed.values())}, with another key {len(wrong_key)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=["compare", "dictionary"], default="compare")
    parser.add_argument("--rows", type=int, default=2_000_000)
    given = parser.parse_args()
    dictionary() if given.what == "dictionary" else compare(given.rows)
