{% test delta_disclosure(
    model, delta, quasi_identifiers=none, sensitive_column=none, column_name=none, joint=false, unit=none,
    nulls='group', suppressed_marker=none, require_rows=false, show_values=false
) %}
    {%- set specs = veil._test_specs(
        'delta_disclosure', 'delta_disclosure', model, quasi_identifiers, sensitive_column, column_name,
        {'delta': delta, 'joint': joint},
        unit, nulls, suppressed_marker, require_rows, show_values
    ) -%}
    {{- adapter.dispatch('test_delta_disclosure', 'veil')(specs) -}}
{% endtest %}

{% macro default__test_delta_disclosure(specs) -%}
{{ veil._class_test_sql(specs) }}
{%- endmacro %}
