{% test max_discernibility(model, discernibility, quasi_identifiers=none, compare_to=none) %}
    {%- if not execute -%}
        {%- do return('') -%}
    {%- endif -%}
    {%- set problems = [] -%}
    {%- set threshold = veil._number(discernibility, 'discernibility', problems, minimum=0) -%}
    {%- if compare_to is none and not veil._is_built(veil._node_behind('max_discernibility', model)) -%}
        {{- return(veil._unbuilt_sql(veil._node_behind('max_discernibility', model))) -}}
    {%- endif -%}
    {%- set input = veil._compared_input('max_discernibility', model, compare_to) -%}
    {%- if quasi_identifiers is none -%}
        {%- set quasi_identifiers = veil.policy(node=veil._with_open_levels(veil._node_behind('max_discernibility', model))).quasi_identifiers -%}
    {%- endif -%}
    {%- set spec = veil._spec(model, quasi_identifiers, problems) -%}
    {%- if problems -%}
        {%- do veil._fail('max_discernibility', problems) -%}
    {%- endif -%}
    {{- adapter.dispatch('test_max_discernibility', 'veil')(spec, threshold, input) -}}
{% endtest %}

{#- Every row costs the size of its class, and a row that was left out costs all rows. -#}
{% macro default__test_max_discernibility(spec, threshold, input) -%}
with {{ veil._counted(spec) }},
{{ veil._classes(spec) }},
input as (
    select {{ veil._double("count(*)") }} as row_count
    from {{ veil._from(input, 'input_rows') }}
),
measured as (
    select
        coalesce(sum({{ veil._double("classes.row_count") }} * classes.row_count), 0) as squares,
        coalesce(sum({{ veil._double("classes.row_count") }}), 0) as row_count
    from classes
),
validation_errors as (
    select
        'more discernibility cost than the maximum' as problem,
        measured.squares + input.row_count * (input.row_count - measured.row_count) as measured,
        {{ threshold }} as threshold
    from measured
    cross join input
    where measured.squares + input.row_count * (input.row_count - measured.row_count) > {{ threshold }} + 1e-9
)
select *
from validation_errors
{%- endmacro %}
