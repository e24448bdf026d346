{#- Move each point to the centre of its cell of a square grid in metres: half-open cells, the plane's origin a corner. -#}

{% macro geo_grid(relation, size, x='lon', y='lat') %}
    {%- set problems = [] -%}
    {%- set spec = veil._geo_spec('geo_grid', relation, x, y, kwargs, problems) -%}
    {%- set size = veil._number(size, 'size', problems, minimum=0.001) -%}
    {%- if problems -%}
        {%- do veil._fail('geo_grid', problems) -%}
    {%- endif -%}
    {%- do veil._require_udf('geo_grid', 'veil_geo_project') -%}
    {%- do veil._geo_log(spec) -%}
    {%- do return(adapter.dispatch('geo_grid', 'veil')(spec, veil._geo_size_um(size))) -%}
{% endmacro %}

{% macro default__geo_grid(spec, size_um) -%}
{%- set centre = {} -%}
{%- for half in ('x', 'y') -%}
    {%- set index = veil._geo_index("metres." ~ spec.metres ~ "." ~ half, size_um) -%}
    {%- do centre.update({half: veil._geo_centre(index, size_um)}) -%}
{%- endfor -%}
with {{ veil._geo_located(spec) }},
{{ veil._geo_metres(spec) }},
centred as (
    select
        metres.*,
        veil_geo_unproject(
            {{ centre.x }},
            {{ centre.y }},
            plane.name,
            {{ veil._literal(spec.crs) }}
        ) as {{ spec.point }}
    from metres
    cross join plane
),
{{ veil._geo_final(spec, 'centred', [spec.located, spec.metres, spec.point]) }}
{%- endmacro %}
