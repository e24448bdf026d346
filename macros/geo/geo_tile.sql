{#- Move each point to the centre of its tile of Web Mercator's square, whose code is a quadkey. -#}

{% macro geo_tile(relation, level, x='lon', y='lat', cell_column=none) %}
    {%- set problems = [] -%}
    {%- set spec = veil._geo_spec('geo_tile', relation, x, y, kwargs, problems) -%}
    {%- set level = veil._integer(level, 'level', problems, minimum=1, maximum=30) -%}
    {%- do veil._geo_check_codes(spec, cell_column, problems) -%}
    {%- if problems -%}
        {%- do veil._fail('geo_tile', problems) -%}
    {%- endif -%}
    {%- do veil._require_udf('geo_tile', 'veil_geo_quadkey') -%}
    {%- do return(adapter.dispatch('geo_tile', 'veil')(spec, level, cell_column)) -%}
{% endmacro %}

{% macro default__geo_tile(spec, level, cell_column) -%}
{{ veil._geo_coded(spec, 'veil_geo_quadkey', level, cell_column) }}
{%- endmacro %}
