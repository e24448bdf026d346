"""integration_tests as its users run it: a project of its own that installs the package by path."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import duckdb
import pytest
from harness import ROOT, Folder, Result

CONSUMER = ROOT / "integration_tests"
QUASI_IDENTIFIERS = (
    "sex",
    "age",
    "race",
    "marital-status",
    "education",
    "native-country",
    "workclass",
    "salary-class",
)
WITHOUT_SUPPRESSION = (1, 1, 1, 1, 3, 2, 2, 1)
WITH_SUPPRESSION = (0, 3, 0, 2, 2, 1, 1, 0)

# all that a consumer without budgets gets of the package beside its macros, and what he has switched off
SHIPPED: set[str] = set()
SWITCHED_OFF = {"veil__ledger", "veil__spend_by_model", "veil__budget_status"}


@pytest.fixture(scope="module")
def consumer(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    output = tmp_path_factory.mktemp("consumer")
    project = Folder(CONSUMER, output / "consumer.duckdb", output)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VEIL_CONSUMER_WAREHOUSE", str(project.warehouse))
        result = project.dbt("deps")
        assert result.success, result.text
        yield project


@pytest.fixture(scope="module")
def built(consumer: Folder) -> Result:
    publish_to = consumer.output / "analysts.duckdb"
    return consumer.dbt("build", "--threads", "8", "--vars", f"{{publish_to: '{publish_to}'}}")


def classes(levels: tuple[int, ...]) -> Counter[tuple[str, ...]]:
    """Sizes of the classes of the seed at ``levels``, counted here and not by the package."""
    with (CONSUMER / "seeds" / "hierarchies.csv").open(encoding="utf-8") as file:
        labels = {(row["attribute"], row["level_0"]): row for row in csv.DictReader(file)}
    with (CONSUMER / "seeds" / "people.csv").open(encoding="utf-8") as file:
        people = list(csv.DictReader(file))
    keys = list(zip(QUASI_IDENTIFIERS, levels, strict=True))
    return Counter(tuple(labels[name, person[name]][f"level_{level}"] for name, level in keys) for person in people)


def released(consumer: Folder, table: str) -> Counter[tuple[str, ...]]:
    names = ", ".join(f'"{name}"' for name in QUASI_IDENTIFIERS)
    return Counter(tuple(map(str, row)) for row in consumer.query(f"select {names} from {table}"))


def test_the_package_brings_only_what_it_says(consumer: Folder) -> None:
    everything = consumer.dbt("ls", "--quiet")
    assert everything.success, everything.text
    consumer.dbt("parse")
    manifest = consumer.manifest()
    kinds = "nodes", "sources", "exposures", "metrics", "unit_tests", "saved_queries", "semantic_models"
    names = {node["name"] for kind in kinds for node in manifest[kind].values() if node["package_name"] == "veil"}
    disabled = {node["name"] for nodes in manifest["disabled"].values() for node in nodes}
    assert names == SHIPPED
    assert {name for name in disabled if not name.startswith("veil-on-run-")} == SWITCHED_OFF
    assert "veil_demo" not in str(sorted(manifest["nodes"]))


def test_the_consumer_builds_with_eight_threads(consumer: Folder, built: Result) -> None:
    assert built.success, built.text
    assert built.status("census_without_suppression") == "success"


@pytest.mark.parametrize(
    ("table", "levels"),
    [
        ("main.census_without_suppression", WITHOUT_SUPPRESSION),
        ("main_released.census_with_suppression", WITH_SUPPRESSION),
    ],
)
def test_the_released_classes_are_those_of_the_seed(
    consumer: Folder, built: Result, table: str, levels: tuple[int, ...]
) -> None:
    expected = {key: people for key, people in classes(levels).items() if people >= 5}
    assert released(consumer, table) == expected
    assert built.success


def test_the_hook_published_both_tables_under_their_schemas(consumer: Folder, built: Result) -> None:
    assert built.success, built.text
    with duckdb.connect(str(consumer.output / "analysts.duckdb"), read_only=True) as analysts:
        tables = analysts.execute("select schema_name || '.' || table_name from duckdb_tables() order by 1").fetchall()
        expected = ["main.census_without_suppression", "main_released.census_with_suppression", "veil.releases"]
        assert [name for (name,) in tables] == expected
        assert analysts.execute("select count(*) from veil.releases").fetchall() == [(2,)]


def test_every_run_records_its_releases_and_a_full_refresh_keeps_the_record(consumer: Folder, built: Result) -> None:
    assert built.success
    before = consumer.query("select release_id from veil.releases")
    result = consumer.dbt("build", "--full-refresh")
    assert result.success, result.text
    after = consumer.query("select release_id from veil.releases")
    assert len(before) == 2
    assert len(after) == 4
    assert set(before) < set(after)
    assert sum(released(consumer, "main.census_without_suppression").values()) == 300


def test_empty_reads_and_releases_no_row(consumer: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Folder(CONSUMER, tmp_path / "empty.duckdb", tmp_path)
    monkeypatch.setenv("VEIL_CONSUMER_WAREHOUSE", str(other.warehouse))
    result = other.dbt("build", "--empty")
    assert result.success, result.text
    assert other.scalar("select count(*) from main.census_without_suppression") == 0


@pytest.mark.audit
def test_the_adult_extract_gives_the_published_figures(consumer: Folder, data: Path) -> None:
    adult = data / "adult"
    result = consumer.dbt("build", "--vars", f"{{adult_csv: '{adult}'}}")
    assert result.success, result.text
    records = "select classes, k_measured, people_in - people_out from veil.releases where model like '%.census_{}'"
    assert (30, 16, 0) in consumer.query(records.format("without_suppression"))
    assert (222, 506) in {(row[0], row[2]) for row in consumer.query(records.format("with_suppression"))}
    names = ", ".join(f'"{name}"' for name in QUASI_IDENTIFIERS)
    raw = f"select count(*), count(*) filter (n = 1) from (select count(*) as n from main.census group by {names})"
    assert consumer.query(raw) == [(12458, 8841)]
