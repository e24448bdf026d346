"""The sheet of a table's measures, which shows figures and never a value."""

from __future__ import annotations

import json

from harness import Project, rows

PEOPLE = rows(
    "zip,person,diagnosis,income",
    "10,a,flu,1",
    "10,b,flu,2",
    "10,c,hiv,3",
    "20,d,none,4",
    "20,d,flu,5",
    "20,e,none,6",
)


def test_one_sheet_with_all_measures_and_no_value(project: Project) -> None:
    project.seed("visits", PEOPLE, types={"zip": "varchar", "income": "integer"})
    assert project.dbt("seed").success
    arguments = {"relation": "visits", "quasi_identifiers": ["zip"], "sensitive": ["diagnosis", "income"]}
    by_rows = project.dbt("run-operation", "veil.profile", "--args", json.dumps(arguments))
    sheet = "\n".join(message for message in by_rows.messages if "dbt" not in message)
    assert by_rows.success, by_rows.text
    assert "rows 6, people 6, classes 2" in sheet
    assert "k 3, unique people 0, mean prosecutor risk 0.333333" in sheet
    assert "l (distinct)                      2" in sheet
    assert "l (entropy)                       1.88988" in sheet
    # flu 3/6, hiv 1/6, none 2/6 against 2/3, 1/3, 0 and 1/3, 0, 2/3
    assert "t (equal, global reference)       0.333333" in sheet
    assert "homogeneity                       0.666667  (0 classes above 0.8)" in sheet
    assert "t (numeric, global reference)     0.3" in sheet
    assert not {"flu", "hiv", "none"} & set(sheet.replace(",", " ").split())
    arguments |= {"unit": "person", "sensitive": "diagnosis"}
    by_people = project.dbt("run-operation", "veil.profile", "--args", json.dumps(arguments))
    assert "k 2, unique people 0, mean prosecutor risk 0.4" in by_people.text
    missing = project.dbt("run-operation", "veil.profile", "--args", json.dumps(arguments | {"relation": "visit"}))
    assert (
        "there is no model, seed, source (`source.table`) or table (`schema.table`) `visit` that is built"
        in missing.text
    )
