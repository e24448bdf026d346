"""The harness itself: a seed, a model and its YAML become rows and messages."""

from harness import Project, rows


def test_a_seed_and_a_model_become_rows(project: Project) -> None:
    project.seed("people", rows("name,age", "ann,31", "NULL,32"), types={"age": "integer"})
    project.model("ages", "select name, age from {{ ref('people') }}", columns=[{"name": "age"}])
    result = project.dbt("build")
    assert result.success, result.text
    assert project.query("select name, age from main.ages order by age") == [("ann", 31), (None, 32)]


def test_an_unknown_setting_names_the_nearest(project: Project) -> None:
    project.model("ages", "select '{{ veil._setting('shema') }}' as x")
    result = project.dbt("run")
    assert not result.success
    assert "did you mean `schema`?" in result.text
