{#- One SELECT that makes a differentially private table of a relation of people: what the policy's `dp` mapping declares,
    step by step. Needs `materialized: release`, which reserves the budget before the noise is drawn. -#}

{% macro dp_aggregate(relation) %}
    {%- if not execute -%}
        {%- do return('') -%}
    {%- endif -%}
    {%- set subject = "model `" ~ model.name ~ "`" -%}
    {%- if config.get('materialized') != 'release' -%}
        {%- do veil._fail('dp_aggregate', ["a differentially private model must be `materialized: release`: a view would draw new noise at every "
            ~ "read, and only a release reserves the budget. Got: '" ~ config.get('materialized') ~ "'"], subject) -%}
    {%- endif -%}
    {%- do veil._require_udf('dp_aggregate', 'veil_laplace') -%}
    {%- set policy = veil.policy(relation) -%}
    {%- if not policy.dp or not policy.dp.measures -%}
        {%- do veil._fail('dp_aggregate', ["the policy has no `dp` mapping with `measures`. Declare one under `config.meta.veil`"], subject) -%}
    {%- endif -%}
    {%- if policy.dp.epsilon > 1 -%}
        {%- do exceptions.warn("veil.dp_aggregate(): " ~ subject ~ ": `dp.epsilon` is " ~ policy.dp.epsilon ~ ". Above 1 the promise is weak: one person "
            ~ "may change the odds of any output by a factor of e^" ~ policy.dp.epsilon) -%}
    {%- endif -%}
    {%- do return(veil._sealed(adapter.dispatch('dp_aggregate', 'veil')(relation, policy.dp), 'dp_aggregate')) -%}
{% endmacro %}

{% macro default__dp_aggregate(relation, plan) %}
    {%- do veil._fail('dp_aggregate', ["the noise comes from Veil's UDFs, which run on DuckDB. Aggregate there; the released table can go anywhere. Got: '"
        ~ target.type ~ "'"]) -%}
{% endmacro %}

{% macro duckdb__dp_aggregate(relation, plan) -%}
{%- do veil._dp_check_types(plan) -%}
{%- set mechanisms = veil._dp_mechanisms(plan) -%}
{{ veil._dp_bounded(relation, plan) }},
{{ veil._dp_noisy(plan, mechanisms) }},
{{ veil._dp_final(plan, mechanisms) }}
{%- endmacro %}

{#- The mechanisms of the plan by name, with the scales that the ledger will reserve. Nothing is drawn or spent by asking. -#}
{% macro _dp_mechanisms(plan) %}
    {%- set answer = fromjson(veil._dp_ask("veil_noise_plan(" ~ veil._literal(tojson(veil._dp_request(plan))) ~ ")")) -%}
    {%- if answer.problems -%}
        {%- do veil._fail('dp_aggregate', answer.problems, "model `" ~ model.name ~ "`") -%}
    {%- endif -%}
    {%- set mechanisms = {} -%}
    {%- for query in answer.queries -%}
        {%- do mechanisms.update({query.query: query}) -%}
    {%- endfor -%}
    {%- do return(mechanisms) -%}
{% endmacro %}

{% macro _dp_ask(expression) %}
    {%- do return(run_query("select " ~ expression ~ " as answer").columns[0].values()[0]) -%}
{% endmacro %}

{#- The groups that may be released, one expression list for group_by columns of an alias. -#}
{% macro _dp_group_columns(plan, alias, indent=8) -%}
{%- for name in plan.group_by %}
{{ " " * indent }}{{ veil._quote(name, alias) }},
{%- endfor -%}
{%- endmacro %}

{% macro _dp_same_group(plan, left, right) -%}
{%- for name in plan.group_by -%}
{{ "" if loop.first else "\n        and " }}{{ veil._quote(name, left) }} is not distinct from {{ veil._quote(name, right) }}
{%- endfor -%}
{{ "true" if not plan.group_by }}
{%- endmacro %}

{#- The id of the release that the ledger opens for this model, as a literal. -#}
{% macro _dp_reservation() %}
    {%- do return(veil._literal(veil._release_id())) -%}
{% endmacro %}

{#- Public values that are not of their column's type would stop the build after the budget was debited: asked for here. -#}
{% macro _dp_check_types(plan) %}
    {%- set lists = [] -%}
    {%- if plan.key_source.kind == 'lists' -%}
        {%- for name, values in plan.key_source.lists.items() -%}
            {%- do lists.append(('dp.keys.' ~ name, name, "(select unnest(" ~ veil._dp_literals(values) ~ ") as veil_value)")) -%}
        {%- endfor -%}
    {%- elif plan.key_source.kind == 'relation' -%}
        {%- for name in plan.group_by -%}
            {%- do lists.append(('dp.keys', name, "(select " ~ veil._quote(name) ~ " as veil_value from " ~ veil._dp_relation(plan.key_source.node) ~ ")")) -%}
        {%- endfor -%}
    {%- endif -%}
    {%- for measure in plan.measures if measure.kind in ('mode', 'top_k', 'histogram') -%}
        {%- do lists.append(('dp.measures.' ~ measure.name ~ '.candidates', measure.column, "(" ~ veil._dp_value_list(measure) ~ ")")) -%}
    {%- endfor -%}
    {%- set problems = [] -%}
    {%- for where, column, source in lists if plan.types.get(column) -%}
        {%- set wrong = veil._dp_ask("(select count(*) from " ~ source ~ " as listed where listed.veil_value is not null and try_cast(listed.veil_value as "
            ~ plan.types[column] ~ ") is null)") -%}
        {%- if wrong -%}
            {%- do problems.append("`" ~ where ~ "` has values that cannot be of the type of `" ~ column ~ "`, which is " ~ plan.types[column] ~ ". Number of them: " ~ wrong) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if problems -%}
        {%- do veil._fail('dp_aggregate', problems, "model `" ~ model.name ~ "`") -%}
    {%- endif -%}
{% endmacro %}
