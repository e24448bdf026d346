{#- A test over the classes of a measure: one spec for each sensitive column, and a row for each class that fails. -#}

{% macro _test_specs(
    test, measure, model, quasi_identifiers, sensitive_column, column_name, options,
    unit, nulls, suppressed_marker, require_rows, show_values, k=none
) %}
    {%- set problems = [] -%}
    {%- set specs = veil._measure_spec(
        test, measure, model, quasi_identifiers, sensitive_column if sensitive_column is not none else column_name,
        options, unit, nulls, suppressed_marker, problems, needs_threshold=true
    ) -%}
    {%- for spec in specs -%}
        {%- do veil._read_common(spec, require_rows, show_values, problems if loop.first else []) -%}
        {%- do spec.update({'k': none if k is none else veil._integer(k, 'k', problems if loop.first else [], minimum=1)}) -%}
    {%- endfor -%}
    {%- if problems -%}
        {%- do veil._fail(test, problems) -%}
    {%- endif -%}
    {%- do return(specs) -%}
{% endmacro %}

{% macro _class_test_sql(specs) -%}
    {%- if specs | length == 1 -%}
{{ veil._class_errors_sql(specs[0]) }}
    {%- else -%}
        {%- for spec in specs %}
select *
from (
    {{ veil._class_errors_sql(spec) | indent(4) }}
) as errors_{{ loop.index }}
{{ "union all" if not loop.last }}
        {%- endfor %}
    {%- endif -%}
{%- endmacro %}

{% macro _class_errors_sql(spec) -%}
    {%- set request = spec.request -%}
    {%- set threshold = request.threshold if request.get('threshold') is not none else 'null' -%}
with
{{ veil._figures_of(spec) }},
{{ veil._totals(spec) }},
validation_errors as (
    {{ veil._error_row(spec, 'figures', veil._literal(veil._problem_text(request)), 'figures.measured', threshold) }}
    where {{ veil._fails(request, 'figures') }}
    {{- veil._nobody_errors(spec) }}
    {%- if spec.k is not none %}
    union all
    {{ veil._error_row(spec, 'classes', "'fewer than k people'", 'classes.people', spec.k) }}
    where classes.people < {{ spec.k }}
    {%- endif %}
    {{- veil._common_errors(spec) }}
)
select *
from validation_errors
{%- endmacro %}

{#- 'entropy l of `diagnosis`', 't (ordered, global reference) of `income`', … -#}
{% macro _measure_label(request) %}
    {%- set more = [] -%}
    {%- if request.get('kind') is not none -%}
        {%- do more.append(request.kind) -%}
    {%- endif -%}
    {%- if request.get('scope') is not none -%}
        {%- do more.append(request.scope ~ " reference") -%}
    {%- endif -%}
    {%- do return(
        request.measure ~ (" (" ~ more | join(", ") ~ ")" if more else "") ~ " of `" ~ request.column ~ "`"
        ~ (" within the other sensitive columns" if request.joint else "")
    ) -%}
{% endmacro %}

{% macro _problem_text(request) %}
    {%- do return(veil._measure_label(request) ~ " is not " ~ request.keeps ~ " the threshold") -%}
{% endmacro %}
