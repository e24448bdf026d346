{% macro alpha_k_anonymity(
    relation, quasi_identifiers, sensitive_column, unit=none, nulls='group', suppressed_marker=none
) %}
    {%- set specs = veil._measure_spec(
        'alpha_k_anonymity', 'alpha', relation, quasi_identifiers, sensitive_column,
        {}, unit, nulls, suppressed_marker
    ) -%}
    {{- return(adapter.dispatch('alpha_k_anonymity', 'veil')(specs[0])) -}}
{% endmacro %}

{% macro default__alpha_k_anonymity(spec) -%}
{{ veil._class_measure_sql(spec) }}
{%- endmacro %}
