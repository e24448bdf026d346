{% macro person_level_gap(
    relation, quasi_identifiers, sensitive_column, unit=none, nulls='group', suppressed_marker=none
) %}
    {%- do veil._require_unit('person_level_gap', unit) -%}
    {%- set specs = veil._measure_spec(
        'person_level_gap', 'person_level_gap', relation, quasi_identifiers, sensitive_column,
        {}, unit, nulls, suppressed_marker
    ) -%}
    {{- return(adapter.dispatch('person_level_gap', 'veil')(specs[0])) -}}
{% endmacro %}

{% macro default__person_level_gap(spec) -%}
{{ veil._class_measure_sql(spec) }}
{%- endmacro %}

{#- Without a unit every row is a person, and rows never differ from people. -#}
{% macro _require_unit(macro, unit) %}
    {%- if unit is none -%}
        {%- do veil._fail(macro, ["`unit` is missing: without it every row is a person, and the gap is always 0"]) -%}
    {%- endif -%}
{% endmacro %}
