{#- Points at the centres of cells that have a code of their own on the Earth: `code` names the function that gives it. -#}

{% macro _geo_coded(spec, code, resolution, cell_column) -%}
{%- set cell = veil._helper_name('veil_cell', spec.columns) -%}
with {{ veil._geo_located(spec) }},
coded as (
    select
        located.*,
        {{ code }}(located.{{ spec.located }}.lon, located.{{ spec.located }}.lat, {{ resolution }}) as {{ cell }}
    from located
    -- one row, or the query stops
    inner join plane
        on plane.name is not null
),
centred as (
    select
        coded.*,
        veil_geo_from_globe({{ code }}_centre(coded.{{ cell }}), {{ veil._literal(spec.crs) }}) as {{ spec.point }}
    from coded
),
{{ veil._geo_final(
    spec, 'centred', [spec.located, cell, spec.point],
    ["centred." ~ cell ~ " as " ~ veil._quote(cell_column)] if cell_column is not none else []
) }}
{%- endmacro %}

{% macro _geo_check_codes(spec, cell_column, problems) %}
    {%- if cell_column is not none and veil._text(cell_column, 'cell_column', problems) is not none -%}
        {%- do veil._geo_new_columns([cell_column], spec, problems) -%}
    {%- endif -%}
    {%- if spec.crs is string and spec.crs.startswith('plane:') -%}
        {%- do problems.append("these cells lie on the Earth: `crs` must be a system on it. Got: '" ~ spec.crs ~ "'") -%}
    {%- endif -%}
{% endmacro %}

{#- Columns a macro adds must not be there already. -#}
{% macro _geo_new_columns(names, spec, problems) %}
    {%- for name in names if name | lower in spec.columns | map('lower') | list -%}
        {%- do problems.append("the input has a column `" ~ name ~ "` already, which the result adds: rename it first") -%}
    {%- endfor -%}
{% endmacro %}
