"""`make demo` on a checkout of its own: what it says, what it publishes, and what it leaves behind."""

from __future__ import annotations

import base64
import csv
import json
import re
import shutil
import subprocess
import sys
from collections import Counter

import duckdb
import pytest
from harness import ROOT, Folder
from make_patients import HEADER, SEED, identified

DIAGNOSES = {"none": 4133, "diabetes": 547, "asthma": 528, "depression": 462, "cancer": 270, "HIV": 60}


def patients() -> list[dict[str, str]]:
    with SEED.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("dbt_project.yml", "profiles.yml"):
        shutil.copy(ROOT / name, folder / name)
    for name in ("macros", "models", "seeds", "scripts", "tests/demo", "udfs"):
        shutil.copytree(ROOT / name, folder / name)
    (folder / "warehouse").mkdir()
    return Folder(folder, folder / "warehouse" / "veil_demo.duckdb")


@pytest.fixture(scope="module")
def said(checkout: Folder) -> str:
    command = [sys.executable, "-P", str(checkout.folder / "scripts" / "demo.py")]
    result = subprocess.run(command, capture_output=True, text=True, env={"PYTHONPATH": str(checkout.folder / "udfs")})
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def published(checkout: Folder, audience: str, query: str) -> list[tuple[object, ...]]:
    path = checkout.folder / "published" / f"{audience}.duckdb"
    with duckdb.connect(str(path), read_only=True) as analyst:
        return analyst.execute(query).fetchall()


def test_the_identifiers_of_the_seed_are_those_of_the_script() -> None:
    people = patients()
    assert tuple(people[0]) == HEADER
    assert identified(people) == people
    for name in ("patient_id", "email", "phone"):
        assert len({person[name] for person in people}) == 6000
    assert {person["email"].split("@")[1] for person in people} == {"example.org"}
    assert all(person["phone"].split("-")[2:][0] == "555" for person in people)


def test_it_says_what_was_made_refused_and_published(checkout: Folder, said: str) -> None:
    assert "Made a new secret key for pseudonyms in warehouse/veil_keyring.json (mode 0600, ignored by git)" in said
    assert (checkout.folder / "warehouse" / "veil_keyring.json").stat().st_mode & 0o777 == 0o600
    assert "5956 people in 68 classes, smallest 10, 0.73% left out" in said
    assert "5944 of 6000 people (99.07 %) would be left out, and `suppress_up_to` allows 1.00 %" in said
    assert "epsilon 0.5, delta 0 of `clinic` (not released yet)" in said
    assert "Completed successfully" in said


def test_the_released_ages_are_those_of_ten_or_more_people(checkout: Folder, said: str) -> None:
    ages = Counter(int(person["age"]) for person in patients())
    found = dict(published(checkout, "internal", "select age, count(*) from veil_demo__patients_by_age group by age"))
    assert found == {age: people for age, people in ages.items() if people >= 10}
    assert len(found) == 68
    assert min(found.values()) == 10
    ((share,),) = published(checkout, "internal", "select suppressed_share from veil.releases")
    assert share == pytest.approx(44 / 6000)


def test_the_noisy_table_has_every_public_diagnosis(checkout: Folder, said: str) -> None:
    found = dict(published(checkout, "public", "select diagnosis, patients from veil_demo__patients_by_diagnosis"))
    assert found.keys() == DIAGNOSES.keys()
    # epsilon 0.5 with one diagnosis a person: P(|noise| > 60) < 1e-12
    assert all(abs(found[name] - people) <= 60 for name, people in DIAGNOSES.items())
    ((people, classes, measures),) = published(
        checkout, "public", "select people_out, classes, measures from veil.releases"
    )
    assert (people, classes, measures) == (None, None, None)


def test_a_publication_holds_its_tables_their_records_and_nothing_else(checkout: Folder, said: str) -> None:
    query = "select schema_name || '.' || table_name from duckdb_tables() order by 1"
    assert published(checkout, "internal", query) == [("main.veil_demo__patients_by_age",), ("veil.releases",)]
    assert published(checkout, "public", query) == [("main.veil_demo__patients_by_diagnosis",), ("veil.releases",)]
    assert published(checkout, "internal", "select count(*) from duckdb_views() where not internal") == [(0,)]
    described = "select column_name from duckdb_columns() where comment is not null order by column_index"
    names = ["patient_id", "zip", "age", "sex", "diagnosis"]
    assert [name for (name,) in published(checkout, "internal", described)] == names


def test_no_key_and_no_identifier_is_in_an_artefact_or_a_publication(checkout: Folder, said: str) -> None:
    keyring = json.loads((checkout.folder / "warehouse" / "veil_keyring.json").read_text(encoding="utf-8"))
    secret = base64.b64decode(keyring["keys"][0]["secret"])
    spellings = {keyring["keys"][0]["secret"].encode(), secret.hex().encode(), secret}
    identifiers = {person[name] for person in patients() for name in ("email", "phone", "patient_id")}
    shape = re.compile(r"[a-z]+\.[a-z]+\.\d{4}@example\.org|\+1-\d{3}-555-01\d\d|P\d{6}")
    assert all(shape.fullmatch(identifier) for identifier in identifiers)
    places = [p for name in ("target", "logs", "published") for p in (checkout.folder / name).rglob("*") if p.is_file()]
    assert len(places) > 20
    for place in places:
        content = place.read_bytes()
        assert not [spelling for spelling in spellings if spelling in content], f"the key is in {place.name}"
        found = set(shape.findall(content.decode("utf-8", errors="replace"))) & identifiers
        assert not found, f"{len(found)} identifiers are in {place.name}"
    assert "@example.org" not in said
    for (value,) in published(checkout, "internal", "select patient_id from veil_demo__patients_by_age"):
        assert len(str(value)) == 32


def test_a_second_build_keeps_the_noisy_table_and_spends_nothing(checkout: Folder, said: str) -> None:
    query = "select * from veil_demo__patients_by_diagnosis order by diagnosis"
    before = published(checkout, "public", query)
    result = checkout.dbt("build", "--full-refresh")
    assert result.success, result.text
    assert "kept, 0 spent" in result.text
    assert published(checkout, "public", query) == before
