"""Build the demo clinic, show a release that is refused, and say what analysts can now read."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import duckdb
from dbt.cli.main import dbtRunner
from dbt_veil.keys import new_keyring, write_keyring

ROOT = Path(__file__).resolve().parents[1]
KEYRING = Path("warehouse/veil_keyring.json")
PUBLISHED = (Path("published/internal.duckdb"), Path("published/public.duckdb"))
REFUSED = "veil_demo__patients_by_address"


def main() -> int:
    """0 if the demo was built and the gate refused what it must."""
    os.chdir(ROOT)
    make_key()
    print("\n== dbt build\n")
    if not dbtRunner().invoke(["build", "--profiles-dir", "."]).success:
        return 1
    print(f"\n== A release that says too much: dbt build --select {REFUSED} --vars 'veil_demo__refused: true'\n")
    message = refusal()
    if message is None:
        print("It was released. That must not happen: please report it.")
        return 1
    print(message)
    print("\n== What analysts can read\n")
    summarise()
    return 0


def make_key() -> None:
    """Make the demo's key where there is none. Nobody loses a pseudonym by it: there were none."""
    if KEYRING.exists():
        print(f"Using the key in {KEYRING}")
        return
    write_keyring(KEYRING, new_keyring(), replace_existing=False)
    print(f"Made a new secret key for pseudonyms in {KEYRING} (mode 0600, ignored by git)")


def refusal() -> str | None:
    """What the gate says of the release with too much detail, or ``None`` if it let it through."""
    arguments = ["build", "--profiles-dir", ".", "--quiet", "--select", REFUSED, "--vars", "veil_demo__refused: true"]
    outcome = dbtRunner().invoke([*arguments, "--log-level-file", "none", "--log-level", "none"])
    results = getattr(outcome.result, "results", [])
    messages = [str(r.message) for r in results if r.node.name == REFUSED and r.status == "error"]
    return messages[0].split("\n  \n  >")[0] if messages else None


def summarise() -> None:
    """The published tables and their records, read as an analyst reads them: no dbt, no warehouse, no key."""
    records = """
        select replace(relation, '"', '') as relation, people_out, classes, k_measured, suppressed_share, budget
        from veil.releases order by relation
    """
    for file in PUBLISHED:
        with duckdb.connect(str(file), read_only=True) as analyst:
            for relation, people, classes, k, share, budget in analyst.execute(records).fetchall():
                table = relation.split(".", maxsplit=1)[-1]
                kept = (
                    f"{people} people in {classes} classes, smallest {k}, {share:.2%} left out"
                    if k
                    else f"paid from `{budget}`"
                )
                print(f"{file}: {table}, {kept}")
                print(analyst.sql(f"select * from {table} limit 6"))
    print("""Each file has the record of its tables in veil.releases. Ask it anything, with no dbt and no key:

    .venv/bin/python -c "import duckdb; print(duckdb.connect('published/internal.duckdb', read_only=True).sql(
        'select age, count(*) as people from veil_demo__patients_by_age group by age order by age limit 5'))"

The warehouse behind them stays with dbt. Compiled SQL to audit: target/compiled/veil/models/demo
""")


if __name__ == "__main__":
    sys.exit(main())
