{% test l_diversity(
    model, l, quasi_identifiers=none, sensitive_column=none, column_name=none, kind='entropy', c=none, joint=false,
    unit=none, nulls='group', suppressed_marker=none, require_rows=false, show_values=false
) %}
    {%- set specs = veil._test_specs(
        'l_diversity', 'l', model, quasi_identifiers, sensitive_column, column_name,
        {'l': l, 'kind': kind, 'c': c, 'joint': joint},
        unit, nulls, suppressed_marker, require_rows, show_values
    ) -%}
    {{- adapter.dispatch('test_l_diversity', 'veil')(specs) -}}
{% endtest %}

{% macro default__test_l_diversity(specs) -%}
{{ veil._class_test_sql(specs) }}
{%- endmacro %}
