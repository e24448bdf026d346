{% macro l_diversity(
    relation, quasi_identifiers, sensitive_column, kind='entropy', l=none, c=none, unit=none, nulls='group',
    suppressed_marker=none
) %}
    {%- set specs = veil._measure_spec(
        'l_diversity', 'l', relation, quasi_identifiers, sensitive_column,
        {'kind': kind, 'l': l, 'c': c}, unit, nulls, suppressed_marker
    ) -%}
    {{- return(adapter.dispatch('l_diversity', 'veil')(specs[0])) -}}
{% endmacro %}

{% macro default__l_diversity(spec) -%}
{{ veil._class_measure_sql(spec) }}
{%- endmacro %}
