{% macro posterior_shift(
    relation, quasi_identifiers, sensitive_column, unit=none, nulls='group', suppressed_marker=none
) %}
    {%- set specs = veil._measure_spec(
        'posterior_shift', 'posterior_shift', relation, quasi_identifiers, sensitive_column,
        {}, unit, nulls, suppressed_marker
    ) -%}
    {{- return(adapter.dispatch('posterior_shift', 'veil')(specs[0])) -}}
{% endmacro %}

{% macro default__posterior_shift(spec) -%}
{{ veil._class_measure_sql(spec) }}
{%- endmacro %}
