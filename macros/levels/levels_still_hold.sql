{#- Whether the frozen levels of a released model keep its policy on the input as it is now. One row when they do not,
    with the nearest levels that do; the same is said in the log. -#}

{% test levels_still_hold(model) %}
    {%- if not execute -%}
        {%- do return('') -%}
    {%- endif -%}
    {%- set node = veil._node_behind('levels_still_hold', model) -%}
    {%- set policy = veil.policy(node=node) -%}
    {%- if policy.levels is not mapping -%}
        {%- do veil._fail('levels_still_hold', ["the policy has `levels: auto`, which are found anew by every run: there is nothing that could "
            ~ "no longer hold. Freeze them, from `dbt run-operation veil.find_levels --args '{model: " ~ node.name ~ "}'`"], "model `" ~ node.name ~ "`") -%}
    {%- endif -%}
    {%- if not veil._is_built(node) -%}
        {{- return(veil._unbuilt_sql(node)) -}}
    {%- endif -%}
    {%- set relation = veil._built_input('levels_still_hold', node) -%}
    {%- set answer = veil._search('levels_still_hold', node, policy, relation, {'ask': 'hold', 'levels': policy.levels}) -%}
    {%- set nearest = tojson(answer.nearest) if answer.nearest else "none" -%}
    {%- if not answer.holds -%}
        {%- do log("veil: the levels of `" ~ node.name ~ "` no longer hold. Nearest that do: " ~ nearest, info=true) -%}
    {%- endif -%}
    {{- adapter.dispatch('test_levels_still_hold', 'veil')(answer.holds, nearest) -}}
{% endtest %}

{% macro default__test_levels_still_hold(holds, nearest) -%}
with validation_errors as (
    select
        'the levels no longer hold' as problem,
        {{ veil._literal(nearest) }} as nearest_levels
)
select *
from validation_errors
{%- if holds %}
where 1 = 0
{%- endif %}
{%- endmacro %}

{#- The model with a policy whose relation this is. -#}
{% macro _node_behind(macro, relation) %}
    {%- if relation is string -%}
        {%- do veil._fail(macro, ["it looks at the whole release and at its input: remove `where`"]) -%}
    {%- endif -%}
    {%- for node in graph.nodes.values() if node.resource_type == 'model' and veil._declared_policy(node) and veil._is_relation_of(relation, node) -%}
        {%- do return(node) -%}
    {%- endfor -%}
    {%- do veil._fail(macro, [relation ~ " is not a model with a policy (`config.meta.veil`)"]) -%}
{% endmacro %}
