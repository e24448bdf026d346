{% test alpha_k_anonymity(
    model, alpha, k, quasi_identifiers=none, sensitive_column=none, column_name=none, joint=false, unit=none,
    nulls='group', suppressed_marker=none, require_rows=false, show_values=false
) %}
    {%- set specs = veil._test_specs(
        'alpha_k_anonymity', 'alpha', model, quasi_identifiers, sensitive_column, column_name,
        {'alpha': alpha, 'joint': joint},
        unit, nulls, suppressed_marker, require_rows, show_values, k
    ) -%}
    {{- adapter.dispatch('test_alpha_k_anonymity', 'veil')(specs) -}}
{% endtest %}

{% macro default__test_alpha_k_anonymity(specs) -%}
{{ veil._class_test_sql(specs) }}
{%- endmacro %}
