{#- Move each point to the centre of its H3 cell. -#}

{% macro geo_hex(relation, resolution, x='lon', y='lat', cell_column=none) %}
    {%- set problems = [] -%}
    {%- set spec = veil._geo_spec('geo_hex', relation, x, y, kwargs, problems) -%}
    {%- set resolution = veil._integer(resolution, 'resolution', problems, minimum=0, maximum=15) -%}
    {%- do veil._geo_check_codes(spec, cell_column, problems) -%}
    {%- if problems -%}
        {%- do veil._fail('geo_hex', problems) -%}
    {%- endif -%}
    {%- do veil._require_udf('geo_hex', 'veil_geo_hex') -%}
    {%- do return(adapter.dispatch('geo_hex', 'veil')(spec, resolution, cell_column)) -%}
{% endmacro %}

{% macro default__geo_hex(spec, resolution, cell_column) -%}
{{ veil._geo_coded(spec, 'veil_geo_hex', resolution, cell_column) }}
{%- endmacro %}
