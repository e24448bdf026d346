{% macro delta_disclosure(
    relation, quasi_identifiers, sensitive_column, unit=none, nulls='group', suppressed_marker=none
) %}
    {%- set specs = veil._measure_spec(
        'delta_disclosure', 'delta_disclosure', relation, quasi_identifiers, sensitive_column,
        {}, unit, nulls, suppressed_marker
    ) -%}
    {{- return(adapter.dispatch('delta_disclosure', 'veil')(specs[0])) -}}
{% endmacro %}

{% macro default__delta_disclosure(spec) -%}
{{ veil._class_measure_sql(spec) }}
{%- endmacro %}
