{% test posterior_shift(
    model, max_difference=none, max_ratio=none, quasi_identifiers=none, sensitive_column=none, column_name=none,
    joint=false, unit=none, nulls='group', suppressed_marker=none, require_rows=false, show_values=false
) %}
    {%- set specs = veil._test_specs(
        'posterior_shift', 'posterior_shift', model, quasi_identifiers, sensitive_column, column_name,
        {'max_difference': max_difference, 'max_ratio': max_ratio, 'joint': joint},
        unit, nulls, suppressed_marker, require_rows, show_values
    ) -%}
    {{- adapter.dispatch('test_posterior_shift', 'veil')(specs) -}}
{% endtest %}

{% macro default__test_posterior_shift(specs) -%}
{{ veil._class_test_sql(specs) }}
{%- endmacro %}
