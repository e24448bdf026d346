{#- Cells are cut in whole micrometres, so that a point on a border is in one cell and no rounding moves it. -#}

{% macro _geo_metres(spec) -%}
metres as (
    select
        located.*,
        veil_geo_project(located.{{ spec.located }}.lon, located.{{ spec.located }}.lat, plane.name) as {{ spec.metres }}
    from located
    cross join plane
)
{%- endmacro %}

{% macro _geo_micrometres(metres) %}
    {%- do return("cast(round((" ~ metres ~ ") * 1000000) as bigint)") -%}
{% endmacro %}

{#- Number of the half-open cell [n * size, (n + 1) * size) that holds a coordinate; floors below zero too. -#}
{% macro _geo_index(metres, size_um) %}
    {%- set um = veil._geo_micrometres(metres) -%}
    {%- do return("(" ~ um ~ " - (" ~ um ~ " % " ~ size_um ~ " + " ~ size_um ~ ") % " ~ size_um ~ ") // " ~ size_um) -%}
{% endmacro %}

{#- `size` metres in micrometres; a relation of sizes may hand over an expression instead. -#}
{% macro _geo_size_um(size) %}
    {%- do return((size * 1000000) | round | int) -%}
{% endmacro %}

{% macro _geo_centre(index, size_um) %}
    {%- do return("((" ~ index ~ ") * " ~ size_um ~ " + " ~ size_um ~ " / 2.0) / 1000000.0") -%}
{% endmacro %}
