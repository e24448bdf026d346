{% macro person_level_gap(
    relation, quasi_identifiers, sensitive_column, unit=none, nulls='group', suppressed_marker=none
) %}
    {%- set specs = veil._measure_spec(
        'person_level_gap', 'person_level_gap', relation, quasi_identifiers, sensitive_column,
        {}, unit, nulls, suppressed_marker
    ) -%}
    {{- return(adapter.dispatch('person_level_gap', 'veil')(specs[0])) -}}
{% endmacro %}

{% macro default__person_level_gap(spec) -%}
{{ veil._class_measure_sql(spec) }}
{%- endmacro %}
