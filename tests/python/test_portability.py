"""The SQL of every public macro and generic test, as other engines would get it.

Each example below is compiled as Spark, Snowflake, BigQuery and Postgres would compile it: dispatch, quoting and all.
The result either parses in that engine's dialect, with functions that it has, or the macro refuses the engine by name.

A new public macro without an example fails the first test: add one line to EXAMPLES, and to DUCKDB_ONLY if it needs a
function that Veil brings to DuckDB alone.
"""

from __future__ import annotations

import re
from itertools import pairwise

import dbt.context.providers as providers
import pytest
import sqlglot
from dbt.adapters.duckdb.impl import DuckDBAdapter
from dbt.adapters.duckdb.relation import DuckDBRelation
from dbt.task.compile import CompileTask
from harness import Project, columns, rows
from sqlglot import exp

ENGINES = ("spark", "snowflake", "bigquery", "postgres")
BACKTICKS = ("spark", "bigquery")


def measure(name: str, options: str = "") -> str:
    """A call of a measure of one sensitive column, or of the test of it."""
    columns = "quasi_identifiers=['zip', 'age'], sensitive_column='diagnosis', unit='id'"
    return f"{{{{ veil.{name}(ref('people'), {columns}{options and ', ' + options}) }}}}"


# name of the macro or test, with a note of the case after a colon: what a model would say
EXAMPLES = {
    "alpha_k_anonymity": measure("alpha_k_anonymity"),
    "anonymize": "{{ veil.anonymize(ref('people')) }}",
    "beta_likeness": measure("beta_likeness"),
    "beta_likeness: enhanced": measure("beta_likeness", "kind='enhanced'"),
    "classes": "{{ veil.classes(ref('people'), quasi_identifiers=['zip', 'age']) }}",
    "classes: wildcard": "{{ veil.classes(ref('people'), quasi_identifiers=['zip'], unit='id', nulls='wildcard') }}",
    "delta_disclosure": measure("delta_disclosure"),
    "dp_aggregate": "{{ veil.dp_aggregate(ref('people')) }}",
    "generalize: dates": "select {{ veil.generalize('seen', 'week', 1) }} as a from people",
    "generalize: months": "select {{ veil.generalize('seen', 'month', 1) }} as a from people",
    "generalize: intervals": "select {{ veil.generalize('age', 'age', 1) }} as a from people",
    "generalize: lookup": "select {{ veil.generalize('diagnosis', 'diagnosis', 1) }} as a from people",
    "generalize: prefix": "select {{ veil.generalize('zip', 'zip', 1) }} as a from people",
    "generalize: rounding": "select {{ veil.generalize('age', 'rounded', 1) }} as a from people",
    "generalize: top_bottom": "select {{ veil.generalize('age', 'capped', 1) }} as a from people",
    "generalize: tree": "select {{ veil.generalize('diagnosis', 'tree', 1) }} as a from people",
    "hierarchy": "select {{ veil.hierarchy('age').top_level }} as top_level",
    "hierarchy_table": "{{ veil.hierarchy_table('age', relation=ref('people'), column='age') }}",
    "hierarchy_violations": "{{ veil.hierarchy_violations(ref('levels'), ['level_0', 'level_1']) }}",
    "homogeneity": measure("homogeneity"),
    "k_anonymity": "{{ veil.k_anonymity(ref('people'), quasi_identifiers=['zip', 'age'], unit='id') }}",
    "l_diversity: distinct": measure("l_diversity", "kind='distinct'"),
    "l_diversity: entropy": measure("l_diversity"),
    "l_diversity: recursive": measure("l_diversity", "kind='recursive', l=2, c=1"),
    "masked": "select {{ veil.masked({'name': 'email', 'role': 'identifier', 'mask': 'redact'}) }} as a from people",
    "measured_figures": "select '{{ veil.measured_figures(policy, {'k': 9}) | length }}' as figures",
    "measure_sql": "{{ veil.measure_sql('(select p.*, p.id as veil__unit from people as p)', policy) }}",
    "partial": "select {{ veil.partial('email', first=1) }} as a from people",
    "person_level_gap": measure("person_level_gap"),
    "policy": "select {{ policy.k }} as k",
    "policy_violations": "select {{ veil.policy_violations(policy, {'k': 9}) | length }} as violations",
    "posterior_shift": measure("posterior_shift"),
    "pseudonym": "select {{ veil.pseudonym('email', domain='people') }} as a from people",
    "publish": "{{ veil.publish(audience='internal', path='people.duckdb') }}",
    "redact": "select {{ veil.redact('email') }} as a from people",
    "t_closeness: equal": measure("t_closeness"),
    "t_closeness: hierarchical": measure("t_closeness", "distance='hierarchical', hierarchy='tree'"),
    "t_closeness: numeric": measure("t_closeness", "distance='numeric'").replace("'diagnosis'", "'income'"),
    "t_closeness: ordered": measure("t_closeness", "distance='ordered', order=['none', 'flu']"),
    "t_closeness: ring": measure("t_closeness", "reference='ring', x='age', y='income', radius=1").replace(
        "zip", "income"
    ),
    "test_alpha_k_anonymity": measure("test_alpha_k_anonymity", "alpha=0.5, k=2"),
    "test_beta_likeness": measure("test_beta_likeness", "beta=1"),
    "test_delta_disclosure": measure("test_delta_disclosure", "delta=1"),
    "test_hierarchy_is_nested": "{{ veil.test_hierarchy_is_nested(ref('levels')) }}",
    "test_homogeneity": measure("test_homogeneity", "max_share=0.8"),
    "test_k_anonymity": "{{ veil.test_k_anonymity(ref('people'), k=2, quasi_identifiers=['zip', 'age']) }}",
    "test_l_diversity": measure("test_l_diversity", "l=2"),
    "test_person_level_gap": measure("test_person_level_gap", "max_gap=1"),
    "test_posterior_shift": measure("test_posterior_shift", "max_difference=0.5, max_ratio=2"),
    "test_t_closeness": measure("test_t_closeness", "t=0.5"),
}

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

# refused by name on every other engine
DUCKDB_ONLY = {"dp_aggregate", "pseudonym", "publish"}

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
        "income": "sensitive",
        "seen": "other",
    }
    project.seed(
        "people",
        rows("id,email,zip,age,diagnosis,income,seen", "1,a@example.org,65101,30,flu,9,2024-02-29"),
        types={"zip": "varchar", "seen": "date"},
        columns=columns(roles),
    )
    project.seed("levels", rows("level_0,level_1,level_2", "flu,lungs,*", "none,none,*"))
    config = {
        "materialized": "release",
        "meta": {"veil": {"audience": "internal", "k": 5, "levels": {"zip": 1, "age": 1}}},
    }
    for name, sql in EXAMPLES.items():
        body = "{% if execute %}{% set policy = veil.policy() %}" + sql + "{% endif %}"
        project.model(node(name), "{% set seeds = [ref('people'), ref('levels')] %}" + body, config=config)
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
    shown = {example.split(":")[0] for example in EXAMPLES}
    assert public - shown == set(), "add an example of each to EXAMPLES"
    assert shown - public == set(), "these macros are gone"
    assert public >= DUCKDB_ONLY


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_the_sql_is_the_engines_own_or_refused_by_name(people: Project, engine: str) -> None:
    result = people.dbt("compile", "--threads", "1", "--select", "example__*")
    found = {}
    for name in EXAMPLES:
        compiled = result.nodes[node(name)]
        if compiled.status != "success":
            found[name] = refusal(str(compiled.message), name.split(":")[0])
        elif complaint := unportable(compiled.node.compiled_code, engine):
            found[name] = complaint
    expected = {name: "refused by name" for name in EXAMPLES if name.split(":")[0] in DUCKDB_ONLY}
    assert found == expected


def refusal(message: str, name: str) -> str:
    """The text of a failure, or that it is a refusal as Veil words one."""
    worded = rf"veil\.{name.removeprefix('test_')}\(\):.*DuckDB"
    return "refused by name" if re.search(worded, message, flags=re.DOTALL) else message


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
    result = people.dbt("compile", "--select", "example__*", "--exclude", "example__publish", "example__dp_aggregate")
    assert result.success, result.text
