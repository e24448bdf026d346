{% test t_closeness(
    model, t, quasi_identifiers=none, sensitive_column=none, column_name=none, distance='equal', order=none,
    hierarchy=none, reference='global', x=none, y=none, radius=none, cell=none, neighbours=none, joint=false,
    unit=none, nulls='group', suppressed_marker=none, require_rows=false, show_values=false
) %}
    {%- set specs = veil._test_specs(
        't_closeness', 't', model, quasi_identifiers, sensitive_column, column_name,
        {'t': t, 'distance': distance, 'order': order, 'hierarchy': hierarchy, 'reference': reference,
         'x': x, 'y': y, 'radius': radius, 'cell': cell, 'neighbours': neighbours, 'joint': joint},
        unit, nulls, suppressed_marker, require_rows, show_values
    ) -%}
    {{- adapter.dispatch('test_t_closeness', 'veil')(specs) -}}
{% endtest %}

{% macro default__test_t_closeness(specs) -%}
{{ veil._class_test_sql(specs) }}
{%- endmacro %}
