{% macro class_values(
    relation, quasi_identifiers, sensitive_column, unit=none, nulls='group', suppressed_marker=none
) %}
    {%- set problems = [] -%}
    {%- set column = veil._text(sensitive_column, 'sensitive_column', problems) -%}
    {%- set spec = veil._spec(relation, quasi_identifiers, problems, [column], unit, nulls, suppressed_marker) -%}
    {%- if problems -%}
        {%- do veil._fail('class_values', problems) -%}
    {%- endif -%}
    {{- return(adapter.dispatch('class_values', 'veil')(spec)) -}}
{% endmacro %}

{% macro default__class_values(spec) -%}
{%- set names = spec.quasi_identifiers + spec.sensitive -%}
with
{{ veil._counted(spec) }},
{{ veil._classes(spec) }},
{{ veil._value_counts(spec, 1) }}
select
    {%- for name in spec.quasi_identifiers %}
    value_counts1.q_{{ loop.index }} as {{ veil._quote(name) }},
    {%- endfor %}
    value_counts1.sensitive_value as {{ veil._quote(spec.sensitive[0]) }},
    value_counts1.people as {{ veil._helper_name('people', names) }},
    value_counts1.row_count as {{ veil._helper_name('row_count', names) }}
from value_counts1
{%- endmacro %}
