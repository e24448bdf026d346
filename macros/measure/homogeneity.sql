{% macro homogeneity(
    relation, quasi_identifiers, sensitive_column, unit=none, nulls='group', suppressed_marker=none
) %}
    {%- set specs = veil._measure_spec(
        'homogeneity', 'homogeneity', relation, quasi_identifiers, sensitive_column,
        {}, unit, nulls, suppressed_marker
    ) -%}
    {{- return(adapter.dispatch('homogeneity', 'veil')(specs[0])) -}}
{% endmacro %}

{% macro default__homogeneity(spec) -%}
{{ veil._class_measure_sql(spec) }}
{%- endmacro %}
