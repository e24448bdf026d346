{% macro beta_likeness(
    relation, quasi_identifiers, sensitive_column, kind='basic', unit=none, nulls='group', suppressed_marker=none
) %}
    {%- set specs = veil._measure_spec(
        'beta_likeness', 'beta', relation, quasi_identifiers, sensitive_column,
        {'kind': kind}, unit, nulls, suppressed_marker
    ) -%}
    {{- return(adapter.dispatch('beta_likeness', 'veil')(specs[0])) -}}
{% endmacro %}

{% macro default__beta_likeness(spec) -%}
{{ veil._class_measure_sql(spec) }}
{%- endmacro %}
