{% test cross_attribute(
    model, sensitive_columns, quasi_identifiers=none, column_name=none, l=2, max_share=0.8, min_association=0, unit=none,
    nulls='group', suppressed_marker=none, require_rows=false, show_values=false
) %}
    {%- set problems = [] -%}
    {%- set spec = veil._cross_spec(
        model, veil._with_column(quasi_identifiers, column_name), sensitive_columns, l, max_share, min_association,
        unit, nulls, suppressed_marker, problems
    ) -%}
    {%- do veil._read_common(spec, require_rows, show_values, problems) -%}
    {%- if problems -%}
        {%- do veil._fail('cross_attribute', problems) -%}
    {%- endif -%}
    {{- adapter.dispatch('test_cross_attribute', 'veil')(spec) -}}
{% endtest %}

{% macro default__test_cross_attribute(spec) -%}
    {%- set problem = "crossed.diverse_column || ' is diverse, ' || crossed.homogeneous_column || ' is not'" -%}
with
{{ veil._crossed(spec) }},
validation_errors as (
    {{ veil._error_row(spec, 'crossed', problem, 'crossed.top_share', spec.max_share) }}
    where crossed.association >= {{ spec.min_association }} - 1e-9
    {{- veil._nobody_errors(spec) }}
    {{- veil._common_errors(spec) }}
)
select *
from validation_errors
{%- endmacro %}
