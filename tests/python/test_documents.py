"""The documents: links lead somewhere, and the first example a reader sees does what it says."""

from __future__ import annotations

import re

from harness import ROOT, Project


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
