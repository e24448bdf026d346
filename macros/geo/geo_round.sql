{#- Round both coordinates to a number of decimals, in their own units. -#}

{% macro geo_round(relation, decimals, x='lon', y='lat') %}
    {%- set problems = [] -%}
    {%- set spec = veil._geo_spec('geo_round', relation, x, y, kwargs, problems) -%}
    {%- set decimals = veil._integer(decimals, 'decimals', problems, minimum=-9, maximum=12) -%}
    {%- if problems -%}
        {%- do veil._fail('geo_round', problems) -%}
    {%- endif -%}
    {%- do veil._require_udf('geo_round', 'veil_geo_locate') -%}
    {%- do return(adapter.dispatch('geo_round', 'veil')(spec, decimals)) -%}
{% endmacro %}

{% macro default__geo_round(spec, decimals) -%}
with {{ veil._geo_located(spec) }},
rounded as (
    select
        located.*,
        case
            when located.{{ spec.located }}.reason = 'placed' then {
                'x': round(located.{{ spec.located }}.x, {{ decimals }}),
                'y': round(located.{{ spec.located }}.y, {{ decimals }})
            }
        end as {{ spec.point }}
    from located
    -- one row, or the query stops
    inner join plane
        on plane.name is not null
),
{{ veil._geo_final(spec, 'rounded', [spec.located, spec.point]) }}
{%- endmacro %}
