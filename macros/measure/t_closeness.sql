{% macro t_closeness(
    relation, quasi_identifiers, sensitive_column, distance='equal', order=none, hierarchy=none,
    reference='global', x=none, y=none, radius=none, cell=none, neighbours=none, unit=none, nulls='group',
    suppressed_marker=none
) %}
    {%- set specs = veil._measure_spec(
        't_closeness', 't', relation, quasi_identifiers, sensitive_column,
        {'distance': distance, 'order': order, 'hierarchy': hierarchy, 'reference': reference,
        'x': x, 'y': y, 'radius': radius, 'cell': cell, 'neighbours': neighbours}, unit, nulls, suppressed_marker
    ) -%}
    {{- return(adapter.dispatch('t_closeness', 'veil')(specs[0])) -}}
{% endmacro %}

{% macro default__t_closeness(spec) -%}
{{ veil._class_measure_sql(spec) }}
{%- endmacro %}
