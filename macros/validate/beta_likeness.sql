{% test beta_likeness(
    model, beta, quasi_identifiers=none, sensitive_column=none, column_name=none, kind='basic', joint=false,
    unit=none, nulls='group', suppressed_marker=none, require_rows=false, show_values=false
) %}
    {%- set specs = veil._test_specs(
        'beta_likeness', 'beta', model, quasi_identifiers, sensitive_column, column_name,
        {'beta': beta, 'kind': kind, 'joint': joint},
        unit, nulls, suppressed_marker, require_rows, show_values
    ) -%}
    {{- adapter.dispatch('test_beta_likeness', 'veil')(specs) -}}
{% endtest %}

{% macro default__test_beta_likeness(specs) -%}
{{ veil._class_test_sql(specs) }}
{%- endmacro %}
