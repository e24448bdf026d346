{% test max_suppression(model, share, compare_to=none, unit=none) %}
    {%- if not execute -%}
        {%- do return('') -%}
    {%- endif -%}
    {%- set problems = [] -%}
    {%- set share = veil._number(share, 'share', problems, minimum=0, maximum=1) -%}
    {%- if compare_to is none and not veil._is_built(veil._node_behind('max_suppression', model)) -%}
        {{- return(veil._unbuilt_sql(veil._node_behind('max_suppression', model))) -}}
    {%- endif -%}
    {%- set input = veil._compared_input('max_suppression', model, compare_to) -%}
    {%- if unit is not none and veil._text(unit, 'unit', problems) is not none -%}
        {%- do veil._check_columns(model, [unit], problems) -%}
        {%- do veil._check_columns(input, [unit], problems) -%}
    {%- endif -%}
    {%- if problems -%}
        {%- do veil._fail('max_suppression', problems) -%}
    {%- endif -%}
    {{- adapter.dispatch('test_max_suppression', 'veil')(model, share, input, unit) -}}
{% endtest %}

{% macro default__test_max_suppression(model, share, input, unit) -%}
with released as (
    select {{ veil._number_of("released_rows", unit) }} as people
    from {{ veil._from(model, 'released_rows') }}
),
input as (
    select {{ veil._number_of("input_rows", unit) }} as people
    from {{ veil._from(input, 'input_rows') }}
),
validation_errors as (
    select
        'larger share left out than the maximum' as problem,
        {{ "'people'" if unit is not none else "'rows'" }} as counted,
        1 - {{ veil._double("released.people") }} / input.people as measured,
        {{ share }} as threshold
    from released
    cross join input
    where released.people < input.people * (1 - {{ share }}) - 1e-9
)
select *
from validation_errors
{%- endmacro %}

{% macro _number_of(alias, unit) %}
    {%- do return("count(*)" if unit is none else "count(distinct " ~ veil._quote(unit, alias) ~ ")") -%}
{% endmacro %}

{#- The relation given to compare with, or the input of the release. -#}
{% macro _compared_input(macro, model, compare_to) %}
    {%- if compare_to is none -%}
        {%- do return(veil._built_input(macro, veil._node_behind(macro, model))) -%}
    {%- elif compare_to is string -%}
        {%- do veil._fail(macro, [veil._must_be('compare_to', "a relation, such as `ref('stg_patients')`", compare_to)]) -%}
    {%- endif -%}
    {%- do return(compare_to) -%}
{% endmacro %}
