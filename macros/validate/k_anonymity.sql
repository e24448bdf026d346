{% test k_anonymity(
    model, k, quasi_identifiers=none, column_name=none, unit=none, nulls='group', suppressed_marker=none,
    max_suppression=none, require_rows=false, show_values=false
) %}
    {%- set problems = [] -%}
    {%- set keys = veil._with_column(quasi_identifiers, column_name) -%}
    {%- set spec = veil._spec(model, keys, problems, [], unit, nulls, suppressed_marker) -%}
    {%- do spec.update({
        'k': veil._integer(k, 'k', problems, minimum=1),
        'max_suppression': none if max_suppression is none
            else veil._number(max_suppression, 'max_suppression', problems, minimum=0, maximum=1),
    }) -%}
    {%- do veil._read_common(spec, require_rows, show_values, problems) -%}
    {%- if problems -%}
        {%- do veil._fail('k_anonymity', problems) -%}
    {%- endif -%}
    {{- adapter.dispatch('test_k_anonymity', 'veil')(spec) -}}
{% endtest %}

{% macro default__test_k_anonymity(spec) -%}
with {{ veil._counted(spec) }},
{{ veil._classes(spec) }},
{{ veil._totals(spec) }},
validation_errors as (
    {{ veil._error_row(spec, 'classes', "'fewer than k people'", 'classes.people', spec.k) }}
    where classes.people < {{ spec.k }}
    {{- veil._common_errors(spec) }}
)
select *
from validation_errors
{%- endmacro %}
