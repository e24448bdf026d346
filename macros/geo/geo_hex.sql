{#- Move each point to the centre of its H3 cell. -#}

{% macro geo_hex(relation, resolution, x='lon', y='lat', cell_column=none) %}
    {%- set problems = [] -%}
    {%- set spec = veil._geo_spec('geo_hex', relation, x, y, kwargs, problems) -%}
    {%- set resolution = veil._integer(resolution, 'resolution', problems, minimum=0, maximum=15) -%}
    {%- if cell_column is not none -%}
        {%- do veil._geo_new_columns([veil._text(cell_column, 'cell_column', problems)], spec, problems) -%}
    {%- endif -%}
    {%- if spec.crs is string and spec.crs.startswith('plane:') -%}
        {%- do problems.append("H3 cells lie on the Earth: `crs` must be a system on it. Got: '" ~ spec.crs ~ "'") -%}
    {%- endif -%}
    {%- if problems -%}
        {%- do veil._fail('geo_hex', problems) -%}
    {%- endif -%}
    {%- do veil._require_udf('geo_hex', 'veil_geo_hex') -%}
    {%- do return(adapter.dispatch('geo_hex', 'veil')(spec, resolution, cell_column)) -%}
{% endmacro %}

{% macro default__geo_hex(spec, resolution, cell_column) -%}
{%- set cell = veil._helper_name('veil_cell', spec.columns) -%}
with {{ veil._geo_located(spec) }},
hexed as (
    select
        located.*,
        veil_geo_hex(located.{{ spec.located }}.lon, located.{{ spec.located }}.lat, {{ resolution }}) as {{ cell }}
    from located
    -- one row, or the query stops
    inner join plane
        on plane.name is not null
),
centred as (
    select
        hexed.*,
        veil_geo_from_globe(veil_geo_hex_centre(hexed.{{ cell }}), {{ veil._literal(spec.crs) }}) as {{ spec.point }}
    from hexed
),
{{ veil._geo_final(
    spec, 'centred', [spec.located, cell, spec.point],
    ["centred." ~ cell ~ " as " ~ veil._quote(cell_column)] if cell_column is not none else []
) }}
{%- endmacro %}

{#- Columns a macro adds must not be there already. -#}
{% macro _geo_new_columns(names, spec, problems) %}
    {%- for name in names if name | lower in spec.columns | map('lower') | list -%}
        {%- do problems.append("the input has a column `" ~ name ~ "` already, which the result adds: rename it first") -%}
    {%- endfor -%}
{% endmacro %}
