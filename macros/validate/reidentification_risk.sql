{% test reidentification_risk(
    model, quasi_identifiers=none, column_name=none, max_risk=none, mean_risk=none, max_unique_share=none, population=none,
    unit=none, nulls='group', suppressed_marker=none, require_rows=false, show_values=false
) %}
    {%- set problems = [] -%}
    {%- set spec = veil._spec(model, veil._with_column(quasi_identifiers, column_name), problems, [], unit, nulls, suppressed_marker) -%}
    {%- do veil._read_population(spec, population, problems, required=false) -%}
    {%- do veil._read_common(spec, require_rows, show_values, problems) -%}
    {%- set limits = {'max_risk': max_risk, 'mean_risk': mean_risk, 'max_unique_share': max_unique_share} -%}
    {%- for name, value in limits.items() if value is not none -%}
        {%- do spec.update({name: veil._number(value, name, problems, minimum=0, maximum=1)}) -%}
    {%- else -%}
        {%- do problems.append("one of `max_risk`, `mean_risk`, `max_unique_share` must be given") -%}
    {%- endfor -%}
    {%- if problems -%}
        {%- do veil._fail('reidentification_risk', problems) -%}
    {%- endif -%}
    {{- adapter.dispatch('test_reidentification_risk', 'veil')(spec) -}}
{% endtest %}

{% macro default__test_reidentification_risk(spec) -%}
    {%- set known = spec.population is not none -%}
    {%- set worst = 'journalist_risk' if known else 'prosecutor_risk' -%}
    {%- set mean = 'marketer_risk' if known else 'mean_risk' -%}
    {%- set errors = [] -%}
    {%- if spec.get('max_risk') is not none -%}
        {%- do errors.append(veil._error_row(spec, 'class_risks', veil._literal(worst ~ " above max_risk"), "class_risks." ~ worst, spec.max_risk)
            ~ "\n    where class_risks." ~ worst ~ " > " ~ spec.max_risk ~ " + 1e-9") -%}
    {%- endif -%}
    {%- if spec.get('mean_risk') is not none -%}
        {%- do errors.append(veil._error_row(spec, 'risk_summary', veil._literal(mean ~ " above the limit"), "risk_summary." ~ mean, spec.mean_risk, class_level=false)
            ~ "\n    where risk_summary." ~ mean ~ " > " ~ spec.mean_risk ~ " + 1e-9") -%}
    {%- endif -%}
    {%- if spec.get('max_unique_share') is not none -%}
        {%- do errors.append(veil._error_row(spec, 'risk_summary', "'larger share of people unique than max_unique_share'", "risk_summary.unique_share", spec.max_unique_share, class_level=false)
            ~ "\n    where risk_summary.unique_share > " ~ spec.max_unique_share ~ " + 1e-9") -%}
    {%- endif -%}
with
{{ veil._risks(spec) }},
validation_errors as (
    {{ errors | join("\n    union all\n    ") }}
    {{- veil._nobody_errors(spec) }}
    {{- veil._common_errors(spec) }}
)
select *
from validation_errors
{%- endmacro %}
