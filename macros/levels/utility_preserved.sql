{#- Whether an aggregate of the release is that of its input, within a relative error; `aggregate` is an SQL expression over
    columns that both have, such as `avg(charges)` or `corr(visits, charges)`. -#}

{% test utility_preserved(model, aggregate, max_error, group_by=none, compare_to=none) %}
    {%- if not execute -%}
        {%- do return('') -%}
    {%- endif -%}
    {%- set problems = [] -%}
    {%- set aggregate = veil._text(aggregate, 'aggregate', problems) -%}
    {%- set max_error = veil._number(max_error, 'max_error', problems, minimum=0) -%}
    {%- set keys = [] if group_by is none else veil._names(group_by, 'group_by', problems) -%}
    {%- if compare_to is none and not veil._is_built(veil._node_behind('utility_preserved', model)) -%}
        {{- return(veil._unbuilt_sql(veil._node_behind('utility_preserved', model))) -}}
    {%- endif -%}
    {%- set input = veil._compared_input('utility_preserved', model, compare_to) -%}
    {%- if not problems -%}
        {%- do veil._check_columns(model, keys, problems) -%}
        {%- do veil._check_columns(input, keys, problems) -%}
    {%- endif -%}
    {%- if problems -%}
        {%- do veil._fail('utility_preserved', problems) -%}
    {%- endif -%}
    {{- adapter.dispatch('test_utility_preserved', 'veil')(model, aggregate, max_error, keys, input) -}}
{% endtest %}

{#- Groups of the input that the release lacks, and an aggregate that is NULL on one side alone, are lost: they fail. Where
    the input's figure is 0 the error is absolute. -#}
{% macro default__test_utility_preserved(model, aggregate, max_error, keys, input) -%}
with input as (
    {{ veil._grouped_figure(input, aggregate, keys) }}
),
released as (
    {{ veil._grouped_figure(model, aggregate, keys) }}
),
compared as (
    select
        abs(released.figure - input.figure) / coalesce(nullif(abs(input.figure), 0), 1) as error,
        case when released.figure is null and input.figure is not null then 1 else 0 end as is_lost
    from input
    left join released
        on 1 = 1
        {%- for _ in keys %}
        and {{ veil._same("input.key_" ~ loop.index, "released.key_" ~ loop.index) }}
        {%- endfor %}
),
validation_errors as (
    select
        'the aggregate differs by more than max_error' as problem,
        count(*) as failing_groups,
        sum(compared.is_lost) as lost_groups,
        max(compared.error) as largest_error,
        {{ max_error }} as threshold
    from compared
    where compared.is_lost = 1 or compared.error > {{ max_error }} + 1e-9
    having count(*) > 0
)
select *
from validation_errors
{%- endmacro %}

{% macro _grouped_figure(relation, aggregate, keys) -%}
select
        {%- for key in keys %}
        {{ veil._quote(key, 'compared_rows') }} as key_{{ loop.index }},
        {%- endfor %}
        {{ veil._double(aggregate) }} as figure
    from {{ veil._from(relation, 'compared_rows') }}
    {%- if keys %}
    group by
        {%- for key in keys %}
        {{ veil._quote(key, 'compared_rows') }}{{ "," if not loop.last }}
        {%- endfor %}
    {%- endif %}
{%- endmacro %}
