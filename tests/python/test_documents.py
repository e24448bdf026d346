"""The documents: links lead somewhere, and the first example a reader sees does what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from harness import ROOT, Project

DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def links(page: Path) -> set[Path]:
    """The files that a page links to."""
    targets = [target.split("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))]
    return {(page.parent / target).resolve() for target in targets if target and not re.match(r"[a-z]+:", target)}


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    assert [target for target in links(page) if not target.exists()] == []


def test_every_page_can_be_reached_from_the_index() -> None:
    found: set[Path] = set()
    todo = {ROOT / "docs" / "index.md"}
    while todo:
        found |= todo
        todo = {target for page in todo if page.suffix == ".md" and page.exists() for target in links(page)} - found
    assert [page for page in ROOT.glob("docs/**/*.md") if page not in found] == []


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


def test_the_first_example_of_the_readme_runs(project: Project) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    declared, model = (re.search(rf"```{kind}\n(.*?)```", readme, re.DOTALL) for kind in ("yaml", "sql"))
    assert declared is not None
    assert model is not None
    people = (
        "select concat('p', i, '@example.org') as email, 25 + i % 20 as age, 'none' as diagnosis from range(80) t(i)"
    )
    (project.folder / "models" / "readme.yml").write_text(declared.group(1), encoding="utf-8")
    (project.folder / "models" / "stg_patients.sql").write_text(people, encoding="utf-8")
    (project.folder / "models" / "patients_released.sql").write_text(model.group(1), encoding="utf-8")
    result = project.dbt("build")
    assert result.success, result.text
    query = "select age, diagnosis, count(*) from main.patients_released group by all order by age"
    assert project.query(query) == [(f"{low}-{low + 4}", "none", 20) for low in (25, 30, 35, 40)]
    names = project.query(
        "select column_name from duckdb_columns() where table_name = 'patients_released' order by column_index"
    )
    assert [name for (name,) in names] == ["age", "diagnosis"]
