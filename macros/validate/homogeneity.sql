{% test homogeneity(
    model, max_share, quasi_identifiers=none, sensitive_column=none, column_name=none, joint=false, unit=none,
    nulls='group', suppressed_marker=none, require_rows=false, show_values=false
) %}
    {%- set specs = veil._test_specs(
        'homogeneity', 'homogeneity', model, quasi_identifiers, sensitive_column, column_name,
        {'max_share': max_share, 'joint': joint},
        unit, nulls, suppressed_marker, require_rows, show_values
    ) -%}
    {{- adapter.dispatch('test_homogeneity', 'veil')(specs) -}}
{% endtest %}

{% macro default__test_homogeneity(specs) -%}
{{ veil._class_test_sql(specs) }}
{%- endmacro %}
