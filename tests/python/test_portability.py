"""The SQL of every public macro and generic test, as other engines would get it.

Each example below is compiled as Spark, Snowflake, BigQuery and Postgres would compile it: dispatch, quoting and all.
The result either parses in that engine's dialect, with functions that it has, or the macro refuses the engine by name.

A new public macro without an example fails the first test: add one to portability.yml, and its name to `duckdb_only`
there if it needs a function that Veil brings to DuckDB alone.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import dbt.context.providers as providers
import pytest
import sqlglot
import yaml
from dbt.adapters.duckdb.impl import DuckDBAdapter
from dbt.adapters.duckdb.relation import DuckDBRelation
from dbt.task.compile import CompileTask
from harness import Project, columns, rows
from sqlglot import exp

ENGINES = ("spark", "snowflake", "bigquery", "postgres")
BACKTICKS = ("spark", "bigquery")


EXAMPLES_FILE = Path(__file__).with_name("portability.yml")
_CONTENT = yaml.safe_load(EXAMPLES_FILE.read_text(encoding="utf-8"))
EXAMPLES: dict[str, str] = _CONTENT["examples"]
DUCKDB_ONLY: set[str] = set(_CONTENT["duckdb_only"])
NOT_RENDERED: set[str] = set(_CONTENT["not_rendered"])

HIERARCHIES = {
    "age": {"kind": "intervals", "widths": [10], "range": [0, 119], "whole": True},
    "capped": {"kind": "top_bottom", "top": [90]},
    "diagnosis": {"kind": "lookup", "relation": "levels"},
    "month": {"kind": "dates", "levels": ["month"]},
    "rounded": {"kind": "rounding", "to": [10]},
    "tree": {"kind": "tree", "tree": {"lungs": ["flu"]}},
    "week": {"kind": "dates", "levels": ["week"]},
    "zip": {"kind": "prefix", "keep": [3], "width": 5},
}

# functions that sqlglot does not know but every engine has
COMMON_FUNCTIONS: set[str] = set()

# what sqlglot parses and the engine has not
UNKNOWN_TO = {
    "spark": (),
    "snowflake": (exp.Filter,),
    "bigquery": (exp.Filter,),
    "postgres": (exp.Qualify,),
}


def node(example: str) -> str:
    """The name of the model that holds an example."""
    return "example__" + re.sub(r"\W+", "__", example)


@pytest.fixture(scope="module")
def people(shared_project: Project) -> Project:
    project = shared_project
    project.configure(vars={"veil__hierarchies": HIERARCHIES})
    roles = {
        "id": "unit",
        "email": "identifier",
        "zip": {"role": "quasi_identifier", "hierarchy": "zip"},
        "age": {"role": "quasi_identifier", "hierarchy": "age"},
        "diagnosis": "sensitive",
        **dict.fromkeys(("income", "seen", "lon", "lat", "note"), "other"),
    }
    header = "id,email,zip,age,diagnosis,income,seen,lon,lat,note"
    people = [
        "1,a@example.org,65101,30,flu,9,2024-02-29,9.5,50.5,none",
        "2,b@example.org,65101,31,none,8,NULL,9.6,50.6,x",
    ]
    project.seed("people", rows(header, *people), types={"zip": "varchar", "seen": "date"}, columns=columns(roles))
    project.seed("populations", rows("zip3,population", "651,30000"), types={"zip3": "varchar"})
    project.seed("levels", rows("level_0,level_1,level_2", "flu,lungs,*", "none,none,*"))
    config = {
        "materialized": "release",
        "meta": {"veil": {"audience": "internal", "k": 5, "levels": {"zip": 1, "age": 1}}},
    }
    for name, sql in EXAMPLES.items():
        others = "".join(re.findall(r"{{ veil.*\((ref\('example__\w+'\)).*}}", sql))
        others = f"{{% do {others} %}}" if others else ""
        body = "{% if execute %}{% set policy = veil.policy() %}" + sql + "{% endif %}"
        project.model(
            node(name),
            "{% set seeds = [ref('people'), ref('levels'), ref('populations')] %}" + others + body,
            config=config,
        )
    result = project.dbt("seed")
    assert result.success, result.text
    return project


@pytest.fixture(autouse=True)
def every_example(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile goes on after an example that is refused."""
    monkeypatch.setattr(CompileTask, "raise_on_first_error", lambda self: False)


@pytest.fixture
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let Veil's dispatch and quoting be those of another engine; dbt's own stay DuckDB's, which is what runs."""
    name: str = request.param
    dispatch = providers.BaseDatabaseWrapper.dispatch
    prefixes = providers.BaseDatabaseWrapper._get_adapter_macro_prefixes

    def as_engine(self: object, macro_name: str, macro_namespace: str | None = None, packages: object = None) -> object:
        with monkeypatch.context() as patch:
            chosen = (lambda self: [name, "default"]) if macro_namespace == "veil" else prefixes
            patch.setattr(providers.BaseDatabaseWrapper, "_get_adapter_macro_prefixes", chosen)
            return dispatch(self, macro_name, macro_namespace, packages)

    monkeypatch.setattr(providers.BaseDatabaseWrapper, "dispatch", as_engine)
    monkeypatch.setattr(DuckDBRelation, "quoted", lambda self, identifier: identifier)
    if name in BACKTICKS:
        monkeypatch.setattr(DuckDBAdapter, "quote", classmethod(lambda cls, identifier: f"`{identifier}`"))
    return name


def test_every_public_macro_has_an_example(people: Project) -> None:
    people.dbt("parse")
    macros = [m["name"] for m in people.manifest()["macros"].values() if m["package_name"] == "veil"]
    prefixes = "_", "default__", "duckdb__", "materialization_", *(f"{engine}__" for engine in ENGINES)
    public = {name for name in macros if not name.startswith(prefixes)}
    shown = {example.split(":")[0] for example in EXAMPLES} | NOT_RENDERED
    assert public - shown == set(), "add an example of each to portability.yml"
    assert shown - public == set(), "these macros are gone"
    assert {name.split(":")[0] for name in DUCKDB_ONLY} <= public


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_the_sql_is_the_engines_own_or_refused_by_name(people: Project, engine: str) -> None:
    result = people.dbt("compile", "--threads", "1", "--select", "example__*")
    problems = []
    for name in EXAMPLES:
        macro, compiled = name.split(":")[0], result.nodes[node(name)]
        if {name, macro} & DUCKDB_ONLY:
            problem = "" if is_refusal(str(compiled.message)) else f"is not refused by name: {compiled.message}"
        else:
            problem = (
                unportable(compiled.node.compiled_code, engine) if compiled.status == "success" else compiled.message
            )
        problems.extend([f"{name}: {problem}"] if problem else [])
    assert not problems, "\n".join(problems)


def is_refusal(message: str) -> bool:
    """Whether the failure is a refusal by Veil that says where the macro does run."""
    return re.search(r"veil\.\w+\(\):.*DuckDB", message, flags=re.DOTALL) is not None


def unportable(sql: str, engine: str) -> str:
    """What in ``sql`` the engine has not, or an empty text."""
    try:
        (tree,) = sqlglot.parse(sql, read=engine)
    except sqlglot.errors.ParseError as error:
        return str(error)
    unknown = {f.name.lower() for f in tree.find_all(exp.Anonymous)} - COMMON_FUNCTIONS
    missing = {type(part).__name__ for part in tree.find_all(*UNKNOWN_TO[engine])} if UNKNOWN_TO[engine] else set()
    tokens = [token.token_type.name for token in sqlglot.tokenize(sql, read=engine)]
    if ("DOT", "STRING") in pairwise(tokens):
        return "a name in quotes that this engine reads as a text"
    trailing = re.search(r",\s*(from\b|\))", sql) if engine in ("spark", "postgres") else None
    return ", ".join([*sorted(unknown | missing), *(["a trailing comma"] if trailing else [])])


def test_the_check_itself_catches_what_an_engine_has_not() -> None:
    assert unportable("select a, from t", "postgres") == "a trailing comma"
    assert unportable("select count(*) filter (where a) from t", "snowflake") == "Filter"
    assert unportable("select list_sort(a) as a, veil_hmac(b) as b from t", "bigquery") == "list_sort, veil_hmac"
    assert unportable('select t."a" from t', "bigquery") == "a name in quotes that this engine reads as a text"
    assert unportable("select t.a from t", "spark") == ""


def test_the_examples_run_on_duckdb(people: Project) -> None:
    """An example that compiles nowhere proves nothing elsewhere."""
    elsewhere = [node(name) for name in EXAMPLES if {name, name.split(":")[0]} & DUCKDB_ONLY]
    result = people.dbt("compile", "--select", "example__*", "--exclude", *elsewhere)
    assert result.success, result.text
