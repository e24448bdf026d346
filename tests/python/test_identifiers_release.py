"""Masks of a policy in a release: every kind of mask, what is recorded of them, and hostile column names."""

from __future__ import annotations

import datetime
import json

import pytest
from dbt_veil.keys import new_keyring, write_keyring
from dbt_veil.tokens import new_vault
from harness import Project, Result, columns

ROLES = {
    "person": {"role": "unit", "mask": {"kind": "pseudonym", "domain": "people", "version_prefix": True}},
    "user": {"role": "identifier", "mask": {"kind": "pseudonym", "domain": "people", "normalize": ["lower", "trim"]}},
    'card "no" x': {"role": "identifier", "mask": {"kind": "fpe", "domain": "cards", "check": "luhn"}},
    "order": {"role": "identifier", "mask": {"kind": "token", "domain": "orders"}},
    "phone": {"role": "identifier", "mask": {"kind": "partial", "last": "2"}},
    "email": {"role": "identifier", "mask": {"kind": "email", "rare_below": 5}},
    "seen": {"role": "identifier", "mask": {"kind": "shift", "unit": "person", "domain": "people", "days": 30}},
    "born": {"role": "identifier", "mask": {"kind": "year_of_birth", "as_of": datetime.date(2024, 12, 31)}},
    "name": {"role": "identifier", "mask": {"kind": "fake", "what": "name", "domain": "staging"}},
    "dropped": "identifier",
    "note": {"role": "free_text", "mask": "scrub"},
    "age": "quasi_identifier",
    "cost": "other",
}


@pytest.fixture(scope="module")
def built(shared_project: Project) -> tuple[Project, Result]:
    project = shared_project
    write_keyring(project.folder / "ring.json", new_keyring().rotated(), replace_existing=False)
    new_vault(project.folder / "vault.sqlite")
    project.profile(config={"keyring_file": "ring.json", "vault_file": "vault.sqlite"})
    project.model(
        "people",
        """
        select
            i as person, ' User' || i || ' ' as "user", '4111 1111 1111 1111' as "card ""no"" x", i * 10 as "order",
            '+47 555 01 ' || lpad(i::varchar, 2, '0') as phone, 'u' || i || '@example.com' as email,
            date '2024-03-01' as seen, date '1920-01-01' + i::integer as born, 'Ann' as name, 'secret' as dropped,
            'mail u' || i || '@example.com' as note, 30 as age, i as cost
        from range(12) as numbers (i)
        """,
        config={"materialized": "table"},
    )
    project.model("shuffled", "{{ veil.shuffle(ref('people'), columns=['cost']) }}", config={"materialized": "table"})
    project.properties("models", "shuffled", columns=columns(ROLES), config={"materialized": "table"})
    project.model(
        "released",
        "{{ veil.anonymize(ref('shuffled')) }}",
        config={"materialized": "release", "meta": {"veil": {"k": 5, "levels": {"age": 0}}}},
    )
    project.model("bad", "select 1 as person", columns=columns({"person": {"role": "unit", "mask": "pseudonym"}}))
    project.model(
        "bad_release",
        "{{ veil.anonymize(ref('bad')) }}",
        config={"materialized": "release", "meta": {"veil": {"k": 5, "levels": {}}}},
    )
    return project, project.dbt("build")


def test_every_mask_releases_what_it_says(built: tuple[Project, Result]) -> None:
    project, result = built
    assert result.status("released") == "success", result.message("released")
    names = [name for (name,) in project.query("select column_name from (describe main.released)")]
    assert names == [name for name in ROLES if name != "dropped"]
    rows = [dict(zip(names, row, strict=True)) for row in project.query("select * from main.released")]
    assert len(rows) == 12
    assert all(row["person"].startswith("v2_") and len(row["user"]) == 32 for row in rows)
    assert len({row['card "no" x'] for row in rows}) == 1
    assert len({row["order"] for row in rows}) == 12
    assert all(row["phone"].startswith("***") and row["email"] == "***@example.com" for row in rows)
    assert len({row["seen"] for row in rows}) > 3
    assert {row["born"] for row in rows} == {1934}
    assert {row["note"] for row in rows} == {"mail [email]"}
    assert sorted(row["cost"] for row in rows) == list(range(12))


def test_the_record_says_how_it_was_masked_and_what_guarantees_nothing(built: tuple[Project, Result]) -> None:
    project, _ = built
    masking = json.loads(project.scalar("select masking from veil.releases where model = 'model.consumer.released'"))
    assert masking["key_version"] == 2
    assert masking["no_formal_guarantee"] == ["shuffle"]
    assert masking["masks"]["user"]["normalize"] == ["lower", "trim"]
    assert set(masking["masks"]) == {name for name, role in ROLES.items() if "mask" in role and isinstance(role, dict)}


def test_a_bare_pseudonym_is_refused_with_what_is_missing(built: tuple[Project, Result]) -> None:
    _, result = built
    assert (
        "mask `pseudonym` of column `person`: `domain` is missing: the name of the realm in which pseudonyms join, "
        "such as `domain: patients`" in result.message("bad_release")
    )
