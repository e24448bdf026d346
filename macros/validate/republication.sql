{% test republication(
    model, previous, unit, k, quasi_identifiers=none, column_name=none, sensitive_column=none, m=none,
    previous_quasi_identifiers=none, nulls='group', suppressed_marker=none, require_rows=false, show_values=false
) %}
    {%- set problems = [] -%}
    {%- set spec = veil._republication_spec(
        model, previous, veil._with_column(quasi_identifiers, column_name), unit, sensitive_column, previous_quasi_identifiers,
        nulls, suppressed_marker, problems
    ) -%}
    {%- do veil._read_common(spec, require_rows, show_values, problems) -%}
    {%- do spec.update({
        'k': veil._integer(k, 'k', problems, minimum=1),
        'm': none if m is none else veil._integer(m, 'm', problems, minimum=1),
    }) -%}
    {%- if (m is none) != (sensitive_column is none) -%}
        {%- do problems.append("`m` and `sensitive_column` go together: at least m sensitive values must stay possible") -%}
    {%- endif -%}
    {%- if problems -%}
        {%- do veil._fail('republication', problems) -%}
    {%- endif -%}
    {{- adapter.dispatch('test_republication', 'veil')(spec) -}}
{% endtest %}

{% macro default__test_republication(spec) -%}
with
{{ veil._survivors(spec) }},
validation_errors as (
    {{ veil._error_row(spec, 'survivors', "'fewer than k people left by two releases together'", 'survivors.people', spec.k) }}
    where survivors.people < {{ spec.k }}
    {%- if spec.m is not none %}
    union all
    {{ veil._error_row(spec, 'survivors', "'fewer than m sensitive values left by two releases together'", 'survivors.shared_values', spec.m) }}
    where survivors.shared_values < {{ spec.m }}
    {%- endif %}
    {{- veil._common_errors(spec) }}
)
select *
from validation_errors
{%- endmacro %}
