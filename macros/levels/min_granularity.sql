{% test min_granularity(model, granularity) %}
    {%- if not execute -%}
        {%- do return('') -%}
    {%- endif -%}
    {%- set problems = [] -%}
    {%- set threshold = veil._number(granularity, 'granularity', problems, minimum=0, maximum=1) -%}
    {%- if problems -%}
        {%- do veil._fail('min_granularity', problems) -%}
    {%- endif -%}
    {%- set node = veil._node_behind('min_granularity', model) -%}
    {%- if not veil._is_built(node) -%}
        {{- return(veil._unbuilt_sql(node)) -}}
    {%- endif -%}
    {{- adapter.dispatch('test_min_granularity', 'veil')(veil._granularity('min_granularity', node), threshold) -}}
{% endtest %}

{% macro default__test_min_granularity(measured_sql, threshold) -%}
with measured as (

    {{ measured_sql | indent(4) }}

),

validation_errors as (

    select
        'less granularity than the minimum' as problem,
        measured.granularity as measured,
        {{ threshold }} as threshold
    from measured
    where measured.granularity < {{ threshold }} - 1e-9

)

select *
from validation_errors
{%- endmacro %}
