{#- How much of the input's detail a release keeps, from 0 to 1: 1 - loss, as the level search defines loss. Each released
    label counts as the share of the leaves of its hierarchy that it may stand for, each row that was left out as all. Without rows in the input it is NULL. -#}

{% macro granularity(model_name) %}
    {%- if not execute -%}
        {%- do return('') -%}
    {%- endif -%}
    {%- set problems = [] -%}
    {%- set node = veil._released_node(model_name, problems) -%}
    {%- if problems -%}
        {%- do veil._fail('granularity', problems) -%}
    {%- endif -%}
    {%- do return(veil._granularity('granularity', node)) -%}
{% endmacro %}

{% macro _granularity(macro, node) %}
    {%- set policy = veil.policy(node=veil._with_open_levels(node)) -%}
    {%- do return(adapter.dispatch('granularity', 'veil')(macro, node, policy, veil._built_input(macro, node), veil._relation_of(node))) -%}
{% endmacro %}

{% macro default__granularity(macro, node, policy, input, released) %}
    {%- do veil._fail(macro, ["it is written for DuckDB so far. Got the adapter: " ~ target.type]) -%}
{% endmacro %}

{% macro duckdb__granularity(macro, node, policy, input, released) -%}
with {{ veil._search_inputs(macro, node, policy, input) }},
level_labels as (
    select
        value_labels."position",
        unnest(value_labels.labels) as label,
        generate_subscripts(value_labels.labels, 1) as label_level
    from value_labels
    where value_labels.source = 'q'
),
leaves_by_level as (
    select
        level_labels."position",
        level_labels.label,
        level_labels.label_level,
        count(*) as leaves
    from level_labels
    group by all
),
-- a label that stands on several levels counts as the widest
label_leaves as (
    select
        leaves_by_level."position",
        leaves_by_level.label,
        max(leaves_by_level.leaves) as leaves
    from leaves_by_level
    group by all
),
domains as (
    select
        level_labels."position",
        count(*) as domain
    from level_labels
    where level_labels.label_level = 1
    group by all
),
input_rows as (
    select sum(frequency.row_count) as row_count
    from frequency
),
released_labels as (
    {%- for name in policy.quasi_identifiers %}
    {%- if not loop.first %}
    union all
    {%- endif %}
    select
        {{ loop.index }} as "position",
        cast(released.{{ veil._quote(name) }} as varchar) as label,
        count(*) as row_count
    from {{ released }} as released
    group by all
    {%- endfor %}
),
-- what is not among the labels stands for everything, as what was left out does
kept as (
    select
        released_labels."position",
        sum(released_labels.row_count * coalesce(label_leaves.leaves, domains.domain)) as leaves,
        sum(released_labels.row_count) as row_count
    from released_labels
    inner join domains
        on released_labels."position" = domains."position"
    left join label_leaves
        on released_labels."position" = label_leaves."position"
        and released_labels.label is not distinct from label_leaves.label
    group by all
),
losses as (
    select
        domains."position",
        case
            when domains.domain < 2 then 0
            else (
                coalesce(kept.leaves, 0) + (input_rows.row_count - coalesce(kept.row_count, 0)) * domains.domain - input_rows.row_count
            ) / (input_rows.row_count * (domains.domain - 1))
        end as loss
    from domains
    cross join input_rows
    left join kept
        on domains."position" = kept."position"
)
select 2 - exp(avg(ln(1 + losses.loss))) as granularity
from losses
{%- endmacro %}
