{% test person_level_gap(
    model, max_gap, quasi_identifiers=none, sensitive_column=none, column_name=none, joint=false, unit=none,
    nulls='group', suppressed_marker=none, require_rows=false, show_values=false
) %}
    {%- do veil._require_unit('person_level_gap', unit) -%}
    {%- set specs = veil._test_specs(
        'person_level_gap', 'person_level_gap', model, quasi_identifiers, sensitive_column, column_name,
        {'max_gap': max_gap, 'joint': joint},
        unit, nulls, suppressed_marker, require_rows, show_values
    ) -%}
    {{- adapter.dispatch('test_person_level_gap', 'veil')(specs) -}}
{% endtest %}

{% macro default__test_person_level_gap(specs) -%}
{{ veil._class_test_sql(specs) }}
{%- endmacro %}
